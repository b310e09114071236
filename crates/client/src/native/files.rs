//! What a client keeps, in its state directory.

use crate::keep::Keep;
use primer_service::ServiceError;
use primer_service::state::{State, create_private, read_if_there, write_private};
use std::path::PathBuf;

/// The directory of clients in a state directory.
const DIR: &str = "client";

/// Files of a state directory.
pub(crate) struct Files(State);

impl Files {
    pub(crate) fn new(state: State) -> Self {
        Self(state)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(DIR).join(name)
    }

    /// Returns the path of a file that is going to be written.
    fn with_its_directory(&self, name: &str) -> Result<PathBuf, ServiceError> {
        let dir = name.rsplit_once('/').map_or("", |(dir, _)| dir);
        self.0.dir(&format!("{DIR}/{dir}"))?;
        Ok(self.path(name))
    }
}

impl Keep for Files {
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ServiceError> {
        read_if_there(&self.path(name))
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), ServiceError> {
        write_private(&self.with_its_directory(name)?, bytes)
    }

    fn create(&mut self, name: &str, bytes: &[u8]) -> Result<bool, ServiceError> {
        create_private(&self.with_its_directory(name)?, bytes)
    }

    fn place(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

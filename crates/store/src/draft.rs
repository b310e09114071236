//! A bundle that is being written.

use crate::error::{Result, StoreError};
use crate::record::Meta;
use std::io::{self, Write};
use std::path::PathBuf;

/// Where the material of a draft goes. One that is dropped before it is committed leaves nothing
/// behind.
pub trait Pending: Write + Send {
    /// Makes what was written durable, then the bundle visible.
    ///
    /// # Errors
    /// If a write failed, or the name is taken. Then nothing is left, and the store is as it was.
    fn commit(self: Box<Self>, meta: &Meta) -> Result<()>;
}

/// A bundle that is being written: it is invisible before [`Draft::commit`], and without that
/// nothing of it is left.
///
/// The first write that fails ends the draft: when one of the next writes notices, what was written
/// is removed, so that a full disk is not kept full, and further calls report the first failure.
#[must_use = "a draft that is not committed is removed"]
pub struct Draft {
    meta: Meta,
    /// A file, or the name of an object: for messages.
    place: PathBuf,
    state: State,
}

enum State {
    Open(Box<dyn Pending>),
    Failed(String),
    Done,
}

impl Draft {
    /// Begins one, as a store does; messages name the place.
    pub fn new(meta: Meta, place: impl Into<PathBuf>, pending: impl Pending + 'static) -> Self {
        Self {
            meta,
            place: place.into(),
            state: State::Open(Box::new(pending)),
        }
    }

    /// Returns what the draft is for.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Makes the bundle durable, then visible. Once this returns, a power cut cannot undo it.
    ///
    /// # Errors
    /// If a write failed, now or before, or the name is taken. Then the draft is gone and the store
    /// is as it was.
    pub fn commit(mut self) -> Result<()> {
        let id = self.meta.id;
        match std::mem::replace(&mut self.state, State::Done) {
            State::Open(pending) => pending.commit(&self.meta),
            State::Failed(fault) => Err(StoreError::Draft { id, fault }),
            State::Done => unreachable!("commit consumes the draft"),
        }
    }

    fn fail(&mut self, error: io::Error) -> io::Error {
        let fault = format!("cannot write {}: {error}", self.place.display());
        let told = io::Error::new(error.kind(), fault.clone());
        // What was written goes with the writer.
        self.state = State::Failed(fault);
        told
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Open(pending) => pending.write(bytes).map_err(|e| self.fail(e)),
            State::Failed(fault) => Err(io::Error::other(fault.clone())),
            State::Done => unreachable!("commit consumes the draft"),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            // Data on its way gets to its place with the commit.
            State::Open(_) | State::Done => Ok(()),
            State::Failed(fault) => Err(io::Error::other(fault.clone())),
        }
    }
}

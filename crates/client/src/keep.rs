//! Small things that a client keeps: its pseudonyms, its servers' tokenizers and offers.

use primer_service::ServiceError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keeps bytes under names such as `tokenizers/HASH`, readable for the client's owner alone.
/// Several processes may use the same names.
pub trait Keep: Send {
    /// Reads what is kept under a name, if there is something.
    ///
    /// # Errors
    /// If it cannot be read; so of what follows, if it cannot be written.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ServiceError>;

    /// Keeps bytes under a name: durably, and all of them or what was there before.
    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), ServiceError>;

    /// Does the same unless there is something under that name, which then stays as it is. Tells
    /// whether it was written.
    fn create(&mut self, name: &str, bytes: &[u8]) -> Result<bool, ServiceError>;

    /// Returns where that is, for messages.
    fn place(&self, name: &str) -> String {
        name.to_owned()
    }
}

/// Keeps bytes as long as this and its clones live.
#[derive(Clone, Default)]
pub struct MemoryKeep(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl MemoryKeep {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keep for MemoryKeep {
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ServiceError> {
        Ok(self.all().get(name).cloned())
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), ServiceError> {
        self.all().insert(name.to_owned(), bytes.to_owned());
        Ok(())
    }

    fn create(&mut self, name: &str, bytes: &[u8]) -> Result<bool, ServiceError> {
        let mut all = self.all();
        let is_new = !all.contains_key(name);
        if is_new {
            all.insert(name.to_owned(), bytes.to_owned());
        }
        Ok(is_new)
    }
}

/// Makes a part of a name of an address.
pub(crate) fn file_name(address: &str) -> String {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || ".-".contains(c) {
            c
        } else {
            '_'
        }
    };
    address.chars().map(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_stays_or_is_replaced_as_told() {
        let mut keep = MemoryKeep::default();
        let again = keep.clone();
        assert_eq!(keep.read("a").unwrap(), None);
        assert!(keep.create("a", b"one").unwrap());
        assert!(!keep.create("a", b"two").unwrap());
        assert_eq!(again.read("a").unwrap().unwrap(), b"one");
        keep.write("a", b"two").unwrap();
        assert_eq!(again.read("a").unwrap().unwrap(), b"two");
        assert_eq!(file_name("[::1]:70/.."), "___1__70_..");
    }
}

//! Where a shared store is, and what opens it.

use crate::error::{Result, StoreError};
use crate::files::{self, StoreKey, key_check};
use std::fmt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The environment variable that may hold the keys of a shared store.
pub const KEY_VARIABLE: &str = "PRIMER_STORE_KEY";

/// Where a shared store is, and what opens it.
pub struct FleetOptions {
    /// The database: `postgres://user:password@host/database`.
    pub database: String,
    /// Certificates, as PEM, of the authorities that may vouch for the database; the system's if
    /// not given.
    pub authority: Option<PathBuf>,
    /// The place for blobs: `s3://bucket/prefix`, or `file:///directory` that all replicas share.
    /// What else S3 needs (keys, region, endpoint) comes from the usual variables of the
    /// environment, `AWS_…`.
    pub blobs: String,
    /// What seals bundles.
    pub keys: Keys,
    /// What this replica is called in logs and journals.
    pub name: String,
    /// A file of this machine that remembers the latest epoch: a witness if database and blobs are
    /// rolled back together.
    pub witness: Option<PathBuf>,
}

/// The keys of a shared store: the first seals, all open.
///
/// To exchange a key, give all replicas the new one as the second, then as the first, and leave the
/// old one out when its last bundle has expired.
#[derive(Clone)]
pub struct Keys(Vec<StoreKey>);

impl Keys {
    /// Reads files of 32 bytes each, which only their owner may read.
    ///
    /// # Errors
    /// [`StoreError::KeyFile`] naming the file at fault.
    pub fn from_files(paths: &[impl AsRef<Path>]) -> Result<Self> {
        let keys = paths.iter().map(|path| {
            let path = path.as_ref();
            if !path.exists() {
                let fault = "is missing; all replicas of a shared store need the same keys, so \
                             none is made here";
                return Err(StoreError::KeyFile {
                    path: path.to_path_buf(),
                    fault: fault.into(),
                });
            }
            files::load_key(path, false)
        });
        Self::some(keys.collect::<Result<_>>()?)
    }

    /// Reads keys of 64 hexadecimal digits each, with commas between them.
    ///
    /// # Errors
    /// [`StoreError::Options`] that says which key is not one, without showing it.
    pub fn from_text(text: &str) -> Result<Self> {
        let keys = text.split(',').zip(1..).map(|(digits, number)| {
            hex(digits.trim()).ok_or_else(|| StoreError::Options {
                fault: format!("key {number} of {KEY_VARIABLE} is not 64 hexadecimal digits"),
            })
        });
        Self::some(keys.collect::<Result<_>>()?)
    }

    fn some(keys: Vec<StoreKey>) -> Result<Self> {
        if keys.is_empty() {
            return Err(StoreError::Options {
                fault: "a shared store needs a key".into(),
            });
        }
        Ok(Self(keys))
    }

    /// Returns the key that seals, and how a bundle names it.
    #[cfg_attr(not(feature = "fleet"), allow(dead_code))]
    pub(crate) fn sealing(&self) -> (&StoreKey, [u8; 8]) {
        (&self.0[0], key_name(&self.0[0]))
    }

    /// Derives another secret that all replicas have; it changes with the sealing key.
    pub fn derive(&self, context: &str) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(blake3::derive_key(context, &self.0[0][..]))
    }

    /// Returns the key that a bundle names; bundles of earlier versions name none, and then the
    /// last key is the oldest.
    #[cfg_attr(not(feature = "fleet"), allow(dead_code))]
    pub(crate) fn named(&self, name: Option<&[u8]>) -> Option<&StoreKey> {
        match name {
            None => self.0.last(),
            Some(name) => self.0.iter().find(|key| key_name(key) == name),
        }
    }

    /// Returns the names of all keys.
    #[cfg_attr(not(feature = "fleet"), allow(dead_code))]
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        self.0.iter().map(|key| key_name(key).to_vec()).collect()
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}

fn key_name(key: &StoreKey) -> [u8; 8] {
    key_check(key)[..8].try_into().expect("eight of 32")
}

fn hex(digits: &str) -> Option<StoreKey> {
    let mut key = StoreKey::default();
    let digits = Zeroizing::new(digits.as_bytes().to_vec());
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16);
        *byte = (value(pair[0])? << 4 | value(pair[1])?) as u8;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_come_from_text_or_files_and_are_never_shown() {
        let text = format!("{}, {}", "0a".repeat(32), "FF".repeat(32));
        let keys = Keys::from_text(&text).unwrap();
        assert_eq!(keys.sealing().0[..], [10; 32]);
        let second = keys.names()[1].clone();
        assert_eq!(keys.named(Some(&second)).unwrap()[..], [255; 32]);
        assert_eq!(keys.named(None).unwrap()[..], [255; 32]);
        assert!(keys.named(Some(&[0; 8])).is_none());
        assert_eq!(format!("{keys:?}"), "2 keys");
        let alone = Keys::from_text(&"0A".repeat(32)).unwrap();
        assert_eq!(keys.derive("a test"), alone.derive("a test"));
        assert_ne!(keys.derive("a test"), keys.derive("another test"));
        assert_ne!(keys.derive("a test")[..], [10; 32]);
        for wrong in ["", "0a", &"0g".repeat(32), &format!("{text},")] {
            let error = Keys::from_text(wrong).unwrap_err().to_string();
            assert!(error.contains("is not 64 hexadecimal digits"), "{error}");
            assert!(wrong.is_empty() || !error.contains(wrong), "{error}");
        }

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let error = Keys::from_files(&[&path]).unwrap_err().to_string();
        assert!(error.contains("is missing"), "{error}");
        std::fs::write(&path, [10; 32]).unwrap();
        let mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o640);
        let error = Keys::from_files(&[&path]).unwrap_err().to_string();
        assert!(error.contains("mode 0640"), "{error}");
        mode(0o400);
        let read = Keys::from_files(&[&path]).unwrap();
        assert_eq!(read.names()[0], keys.names()[0]);
        assert!(Keys::from_files(&[""; 0]).is_err());
    }
}

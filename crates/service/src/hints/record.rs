//! What is kept beside a hint: whose it is, and the hashes of its chunks.

use crate::hex;
use primer_hint::published::{Identity, Index};
use serde::{Deserialize, Serialize};

/// A hint, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The model's name, as its server calls it.
    pub model: String,
    /// Where it was fetched; none if it was built here.
    pub server: Option<String>,
    /// The hashes of its chunks, which name it.
    pub index: Index,
}

/// A record as it is written.
#[derive(Serialize, Deserialize)]
struct Written {
    model: String,
    server: Option<String>,
    name: String,
    bytes: u64,
    root: String,
    hashes: String,
}

impl Record {
    /// Writes it as a text.
    pub fn encode(&self) -> Vec<u8> {
        let identity = self.index.identity();
        let written = Written {
            model: self.model.clone(),
            server: self.server.clone(),
            name: hex(&identity.name),
            bytes: identity.bytes,
            root: hex(&identity.root),
            hashes: hex(&self.index.encode()),
        };
        serde_json::to_vec_pretty(&written).expect("texts and a number are JSON")
    }

    /// Reads such a text; none if it is no record of a hint.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let written: Written = serde_json::from_slice(bytes).ok()?;
        let identity = Identity {
            name: from_hex(&written.name)?.try_into().ok()?,
            bytes: written.bytes,
            root: from_hex(&written.root)?.try_into().ok()?,
        };
        Some(Self {
            model: written.model,
            server: written.server,
            index: Index::decode(&identity, &from_hex(&written.hashes)?).ok()?,
        })
    }
}

#[cfg(feature = "files")]
mod files {
    use super::Record;
    use crate::ServiceError;
    use crate::state::{read_if_there, write_private};
    use std::path::Path;

    impl Record {
        /// Writes it to a file, whole or not at all.
        ///
        /// # Errors
        /// If the system fails.
        pub fn write(&self, path: &Path) -> Result<(), ServiceError> {
            write_private(path, &self.encode())
        }

        /// Reads one from a file; none if it is not there, or is no record of a hint.
        ///
        /// # Errors
        /// If it is there and cannot be read.
        pub fn read(path: &Path) -> Result<Option<Self>, ServiceError> {
            Ok(read_if_there(path)?.and_then(|bytes| Self::decode(&bytes)))
        }
    }
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| match pair {
        [high, low] => Some((value(*high)? << 4 | value(*low)?) as u8),
        _ => None,
    });
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_was_changed_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("record");
        assert_eq!(Record::read(&path).unwrap(), None);
        let record = Record {
            model: "a model".into(),
            server: Some("a:1".into()),
            index: Index::of(&[3; 32], &[7; 3_000_000]),
        };
        record.write(&path).unwrap();
        assert_eq!(Record::read(&path).unwrap().unwrap(), record);
        let text = std::fs::read_to_string(&path).unwrap();
        let root = hex(&record.index.identity().root);
        for (from, to) in [
            ("3000000", "3000001"),
            (&root[..], &"0".repeat(64)[..]),
            (&root[..], "zz"),
            ("model", "mdl"),
        ] {
            std::fs::write(&path, text.replace(from, to)).unwrap();
            assert_eq!(Record::read(&path).unwrap(), None, "{from}");
        }
        std::fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert_eq!(Record::read(&path).unwrap(), None);
    }
}

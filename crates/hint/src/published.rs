//! A model's hint as a file: the hints of all values, one after the other, in chunks with hashes.
//!
//! The bytes are the same for all clients and may come from anywhere: an [`Identity`], which a
//! client has from its server, names a list of hashes ([`Index`]), and the list names every chunk.
//! Every chunk is compared with its hash each time that it is read, before it is used: one that
//! rotted on a disk is an error and not a wrong answer.

use crate::contents::Contents;
use crate::error::HintError;
use crate::params::{fingerprint, hint_bytes};
use crate::public::Name;
use crate::server::Hint;
use crate::storage::ReadAt;
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::Range;

/// Bytes of a chunk; the last one may be shorter.
pub const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of a hash.
const HASH_BYTES: usize = 32;

/// A hash of BLAKE3.
pub type Hash = [u8; HASH_BYTES];

/// What names a hint, and is enough to check all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// What its public elements are expanded from.
    pub name: Name,
    /// Its bytes.
    pub bytes: u64,
    /// Stands for the parameters, the name, the length and the hashes of all chunks.
    pub root: Hash,
}

/// The hashes of all chunks of a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    name: Name,
    bytes: u64,
    hashes: Vec<Hash>,
}

impl Identity {
    /// Returns the bytes of the list of hashes.
    pub fn index_bytes(&self) -> u64 {
        self.bytes.div_ceil(CHUNK_BYTES as u64) * HASH_BYTES as u64
    }
}

impl Index {
    /// Hashes a whole hint.
    pub fn of(name: &Name, bytes: &[u8]) -> Self {
        let chunks = bytes.chunks(CHUNK_BYTES);
        Self {
            name: *name,
            bytes: bytes.len() as u64,
            hashes: chunks
                .map(|chunk| *blake3::hash(chunk).as_bytes())
                .collect(),
        }
    }

    /// Takes hashes that were computed elsewhere.
    pub(crate) fn from_hashes(name: Name, bytes: u64, hashes: Vec<Hash>) -> Self {
        Self {
            name,
            bytes,
            hashes,
        }
    }

    /// Returns what names this hint.
    pub fn identity(&self) -> Identity {
        let mut hasher = blake3::Hasher::new_derive_key("primer hint index v1");
        hasher.update(&fingerprint());
        hasher.update(&self.name);
        hasher.update(&self.bytes.to_le_bytes());
        hasher.update(self.hashes.as_flattened());
        Identity {
            name: self.name,
            bytes: self.bytes,
            root: *hasher.finalize().as_bytes(),
        }
    }

    /// Returns the hashes, one after the other.
    pub fn encode(&self) -> Vec<u8> {
        self.hashes.as_flattened().to_vec()
    }

    /// Reads the list of an identity.
    ///
    /// # Errors
    /// [`HintError::Other`] if it is the list of another hint.
    pub fn decode(identity: &Identity, bytes: &[u8]) -> Result<Self, HintError> {
        let index = Self {
            name: identity.name,
            bytes: identity.bytes,
            hashes: bytes.as_chunks::<HASH_BYTES>().0.to_vec(),
        };
        if bytes.len() as u64 != identity.index_bytes() || index.identity() != *identity {
            return Err(HintError::Other {
                what: "the list of a hint's hashes",
            });
        }
        Ok(index)
    }

    /// Returns the number of chunks.
    pub fn chunks(&self) -> usize {
        self.hashes.len()
    }

    /// Returns where a chunk lies.
    pub fn place(&self, chunk: usize) -> Range<u64> {
        let start = (chunk * CHUNK_BYTES) as u64;
        start..self.bytes.min(start + CHUNK_BYTES as u64)
    }

    /// Compares a chunk with its hash.
    ///
    /// # Errors
    /// [`HintError::Damaged`] if it is another one.
    pub fn check(&self, chunk: usize, bytes: &[u8]) -> Result<(), HintError> {
        match self.hashes.get(chunk) == Some(blake3::hash(bytes).as_bytes()) {
            true => Ok(()),
            false => Err(HintError::Damaged { chunk }),
        }
    }
}

/// Where the bytes of a hint are.
enum HintStorage {
    Memory(Vec<u8>),
    File(Box<dyn ReadAt>),
}

/// A whole hint: in memory, or in a file that is read as it is needed.
pub struct Published {
    index: Index,
    identity: Identity,
    storage: HintStorage,
}

impl Published {
    /// Takes a hint in memory.
    pub fn in_memory(name: &Name, bytes: Vec<u8>) -> Self {
        let index = Index::of(name, &bytes);
        Self::at(index, HintStorage::Memory(bytes))
    }

    /// Takes a file. Its chunks are compared with their hashes when they are read.
    pub fn in_file(index: Index, file: impl ReadAt + 'static) -> Self {
        Self::at(index, HintStorage::File(Box::new(file)))
    }

    fn at(index: Index, storage: HintStorage) -> Self {
        Self {
            identity: index.identity(),
            index,
            storage,
        }
    }

    /// Returns what names it.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the hashes of its chunks.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Reads a chunk, and compares it with its hash.
    ///
    /// # Errors
    /// [`HintError::Damaged`] if it is not what it was, [`HintError::Io`] if it cannot be read.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn chunk(&self, chunk: usize) -> Result<Vec<u8>, HintError> {
        assert!(chunk < self.index.chunks(), "there is no chunk {chunk}");
        let place = self.index.place(chunk);
        let mut bytes = vec![0; (place.end - place.start) as usize];
        match &self.storage {
            HintStorage::Memory(all) => {
                bytes.copy_from_slice(&all[place.start as usize..place.end as usize]);
            }
            HintStorage::File(file) => {
                let read = file.read_exact_at(&mut bytes, place.start);
                read.map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => HintError::Damaged { chunk },
                    _ => error.into(),
                })?;
            }
        }
        self.index.check(chunk, &bytes)?;
        Ok(bytes)
    }

    /// Reads the hint of an entry.
    ///
    /// # Errors
    /// [`HintError::Other`] if the whole is not as long as its contents say; as [`Self::chunk`].
    pub fn hint(&self, contents: &Contents, entry: usize) -> Result<Hint, HintError> {
        if contents.bytes() != self.identity.bytes {
            let what = "a hint of another length";
            return Err(HintError::Other { what });
        }
        let (place, outputs) = (contents.place(entry), contents.entries()[entry].outputs);
        let mut bytes = Vec::with_capacity(hint_bytes(outputs));
        let first = place.start / CHUNK_BYTES as u64;
        for chunk in first..place.end.div_ceil(CHUNK_BYTES as u64) {
            let all = self.chunk(chunk as usize)?;
            let start = self.index.place(chunk as usize).start;
            let from = place.start.saturating_sub(start) as usize;
            let to = all.len().min((place.end - start) as usize);
            bytes.extend_from_slice(&all[from..to]);
        }
        Hint::decode(&bytes, outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::Entry;
    use std::io::Write;

    fn contents() -> Contents {
        let entry = |value, outputs| Entry {
            value,
            features: 8,
            outputs,
        };
        Contents::new(vec![entry(0, 1000), entry(3, 8), entry(4, 9)])
    }

    fn bytes() -> Vec<u8> {
        let length = contents().bytes() as usize;
        (0..length).map(|i| ((i * i) >> 7) as u8).collect()
    }

    #[test]
    fn hints_lie_where_contents_say() {
        let (contents, all) = (contents(), bytes());
        let hint = Published::in_memory(&[1; 32], all.clone());
        for entry in 0..3 {
            let place = contents.place(entry);
            let part = &all[place.start as usize..place.end as usize];
            let found = hint.hint(&contents, entry).unwrap();
            assert_eq!(found.encode(), part);
            assert_eq!(found.outputs(), contents.entries()[entry].outputs);
        }
        let fewer = Contents::new(contents.entries()[..2].to_vec());
        assert!(matches!(hint.hint(&fewer, 0), Err(HintError::Other { .. })));
    }

    #[test]
    fn damage_is_found_where_it_is() {
        let (contents, all) = (contents(), bytes());
        let index = Index::of(&[1; 32], &all);
        assert_eq!(index.chunks(), 2);
        let mut file = tempfile::tempfile().unwrap();
        let mut damaged = all.clone();
        *damaged.last_mut().unwrap() ^= 1;
        file.write_all(&damaged).unwrap();
        let hint = Published::in_file(index.clone(), file.try_clone().unwrap());
        assert_eq!(hint.chunk(0).unwrap(), all[..CHUNK_BYTES]);
        assert!(matches!(
            hint.chunk(1),
            Err(HintError::Damaged { chunk: 1 })
        ));
        assert!(hint.hint(&contents, 2).is_err());
        file.set_len(CHUNK_BYTES as u64 + 5).unwrap();
        assert!(matches!(
            hint.chunk(1),
            Err(HintError::Damaged { chunk: 1 })
        ));
    }

    /// Checks that any difference changes the identity.
    #[test]
    fn lists_of_other_hints_are_refused() {
        let index = Index::of(&[1; 32], &bytes());
        let identity = index.identity();
        let encoded = index.encode();
        assert_eq!(identity.index_bytes(), encoded.len() as u64);
        assert_eq!(Index::decode(&identity, &encoded).unwrap(), index);
        let mut other = encoded.clone();
        other[40] ^= 1;
        assert!(Index::decode(&identity, &other).is_err());
        assert!(Index::decode(&identity, &encoded[..32]).is_err());
        assert!(Index::decode(&identity, &[&encoded[..], &[0]].concat()).is_err());
        let named = Identity {
            name: [2; 32],
            ..identity
        };
        assert!(Index::decode(&named, &encoded).is_err());
        let longer = Identity {
            bytes: identity.bytes + 1,
            ..identity
        };
        assert!(Index::decode(&longer, &encoded).is_err());
    }
}

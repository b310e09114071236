//! The multipliers of all values of a model: in memory as far as they fit, in a file beyond.
//!
//! They take 12.8 kB for each output (1.3 GB for BERT-base), and building them takes a minute, so a
//! server keeps them in a file beside the hint. The part that does not fit into the memory that it
//! is given is read again for every batch.

use crate::contents::Contents;
use crate::error::HintError;
use crate::published::{Hash, Identity};
use crate::server::{Multiplier, Received};
use crate::storage::ReadAt;
use primer_ring::matrix::Matrix;
use std::io::{self, Read};

/// A multiplier, or where it is.
enum MultiplierSource {
    Memory(Multiplier),
    /// In the file, from this byte on.
    File {
        at: u64,
        outputs: usize,
        hash: Hash,
    },
}

/// What a server multiplies clients' messages with.
pub struct Multipliers {
    identity: Identity,
    held: Vec<MultiplierSource>,
    file: Option<Box<dyn ReadAt>>,
}

/// The first bytes of such a file.
const MAGIC: &[u8; 16] = b"primer digits v1";
/// Bytes before the first multiplier.
pub(crate) const HEAD_BYTES: usize = MAGIC.len() + 2 * size_of::<Hash>();

/// Returns the bytes of the file of all multipliers.
pub fn file_bytes(contents: &Contents) -> u64 {
    let each = contents.entries().iter();
    let each = each.map(|entry| (size_of::<Hash>() + Multiplier::bytes_of(entry.outputs)) as u64);
    HEAD_BYTES as u64 + each.sum::<u64>()
}

impl Multipliers {
    /// Takes the multipliers of a hint, one for each of its contents.
    pub fn in_memory(identity: Identity, multipliers: Vec<Multiplier>) -> Self {
        Self {
            identity,
            held: multipliers
                .into_iter()
                .map(MultiplierSource::Memory)
                .collect(),
            file: None,
        }
    }

    /// Returns what names the hint that they belong to.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns the bytes that they take in memory.
    pub fn memory(&self) -> usize {
        let each = self.held.iter().map(|held| match held {
            MultiplierSource::Memory(multiplier) => multiplier.bytes().len(),
            MultiplierSource::File { .. } => 0,
        });
        each.sum()
    }

    /// Reads what a [`MultiplierWriter`](crate::writing::MultiplierWriter) wrote for a hint. At
    /// most `memory` bytes are kept in memory.
    ///
    /// # Errors
    /// [`HintError::Other`] if it was written for another hint or is damaged.
    pub fn open(
        mut file: impl Read + ReadAt + 'static,
        identity: &Identity,
        contents: &Contents,
        memory: usize,
    ) -> Result<Self, HintError> {
        let other = || HintError::Other {
            what: "the file of multipliers",
        };
        let mut read = |bytes: &mut [u8]| {
            let whole = file.read_exact(bytes);
            whole.map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => other(),
                _ => error.into(),
            })
        };
        let expected = head(identity);
        let mut found = vec![0; expected.len()];
        read(&mut found)?;
        if found != expected {
            return Err(other());
        }
        let (mut held, mut kept) = (Vec::new(), 0);
        let mut at = expected.len() as u64;
        for entry in contents.entries() {
            let mut hash = Hash::default();
            read(&mut hash)?;
            let mut multiplier = Multiplier::zeros(entry.outputs);
            read(multiplier.bytes_mut())?;
            let bytes = multiplier.bytes();
            if *blake3::hash(bytes).as_bytes() != hash {
                return Err(other());
            }
            at += hash.len() as u64;
            let length = bytes.len();
            held.push(match kept + length <= memory {
                true => {
                    kept += length;
                    MultiplierSource::Memory(multiplier)
                }
                false => MultiplierSource::File {
                    at,
                    outputs: entry.outputs,
                    hash,
                },
            });
            at += length as u64;
        }
        if file.read(&mut [0])? != 0 {
            return Err(other());
        }
        Ok(Self {
            identity: *identity,
            held,
            file: Some(Box::new(file)),
        })
    }

    /// Returns the server's shares of the first lanes of a batch of the value of an entry.
    ///
    /// # Errors
    /// If the multiplier is in a file that cannot be read, or is damaged.
    pub fn shares(
        &self,
        index: usize,
        lanes: usize,
        message: &Received,
        threads: usize,
    ) -> Result<Matrix<u64>, HintError> {
        self.with(index, |multiplier| {
            Ok(multiplier.shares(lanes, message, threads))
        })
    }

    fn with<T>(
        &self,
        index: usize,
        use_it: impl FnOnce(&Multiplier) -> Result<T, HintError>,
    ) -> Result<T, HintError> {
        match &self.held[index] {
            MultiplierSource::Memory(multiplier) => use_it(multiplier),
            MultiplierSource::File { at, outputs, hash } => {
                let mut multiplier = Multiplier::zeros(*outputs);
                let file = self.file.as_ref().expect("opened with its file");
                file.read_exact_at(multiplier.bytes_mut(), *at)?;
                if blake3::hash(multiplier.bytes()).as_bytes() != hash {
                    let what = "the file of multipliers";
                    return Err(HintError::Other { what });
                }
                use_it(&multiplier)
            }
        }
    }
}

/// Returns the first bytes of the file of a hint.
pub(crate) fn head(identity: &Identity) -> Vec<u8> {
    [&MAGIC[..], &identity.name, &identity.root].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Batch;
    use crate::contents::Entry;
    use crate::params::LANES;
    use crate::published::Published;
    use crate::server::HintSecret;
    use crate::writing::MultiplierWriter;
    use primer_ring::prg::Prg;
    use rand_core::Rng;
    use std::io::Seek;
    use std::os::unix::fs::FileExt;

    /// Checks that the shares are the same whether multipliers are kept in memory, in a file, or
    /// some in each, and that a file that was changed is refused.
    #[test]
    fn what_is_in_a_file_multiplies_as_what_is_in_memory() {
        let rng = &mut Prg::new(&[3; 16]);
        let (name, secret) = ([1; 32], HintSecret::new([2; 32]));
        let (mut bytes, mut multipliers, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        for (value, outputs) in [(0, 16), (5, 9)] {
            let mut weights = Matrix::<i16>::zeros(64, outputs);
            let draw = || (rng.next_u32() % 1001) as i16 - 500;
            weights.data_mut().fill_with(draw);
            let built = Multiplier::build(&secret, &name, value, &weights).unwrap();
            bytes.extend(built.1.encode());
            multipliers.push(built.0);
            entries.push(Entry {
                value,
                features: 64,
                outputs,
            });
        }
        let contents = Contents::new(entries);
        let hint = Published::in_memory(&name, bytes);
        let identity = *hint.identity();
        let file = tempfile::tempfile().unwrap();
        let mut writer = MultiplierWriter::new(&file).unwrap();
        multipliers.iter().for_each(|m| writer.add(m).unwrap());
        // A file that was cut off before its end has no head.
        let cut = Multipliers::open(file.try_clone().unwrap(), &identity, &contents, 0);
        assert!(cut.is_err());
        writer.finish(&identity).unwrap();
        assert_eq!(file.metadata().unwrap().len(), file_bytes(&contents));
        let whole = Multipliers::in_memory(identity, multipliers);
        let open = |memory| {
            let mut file = file.try_clone().unwrap();
            file.rewind().unwrap();
            Multipliers::open(file, &identity, &contents, memory)
        };
        for memory in [usize::MAX, 250_000, 0] {
            let opened = open(memory).unwrap();
            assert!(opened.memory() <= memory);
            for (index, entry) in contents.entries().iter().enumerate() {
                let batch = Batch::new(&name, entry.value, &[7; 32]);
                let message = Received::decode(&batch.message()).unwrap();
                let [a, b] =
                    [&whole, &opened].map(|m| m.shares(index, LANES, &message, 2).unwrap());
                assert!(a.data() == b.data());
            }
        }
        let length = file.metadata().unwrap().len();
        let streamed = open(0).unwrap();
        file.write_all_at(&[99], length - 1).unwrap();
        assert!(open(0).is_err());
        let message = Received::decode(&Batch::new(&name, 5, &[7; 32]).message()).unwrap();
        assert!(streamed.shares(1, 1, &message, 1).is_err());
        file.set_len(length - 1).unwrap();
        assert!(open(0).is_err());
    }
}

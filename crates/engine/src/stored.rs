//! How bundles are written and read: in order, once.
//!
//! ```text
//! version, fingerprint of the program, seed
//! the material of the comparison of range flags
//! for each segment:  step by step, what is known of its products of secrets, the client's masks
//!                    that do not come from the seed, the server's shares of silent steps
//!                    the material of its stops that do not stream
//!                    the material of its stops that do
//! ```
//!
//! Nothing says its own length: the program does. A bundle has no protection of its own either;
//! where it is kept on a disk, it has to be encrypted, authenticated and read once.

use crate::error::{ProtocolError, Result};
use crate::program::Program;
use crate::seeds::Seeds;
use crate::share::Share;
use primer_ring::modulus::{K, P};
use primer_ring::pack::{pack, packed_len, unpack};
use primer_ring::prg::{SECRET_SEED_BYTES, SecretSeed};
use primer_ring::wipe::SecretBytes;
use primer_wire::VERSION;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use zeroize::Zeroize;

/// Bytes before the first segment.
pub(crate) const HEADER_BYTES: u64 = 2 + 32 + SECRET_SEED_BYTES as u64;

pub(crate) fn write_header(sink: &mut dyn Write, program: &Program, seeds: &Seeds) -> Result<()> {
    sink.write_all(&VERSION.to_le_bytes())?;
    sink.write_all(program.fingerprint())?;
    Ok(sink.write_all(seeds.bytes())?)
}

/// Reads the seed of a bundle, if it was made for this program.
pub(crate) fn read_header(source: &mut dyn Read, program: &Program) -> Result<Seeds> {
    let (mut version, mut fingerprint, mut seed) = ([0; 2], [0; 32], SecretSeed::default());
    source.read_exact(&mut version)?;
    source.read_exact(&mut fingerprint)?;
    source.read_exact(&mut seed)?;
    let seeds = Seeds::new(seed);
    seed.zeroize();
    if u16::from_le_bytes(version) != VERSION {
        return Err(ProtocolError::OtherBundle { what: "version" });
    }
    if fingerprint != *program.fingerprint() {
        return Err(ProtocolError::OtherBundle { what: "program" });
    }
    Ok(seeds)
}

/// Returns the bytes of a stored matrix.
pub(crate) fn share_len(rows: usize, cols: usize) -> u64 {
    packed_len(rows * cols, K).expect("checked programs have matrices that can be counted") as u64
}

pub(crate) fn write_share(sink: &mut dyn Write, share: &Share) -> Result<()> {
    let length = share_len(share.rows(), share.cols());
    // Reserved at once: a buffer that grows would leave copies behind.
    let mut bytes = SecretBytes::with_capacity(length as usize);
    pack(share.data().iter().copied(), K, &mut bytes);
    Ok(sink.write_all(&bytes)?)
}

/// Reads a matrix of some rows and columns.
pub(crate) fn read_share(source: &mut dyn Read, (rows, cols): (usize, usize)) -> Result<Share> {
    let bytes = read_bytes(source, share_len(rows, cols))?;
    let mut share = Share::zeros(rows, cols);
    unpack(&bytes, K, P, share.data_mut())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(share)
}

/// Reads matrices of some sizes, in order.
pub(crate) fn read_shares(source: &mut dyn Read, sizes: &[(usize, usize)]) -> Result<Vec<Share>> {
    sizes.iter().map(|size| read_share(source, *size)).collect()
}

/// Reads the next bytes of a bundle.
pub(crate) fn read_bytes(source: &mut dyn Read, length: u64) -> Result<SecretBytes> {
    let mut bytes = SecretBytes::zeros(length as usize);
    source.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Matrices that a bundle keeps, by step, until those of a segment are written together.
#[derive(Default)]
pub(crate) struct Keeping(HashMap<usize, Vec<Share>>);

impl Keeping {
    /// Keeps one more matrix of a step.
    pub(crate) fn push(&mut self, index: usize, share: Share) {
        self.0.entry(index).or_default().push(share);
    }

    /// Counts those of a step.
    pub(crate) fn count(&self, index: usize) -> usize {
        self.0.get(&index).map_or(0, Vec::len)
    }

    /// Writes those of a step.
    pub(crate) fn write(&mut self, index: usize, sink: &mut dyn Write) -> Result<()> {
        let shares = self.0.remove(&index).unwrap_or_default();
        shares.iter().try_for_each(|share| write_share(sink, share))
    }
}

/// What the steps of a segment take from a bundle before they run. Each piece is given out once.
#[derive(Default)]
pub(crate) struct Material {
    pub(crate) shares: HashMap<usize, Vec<Share>>,
    pub(crate) stops: HashMap<usize, SecretBytes>,
}

impl Material {
    /// Takes the matrices that were kept of a step.
    pub(crate) fn take_shares(&mut self, index: usize) -> Vec<Share> {
        self.shares.remove(&index).expect("loaded with the segment")
    }

    /// Takes the one matrix that was kept of a step.
    pub(crate) fn take_share(&mut self, index: usize) -> Share {
        let share = self.take_shares(index).pop();
        share.expect("as many as the program says were read")
    }

    /// Takes the material of a stop.
    pub(crate) fn take_stop(&mut self, index: usize) -> SecretBytes {
        self.stops.remove(&index).expect("loaded with the segment")
    }
}

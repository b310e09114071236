//! Material of a stop on its way into a party's store and back.

use crate::error::{Result, StopError, unusable};
use primer_ring::wipe::SecretBytes;
use std::io::{Read, Write};

/// Writes what a stop has prepared.
pub(crate) fn keep(stop: &'static str, sink: &mut dyn Write, material: &[u8]) -> Result<()> {
    let written = sink.write_all(material);
    written.map_err(|source| StopError::Store { stop, source })
}

/// Reads the next `bytes` bytes of stored material back.
pub(crate) fn take(stop: &'static str, stored: &mut dyn Read, bytes: u64) -> Result<SecretBytes> {
    let mut material = SecretBytes::zeros(bytes as usize);
    let read = stored.read_exact(&mut material);
    read.map_err(|error| unusable(stop, error))?;
    Ok(material)
}

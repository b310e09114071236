//! Typed messages on top of frames: small structures and packed residues.

use crate::channel::Channel;
use crate::error::{NetError, Result};
use crate::frame::MAX_PAYLOAD;
use crate::kind::Kind;
use primer_ring::pack::{PackError, pack, packed_len, unpack};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Residues packed at once. A multiple of eight, so that every block but the last fills whole
/// bytes.
const BLOCK: usize = 4096;

/// Returns the payload of `count` packed residues; a count that no payload can hold is the caller's
/// error.
fn payload_len(kind: Kind, count: usize, width: u32) -> Result<u64> {
    packed_len(count, width)
        .map(|bytes| bytes as u64)
        .filter(|&bytes| bytes <= MAX_PAYLOAD)
        .ok_or_else(|| NetError::Malformed {
            kind,
            reason: format!("{count} residues of {width} bits do not fit a frame"),
        })
}

impl Channel {
    /// Sends residues of `width` bits each, packed (see [`primer_ring::pack`]), in bounded memory.
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn send_residues(
        &mut self,
        kind: Kind,
        width: u32,
        mut values: impl ExactSizeIterator<Item = u64>,
    ) -> Result<()> {
        let length = payload_len(kind, values.len(), width)?;
        let mut stream = self.send_stream(kind, length)?;
        let mut bytes = Vec::new();
        while values.len() > 0 {
            bytes.clear();
            let block = values.len().min(BLOCK);
            pack(values.by_ref().take(block), width, &mut bytes);
            stream.put(&bytes)?;
        }
        stream.finish()
    }

    /// Receives exactly `out.len()` packed residues of `width` bits, each below `modulus`. Nothing
    /// is read unless the peer announced the right length.
    ///
    /// # Errors
    /// [`NetError::WrongLength`] before anything is read, [`NetError::Residues`] for a bad value or
    /// padding; else as [`Channel::recv`].
    pub fn recv_residues(
        &mut self,
        kind: Kind,
        width: u32,
        modulus: u64,
        out: &mut [u64],
    ) -> Result<()> {
        let length = payload_len(kind, out.len(), width)?;
        let mut stream = self.recv_stream(kind, length)?;
        let mut bytes = vec![0; packed_len(BLOCK, width).expect("a block is small")];
        for (index, block) in out.chunks_mut(BLOCK).enumerate() {
            let packed = packed_len(block.len(), width).expect("a block is small");
            stream.get(&mut bytes[..packed])?;
            unpack(&bytes[..packed], width, modulus, block).map_err(|error| {
                let source = match error {
                    PackError::OutOfRange { index: within } => PackError::OutOfRange {
                        index: index * BLOCK + within,
                    },
                    other => other,
                };
                NetError::Residues { kind, source }
            })?;
        }
        stream.finish()
    }

    /// Sends a small structure.
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn send_value<T: Serialize>(&mut self, kind: Kind, value: &T) -> Result<()> {
        let bytes = postcard::to_stdvec(value).map_err(|error| malformed(kind, &error))?;
        self.send(kind, &bytes)
    }

    /// Receives a small structure whose encoding takes at most `limit` bytes.
    ///
    /// # Errors
    /// [`NetError::Malformed`] if the bytes are not one value and nothing else; else as
    /// [`Channel::recv`].
    pub fn recv_value<T: DeserializeOwned>(&mut self, kind: Kind, limit: usize) -> Result<T> {
        let bytes = self.recv(kind, limit)?;
        let (value, rest) =
            postcard::take_from_bytes(&bytes).map_err(|error| malformed(kind, &error))?;
        if rest.is_empty() {
            return Ok(value);
        }
        Err(NetError::Malformed {
            kind,
            reason: format!("{} bytes follow the value", rest.len()),
        })
    }
}

fn malformed(kind: Kind, error: &postcard::Error) -> NetError {
    NetError::Malformed {
        kind,
        reason: error.to_string(),
    }
}

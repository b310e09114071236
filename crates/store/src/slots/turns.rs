//! Bytes that are written whole or not at all.

use super::{Slots, fault};
use crate::error::Result;
use zeroize::Zeroizing;

/// How many slots it takes.
pub(super) const SLOTS: usize = 2;
const MAGIC: [u8; 16] = *b"primer turns  01";
const HEADER_BYTES: usize = 16 + 32 + 8;
/// More than what is small.
const MOST_BYTES: u64 = 64 << 20;

/// Two slots, from one on, that are written in turn: one of them is whole at any moment, and the
/// one that was written last counts.
pub struct Turns {
    first: usize,
    turn: u64,
}

impl Turns {
    /// Finds what was written last, if anything.
    pub fn open(slots: &dyn Slots, first: usize) -> (Self, Option<Zeroizing<Vec<u8>>>) {
        let found = (first..first + SLOTS).filter_map(|slot| read(slots, slot));
        let found = found.max_by_key(|(turn, _)| *turn);
        let (turn, bytes) = found.map_or((0, None), |(turn, bytes)| (turn, Some(bytes)));
        (Self { first, turn }, bytes)
    }

    /// Writes something else, durably.
    ///
    /// # Errors
    /// If the system fails; then what was written before is still there.
    pub fn write(&mut self, slots: &dyn Slots, bytes: &[u8]) -> Result<()> {
        let turn = self.turn + 1;
        let slot = self.first + (turn % SLOTS as u64) as usize;
        let header = [
            &MAGIC[..],
            hash(turn, bytes).as_bytes(),
            &turn.to_le_bytes(),
        ]
        .concat();
        let length = (HEADER_BYTES + bytes.len()) as u64;
        slots
            .write(slot, bytes, HEADER_BYTES as u64)
            .and_then(|()| slots.write(slot, &header, 0))
            .and_then(|()| slots.truncate(slot, length))
            .and_then(|()| slots.flush(slot))
            .map_err(fault("write", slot))?;
        self.turn = turn;
        Ok(())
    }
}

fn hash(turn: u64, bytes: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&turn.to_le_bytes()).update(bytes);
    hasher.finalize()
}

/// Reads one of the two; nothing if it is not whole.
fn read(slots: &dyn Slots, slot: usize) -> Option<(u64, Zeroizing<Vec<u8>>)> {
    let bytes = slots.bytes(slot).ok()?;
    if !(HEADER_BYTES as u64..MOST_BYTES).contains(&bytes) {
        return None;
    }
    let mut header = [0; HEADER_BYTES];
    slots.read(slot, &mut header, 0).ok()?;
    let mut body = Zeroizing::new(vec![0; bytes as usize - HEADER_BYTES]);
    slots.read(slot, &mut body, HEADER_BYTES as u64).ok()?;
    let (magic, rest) = header.split_first_chunk::<16>()?;
    let (found, turn) = rest.split_first_chunk::<32>()?;
    let turn = u64::from_le_bytes(turn.try_into().ok()?);
    let whole = *magic == MAGIC && hash(turn, &body) == blake3::Hash::from_bytes(*found);
    whole.then_some((turn, body))
}

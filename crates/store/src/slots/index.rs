//! The store's key and its tombstones.
//!
//! Bundles do not depend on the tombstones: a spent one is none by its own slot, and what a
//! tombstone adds is the words in which it is refused.

use super::{Slots, Turns, turns};
use crate::error::Result;
use crate::id::BundleId;
use crate::record::Past;
use crate::record::encoded::{decode_past, encode_past};
use zeroize::Zeroizing;

/// How many slots it takes, the first ones.
pub(super) const INDEX_SLOTS: usize = turns::SLOTS;

/// What is known of the index.
pub(super) struct Index {
    pub(super) key: Zeroizing<[u8; 32]>,
    turns: Turns,
}

impl Index {
    /// Reads the index, or begins one.
    pub(super) fn open(slots: &dyn Slots) -> Result<(Self, Vec<Past>)> {
        let (turns, found) = Turns::open(slots, 0);
        if let Some((key, past)) = found.and_then(|bytes| decode(&bytes)) {
            return Ok((Self { key, turns }, past));
        }
        let mut key = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *key).expect("the system provides randomness");
        let mut index = Self { key, turns };
        index.write(slots, std::iter::empty())?;
        Ok((index, Vec::new()))
    }

    /// Writes it anew, durably.
    pub(super) fn write<'p>(
        &mut self,
        slots: &dyn Slots,
        past: impl Iterator<Item = &'p Past>,
    ) -> Result<()> {
        let mut body = Zeroizing::new(self.key.to_vec());
        for past in past {
            let record = encode_past(past);
            body.extend(past.id.as_bytes());
            body.extend((record.len() as u32).to_le_bytes());
            body.extend(record);
        }
        self.turns.write(slots, &body)
    }
}

fn decode(body: &[u8]) -> Option<(Zeroizing<[u8; 32]>, Vec<Past>)> {
    let (key, mut rest) = body.split_first_chunk::<32>()?;
    let mut past = Vec::new();
    while let Some((id, more)) = rest.split_first_chunk::<16>() {
        let (length, more) = more.split_first_chunk::<4>()?;
        let (record, more) = more.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        past.push(decode_past(BundleId::from_bytes(*id), record).ok()?);
        rest = more;
    }
    Some((Zeroizing::new(*key), past))
}

//! A slot with a bundle in it.
//!
//! ```text
//! header = magic (16) ‖ salt (32) ‖ bytes of chunks (8) ‖ bytes of facts (4) ‖ hash (32)
//! slot   = header ‖ chunks ‖ facts
//! ```
//!
//! The facts are the entry and the attachment; the hash, keyed with the store's key, is of all but
//! the chunks, which are authenticated on their own (`seal`).

use super::{Slots, fault};
use crate::error::Result;
use crate::id::BundleId;
use crate::record::encoded::{decode_entry, encode_entry};
use crate::seal::SALT_BYTES;
use crate::shelf::Stored;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

const MAGIC: [u8; 16] = *b"primer slot   01";
/// Bytes before the chunks.
pub(super) const HEADER_BYTES: usize = 16 + SALT_BYTES + 8 + 4 + 32;
/// More facts than there are of any bundle.
const MOST_FACTS: usize = crate::ATTACHMENT_LIMIT + 1024;

/// A slot that is in use. It is emptied and given back when this is dropped, unless it holds a
/// bundle, which outlives the store.
pub(super) struct Place {
    slots: Arc<dyn Slots>,
    free: Arc<Mutex<Vec<usize>>>,
    pub(super) number: usize,
    has_bundle: bool,
}

impl Place {
    pub(super) fn new(
        slots: &Arc<dyn Slots>,
        free: &Arc<Mutex<Vec<usize>>>,
        number: usize,
    ) -> Self {
        Self {
            slots: Arc::clone(slots),
            free: Arc::clone(free),
            number,
            has_bundle: false,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.has_bundle {
            return;
        }
        // What cannot be emptied now is overwritten later.
        let _ = self.slots.truncate(self.number, 0);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(self.number);
    }
}

/// Where the material of a bundle is.
pub(super) struct Kept {
    pub(super) place: Place,
    pub(super) salt: Zeroizing<[u8; SALT_BYTES]>,
    pub(super) sealed: u64,
}

impl Kept {
    /// Makes it no bundle any more, durably.
    pub(super) fn blank(&mut self) -> Result<()> {
        self.place.has_bundle = false;
        let Place { slots, number, .. } = &self.place;
        slots
            .write(*number, &[0; HEADER_BYTES], 0)
            .and_then(|()| slots.flush(*number))
            .map_err(fault("overwrite", *number))
    }
}

fn hash(key: &[u8; 32], header: &[u8], facts: &[u8]) -> blake3::Hash {
    let key = blake3::derive_key("primer slots v1: hashes of facts", key);
    let mut hasher = blake3::Hasher::new_keyed(&key);
    hasher.update(header).update(facts);
    hasher.finalize()
}

/// Makes a bundle of a slot whose chunks are written: durable, then visible.
pub(super) fn make(stored: &mut Stored<Kept>, key: &[u8; 32]) -> Result<()> {
    let Kept {
        place,
        salt,
        sealed,
    } = &mut stored.material;
    let entry = encode_entry(&stored.entry);
    let mut facts = stored.entry.id.as_bytes().to_vec();
    facts.extend((entry.len() as u32).to_le_bytes());
    facts.extend(entry);
    facts.extend(&stored.attachment);
    let mut header = Zeroizing::new(Vec::with_capacity(HEADER_BYTES));
    header.extend(MAGIC);
    header.extend(**salt);
    header.extend(sealed.to_le_bytes());
    header.extend((facts.len() as u32).to_le_bytes());
    let hash = hash(key, &header, &facts);
    header.extend(hash.as_bytes());
    let (slots, number) = (&place.slots, place.number);
    slots
        .write(number, &facts, HEADER_BYTES as u64 + *sealed)
        .and_then(|()| slots.flush(number))
        .and_then(|()| slots.write(number, &header, 0))
        .and_then(|()| slots.flush(number))
        .map_err(fault("write", number))?;
    place.has_bundle = true;
    Ok(())
}

/// Reads what is in a slot; nothing if that is not a whole bundle.
pub(super) fn open(mut place: Place, key: &[u8; 32]) -> Option<Stored<Kept>> {
    let (slots, number) = (&place.slots, place.number);
    let mut header = Zeroizing::new([0; HEADER_BYTES]);
    slots.read(number, &mut *header, 0).ok()?;
    let (rest, found) = header.split_last_chunk::<32>()?;
    let (magic, numbers) = rest.split_first_chunk::<16>()?;
    let (salt, numbers) = numbers.split_first_chunk::<SALT_BYTES>()?;
    let (sealed, bytes) = numbers.split_first_chunk::<8>()?;
    let sealed = u64::from_le_bytes(*sealed);
    let bytes = u32::from_le_bytes(bytes.try_into().ok()?) as usize;
    if *magic != MAGIC || bytes > MOST_FACTS {
        return None;
    }
    let mut facts = vec![0; bytes];
    let at = sealed.checked_add(HEADER_BYTES as u64)?;
    slots.read(number, &mut facts, at).ok()?;
    if hash(key, rest, &facts) != blake3::Hash::from_bytes(*found) {
        return None;
    }
    let (id, rest) = facts.split_first_chunk::<16>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (entry, attachment) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let entry = decode_entry(BundleId::from_bytes(*id), entry).ok()?;
    let salt = Zeroizing::new(*salt);
    place.has_bundle = true;
    Some(Stored {
        entry,
        attachment: attachment.to_vec(),
        material: Kept {
            place,
            salt,
            sealed,
        },
    })
}

/// Writes the chunks of a draft.
pub(super) struct Writing {
    pub(super) place: Place,
    pub(super) at: u64,
}

impl Writing {
    pub(super) fn new(place: Place) -> Self {
        let at = HEADER_BYTES as u64;
        Self { place, at }
    }
}

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.place.slots.write(self.place.number, bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads the chunks of a bundle that is spent.
pub(super) struct Reading {
    place: Place,
    at: u64,
    end: u64,
}

impl Reading {
    pub(super) fn new(place: Place, sealed: u64) -> Self {
        let at = HEADER_BYTES as u64;
        let end = at + sealed;
        Self { place, at, end }
    }
}

impl Read for Reading {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = out.len().min((self.end - self.at) as usize);
        let Place { slots, number, .. } = &self.place;
        slots.read(*number, &mut out[..count], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

//! What a store knows about a bundle; `encoded` is how an index writes that down.

#[cfg(any(feature = "files", feature = "slots"))]
pub(crate) mod encoded;

use crate::error::{Result, StoreError};
use crate::id::BundleId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Bytes that an attachment may have.
pub const ATTACHMENT_LIMIT: usize = 1 << 20;
/// How long a name stays taken after its bundle's expiry: clocks of the two sides may differ,
/// sessions may last.
pub const GRACE_SECONDS: u64 = 7 * 24 * 3600;

/// What a bundle is for, as told when it is drafted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// Its name, the same on both sides.
    pub id: BundleId,
    /// Who holds the other half: which server, or which client's pseudonym.
    pub peer: [u8; 32],
    /// The fingerprint of the program that it was prepared for.
    pub program: [u8; 32],
    /// Tokens that it can take.
    pub tokens: u32,
    /// When it was made, in Unix seconds.
    pub created: u64,
    /// When it is to be deleted unspent, in Unix seconds.
    pub expires: u64,
    /// What else its owner needs with it, at most [`ATTACHMENT_LIMIT`] bytes. Not encrypted: public
    /// data only.
    pub attachment: Vec<u8>,
}

impl Meta {
    /// Checks that what is stored beside the bundle is within [`ATTACHMENT_LIMIT`].
    ///
    /// # Errors
    /// [`StoreError::Attachment`].
    pub fn check(&self) -> Result<()> {
        match self.attachment.len() {
            bytes if bytes > ATTACHMENT_LIMIT => Err(StoreError::Attachment {
                bytes,
                limit: ATTACHMENT_LIMIT,
            }),
            _ => Ok(()),
        }
    }
}

/// A stored bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub id: BundleId,
    /// Who holds the other half.
    pub peer: [u8; 32],
    /// The program's fingerprint.
    pub program: [u8; 32],
    /// Tokens that it can take.
    pub tokens: u32,
    /// When it was made.
    pub created: u64,
    /// When it expires.
    pub expires: u64,
    /// Bytes of material.
    pub bytes: u64,
    /// Bytes that it takes where it is stored.
    pub file_bytes: u64,
}

impl Entry {
    /// Makes the entry of a bundle with `bytes` bytes of material, which take `file_bytes`.
    pub fn of(meta: &Meta, bytes: u64, file_bytes: u64) -> Self {
        Self {
            id: meta.id,
            peer: meta.peer,
            program: meta.program,
            tokens: meta.tokens,
            created: meta.created,
            expires: meta.expires,
            bytes,
            file_bytes,
        }
    }
}

/// What became of a bundle that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fate {
    /// Given out, once.
    Spent,
    /// Deleted on request.
    Deleted,
    /// Deleted after its time.
    Expired,
    /// Its file was missing or damaged when it was to be spent.
    Damaged,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spent => "spent",
            Self::Deleted => "deleted",
            Self::Expired => "expired",
            Self::Damaged => "damaged",
        })
    }
}

/// A tombstone: the memory of a bundle that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// Its name.
    pub id: BundleId,
    /// Who held the other half.
    pub peer: [u8; 32],
    /// What became of it.
    pub fate: Fate,
    /// How often it was given out: one if spent, else zero.
    pub spends: u32,
    /// When it went.
    pub at: u64,
    /// Until when the name stays taken.
    pub until: u64,
}

/// Makes the tombstone of a bundle that goes now.
pub(crate) fn tombstone(entry: &Entry, fate: Fate, now: u64) -> Past {
    Past {
        id: entry.id,
        peer: entry.peer,
        fate,
        spends: u32::from(fate == Fate::Spent),
        at: now,
        until: entry.expires.max(now).saturating_add(GRACE_SECONDS),
    }
}

/// The bundle that a caller asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundleQuery {
    /// Of this peer.
    pub peer: [u8; 32],
    /// For this program, if it matters.
    pub program: Option<[u8; 32]>,
    /// For at least this many tokens.
    pub tokens: u32,
}

impl BundleQuery {
    /// Tells whether a bundle will do.
    pub fn fits(&self, entry: &Entry) -> bool {
        entry.peer == self.peer
            && self.program.is_none_or(|program| program == entry.program)
            && entry.tokens >= self.tokens
    }
}

/// How much is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredAmount {
    /// Bundles.
    pub bundles: u64,
    /// Bytes that they take.
    pub bytes: u64,
}

/// How much is stored, and for whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Altogether.
    pub total: StoredAmount,
    /// For each peer.
    pub peers: BTreeMap<[u8; 32], StoredAmount>,
    /// Tombstones kept.
    pub tombstones: u64,
}

impl Usage {
    /// Returns what is stored for one peer.
    pub fn of(&self, peer: &[u8; 32]) -> StoredAmount {
        self.peers.get(peer).copied().unwrap_or_default()
    }

    pub(crate) fn add(&mut self, entry: &Entry) {
        for held in [&mut self.total, self.peers.entry(entry.peer).or_default()] {
            held.bundles += 1;
            held.bytes = held.bytes.saturating_add(entry.file_bytes);
        }
    }
}

/// What [`crate::BundleStore::delete_expired`] removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Bundles whose time was over.
    pub bundles: u64,
    /// Bytes that they took.
    pub bytes: u64,
    /// Tombstones that are no longer needed.
    pub tombstones: u64,
    /// Passing accounts whose counts were forgotten, because there were too many.
    pub accounts: u64,
}

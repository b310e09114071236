//! Bundles of offline material, spent exactly once: on a disk, encrypted, or in memory.
//!
//! The offline phase leaves each party with a *bundle*: masks, labels and garbled circuits for one
//! inference. A mask that covers two inputs covers neither, so a bundle must never serve twice, not
//! when two processes reach for it at once, and not after a crash, `kill -9` or a power cut. The
//! rule of the protocol is *spent before used*: the fact is on the disk before the first online
//! byte leaves.
//!
//! # A bundle's life
//!
//! ```text
//! draft ──write…──▶ commit ──▶ stored ──▶ spend ──read…──▶ dropped
//!   │ drop, crash                 │ delete, expiry, damage
//!   ▼                             ▼
//! nothing is left              a tombstone: the identifier stays taken until it is long expired
//! ```
//!
//! Both parties name a bundle by the same random [`BundleId`], which reveals nothing. Either side
//! may lose its half in a crash; the other half is then useless and expires.
//!
//! [`BundleStore`] is what a client and a server need of a store. Feature `files`, on by default,
//! brings the stores of systems that have files, `Store`; without it there are [`MemoryStore`] and,
//! with feature `slots`, `SlotStore` for a page's files; neither needs an operating system.
//!
//! # On the disk
//!
//! * `index.redb`: who, which program, until when, and which bundles are spent. Transactional
//!   (redb); every change is one transaction that is on the disk when the call returns.
//! * `bundles/<id>.bundle`: the bulk, gigabytes for a large model, written and read as a stream
//!   (`seal`). It begins with a random *salt*; the bundle's key is derived from the store's key,
//!   the identifier and the salt. Spending overwrites the salt in place and unlinks the file, so
//!   that what may remain of it on the disk cannot be opened by anyone, not even the owner of the
//!   store key. The salt is kept here and not in the index, because an index that copies on write
//!   keeps old pages for a while.
//! * `key`: the store's key (or elsewhere, `Options::key_file`).
//! * `lock`: held during each short operation, never during the streaming. Any number of processes
//!   and threads may use one store; a killed process holds nothing.
//!
//! The argument for durability, step by step, is in `local`.
//!
//! # What the encryption is for
//!
//! * A thief of the disk, a backup or the directory *without the key file* learns names, peers,
//!   sizes and dates, not material. By default the key lies beside the store: then encryption does
//!   not protect against a reader of the owner's files, and the modes 0600 and 0700 do.
//! * After spending, the owner cannot open the bundle again either: the salt is gone.
//! * The index itself is neither encrypted nor authenticated: write access to the directory is the
//!   owner's.
//!
//! # What is not promised
//!
//! * **Rollback.** A snapshot of a virtual machine, a restored backup or a copied directory brings
//!   a spent bundle back, with its salt. No program can tell from the inside. It takes *both* sides
//!   to misuse a bundle: if only one is rolled back, the other refuses with `Gone`.
//! * **Remanence.** Overwriting in place reaches the same block on ext4 and XFS; on copy-on-write
//!   file systems, on SSDs with wear levelling and under snapshots the old salt may survive until
//!   its block is reused.
//! * **Disks that lie** about `fsync`; network file systems without `flock`; systems that are not
//!   Unix.
//! * `usage` counts what is stored; drafts in progress are not in it. `reserve` counts both, those
//!   of this process (a shared store: of all replicas).
//!
//! Errors that say nothing about a bundle (no more file handles, say) do not cost it; a missing or
//! cut file does.
//!
//! # Why redb
//!
//! redb 4 (MIT/Apache-2.0): pure Rust, no dependency, one file, durable at commit, recovers at once
//! after a crash. Of the alternatives, LMDB (`heed`) and SQLite are C and memory-map or log beside
//! the file; `fjall` is a log-structured tree with background threads, made for write rates that a
//! store of a few thousand entries never sees.

#![forbid(unsafe_code)]

#[cfg(feature = "files")]
mod background;
mod bundle_store;
#[cfg(any(feature = "files", feature = "slots"))]
mod cipher;
mod counts;
mod draft;
mod error;
#[cfg(feature = "files")]
mod files;
#[cfg(feature = "files")]
pub mod fleet;
mod id;
#[cfg(feature = "files")]
mod index;
#[cfg(feature = "files")]
mod local;
mod memory;
mod quota;
mod record;
#[cfg(any(feature = "files", feature = "slots"))]
pub mod seal;
#[cfg(feature = "files")]
mod sealed;
mod shelf;
#[cfg(feature = "slots")]
mod slots;
#[cfg(feature = "files")]
mod space;
mod spent;
#[cfg(feature = "files")]
mod store;

pub use bundle_store::BundleStore;
pub use counts::{
    Account, Allowance, Allowances, Charge, Counted, Counting, Counts, Exhausted, NotAnAllowance,
    PASSING_ACCOUNTS, Tally,
};
pub use draft::{Draft, Pending};
pub use error::{Result, StoreError};
#[cfg(feature = "files")]
pub use files::load_key;
pub use id::BundleId;
#[cfg(feature = "files")]
pub use local::Options;
pub use memory::MemoryStore;
pub use primer_wire::clock::unix_now;
pub use quota::{Bounds, Reservation};
pub use record::{
    ATTACHMENT_LIMIT, BundleQuery, Entry, Fate, GRACE_SECONDS, Meta, Past, Removed, StoredAmount,
    Usage,
};
#[cfg(feature = "slots")]
pub use slots::{SlotStore, Slots, Turns};
#[cfg(feature = "files")]
pub use space::{RESERVE, check_room};
pub use spent::{Material, Spent};
#[cfg(feature = "files")]
pub use store::Store;

/// Decodes what the index holds for a bundle, for a tombstone and for an account; for fuzzing.
#[cfg(feature = "files")]
#[doc(hidden)]
pub fn decode_records(bytes: &[u8]) -> (Option<Entry>, Option<Past>, Option<Counting>) {
    let id = BundleId::from_bytes([0; 16]);
    (
        record::encoded::decode_entry(id, bytes).ok(),
        record::encoded::decode_past(id, bytes).ok(),
        record::encoded::decode_counts([0; 32], bytes).ok(),
    )
}

//! The shared engine: many replicas of a server, one store.
//!
//! A server with one disk keeps bundles in a directory. Replicas behind a load balancer need a
//! bundle that one of them prepared to be spendable on any of them, once, no matter which of them
//! dies. Two existing engines do that, and this module only puts them together:
//!
//! * **PostgreSQL** has what is small and must be right: which bundles there are, whose, how much
//!   they take, and which are gone. *Spending is one transaction*: the bundle's row goes and its
//!   tombstone comes, or neither. Of two replicas that reach for one bundle the second waits for
//!   the first one's row lock and then finds no row. The commit is on the database's disk before it
//!   is answered (`synchronous_commit`, set for every session and checked, as `fsync` is), and
//!   nothing masked by the bundle leaves before that.
//! * **An object store** (S3 or a directory that all share) has what is large: the sealed bulk. An
//!   object has a name that is never used again, is written once, read by the replica that has
//!   spent its bundle, and deleted. Nothing depends on the order in which such a store shows
//!   changes of one name, because no name changes.
//!
//! Both see ciphertext only. A bundle's key is derived from the store key, which neither has, and a
//! salt of which each has half: a deleted object that comes back without its row cannot be opened,
//! nor the row without the object.
//!
//! # What is written where, and in which order
//!
//! ```text
//! draft    object written            then  row inserted          (died between: an orphan object)
//! spend    object's beginning read   then  row out, tombstone in, committed
//!          material read             then  object deleted        (died between: an orphan object)
//! ```
//!
//! The keeper beats every two seconds: it renews this replica's lease, checks that database and
//! blobs can be reached, accept writes and still agree, and once a minute deletes orphans of
//! replicas whose lease has ended. A draft whose replica lost its lease is not published, so the
//! sweep of one replica never takes what another is about to publish.
//!
//! # The epoch
//!
//! A database or a bucket that is restored from a backup brings spent bundles back. Both therefore
//! hold an *epoch*, a number with a random nonce that moves on every minute, first in the blobs,
//! then in the database. A part that is restored alone is at a different epoch from the other. The
//! database keeps all epochs that were current as a chain, and every replica remembers the latest
//! one that it has seen, in memory and in its own state: a database whose chain lacks it is older,
//! or went on from an older state (`epoch`). A replica that finds this latches, on its disk and in
//! the database, and from then on no replica gives a bundle out, until `primer store renew` has
//! deleted all of them (`rollback`). Spending asks in its own transaction (`spending`), so there is
//! no moment in which an older database gives a bundle out to a replica that has seen a later one.
//! `docs/fleet.md` says how far this reaches.

mod options;

pub use options::{FleetOptions, KEY_VARIABLE, Keys};

#[cfg(feature = "fleet")]
mod agreement;
#[cfg(feature = "fleet")]
mod blobs;
#[cfg(feature = "fleet")]
mod bundles;
#[cfg(feature = "fleet")]
mod core;
#[cfg(feature = "fleet")]
mod counts;
#[cfg(feature = "fleet")]
mod database;
#[cfg(feature = "fleet")]
mod drafts;
#[cfg(feature = "fleet")]
mod epoch;
#[cfg(feature = "fleet")]
mod keeper;
#[cfg(feature = "fleet")]
mod moves;
#[cfg(feature = "fleet")]
mod probe;
#[cfg(feature = "fleet")]
mod quotas;
#[cfg(feature = "fleet")]
mod rollback;
#[cfg(feature = "fleet")]
mod rows;
#[cfg(feature = "fleet")]
mod schema;
#[cfg(feature = "fleet")]
mod sweep;
#[cfg(feature = "fleet")]
mod tls;
#[cfg(feature = "fleet")]
mod witness;

#[cfg(feature = "fleet")]
mod spending;

#[cfg(feature = "fleet")]
pub use self::{bundles::Fleet, sweep::Swept};

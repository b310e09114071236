//! What a server says no to, and why.

use super::{ServerRole, check_name, name};
use crate::{BundleId, ServiceError, VERSION};
use primer_store::Exhausted;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a server says no.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Refusal {
    /// Another version of the protocol.
    #[error("it speaks version {0} of the protocol, this program speaks {ours}", ours = VERSION)]
    Version(u16),
    /// No token, or one that the server does not know, or not any more: a session that is open
    /// hears it at its next request after its token was withdrawn.
    #[error("the access token is missing or not known, or it was withdrawn")]
    Token,
    /// All places are taken.
    #[error("all {0} sessions are in use, try again later")]
    Busy(u32),
    /// The server stops.
    #[error("it is shutting down")]
    Stopping,
    /// A length that is not on offer.
    #[error("it takes at most {limit} tokens, not {asked}")]
    Tokens {
        /// Asked for.
        asked: u32,
        /// The largest on offer.
        limit: u32,
    },
    /// More bundles than are prepared together.
    #[error("it prepares at most {limit} bundles of {tokens} tokens together, not {asked}")]
    Bundles {
        /// Asked for.
        asked: u32,
        /// Of this length.
        tokens: u32,
        /// The most there may be.
        limit: u32,
    },
    /// No room for the bundle.
    #[error(
        "a bundle takes {needed} bytes, and {stored} of the {limit} bytes that it keeps for a \
         client are used"
    )]
    Stored {
        /// Bytes of one more bundle.
        needed: u64,
        /// Bytes that the client has.
        stored: u64,
        /// Bytes that it may have.
        limit: u64,
    },
    /// The server's disk or its share of it is full.
    #[error("its store is full")]
    Full,
    /// The identifier is taken.
    #[error("bundle {0} exists already")]
    Taken(#[serde(with = "name")] BundleId),
    /// Not there: never made, expired, deleted or another client's.
    #[error("bundle {0} is not known")]
    Unknown(#[serde(with = "name")] BundleId),
    /// Used before.
    #[error("bundle {0} is spent")]
    Spent(#[serde(with = "name")] BundleId),
    /// Made for another plan or other weights.
    #[error("bundle {0} was prepared for another model or plan than the one that is served now")]
    OtherProgram(#[serde(with = "name")] BundleId),
    /// Something failed on the server, which its log names.
    #[error("internal error, see its log ({0})")]
    Failed(String),
    /// The weights are encoded for as many lengths as may be, and all are in use.
    #[error("it is already working on {0} other input lengths, try again later")]
    Lengths(u32),
    /// What it keeps bundles in cannot be used now.
    #[error("its store of bundles cannot be reached, try again later")]
    Store,
    /// This replica has other work.
    #[error(
        "this replica does not {0}; other replicas of this service do: ask its operator for their \
         address"
    )]
    Role(ServerRole),
    /// There is no hint, or none with such chunks.
    #[error("its hint does not have what was asked for")]
    Hint,
    /// The client has had as many bundles or answers as it may.
    #[error("{0}")]
    Limit(Exhausted),
}

impl Refusal {
    /// Returns the reason in one word, as a label of metrics.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Version(_) => "version",
            Self::Token => "token",
            Self::Busy(_) => "busy",
            Self::Stopping => "stopping",
            Self::Tokens { .. } => "tokens",
            Self::Bundles { .. } => "bundles",
            Self::Stored { .. } => "stored",
            Self::Full => "full",
            Self::Taken(_) => "taken",
            Self::Unknown(_) => "unknown",
            Self::Spent(_) => "spent",
            Self::OtherProgram(_) => "other_program",
            Self::Failed(_) => "failed",
            Self::Lengths(_) => "lengths",
            Self::Store => "store",
            Self::Role(_) => "role",
            Self::Hint => "hint",
            Self::Limit(_) => "limit",
        }
    }

    /// Tells whether the same request may succeed a little later.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Busy(_) | Self::Stopping | Self::Lengths(_) | Self::Store
        )
    }

    /// Tells whether a bundle is of no use any more.
    pub fn is_about_a_bundle(&self) -> bool {
        matches!(
            self,
            Self::Unknown(_) | Self::Spent(_) | Self::OtherProgram(_) | Self::Taken(_)
        )
    }

    fn check(&self) -> Result<(), ServiceError> {
        match self {
            Self::Failed(reason) => check_name("reason", reason),
            _ => Ok(()),
        }
    }
}

/// Turns a refusal into the error that its receiver has.
pub(super) fn refused(refusal: Refusal) -> ServiceError {
    match refusal.check() {
        Ok(()) => ServiceError::Refused(refusal),
        Err(error) => error,
    }
}

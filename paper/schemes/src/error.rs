//! What can go wrong between the two parties. No variant carries a secret.

use primer_garble::stop::CircuitError;
use primer_ot::OtError;
use primer_paper_he::error::HeError;
use primer_plan::plan::PlanError;
use primer_stops::StopError;
use primer_wire::NetError;
use std::io;
use thiserror::Error;

/// Why a private inference failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The channel failed, or the peer sent a message of the wrong kind or length.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A homomorphic message or product failed.
    #[error(transparent)]
    He(#[from] HeError),
    /// An oblivious transfer failed.
    #[error(transparent)]
    Ot(#[from] OtError),
    /// A stop failed.
    #[error(transparent)]
    Stops(#[from] StopError),
    /// The plan has a stop that cannot be built.
    #[error(transparent)]
    Stop(#[from] CircuitError),
    /// The plan is not usable.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The server will not do what was asked for.
    #[error("the server refused: {0}")]
    Refused(String),
    /// The two programs speak different versions of the protocol.
    #[error("the peer speaks version {theirs} of the protocol, this program speaks {ours}")]
    Version {
        /// This program's version.
        ours: u16,
        /// The peer's version.
        theirs: u16,
    },
    /// The server's plan is not the one that was asked for.
    #[error("the server's plan is for {found}, but {wanted} was asked for")]
    OtherPlan {
        /// What the plan is for.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// A plan whose form is not the scheme's.
    #[error("scheme {scheme} needs a plan in the {needed} form, this one has another")]
    Form {
        /// The scheme.
        scheme: &'static str,
        /// What its plans have.
        needed: &'static str,
    },
    /// A plan that would take more memory than a party gives to one inference.
    #[error("{what} has {elements} elements, the limit is {limit}")]
    TooLarge {
        /// Which value.
        what: String,
        /// Its elements.
        elements: u64,
        /// The largest number.
        limit: u64,
    },
    /// Offline material was made for another plan, scheme or session.
    #[error("the offline material belongs to another {what}")]
    OtherBundle {
        /// What differs.
        what: &'static str,
    },
    /// The scheme prepares its steps online, which takes a session.
    #[error("this scheme prepares its steps online and needs a session for that")]
    NeedsSession,
    /// A session in which something failed is not used again.
    #[error("this session failed before; open a new one")]
    Spoiled,
    /// Only a classification has a label to reveal.
    #[error("only a label can be revealed, but the model's head has no labels")]
    NoLabel,
    /// An input does not fit the plan.
    #[error("the input has {found} {what}, the plan has {expected}")]
    Input {
        /// Which size.
        what: &'static str,
        /// The plan's.
        expected: usize,
        /// The input's.
        found: usize,
    },
    /// Stored offline material cannot be written or read.
    #[error("offline material cannot be written or read: {0}")]
    Store(#[from] io::Error),
}

/// The result of a step.
pub type Result<T> = std::result::Result<T, ProtocolError>;

//! What can go wrong between the two parties. No variant carries a secret.

use primer_garble::stop::CircuitError;
use primer_hint::error::HintError;
use primer_ot::OtError;
use primer_plan::plan::PlanError;
use primer_rlwe::error::HeError;
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
    /// A hint, or a message that goes with it, is not usable.
    #[error(transparent)]
    Hint(#[from] HintError),
    /// The server prepares without multipliers.
    #[error("preparing needs the multipliers of the model's hint")]
    HintMissing,
    /// The client's hint is not the server's.
    #[error("the server's hint is {found}, the client has {wanted}")]
    OtherHint {
        /// The server's, shortened.
        found: String,
        /// The client's, shortened.
        wanted: String,
    },
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
    /// The server's plan is not the one that was asked for.
    #[error("the server's plan is for {found}, but {wanted} was asked for")]
    OtherPlan {
        /// What the plan is for.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// A plan by another design than the product's.
    #[error("the plan has other steps than this program compiles")]
    OtherGraph,
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
    /// Offline material was made for another plan, hint or version.
    #[error("the offline material belongs to another {what}")]
    OtherBundle {
        /// What differs.
        what: &'static str,
    },
    /// Bundles are not prepared together in such numbers.
    #[error("{bundles} bundles cannot be prepared together, only 1 to {most}")]
    Bundles {
        /// Bundles asked for.
        bundles: usize,
        /// The most there may be.
        most: usize,
    },
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
    /// Bits of an input that are no word's.
    #[error("the masked input has bits set after its last one")]
    InputBits,
    /// Stored offline material cannot be written or read.
    #[error("offline material cannot be written or read: {0}")]
    Store(#[from] io::Error),
}

impl ProtocolError {
    /// Tells whether the peer was caught: no party that follows the protocol, on any line, sends
    /// this.
    pub const fn is_cheating(&self) -> bool {
        matches!(
            self,
            Self::Ot(OtError::Inconsistent) | Self::Stops(StopError::Ot(OtError::Inconsistent))
        )
    }

    /// Finds the channel's error in this one, whichever part passed it on.
    pub fn channel(&self) -> Option<&NetError> {
        fn transfer(error: &OtError) -> Option<&NetError> {
            match error {
                OtError::Net(net) => Some(net),
                _ => None,
            }
        }
        match self {
            Self::Net(net) | Self::Stops(StopError::Net(net)) => Some(net),
            Self::Ot(error) | Self::Stops(StopError::Ot(error)) => transfer(error),
            // Garbled tables are read through `std::io`, so the channel's error is wrapped once
            // more.
            Self::Stops(StopError::Material { source, .. }) => wrapped(&**source),
            Self::Store(source) => source.get_ref()?.downcast_ref(),
            _ => None,
        }
    }
}

fn wrapped<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a NetError> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return io.get_ref()?.downcast_ref();
        }
        cause = error.source();
    }
    None
}

/// The result of a step.
pub type Result<T> = std::result::Result<T, ProtocolError>;

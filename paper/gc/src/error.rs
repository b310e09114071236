//! What can go wrong. No variant carries a label, a weight or a token.

use primer_garble::evaluator::EvaluateError;
use primer_garble::stop::CircuitError;
use primer_ot::OtError;
use primer_plan::plan::PlanError;
use primer_text::TextError;
use primer_wire::NetError;
use std::io;
use thiserror::Error;

/// Why an inference stopped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GcError {
    /// The channel failed, or the peer sent a message of the wrong kind or length.
    #[error(transparent)]
    Net(#[from] NetError),
    /// An oblivious transfer failed.
    #[error(transparent)]
    Ot(#[from] OtError),
    /// The plan is not usable.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A function of the plan has no circuit.
    #[error(transparent)]
    Stop(#[from] CircuitError),
    /// The plan merges queries and keys or takes functions apart, which has no use where every
    /// product costs the same.
    #[error("a garbled model needs a plan with queries and keys, and with whole functions")]
    OtherGraph,
    /// A model that is not BERT's.
    #[error("models like BERT are garbled whole, and this one is a {0}")]
    Family(String),
    /// The plan asks for more than is ever run here.
    #[error("the plan has {amount} {what}, at most {limit} are garbled")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        amount: u64,
        /// How much there may be.
        limit: u64,
    },
    /// The model is not the plan's.
    #[error("the model does not belong to the plan: {0}")]
    OtherModel(&'static str),
    /// The input does not have the plan's number of tokens.
    #[error("the input has {found} tokens, the plan {expected}")]
    Tokens {
        /// Tokens of the input.
        found: usize,
        /// Tokens of the plan.
        expected: usize,
    },
    /// The model has no embedding for something in the input.
    #[error(transparent)]
    Input(#[from] TextError),
    /// Stored material could not be written or read.
    #[error("garbled material: {0}")]
    Store(#[from] io::Error),
    /// Stored material is not well formed.
    #[error(transparent)]
    Material(#[from] EvaluateError),
}

/// The result of a step.
pub type Result<T> = std::result::Result<T, GcError>;

/// Sorts what a streaming sink reported: its own error, or the channel's behind it.
pub(crate) fn from_sink(error: io::Error) -> GcError {
    match error.downcast::<NetError>() {
        Ok(net) => GcError::Net(net),
        Err(error) => GcError::Store(error),
    }
}

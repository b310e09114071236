//! The non-linear functions of a BERT, defined in integers.
//!
//! Each function here *is* the specification: the fixed-point reference calls it, the garbled
//! circuits are built from the same parameters and tables and must agree bit for bit. So every
//! definition is made of what is cheap in a circuit:
//!
//! * additions and comparisons cost one AND gate per bit, XOR and constants nothing;
//! * the absolute value is the *one's complement* (`x XOR sign`, free), off by one unit for
//!   negative numbers, which the tables' midpoints absorb;
//! * a [`Table`] of a few bits shares the monomials of its inputs between all its outputs;
//! * a garbled bit leaves the circuit as an arithmetic share with any public weight, so sums and
//!   differences of outputs need no adder.
//!
//! Inputs are signed values of a ring `Z_2^m` (`ring_bits`) with `fraction` fractional bits, as
//! truncation leaves them; outputs are integers with the function's `output_fraction`. Tables are
//! part of the plan and travel with it: both parties evaluate the same integers even where their
//! mathematical libraries would round differently.

mod gelu;
mod inverse_root;
mod softmax;
mod table;
mod tanh;

pub use gelu::{Activation, Gelu};
pub use inverse_root::InverseRoot;
pub use softmax::{Softmax, SoftmaxScratch};
pub use table::Table;
pub use tanh::Tanh;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A function's parameters contradict each other.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("the {function} of the plan is not usable: {reason}")]
pub struct FunctionError {
    /// Which function.
    pub function: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

impl FunctionError {
    fn unless(ok: bool, function: &'static str, reason: impl Into<String>) -> Result<(), Self> {
        if ok {
            Ok(())
        } else {
            Err(Self {
                function,
                reason: reason.into(),
            })
        }
    }
}

/// One of the functions, as a stop of the plan uses it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Function {
    /// GELU, element by element.
    Gelu(Gelu),
    /// The larger of the input and zero.
    Relu {
        /// Bits of the input ring.
        ring_bits: u32,
        /// Fractional bits of input and output.
        fraction: i32,
    },
    /// Softmax of whole rows.
    Softmax(Softmax),
    /// Reciprocal square root, element by element.
    InverseRoot(InverseRoot),
    /// Hyperbolic tangent, element by element.
    Tanh(Tanh),
}

impl Function {
    /// Bits of the ring that its input comes from.
    pub fn ring_bits(&self) -> u32 {
        match self {
            Self::Gelu(f) => f.ring_bits,
            Self::Relu { ring_bits, .. } => *ring_bits,
            Self::Softmax(f) => f.ring_bits,
            Self::InverseRoot(f) => f.ring_bits,
            Self::Tanh(f) => f.ring_bits,
        }
    }

    /// Fractional bits of its output.
    pub fn output_fraction(&self) -> i32 {
        match self {
            Self::Gelu(f) => f.output_fraction,
            Self::Relu { fraction, .. } => *fraction,
            Self::Softmax(f) => f.output_fraction(),
            Self::InverseRoot(f) => f.output_fraction,
            Self::Tanh(f) => f.output_fraction(),
        }
    }

    /// Bits of its output with the sign.
    pub fn output_bits(&self) -> u32 {
        match self {
            Self::Gelu(f) => f.ring_bits + (f.output_fraction - f.fraction) as u32,
            Self::Relu { ring_bits, .. } => *ring_bits,
            Self::Softmax(f) => f.exp.output_bits() + 1,
            Self::InverseRoot(f) => f.output_bits() + 1,
            Self::Tanh(f) => f.table.output_bits() + 1,
        }
    }

    /// Checks the parameters of a function that came from a file or from the peer.
    ///
    /// # Errors
    /// [`FunctionError`] with the parameter at fault.
    pub fn validate(&self) -> Result<(), FunctionError> {
        match self {
            Self::Gelu(f) => f.validate(),
            Self::Relu { ring_bits, .. } => FunctionError::unless(
                (2..=24).contains(ring_bits),
                "ReLU",
                format!("ring of {ring_bits} bits"),
            ),
            Self::Softmax(f) => f.validate(),
            Self::InverseRoot(f) => f.validate(),
            Self::Tanh(f) => f.validate(),
        }
    }
}

//! The non-linear functions of a BERT, defined in integers.
//!
//! Each function here *is* the specification: the fixed-point reference calls it, and the garbled
//! circuits are built from the same parameters and tables and must agree bit for bit. So every
//! definition uses what is cheap in a circuit:
//!
//! * additions and comparisons cost one AND gate per bit, XOR and constants nothing;
//! * the absolute value is the *one's complement* (`x XOR sign`, free), off by one unit for
//!   negative numbers, which the tables' midpoints absorb;
//! * a [`Table`] of a few bits shares the monomials of its inputs between all its outputs;
//! * a garbled bit leaves the circuit as an arithmetic share with any public weight, so sums and
//!   differences of outputs need no adder.
//!
//! The exceptions are [`Lookup`], any function of a short index, which needs no circuit; and
//! [`Sorted`], look-ups of several lengths side by side.
//!
//! Inputs are signed values of a ring `Z_2^m` (`ring_bits`) with `fraction` fractional bits, as
//! truncation leaves them; outputs are integers with the function's `output_fraction`. Tables are
//! part of the plan and travel with it: both parties evaluate the same integers even where their
//! mathematical libraries would round differently.

mod coarse;
mod gelu;
mod inverse_root;
mod lookup;
pub mod powers;
mod reciprocal;
mod softmax;
mod sorted;
mod table;
mod tanh;

pub use coarse::CoarseMaximum;
pub use gelu::{Activation, Gelu};
pub use inverse_root::InverseRoot;
pub use lookup::{Lookup, LookupTable};
pub use powers::{HeadClass, PlacedHead, Powers};
pub use reciprocal::Reciprocal;
pub use softmax::{Softmax, SoftmaxScratch};
pub use sorted::{Class, Sorted};
pub use table::Table;
pub use tanh::Tanh;

use primer_ring::truncate::Truncation;
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

/// Tells whether a value may have that many fractional bits, so that sums of a few such numbers
/// never overflow. (A weight, the difference of two values and a shift, may have four times as
/// many.)
pub(crate) const fn in_reach(fraction: i32) -> bool {
    -64 <= fraction && fraction <= 64
}

/// Tells whether truncation can make rings of that many bits.
const fn is_ring(bits: u32) -> bool {
    Truncation::to_ring(bits).is_some()
}

/// What is added to scores before a function of whole rows, in units of its ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masking {
    /// Subtracted from the scores of padded keys.
    pub mask: i64,
    /// Added to every score.
    pub offset: i64,
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
    /// Tables on a short index, element by element.
    Lookup(Lookup),
    /// Powers of two of scores, element by element, by tables of their heads.
    Powers(Powers),
    /// The coarse maximum of whole rows.
    CoarseMaximum(CoarseMaximum),
    /// Reciprocal, element by element.
    Reciprocal(Reciprocal),
    /// Tables on indices of several lengths, by columns, element by element.
    Sorted(Sorted),
}

impl Function {
    /// Returns the bits of the ring that its input comes from.
    pub fn ring_bits(&self) -> u32 {
        match self {
            Self::Gelu(f) => f.ring_bits,
            Self::Relu { ring_bits, .. } => *ring_bits,
            Self::Softmax(f) => f.ring_bits,
            Self::InverseRoot(f) => f.ring_bits,
            Self::Tanh(f) => f.ring_bits,
            Self::Lookup(f) => f.index_bits,
            Self::Powers(f) => f.first().map_or(0, |lookup| lookup.index_bits),
            Self::Sorted(f) => f.widest().index_bits,
            Self::CoarseMaximum(f) => f.ring_bits,
            Self::Reciprocal(f) => f.ring_bits,
        }
    }

    /// Tells whether it takes whole rows, not single elements.
    pub const fn takes_rows(&self) -> bool {
        matches!(self, Self::Softmax(_) | Self::CoarseMaximum(_))
    }

    /// Returns what is added to the scores before it, if it takes scores.
    pub const fn masking(&self) -> Option<Masking> {
        let (mask, offset) = match self {
            Self::Softmax(f) => (f.mask, f.offset),
            Self::CoarseMaximum(f) => (f.mask, f.offset),
            _ => return None,
        };
        Some(Masking { mask, offset })
    }

    /// Returns the fractional bits of its output; of the first, if a look-up has several tables.
    pub fn output_fraction(&self) -> i32 {
        match self {
            Self::Gelu(f) => f.output_fraction,
            Self::Relu { fraction, .. } => *fraction,
            Self::Softmax(f) => f.output_fraction(),
            Self::InverseRoot(f) => f.output_fraction,
            Self::Tanh(f) => f.output_fraction(),
            Self::Lookup(f) => f.tables[0].output_fraction(),
            Self::Powers(f) => f.first().map_or(0, |l| l.tables[0].output_fraction()),
            Self::Sorted(f) => f.widest().tables[0].output_fraction(),
            Self::CoarseMaximum(f) => f.fraction,
            Self::Reciprocal(f) => f.output_fraction,
        }
    }

    /// Returns the bits of its output with the sign; of the first, if a look-up has several tables.
    pub fn output_bits(&self) -> u32 {
        match self {
            Self::Gelu(f) => f.ring_bits + (f.output_fraction - f.fraction) as u32,
            Self::Relu { ring_bits, .. } => *ring_bits,
            Self::Softmax(f) => f.exp.output_bits() + 1,
            Self::InverseRoot(f) => f.output_bits() + 1,
            Self::Tanh(f) => f.table.output_bits() + 1,
            Self::Lookup(f) => f.tables[0].output_bits(),
            Self::Powers(f) => f.first().map_or(0, |l| l.tables[0].output_bits()),
            Self::Sorted(f) => f.widest().tables[0].output_bits(),
            Self::CoarseMaximum(f) => f.output_bits(),
            Self::Reciprocal(f) => f.output_bits() + 1,
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
                is_ring(*ring_bits),
                "ReLU",
                format!("ring of {ring_bits} bits"),
            ),
            Self::Softmax(f) => f.validate(),
            Self::InverseRoot(f) => f.validate(),
            Self::Tanh(f) => f.validate(),
            Self::Lookup(f) => f.validate(),
            Self::Powers(f) => f.validate(),
            Self::Sorted(f) => f.validate(),
            Self::CoarseMaximum(f) => f.validate(),
            Self::Reciprocal(f) => f.validate(),
        }
    }
}

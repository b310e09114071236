//! The numbers of a plan: how every value and weight is written as integers.

use crate::function::Function;
use primer_ring::fixed::Format;
use primer_ring::modulus::K;
use primer_ring::truncate::Truncation;
use serde::{Deserialize, Serialize};

/// Bits of a fixed value, at most, with its sign.
pub const MAX_VALUE_BITS: u32 = 32;
const _: () = assert!(MAX_VALUE_BITS < K, "a fixed value is a residue");

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scale {
    /// Exact modulo p, on its way into a ring of `ring_bits` bits.
    Accumulator {
        /// Fractional bits.
        fraction: i32,
        /// Bits of the ring that its stop truncates it to.
        ring_bits: u32,
    },
    /// Exact modulo p, never negative, and on its way into a ring that holds all of it.
    Small {
        /// Fractional bits.
        fraction: i32,
        /// Bits of the ring.
        ring_bits: u32,
    },
    /// After a stop.
    Fixed {
        /// Bits with the sign.
        bits: u32,
        /// Fractional bits.
        fraction: i32,
    },
}

impl Scale {
    /// Returns the fractional bits.
    pub const fn fraction(self) -> i32 {
        match self {
            Self::Accumulator { fraction, .. }
            | Self::Small { fraction, .. }
            | Self::Fixed { fraction, .. } => fraction,
        }
    }

    /// Returns the fractional bits of a ring value after the truncation of an accumulator.
    pub const fn ring_fraction(self) -> Option<i32> {
        match self {
            Self::Accumulator {
                fraction,
                ring_bits,
            } => Some(fraction - (K - ring_bits) as i32),
            Self::Small { fraction, .. } => Some(fraction),
            Self::Fixed { .. } => None,
        }
    }

    /// Returns the truncation of an accumulator.
    pub const fn truncation(self) -> Option<Truncation> {
        match self {
            Self::Accumulator { ring_bits, .. } => Truncation::to_ring(ring_bits),
            Self::Small { ring_bits, .. } => Truncation::of_small(ring_bits),
            Self::Fixed { .. } => None,
        }
    }

    /// Returns the integer format of a fixed value.
    pub const fn format(self) -> Option<Format> {
        match self {
            Self::Fixed { bits, fraction } => Some(Format { bits, fraction }),
            Self::Accumulator { .. } | Self::Small { .. } => None,
        }
    }
}

/// How a weight is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WeightScale {
    /// A dense matrix of [`WEIGHT_BITS`]-bit integers.
    Dense {
        /// Fractional bits.
        fraction: i32,
    },
    /// Gains and means of [`WEIGHT_BITS`]-bit integers.
    Diagonal {
        /// Fractional bits of the gains.
        gain: i32,
        /// Fractional bits of the means.
        mean: i32,
    },
    /// At the scale of the accumulator it is added to.
    Bias,
}

impl WeightScale {
    /// Returns the fractional bits of a dense weight or of a diagonal's gains; a bias has none of
    /// its own.
    pub const fn fraction(self) -> i32 {
        match self {
            Self::Dense { fraction } => fraction,
            Self::Diagonal { gain, .. } => gain,
            Self::Bias => 0,
        }
    }
}

/// Bits of an integer weight with its sign, as in the paper.
pub const WEIGHT_BITS: u32 = 15;
/// How long the columns of a matrix that hints multiply may be: the root of the mean of their
/// squared lengths. Products by hints err by a part of it, and it bounds what they may reveal.
pub const COLUMN_LENGTH: u64 = 1 << 13;
/// The same for the embedding table, which has as many rows as there are words: about what integers
/// of [`WEIGHT_BITS`] bits have.
pub const TABLE_COLUMN_LENGTH: u64 = 1 << 17;
/// How large the largest singular value of the embedding table may be, in its integers: what the
/// shares of its products reveal about a client's dither grows with it.
pub const TABLE_NORM: f64 = (3 << 18) as f64;
/// How long the columns of a matrix may be if its results are revealed: it has few columns, and
/// should err little.
pub const OUTPUT_COLUMN_LENGTH: u64 = 1 << 16;
/// Bits of the error of a product with such a matrix, in units of the product: more than its
/// standard deviation has. What is revealed is no finer.
pub const OUTPUT_ERROR_BITS: i32 = 15;
/// Bits of the scale that a one-hot input carries where it stands for a whole embedding, at most.
pub const ONE_HOT_BITS: u32 = 23;
/// Bits of that scale, at least: with fewer the error of a product would reach the values.
pub const LEAST_ONE_HOT_BITS: u32 = 18;
/// Bits of an activation with its sign, as in the paper.
pub const ACTIVATION_BITS: u32 = 15;

/// The scale of a value that is one or zero.
pub const KEPT: Scale = Scale::Fixed {
    bits: 2,
    fraction: 0,
};

/// Scales of all values and weights, and the functions of the stops that have one.
///
/// They depend on the model and on the design of its graph, not on the number of tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scales {
    /// One per value of the graph.
    pub values: Vec<Scale>,
    /// One per weight of the graph.
    pub weights: Vec<WeightScale>,
    /// One per step of the graph; only stops with a function have one.
    pub functions: Vec<Option<Function>>,
}

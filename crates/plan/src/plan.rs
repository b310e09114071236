//! The plan: a graph with its scales, checked, fingerprinted, the same on both sides.

mod hinted;
mod validate;

use crate::design::{Design, LookedUp};
use crate::function::{CoarseMaximum, Function, FunctionError, Powers};
use crate::graph::{Graph, Op, Step, StopFunction, Term, ValueId, WeightId};
use crate::scales::{ONE_HOT_BITS, Scale, Scales, WEIGHT_BITS, WeightScale};
use crate::shape::{Shape, ShapeError};
use primer_ring::fixed::exp2;
use primer_ring::modulus::{C, K};
use primer_ring::truncate::Truncation;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The largest encoded plan that is read.
pub const MAX_ENCODED: usize = 16 << 20;
const VERSION: u16 = 6;

/// Why a plan was refused.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The bytes are not a plan.
    #[error("these {0} bytes are not an encoded plan")]
    Encoding(usize),
    /// More bytes than any plan has.
    #[error("an encoded plan of {0} bytes is over the limit of {MAX_ENCODED}")]
    TooLarge(usize),
    /// Written by another version of the program.
    #[error("the plan has version {0}, this program reads version {VERSION}")]
    Version(u16),
    /// The shape is not usable.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The model cannot take this number of tokens.
    #[error("{tokens} tokens, but the model takes 1 to {limit}")]
    Tokens {
        /// Tokens asked for.
        tokens: usize,
        /// The model's limit.
        limit: usize,
    },
    /// A list has the wrong length for the graph.
    #[error("the plan scales {found} {what}, but the graph has {expected}")]
    Count {
        /// Which list.
        what: &'static str,
        /// Entries found.
        found: usize,
        /// Entries needed.
        expected: usize,
    },
    /// A function is not usable.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// Two scales contradict each other.
    #[error("the scales around {value} contradict each other: {reason}")]
    Scales {
        /// The value's name.
        value: String,
        /// The contradiction.
        reason: String,
    },
}

/// How the exponents of a head follow from its scores: see [`Op::Exponents`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExponentMap {
    /// `2^shift · scores + constant`.
    Placed {
        /// Bits to the left, to the head's own cells.
        shift: u32,
        /// The place of its scores in the table.
        constant: i64,
    },
    /// `2^shift · (scores + constant - mask·padding - 2^unit_bits·reference)`.
    Measured {
        /// A unit of the reference, in bits.
        unit_bits: u32,
        /// Subtracted from the scores of padded keys.
        mask: i64,
        /// Added to every score: it centres the scores in their ring, and then the exponents.
        constant: i64,
        /// Bits to the left, to the scale of the exponents.
        shift: u32,
    },
}

/// A model compiled for a number of tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    graph: Graph,
    scales: Scales,
}

#[derive(Serialize, Deserialize)]
struct Encoded {
    version: u16,
    shape: Shape,
    tokens: usize,
    scales: Scales,
}

impl Plan {
    /// Joins a model's shape and scales for a number of tokens and checks that they fit.
    ///
    /// # Errors
    /// [`PlanError`] naming what does not fit.
    pub fn new(shape: &Shape, tokens: usize, scales: Scales) -> Result<Self, PlanError> {
        Self::by(&LookedUp, shape, tokens, scales)
    }

    /// Joins a model's shape and scales to a plan of another design.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn by(
        design: &dyn Design,
        shape: &Shape,
        tokens: usize,
        scales: Scales,
    ) -> Result<Self, PlanError> {
        shape.validate()?;
        let limit = shape.max_tokens();
        if tokens == 0 || tokens > limit {
            return Err(PlanError::Tokens { tokens, limit });
        }
        let plan = Self {
            graph: Graph::by(design, shape, tokens),
            scales,
        };
        plan.validate(design)?;
        Ok(plan)
    }

    /// Tells whether this is a plan of a design.
    pub fn is_by(&self, design: &dyn Design) -> bool {
        self.graph == Graph::by(design, &self.graph.shape, self.graph.tokens)
            && (0..self.graph.steps.len()).all(|index| design.check(self, index).is_ok())
    }

    /// Returns the steps and values.
    pub const fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the scales.
    pub const fn scales(&self) -> &Scales {
        &self.scales
    }

    /// Returns the scale of a value.
    pub fn scale(&self, id: ValueId) -> Scale {
        self.scales.values[id.index()]
    }

    /// Returns the scale of a weight.
    pub fn weight_scale(&self, id: WeightId) -> WeightScale {
        self.scales.weights[id.index()]
    }

    /// Returns the function of a stop, by the index of its step.
    pub fn function(&self, step: usize) -> Option<&Function> {
        self.scales.functions[step].as_ref()
    }

    /// Returns the truncation before the stop that reads `accumulator`.
    ///
    /// # Panics
    /// If the value is not an accumulator.
    pub fn truncation(&self, accumulator: ValueId) -> Truncation {
        self.scale(accumulator)
            .truncation()
            .expect("a checked plan has accumulators before stops")
    }

    /// Returns the number of bits by which a product with `inputs` fractional bits is shifted left
    /// to reach the scale of its accumulator `output`.
    pub fn shift(&self, inputs: i32, output: ValueId) -> u32 {
        (self.scale(output).fraction() - inputs) as u32
    }

    /// Returns the fractional bits of a term's product: with a dense weight, or with a diagonal's
    /// gain and mean.
    pub fn term_fractions(&self, term: &Term) -> (i32, i32) {
        let input = self.scale(term.input).fraction();
        match self.weight_scale(term.weight) {
            WeightScale::Dense { fraction } => (input + fraction, input + fraction),
            WeightScale::Diagonal { gain, mean } => (input + gain, input + mean),
            WeightScale::Bias => (input, input),
        }
    }

    /// Returns the bits of the scale that a one-hot input carries into the embedding. Where one-hot
    /// rows stand for whole embeddings, their product errs by as much as the low bits of all its
    /// inputs, those of a whole vocabulary, so a one is written as a large number; otherwise it is
    /// one.
    pub fn one_hot_bits(&self, table: WeightId, output: ValueId) -> u32 {
        let room = self.shift(self.weight_scale(table).fraction(), output);
        match self.graph.positions_are_rows() {
            true => room.min(ONE_HOT_BITS),
            false => 0,
        }
    }

    /// Returns the fractional bits of the first product of merged scores, to which their bias is
    /// added.
    pub fn merged_fraction(&self, input: ValueId, weight: WeightId) -> i32 {
        self.scale(input).fraction() + self.weight_scale(weight).fraction()
    }

    /// Returns how exponents follow from the scores of `head`.
    ///
    /// # Panics
    /// If the values are not those of an [`Op::Exponents`].
    pub fn exponent_map(&self, head: usize, scores: ValueId, output: ValueId) -> ExponentMap {
        let powers = self.powers(output);
        let powers = powers.expect("a checked plan has powers behind what is left");
        let (class, placed) = powers.class(head);
        let shift = self.shift(self.scale(scores).fraction(), output);
        if class.measured {
            let coarse = self.coarse(scores);
            let coarse = coarse.expect("a checked plan has a coarse maximum for measured heads");
            let unit_bits = self.truncation(scores).shift();
            return ExponentMap::Measured {
                unit_bits,
                mask: coarse.mask << unit_bits,
                constant: (coarse.offset << unit_bits) + (coarse.middle() << (unit_bits - 1)),
                shift,
            };
        }
        let by = self.truncation(output);
        let finest = self.scale(output).ring_fraction();
        let finest = finest.expect("a checked plan has an accumulator here");
        ExponentMap::Placed {
            shift: shift - (finest - class.lookup.fraction) as u32,
            constant: placed.offset << by.shift(),
        }
    }

    /// Returns the function that takes powers of `exponents`.
    pub fn powers(&self, exponents: ValueId) -> Option<&Powers> {
        let reads = |step: &Step| matches!(step.op, Op::Stop { input, .. } if input == exponents);
        let index = self.graph.steps.iter().position(reads)?;
        match self.function(index) {
            Some(Function::Powers(powers)) => Some(powers),
            _ => None,
        }
    }

    /// Returns the heads whose scores are measured against a coarse maximum, in rising order.
    pub fn measured_heads(&self, scores: ValueId) -> Vec<usize> {
        let left = |step: &Step| match step.op {
            Op::Exponents {
                scores: of, output, ..
            } if of == scores => Some(output),
            _ => None,
        };
        let exponents = self.graph.steps.iter().find_map(left);
        let powers = exponents.and_then(|id| self.powers(id));
        powers.map_or(Vec::new(), Powers::measured)
    }

    /// Returns the coarse maximum of `scores`.
    fn coarse(&self, scores: ValueId) -> Option<&CoarseMaximum> {
        let reads = |step: &Step| {
            matches!(step.op, Op::Stop { function: StopFunction::CoarseMaximum, input, .. }
                if input == scores)
        };
        let index = self.graph.steps.iter().position(reads)?;
        match self.function(index) {
            Some(Function::CoarseMaximum(coarse)) => Some(coarse),
            _ => None,
        }
    }

    /// Returns LayerNorm's ε, once for each feature, at the scale of a sum of squares.
    pub fn epsilon(&self, squares: ValueId) -> i64 {
        let width = self.graph.squared_width(squares) as f64;
        let unit = exp2(self.scale(squares).fraction());
        (self.graph.shape.epsilon * width * unit).round() as i64
    }

    /// Encodes the plan into bytes that are the same on both sides.
    ///
    /// # Panics
    /// Never for a plan that exists: encoding to memory cannot fail.
    pub fn encode(&self) -> Vec<u8> {
        let encoded = Encoded {
            version: VERSION,
            shape: self.graph.shape.clone(),
            tokens: self.graph.tokens,
            scales: self.scales.clone(),
        };
        postcard::to_stdvec(&encoded).expect("a plan can be encoded")
    }

    /// Decodes a plan from an untrusted source.
    ///
    /// # Errors
    /// [`PlanError`] for anything but the encoding of a usable plan.
    pub fn decode(bytes: &[u8]) -> Result<Self, PlanError> {
        Self::decode_by(&LookedUp, bytes)
    }

    /// Decodes a plan of another design from an untrusted source.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn decode_by(design: &dyn Design, bytes: &[u8]) -> Result<Self, PlanError> {
        if bytes.len() > MAX_ENCODED {
            return Err(PlanError::TooLarge(bytes.len()));
        }
        let (encoded, rest): (Encoded, _) =
            postcard::take_from_bytes(bytes).map_err(|_| PlanError::Encoding(bytes.len()))?;
        if encoded.version != VERSION {
            return Err(PlanError::Version(encoded.version));
        }
        if !rest.is_empty() {
            return Err(PlanError::Encoding(bytes.len()));
        }
        let plan = Self::by(design, &encoded.shape, encoded.tokens, encoded.scales)?;
        // Numbers of variable length have longer encodings too, but a plan has only one.
        if plan.encode() != bytes {
            return Err(PlanError::Encoding(bytes.len()));
        }
        Ok(plan)
    }

    /// Computes a digest of everything that both sides must agree on: shape, tokens, scales,
    /// modulus.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hash = blake3::Hasher::new_derive_key("primer plan v1");
        hash.update(&K.to_le_bytes());
        hash.update(&C.to_le_bytes());
        hash.update(&self.encode());
        *hash.finalize().as_bytes()
    }
}

const _: () = assert!(WEIGHT_BITS <= 16, "integer weights are stored in 16 bits");

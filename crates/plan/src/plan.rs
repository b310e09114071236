//! The plan: a graph with its scales, checked, fingerprinted, the same on both sides.

use crate::function::{CoarseMaximum, Function, FunctionError, Powers, in_reach};
use crate::graph::{Form, Graph, Op, Step, StopFunction, Term, ValueId, WeightId, WeightKind};
use crate::scales::{
    KEPT, LEAST_ONE_HOT_BITS, MAX_VALUE_BITS, ONE_HOT_BITS, OUTPUT_ERROR_BITS, Scale, Scales,
    WEIGHT_BITS, WeightScale,
};
use crate::shape::{Shape, ShapeError};
use primer_ring::fixed::exp2;
use primer_ring::modulus::{C, K};
use primer_ring::truncate::Truncation;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The largest encoded plan that is read.
pub const MAX_ENCODED: usize = 16 << 20;
const VERSION: u16 = 5;

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
    /// Scales of a graph of another form.
    #[error("the scales are for the {found} form, the model has the {expected} form")]
    Form {
        /// What the scales are for.
        found: &'static str,
        /// What the model has.
        expected: &'static str,
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

/// How the exponents of a head follow from its scores: see [`Op::Rest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
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
        shape.validate()?;
        let limit = shape.max_tokens();
        if tokens == 0 || tokens > limit {
            return Err(PlanError::Tokens { tokens, limit });
        }
        let plan = Self {
            graph: Graph::with_form(shape, scales.form, tokens),
            scales,
        };
        plan.validate()?;
        Ok(plan)
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

    /// Returns the bits of the scale that a one-hot input carries into the embedding. In the
    /// looked-up form a product errs by as much as the low bits of all its inputs, those of a whole
    /// vocabulary, so a one is written as a large number; in other forms it is one.
    pub fn one_hot_bits(&self, table: WeightId, output: ValueId) -> u32 {
        let room = self.shift(self.weight_scale(table).fraction(), output);
        match self.graph.form {
            Form::LookedUp => room.min(ONE_HOT_BITS),
            Form::Separate | Form::Merged => 0,
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
    /// If the values are not those of an [`Op::Rest`].
    pub fn rest(&self, head: usize, scores: ValueId, output: ValueId) -> Rest {
        let powers = self.powers(output);
        let powers = powers.expect("a checked plan has powers behind what is left");
        let (class, placed) = powers.class(head);
        let shift = self.shift(self.scale(scores).fraction(), output);
        if class.measured {
            let coarse = self.coarse(scores);
            let coarse = coarse.expect("a checked plan has a coarse maximum for measured heads");
            let unit_bits = self.truncation(scores).shift();
            return Rest::Measured {
                unit_bits,
                mask: coarse.mask << unit_bits,
                constant: (coarse.offset << unit_bits) + (coarse.middle() << (unit_bits - 1)),
                shift,
            };
        }
        let by = self.truncation(output);
        let finest = self.scale(output).ring_fraction();
        let finest = finest.expect("a checked plan has an accumulator here");
        Rest::Placed {
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
            Op::Rest {
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
        let plan = Self::new(&encoded.shape, encoded.tokens, encoded.scales)?;
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

    fn conflict(&self, id: ValueId, reason: impl Into<String>) -> PlanError {
        PlanError::Scales {
            value: self.graph.value(id).name.clone(),
            reason: reason.into(),
        }
    }

    fn validate(&self) -> Result<(), PlanError> {
        let Self { graph, scales } = self;
        for (what, found, expected) in [
            ("values", scales.values.len(), graph.values.len()),
            ("weights", scales.weights.len(), graph.weights.len()),
            ("steps", scales.functions.len(), graph.steps.len()),
        ] {
            if found != expected {
                return Err(PlanError::Count {
                    what,
                    found,
                    expected,
                });
            }
        }
        for id in graph.value_ids() {
            let scale = self.scale(id);
            if !in_reach(scale.fraction()) {
                return Err(self.conflict(id, format!("{} fractional bits", scale.fraction())));
            }
            if let Scale::Accumulator { ring_bits, .. } | Scale::Small { ring_bits, .. } = scale
                && scale.truncation().is_none()
            {
                return Err(self.conflict(id, format!("a ring of {ring_bits} bits")));
            }
            if scale
                .format()
                .is_some_and(|f| !(2..=MAX_VALUE_BITS).contains(&f.bits))
            {
                return Err(self.conflict(id, "a fixed value has 2 to 32 bits"));
            }
        }
        for weight in graph.weight_ids() {
            let fits = matches!(
                (graph.weight(weight).kind, self.weight_scale(weight)),
                (WeightKind::Dense, WeightScale::Dense { .. })
                    | (WeightKind::Diagonal, WeightScale::Diagonal { .. })
                    | (WeightKind::Bias, WeightScale::Bias)
            );
            let (first, second) = match self.weight_scale(weight) {
                WeightScale::Dense { fraction } => (fraction, fraction),
                WeightScale::Diagonal { gain, mean } => (gain, mean),
                WeightScale::Bias => (0, 0),
            };
            let reason = if !fits {
                "another kind of weight".to_owned()
            } else if !(in_reach(first / 4) && in_reach(second / 4)) {
                format!("{first} and {second} fractional bits")
            } else {
                continue;
            };
            return Err(PlanError::Scales {
                value: graph.weight(weight).name.clone(),
                reason,
            });
        }
        (0..graph.steps.len()).try_for_each(|index| self.validate_step(index))
    }

    fn validate_step(&self, index: usize) -> Result<(), PlanError> {
        let step = &self.graph.steps[index];
        let output = step.output();
        let function = self.function(index);
        if let Some(function) = function {
            function.validate()?;
        }
        // A linear step shifts its products left by an amount that exists.
        let shift = |fraction: i32| {
            let by = self.scale(output).fraction() - fraction;
            if (0..=K as i32).contains(&by) {
                Ok(())
            } else {
                Err(self.conflict(output, format!("a product is off by {by} bits")))
            }
        };
        let fixed = |id: ValueId| self.scale(id).format().map(|f| f.fraction);
        let read = |id: ValueId| fixed(id).ok_or_else(|| self.conflict(id, "it is not fixed"));
        match &step.op {
            Op::Stop {
                function: kind,
                input,
                ..
            } => {
                return self.validate_stop(*kind, function, *input, output);
            }
            Op::Embed { table, .. } => {
                let WeightScale::Dense { fraction } = self.weight_scale(*table) else {
                    return Err(self.conflict(output, "its table has no scale"));
                };
                shift(fraction)?;
                let carried = self.one_hot_bits(*table, output);
                if self.graph.form == Form::LookedUp && carried < LEAST_ONE_HOT_BITS {
                    let reason = format!(
                        "its one-hot input carries {carried} bits, {LEAST_ONE_HOT_BITS} are needed"
                    );
                    return Err(self.conflict(output, reason));
                }
            }
            Op::Linear { terms, .. } => {
                for term in terms {
                    self.validate_exact(term, output)?;
                    let (dense, mean) = self.term_fractions(term);
                    shift(dense)?;
                    shift(mean)?;
                }
                self.validate_diagonals(terms, output)?;
            }
            Op::Scores { query, key, .. } => shift(read(*query)? + read(*key)?)?,
            Op::MergedScores { input, weight, .. } => {
                // Exact for any width: a requantised value has 23 bits at most.
                shift(self.merged_fraction(*input, *weight) + read(*input)?)?;
            }
            Op::Mix {
                probabilities,
                value,
                ..
            } => shift(read(*probabilities)? + read(*value)?)?,
            Op::SquareSum { input, .. } => shift(2 * read(*input)?)?,
            Op::ScaleRows { input, factor, .. } => shift(read(*input)? + read(*factor)?)?,
            Op::Rest { scores, .. } => {
                shift(self.scale(*scores).fraction())?;
                self.validate_rest(*scores, output)?;
            }
            Op::RowSum { input, .. } => shift(read(*input)?)?,
            Op::Pool { input, kept, .. } => shift(read(*input)? + read(*kept)?)?,
            Op::Kept { .. } => {
                return match self.scale(output) {
                    KEPT if function.is_none() => Ok(()),
                    _ => Err(self.conflict(output, "it is one or zero")),
                };
            }
        }
        if self.scale(output).truncation().is_none() {
            return Err(self.conflict(output, "it is not an accumulator with a usable ring"));
        }
        // Only a sum of powers is known not to be negative.
        let summed = matches!(step.op, Op::RowSum { .. });
        if summed != matches!(self.scale(output), Scale::Small { .. }) {
            return Err(self.conflict(output, "sums of powers are kept whole, and nothing else"));
        }
        if function.is_some() {
            return Err(self.conflict(output, "a linear step has no function"));
        }
        Ok(())
    }

    /// Checks that scores reach the cells of their heads, and that what is left of measured ones
    /// fits the ring of the exponents for all scores.
    fn validate_rest(&self, scores: ValueId, output: ValueId) -> Result<(), PlanError> {
        let refuse = |reason: &str| Err(self.conflict(output, reason));
        let (Some(powers), Some(finest), Some(by)) = (
            self.powers(output),
            self.scale(output).ring_fraction(),
            self.scale(output).truncation(),
        ) else {
            return refuse("it is not what is left of scores");
        };
        powers.validate()?;
        powers.check_heads(self.graph.shape.heads)?;
        let shift = self.scale(output).fraction() - self.scale(scores).fraction();
        for class in &powers.classes {
            let coarser = finest - class.lookup.fraction;
            let reached = match class.measured {
                true => coarser == 0,
                false => (0..=shift).contains(&coarser),
            };
            if !reached {
                return refuse("its scores do not reach the cells of a head");
            }
        }
        match (powers.measured().is_empty(), self.coarse(scores)) {
            (true, None) => Ok(()),
            (false, Some(coarse)) => {
                let range = f64::from(coarse.far + 3) * exp2(-coarse.fraction);
                match range > exp2(by.ring_bits() as i32 - finest) {
                    true => refuse("its ring is too short for what is left of scores"),
                    false => Ok(()),
                }
            }
            _ => refuse("a coarse maximum is there for measured heads only"),
        }
    }

    /// Checks that, in the looked-up form, the gains and the means of a diagonal term have one
    /// scale, because it is multiplied as a matrix of integers.
    fn validate_diagonals(&self, terms: &[Term], output: ValueId) -> Result<(), PlanError> {
        let apart = |term: &Term| match self.weight_scale(term.weight) {
            WeightScale::Diagonal { gain, mean } => gain != mean,
            WeightScale::Dense { .. } | WeightScale::Bias => false,
        };
        if self.graph.form == Form::LookedUp && terms.iter().any(apart) {
            return Err(self.conflict(output, "a diagonal term has gains and means of two scales"));
        }
        Ok(())
    }

    /// Checks that, in the looked-up form, an output is no finer than what its products err by.
    fn validate_output(&self, sum: ValueId, output: ValueId) -> Result<(), PlanError> {
        let Op::Linear { terms, .. } = &self.graph.maker(sum).op else {
            return Ok(());
        };
        if self.graph.form != Form::LookedUp || !self.graph.outputs.contains(&output) {
            return Ok(());
        }
        let products = terms.iter().map(|term| self.term_fractions(term).0);
        let coarsest = products.min().expect("a linear step has a term");
        let finest = coarsest - OUTPUT_ERROR_BITS;
        if self.scale(output).fraction() > finest {
            let reason = format!("it has more than the {finest} fractional bits of its products");
            return Err(self.conflict(output, reason));
        }
        Ok(())
    }

    /// Checks that a term's integer products are exact: they run in double precision, which is
    /// exact for sums below `2^53`.
    fn validate_exact(&self, term: &Term, output: ValueId) -> Result<(), PlanError> {
        let Some(format) = self.scale(term.input).format() else {
            return Err(self.conflict(term.input, "it is not fixed"));
        };
        let terms = self.graph.weight(term.weight).rows;
        let bits = format.bits - 1 + (WEIGHT_BITS - 1) + terms.next_power_of_two().ilog2();
        if bits > 52 {
            let reason = format!("sums of {terms} products take {bits} bits, 52 are exact");
            return Err(self.conflict(output, reason));
        }
        Ok(())
    }

    /// Tells whether activations are looked up.
    fn looks_up(&self) -> bool {
        self.graph.form == Form::LookedUp
    }

    /// Tells whether a function is an activation that is computed by a circuit.
    fn is_circuit(&self, kind: StopFunction) -> bool {
        match kind {
            StopFunction::Activation => !self.looks_up(),
            StopFunction::Summary => true,
            _ => false,
        }
    }

    fn validate_stop(
        &self,
        kind: StopFunction,
        function: Option<&Function>,
        input: ValueId,
        output: ValueId,
    ) -> Result<(), PlanError> {
        let (Some(ring_fraction), Some(ring_bits)) = (
            self.scale(input).ring_fraction(),
            self.scale(input).truncation().map(Truncation::ring_bits),
        ) else {
            return Err(self.conflict(input, "a stop reads an accumulator with a usable ring"));
        };
        let Some(format) = self.scale(output).format() else {
            return Err(self.conflict(output, "a stop leaves a fixed value"));
        };
        let (expected_ring, fraction_in, fraction_out) = match (kind, function) {
            (StopFunction::Requantise, None) => (ring_bits, ring_fraction, ring_fraction),
            (StopFunction::Softmax, Some(Function::Softmax(f))) => {
                (f.ring_bits, f.fraction as i32, f.output_fraction())
            }
            (StopFunction::Activation, Some(Function::Sorted(f))) if self.looks_up() => {
                let columns = self.graph.value(input).cols;
                if f.columns() != Some(columns) {
                    let reason = format!("its classes do not have the {columns} columns there are");
                    return Err(self.conflict(input, reason));
                }
                let widest = f.widest();
                (
                    widest.index_bits,
                    widest.fraction,
                    widest.tables[0].output_fraction(),
                )
            }
            (kind, Some(Function::Gelu(f))) if self.is_circuit(kind) => {
                (f.ring_bits, f.fraction, f.output_fraction)
            }
            (
                kind,
                Some(Function::Relu {
                    ring_bits,
                    fraction,
                }),
            ) if self.is_circuit(kind) => (*ring_bits, *fraction, *fraction),
            (StopFunction::Power, Some(Function::Powers(f))) => {
                let ring_bits = function.map_or(0, Function::ring_bits);
                let results = f.classes[0].lookup.tables[0].output_fraction();
                (ring_bits, ring_fraction, results)
            }
            // No head is measured, so nothing is computed.
            (StopFunction::CoarseMaximum, None) => {
                return match self.scale(output) {
                    KEPT => Ok(()),
                    _ => Err(self.conflict(output, "there is nothing to measure")),
                };
            }
            (StopFunction::CoarseMaximum, Some(Function::CoarseMaximum(f))) => {
                (f.ring_bits, f.fraction, f.fraction)
            }
            (StopFunction::Reciprocal, Some(Function::Reciprocal(f))) => {
                (f.ring_bits, ring_fraction, f.output_fraction)
            }
            (StopFunction::InverseRoot, Some(Function::InverseRoot(f))) => {
                (f.ring_bits, ring_fraction, f.output_fraction)
            }
            (StopFunction::Tanh, Some(Function::Tanh(f))) => {
                (f.ring_bits, f.fraction, f.output_fraction())
            }
            _ => return Err(self.conflict(output, "the stop has another function")),
        };
        if expected_ring != ring_bits || fraction_in != ring_fraction {
            return Err(self.conflict(input, "the ring is not the function's"));
        }
        let bits_out = function.map_or(ring_bits - 1, Function::output_bits);
        if (bits_out, fraction_out) != (format.bits, format.fraction) {
            return Err(self.conflict(output, "the scale is not the function's"));
        }
        match kind {
            StopFunction::Requantise => self.validate_output(input, output),
            // A function has a ring of its own, and hides the low bits of its input just as well.
            _ => Ok(()),
        }
    }
}

const _: () = assert!(WEIGHT_BITS <= 16, "integer weights are stored in 16 bits");

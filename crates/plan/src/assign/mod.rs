//! Scales from what was observed.
//!
//! The float reference is run over a calibration text and the range of every value is recorded.
//! From these ranges, widened by [`MARGIN`] or, where that is free, by [`ROOM`], and from the
//! largest absolute weights, every scale follows. The rule that ties them together: an accumulator
//! must fill `Z_p` exactly as far as its stop's ring needs it,
//! `fraction = ring fraction + K - ring bits`, because truncation keeps the top bits; products are
//! brought to that scale by a shift to the left, and a weight gets no more fractional bits than
//! keep this shift at zero or more.

mod circuits;
mod fit;
mod heads;
mod lookups;
mod observation;
mod room;
mod sorted;
mod weights;

pub use observation::{Columns, Observation, Observations, WeightRange};
pub use room::ROOM;
pub use sorted::order;
pub use weights::Weights;

use crate::design::{Design, LookedUp, StopAt};
use crate::function::Function;
use crate::graph::{Graph, Op, Step, StopFunction, ValueId, WeightId};
use crate::role::ValueRole;
use crate::scales::{KEPT, OUTPUT_ERROR_BITS, Scale, Scales};
use primer_ring::fixed::Format;
use primer_ring::modulus::K;
use thiserror::Error;

/// Observed ranges are widened by this factor before scales are chosen.
pub const MARGIN: f64 = 1.5;
/// Bits of a centred LayerNorm input. Outliers of a hundred times the typical size are common
/// there, and the width costs nothing: the value only passes through a requantisation.
const CENTRED_BITS: u32 = 20;
/// Bits of the results that the client learns.
const OUTPUT_BITS: u32 = 20;
/// Distance from the row maximum at which a probability is certainly zero.
pub const MASK_DISTANCE: f64 = 13.0;

/// Why no scales could be chosen.
#[derive(Debug, Error, PartialEq)]
pub enum AssignError {
    /// A range is not finite: the model produces infinities on the calibration text.
    #[error("{value} is not finite on the calibration text")]
    NotFinite {
        /// The value's name.
        value: String,
    },
    /// A range is too wide for the share modulus.
    #[error("{value} reaches {range:.3e} on the calibration text, too wide for its {bits} bits")]
    TooWide {
        /// The value's name.
        value: String,
        /// What it reached, with the margin.
        range: f64,
        /// The bits that there are.
        bits: u32,
    },
}

/// Chooses the scales of a graph.
///
/// `seen` has one entry per value, `weights` one per weight.
///
/// # Errors
/// [`AssignError`] if the model's ranges do not fit fixed point.
///
/// # Panics
/// If the slices do not belong to the graph.
pub fn assign(
    graph: &Graph,
    seen: &Observations,
    weights: &[WeightRange],
) -> Result<Scales, AssignError> {
    assign_by(&LookedUp, graph, seen, weights)
}

/// Chooses the scales of a graph of another design.
///
/// # Errors
/// As [`assign`].
///
/// # Panics
/// As [`assign`].
pub fn assign_by(
    design: &dyn Design,
    graph: &Graph,
    seen: &Observations,
    weights: &[WeightRange],
) -> Result<Scales, AssignError> {
    let values = graph.values.len();
    assert_eq!(
        (seen.values.len(), seen.by_head.len(), weights.len()),
        (values, values, graph.weights.len())
    );
    for (value, seen) in graph.values.iter().zip(&seen.values) {
        if !(seen.min.is_finite() && seen.max.is_finite()) {
            return Err(AssignError::NotFinite {
                value: value.name.clone(),
            });
        }
    }
    let mut assigner = Assigner {
        design,
        graph,
        observations: &seen.values,
        by_head: &seen.by_head,
        columns: &seen.columns,
        weights,
        values: vec![None; graph.values.len()],
        functions: vec![None; graph.steps.len()],
    };
    for index in 0..graph.steps.len() {
        assigner.step(index)?;
    }
    let values: Vec<Scale> = assigner
        .values
        .into_iter()
        .map(|s| s.expect("every value feeds or leaves a stop"))
        .collect();
    let weights = design.weights(&Weights {
        graph,
        ranges: weights,
        values: &values,
    });
    Ok(Scales {
        values,
        weights,
        functions: assigner.functions,
    })
}

/// The range of scores, and what is subtracted from those of padded keys.
#[derive(Debug, Clone, Copy)]
pub struct ScoreSpan {
    /// The lowest score.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Subtracted from the scores of padded keys.
    pub mask: f64,
}

/// The scales that were chosen so far, and what they are chosen from.
pub struct Assigner<'a> {
    design: &'a dyn Design,
    graph: &'a Graph,
    observations: &'a [Observation],
    /// For scores, what was seen of each head.
    by_head: &'a [Vec<Observation>],
    /// For values that are looked up by columns, what was seen of each column.
    columns: &'a Columns,
    weights: &'a [WeightRange],
    values: Vec<Option<Scale>>,
    functions: Vec<Option<Function>>,
}

impl Assigner<'_> {
    /// Returns the graph.
    pub fn graph(&self) -> &Graph {
        self.graph
    }

    /// Returns how large a weight is.
    pub fn weight(&self, id: WeightId) -> WeightRange {
        self.weights[id.index()]
    }

    fn wide(&self, id: ValueId) -> f64 {
        MARGIN * self.observations[id.index()].max_abs()
    }

    /// Makes the error of a range that does not fit.
    pub fn too_wide(&self, id: ValueId, range: f64, bits: u32) -> AssignError {
        AssignError::TooWide {
            value: self.graph.value(id).name.clone(),
            range,
            bits,
        }
    }

    /// Returns the fractional bits of a value that has its scale.
    ///
    /// # Panics
    /// If it has none yet.
    pub fn fraction(&self, id: ValueId) -> i32 {
        self.values[id.index()]
            .expect("steps come in order")
            .fraction()
    }

    /// Gives the value `id` the scale of an accumulator that fills its ring: `ring_fraction` of
    /// `ring_bits`.
    pub fn accumulator(&mut self, id: ValueId, ring_bits: u32, ring_fraction: i32) {
        let fraction = ring_fraction + (K - ring_bits) as i32;
        self.values[id.index()] = Some(Scale::Accumulator {
            fraction,
            ring_bits,
        });
    }

    fn step(&mut self, index: usize) -> Result<(), AssignError> {
        let (function, input, output) = match self.graph.steps[index].op {
            Op::Stop {
                function,
                input,
                output,
            } => (function, input, output),
            Op::Kept { output } => {
                self.values[output.index()] = Some(KEPT);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let scale = match function {
            StopFunction::Requantise => self.requantise(input, output),
            StopFunction::Softmax
            | StopFunction::Activation
            | StopFunction::CoarseMaximum
            | StopFunction::Power
            | StopFunction::Reciprocal => {
                let stop = StopAt {
                    index,
                    function,
                    input,
                    output,
                };
                self.design.function(self, stop)?
            }
            StopFunction::Summary => self.activation(index, input, self.summary())?,
            StopFunction::InverseRoot => self.inverse_root(index, input)?,
            StopFunction::Tanh => self.tanh(index, input)?,
        };
        self.values[output.index()] = Some(scale);
        Ok(())
    }

    /// Gives a stop its function, and its result the function's scale.
    pub fn leave(&mut self, index: usize, function: Function) -> Scale {
        let scale = Scale::Fixed {
            bits: function.output_bits(),
            fraction: function.output_fraction(),
        };
        self.functions[index] = Some(function);
        scale
    }

    fn requantise(&mut self, input: ValueId, output: ValueId) -> Scale {
        let range = match self.graph.maker(input).op {
            // As many rows as there may be, not as many as the calibration text has.
            Op::Pool { input: rows, .. } => self.wide(rows) * self.graph.shape.max_tokens() as f64,
            _ => self.wide(input),
        };
        let Format { bits, fraction } = if self.graph.value(output).role == ValueRole::Centred {
            // The sum of squares has to fit Z_p with its margin, one bit kept free.
            let squares = self.squares_of(output);
            let room = (self.design.squares_fraction(self, squares) - 1) >> 1;
            let format = Format::fitting(CENTRED_BITS, range);
            let fraction = format.fraction.min(room);
            self.design
                .requantised(self, output, Format { fraction, ..format })
        } else if self.graph.value(output).role == ValueRole::Probabilities {
            lookups::PROBABILITY
        } else if self.graph.outputs.contains(&output) {
            let format = Format::fitting(OUTPUT_BITS, range);
            self.design.requantised(self, output, format)
        } else {
            let format = Format::fitting(self.design.value_bits(), range);
            self.design.requantised(self, output, format)
        };
        // One more bit than the value needs: the requantising transfer needs the top bit free.
        self.accumulator(input, bits + 1, fraction);
        Scale::Fixed { bits, fraction }
    }

    /// Removes the bits of an output that are finer than what its products err by. They would tell
    /// about the errors, of which the client knows a part, and so about the weights.
    pub(crate) fn no_finer_than_products(&self, sum: ValueId, format: Format) -> Format {
        let Op::Linear { terms, .. } = &self.graph.maker(sum).op else {
            return format;
        };
        let accumulator = format.fraction + (K - format.bits - 1) as i32;
        let products = terms.iter().map(|term| {
            let input = self.fraction(term.input);
            let range = &self.weights[term.weight.index()];
            input + weights::hinted_fraction(range, accumulator - input, true)
        });
        let coarsest = products.min().expect("a linear step has a term");
        let finest = coarsest - OUTPUT_ERROR_BITS;
        let excess = (format.fraction - finest).clamp(0, format.bits as i32 - 4);
        Format {
            bits: format.bits - excess as u32,
            fraction: format.fraction - excess,
        }
    }

    /// Returns the sum of the squares of a centred value.
    fn squares_of(&self, centred: ValueId) -> ValueId {
        let mut read = self.graph.readers(centred).map(Step::output);
        read.find(|id| self.graph.value(*id).role == ValueRole::SquareSum)
            .expect("LayerNorm adds up the squares of what is centred")
    }

    /// Returns the range of scores with its margin. A masked key must end up at least `below` units
    /// below the lowest row maximum.
    pub fn score_span(&self, scores: ValueId, below: f64) -> ScoreSpan {
        let seen = self.observations[scores.index()];
        let extra = (MARGIN - 1.0) * seen.max_abs().max((seen.max - seen.min) / 2.0);
        let (low, high) = (seen.min - extra, seen.max + extra);
        let mask = high - (seen.min_row_max - extra) + below;
        ScoreSpan { low, high, mask }
    }
}

//! Scales of the looked-up form: short indices, and numbers that are bounded by construction.
//!
//! Only the span of the scores depends on what calibration saw: it says how many coarse steps there
//! are. Powers, their sums, reciprocals and probabilities have bounds of their own. The activation,
//! whose entries depend on the ranges of its columns, is in [`super::sorted`].
//!
//! Of the looked-up functions only the activation has range flags. The index of a power cannot
//! leave its table: it is what is left of a score after its own coarse part was taken off.

use super::{AssignError, Assigner, MASK_DISTANCE, ScoreSpan};
use crate::function::{CoarseMaximum, Function, Lookup, LookupTable, Reciprocal};
use crate::graph::{Op, ValueId};
use crate::scales::Scale;
use primer_ring::fixed::Format;
use primer_ring::modulus::K;
use primer_ring::truncate::Truncation;

/// Fractional bits of an exponent, in units of log 2.
const EXPONENT_FRACTION: i32 = 4;
/// Fractional bits of a power and of a probability: entries and requantised values of any width
/// cost the same. A power and a reciprocal have as many together as their product can hold.
const POWER_FRACTION: i32 = 15;
/// Bits of a probability with its sign: it may exceed one by the error of the reciprocal.
pub(super) const PROBABILITY: Format = Format {
    bits: 17,
    fraction: POWER_FRACTION,
};
/// Ring of a sum of powers, the widest that there is. At its maximum a row has a power of `2^-step`
/// or more: 64 units with steps of 4 in a model of 512 tokens, 1,024 with steps of 2.
const TOTAL_RING: u32 = Truncation::MAX_RING_BITS;

/// Ways of measuring scores coarsely, the finer one first. The zero region of the powers must begin
/// within `far - 2` steps: `-(far - 2)·step <= -MASK_DISTANCE + 1`.
const COARSE: [Coarse; 2] = [
    Coarse {
        step_bits: 1,
        near_bits: 3,
        far: 8,
        most_bits: 7,
    },
    Coarse {
        step_bits: 2,
        near_bits: 2,
        far: 5,
        most_bits: 10,
    },
];

/// A step, and how far it is looked.
struct Coarse {
    /// A step is `2^step_bits` units of log 2.
    step_bits: u32,
    near_bits: u32,
    far: u32,
    /// Bits of the ring up to which it is chosen.
    most_bits: u32,
}

impl Assigner<'_> {
    /// The coarse maximum of scores.
    pub(super) fn coarse_maximum(&self, scores: ValueId) -> Result<CoarseMaximum, AssignError> {
        let mut widest = 0.0;
        for coarse in &COARSE {
            let step = f64::from(1 << coarse.step_bits);
            // A masked key must end up among the far ones, below any maximum.
            let beyond = step * f64::from(coarse.far + 2);
            let ScoreSpan { low, high, mask } = self.score_span(scores, beyond);
            let span = high - low + mask;
            let ring_bits = ((span / step + 6.0).log2().ceil() as u32).max(5);
            widest = span;
            if ring_bits <= coarse.most_bits {
                let steps = |v: f64| (v / step).round() as i64;
                return Ok(CoarseMaximum {
                    ring_bits,
                    fraction: -(coarse.step_bits as i32),
                    near_bits: coarse.near_bits,
                    far: coarse.far,
                    mask: steps(mask) + 1,
                    offset: steps(-(high + low - mask) / 2.0),
                });
            }
        }
        Err(self.too_wide(scores, widest, 10))
    }

    /// Powers of the exponents that a coarse maximum leaves.
    pub(super) fn power(&mut self, index: usize, exponents: ValueId) -> Scale {
        let coarse = self.coarse_of(exponents);
        let step = f64::from(-coarse.fraction).exp2();
        let range = f64::from(coarse.far + 3) * step;
        let middle = coarse.middle() as f64 * step / 2.0;
        let index_bits = range.log2().ceil() as u32 + EXPONENT_FRACTION as u32;
        self.accumulator(exponents, index_bits, EXPONENT_FRACTION);
        let output_bits = POWER_FRACTION as u32 + step as u32 + 2;
        let table = LookupTable::tabulate(
            (index_bits, EXPONENT_FRACTION),
            (output_bits, POWER_FRACTION),
            |x| {
                let exponent = x - middle;
                // Beyond a step above the reference is one element in 2^17.
                match exponent > 1.0 - MASK_DISTANCE {
                    true => exponent.min(step).exp2(),
                    false => 0.0,
                }
            },
        );
        let lookup = Lookup::new((index_bits, EXPONENT_FRACTION), [0; 2], vec![table]);
        let lookup = lookup.expect("a table of powers is built from usable parameters");
        self.leave(index, Function::Lookup(lookup))
    }

    /// The coarse maximum whose rests some exponents are.
    fn coarse_of(&self, exponents: ValueId) -> &CoarseMaximum {
        let Op::Rest { reference, .. } = self.graph.maker(exponents).op else {
            unreachable!("exponents are what is left of scores");
        };
        let steps = &self.graph.steps;
        let maker = steps.iter().position(|step| step.output() == reference);
        match maker.and_then(|index| self.functions[index].as_ref()) {
            Some(Function::CoarseMaximum(coarse)) => coarse,
            _ => unreachable!("a reference is a coarse maximum"),
        }
    }

    /// The reciprocal of the sum of as many powers as a row can have.
    pub(super) fn reciprocal(&mut self, index: usize, total: ValueId) -> Scale {
        let Op::RowSum { input: powers, .. } = self.graph.maker(total).op else {
            unreachable!("a total is the sum of a row");
        };
        let Some(Scale::Fixed { bits, fraction }) = self.values[powers.index()] else {
            unreachable!("steps come in order");
        };
        let longest = self.graph.shape.max_tokens().next_power_of_two().ilog2();
        // A power is at most 2^(bits - 2): the largest sum stays below 2^(K - 1).
        let shift = K - 1 - (bits - 2) - longest;
        let ring_fraction = fraction + shift as i32 - (K - TOTAL_RING) as i32;
        self.accumulator(total, TOTAL_RING, ring_fraction);
        let reciprocal = Reciprocal::new(TOTAL_RING, f64::from(ring_fraction).exp2());
        self.leave(index, Function::Reciprocal(reciprocal))
    }
}

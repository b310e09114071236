//! Scales of looked-up functions: short indices, and numbers that are bounded by construction.
//!
//! Only the ranges of the scores depend on what calibration saw: head by head they determine the
//! places of the scores in their tables (`heads.rs`). Powers, their sums, reciprocals and
//! probabilities have bounds of their own. The activation, whose entries depend on the ranges of
//! its columns, is in [`super::sorted`].
//!
//! The index of a measured head's power cannot leave its table: it is what is left of a score after
//! its own coarse part was subtracted. All other indices have range flags.

use super::heads::{self, DRY_BITS, RESULT};
use super::{AssignError, Assigner, MASK_DISTANCE, ScoreSpan};
use crate::function::powers::TOP;
use crate::function::{
    CoarseMaximum, Function, HeadClass, Lookup, LookupTable, PlacedHead, Powers, Reciprocal,
};
use crate::graph::{Op, ValueId};
use crate::scales::{KEPT, Scale};
use primer_ring::fixed::Format;
use primer_ring::modulus::K;
use primer_ring::truncate::Truncation;

/// Fractional bits of a probability. Requantised values of any width cost the same.
const PROBABILITY_FRACTION: i32 = 15;
/// Bits of a probability with its sign: it may exceed one by the error of the reciprocal.
pub(super) const PROBABILITY: Format = Format {
    bits: 17,
    fraction: PROBABILITY_FRACTION,
};
/// Fractional bits of a power times a reciprocal: as many as an accumulator of probabilities has.
const PRODUCT_FRACTION: i32 = PROBABILITY_FRACTION + (K - PROBABILITY.bits) as i32 - 1;
/// Bits by which the powers of measured heads stay below the others: at its maximum a row has a
/// power of `2^-step` to `2^step`, and sums should be of similar size.
const MEASURED_BELOW: f64 = 12.0;

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

/// A step, and the distances that are told apart.
struct Coarse {
    /// A step is `2^step_bits` units of log 2.
    step_bits: u32,
    near_bits: u32,
    far: u32,
    /// The longest ring for which it is chosen, in bits.
    most_bits: u32,
}

impl Assigner<'_> {
    /// Chooses the coarse maximum of `scores`.
    pub(super) fn coarse_maximum(&self, scores: ValueId) -> Result<CoarseMaximum, AssignError> {
        let mut widest = 0.0;
        for coarse in &COARSE {
            let step = f64::from(1 << coarse.step_bits);
            // A masked key must end up among the far ones, below any maximum.
            let beyond = step * f64::from(coarse.far + 2);
            let ScoreSpan { low, high, mask } = self.score_span(scores, beyond);
            let span = high - low + mask;
            // With fewer bits scores would be finer than the exponents of the coarsest cells.
            let ring_bits = ((span / step + 6.0).log2().ceil() as u32).max(6);
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

    /// Gives the stop of step `index` the coarse maximum of the heads of `scores` that need one, if
    /// any.
    pub(crate) fn references(
        &mut self,
        index: usize,
        scores: ValueId,
    ) -> Result<Scale, AssignError> {
        let (_, measured) = self.place_heads(scores);
        if measured.is_empty() {
            // Nothing reads it. The scores are as fine as the exponents of the coarsest cells.
            self.accumulator(scores, heads::INDEX_BITS, heads::COARSEST);
            self.fit_factors(scores);
            return Ok(KEPT);
        }
        let coarse = self.coarse_maximum(scores)?;
        self.accumulator(scores, coarse.ring_bits, coarse.fraction);
        self.fit_factors(scores);
        Ok(self.leave(index, Function::CoarseMaximum(coarse)))
    }

    /// Gives the stop of step `index` the powers of the exponents: of scores as they are, and of
    /// what a coarse maximum leaves.
    pub(crate) fn power(&mut self, index: usize, exponents: ValueId) -> Scale {
        let Op::Exponents {
            scores, reference, ..
        } = self.graph.maker(exponents).op
        else {
            unreachable!("exponents are what is left of scores");
        };
        let (mut classes, measured) = self.place_heads(scores);
        if !measured.is_empty() {
            classes.push(self.measured(reference, measured));
        }
        self.accumulator(exponents, heads::INDEX_BITS, heads::FINEST);
        self.leave(index, Function::Powers(Powers { classes }))
    }

    /// Makes the class of heads that are measured.
    fn measured(&self, reference: ValueId, heads: Vec<PlacedHead>) -> HeadClass {
        let coarse = self.coarse_of(reference);
        let step = f64::from(-coarse.fraction).exp2();
        let range = f64::from(coarse.far + 3) * step;
        let middle = coarse.middle() as f64 * step / 2.0;
        let index = (heads::INDEX_BITS, heads::FINEST);
        assert!(
            range.log2() + f64::from(index.1) <= f64::from(index.0),
            "an index has room for all steps"
        );
        let unit = f64::from(TOP) - MEASURED_BELOW - f64::from(RESULT.1);
        let table = LookupTable::tabulate(index, RESULT, |x| {
            let exponent = x - middle;
            // One element in 2^17 is more than a step above the reference.
            match exponent > 1.0 - MASK_DISTANCE {
                true => (exponent.min(step) + unit).exp2(),
                false => 0.0,
            }
        });
        let lookup = Lookup::new(index, [0; 2], vec![table]);
        HeadClass {
            heads,
            lookup: lookup.expect("a table of powers is built from usable parameters"),
            measured: true,
        }
    }

    /// Returns the function of the coarse maximum `reference`.
    fn coarse_of(&self, reference: ValueId) -> &CoarseMaximum {
        let steps = &self.graph.steps;
        let maker = steps.iter().position(|step| step.output() == reference);
        match maker.and_then(|index| self.functions[index].as_ref()) {
            Some(Function::CoarseMaximum(coarse)) => coarse,
            _ => unreachable!("a reference is a coarse maximum"),
        }
    }

    /// Gives the stop of step `index` the reciprocal of the sum of as many powers as a row can
    /// have.
    pub(crate) fn reciprocal(&mut self, index: usize, total: ValueId) -> Scale {
        let longest = self.graph.shape.max_tokens().next_power_of_two().ilog2();
        // The largest powers raise flags; a sum of others stays within this.
        let ring_bits = (TOP - 1 + longest).min(Truncation::MAX_SMALL_BITS);
        let fraction = RESULT.1;
        self.values[total.index()] = Some(Scale::Small {
            fraction,
            ring_bits,
        });
        let scale = f64::from(fraction).exp2();
        let whole = Reciprocal::new(ring_bits, scale, 0, DRY_BITS).output_fraction;
        let dropped = (whole + fraction - PRODUCT_FRACTION).max(0) as u32;
        let reciprocal = Reciprocal::new(ring_bits, scale, dropped, DRY_BITS);
        self.leave(index, Function::Reciprocal(reciprocal))
    }
}

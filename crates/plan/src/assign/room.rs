//! Room beyond the margin, where it costs nothing.
//!
//! A text that the calibration text does not resemble reaches further than [`MARGIN`] allows. Some
//! widths are free, and get room for [`ROOM`] times what was seen:
//!
//! - **Requantised values.** A requantising transfer costs the same for any
//!   ring, so a value keeps its fractional bits and gets more integer bits. Its accumulator has to
//!   fill `Z_p` further up and loses as many fractional bits: those that its products do not use.
//!   The value gets [`FINER`] fractional bits more than the paper's 15 allow, which its accumulator
//!   has anyway: an accumulator fills `Z_p` by its range alone. All values get the same number,
//!   because the terms of a step share a scale ([`super::weights`]): if one input has more bits
//!   than the other, its weights have fewer.
//! - **Mixed values** are bounded by their inputs, since probabilities add up to nearly one. They
//!   get the range of the values, so they cannot leave their range unless the values have left it.
//! - **Sums of squares.** Their ring stays what it is and its unit becomes coarser, as long as
//!   centred values keep enough bits where they are smallest.
//!
//! The input of an activation gets no room: it would take twice the entries of a look-up. A range
//! flag tells when it leaves its range.

use super::{Assigner, MARGIN};
use crate::graph::{Op, ValueId, WeightId};
use crate::scales::{Scale, WEIGHT_BITS};
use primer_ring::fixed::Format;
use primer_ring::modulus::K;
use primer_ring::truncate::MIN_SHIFT;

/// How much further than what was seen a value may reach, where that costs nothing.
pub const ROOM: f64 = 4.0;
/// Bits of the widest value that can be requantised: its ring has one more.
pub(super) const WIDEST: u32 = K - MIN_SHIFT - 1;
/// Bits that a centred value keeps below its row's standard deviation, in the row where that is
/// smallest, before its sum of squares gets room.
const CENTRED_PRECISION: f64 = 9.0;
impl Assigner<'_> {
    /// Returns the format of a requantised value with the room that is free. It may give up `spare`
    /// fractional bits.
    pub(crate) fn roomy(&self, sum: ValueId, format: Format, spare: u32) -> Format {
        let wanted = self.wanted(sum);
        let short = |more: &u32| widened(format, *more).max_real() < wanted;
        let missing = (0..K).take_while(short).count() as u32;
        // A value that is bounded by something far larger gives up its finest bits for that.
        let format = coarser(
            format,
            (format.bits + missing).saturating_sub(WIDEST).min(spare),
        );
        let missing = missing.min(WIDEST - format.bits);
        // An accumulator fills its ring, and no product may be finer than its accumulator.
        let accumulator = format.fraction + (K - format.bits - 1) as i32;
        let unused = accumulator - self.finest_product(sum);
        widened(format, missing.min(unused.max(0) as u32))
    }

    /// Returns how far `sum` should reach: further than was seen, and as far as what bounds it.
    fn wanted(&self, sum: ValueId) -> f64 {
        let seen = ROOM * self.observations[sum.index()].max_abs();
        let bound = match self.graph.maker(sum).op {
            Op::Mix { value, .. } => value,
            _ => return seen,
        };
        let bound = self.values[bound.index()].and_then(Scale::format);
        bound.map_or(seen, |format| seen.max(format.max_real()))
    }

    /// Returns the fractional bits of the finest product that goes into `sum`, with weights as fine
    /// as they fit. Means of diagonal weights do not count: they are far finer than anything they
    /// are added to.
    ///
    /// # Panics
    /// If `sum` is not made by a linear step.
    pub fn finest_product(&self, sum: ValueId) -> i32 {
        let weight = |id: WeightId| {
            let range = self.weights[id.index()];
            Format::fitting(WEIGHT_BITS, range.max_abs).fraction
        };
        let maker = self.graph.maker(sum);
        match &maker.op {
            Op::Embed { table, .. } => weight(*table),
            Op::Linear { terms, .. } => {
                let term = terms
                    .iter()
                    .map(|t| self.fraction(t.input) + weight(t.weight));
                term.max().expect("a linear step has terms")
            }
            _ => maker.inputs().iter().map(|id| self.fraction(*id)).sum(),
        }
    }

    /// Returns the fractional bits of a sum of squares: as many as its range, with its margin,
    /// allows in half of `Z_p`.
    pub fn squares_with_margin(&self, squares: ValueId) -> i32 {
        let seen = self.observations[squares.index()];
        // ε is added to the sum before the root, and squares grow twice as fast as what is squared.
        reaching((MARGIN * seen.max_abs() + self.epsilon(squares)) * MARGIN)
    }

    /// Returns the fractional bits of a sum of squares with the room that it can have.
    pub fn squares_with_room(&self, squares: ValueId) -> i32 {
        let seen = self.observations[squares.index()];
        let width = self.graph.squared_width(squares) as f64;
        let epsilon = self.epsilon(squares);
        let room = reaching(ROOM * (seen.max_abs() + epsilon));
        // Centred values have half of these fractional bits, and one is kept free.
        let deviation = ((seen.min.max(0.0) + epsilon) / width).sqrt().max(1e-9);
        let needed = 2 * (CENTRED_PRECISION - deviation.log2()).ceil() as i32 + 1;
        self.squares_with_margin(squares).min(room.max(needed))
    }

    /// Returns LayerNorm's ε, once for each feature.
    fn epsilon(&self, squares: ValueId) -> f64 {
        self.graph.shape.epsilon * self.graph.squared_width(squares) as f64
    }
}

/// Returns the fractional bits with which a range reaches half of `Z_p`.
fn reaching(range: f64) -> i32 {
    (f64::from(K - 1) - range.max(1e-9).log2()).floor() as i32
}

/// Returns `format` with `fewer` fractional bits removed.
fn coarser(format: Format, fewer: u32) -> Format {
    Format {
        bits: format.bits - fewer,
        fraction: format.fraction - fewer as i32,
    }
}

/// Returns `format` with `more` integer bits added.
fn widened(format: Format, more: u32) -> Format {
    Format {
        bits: format.bits + more,
        ..format
    }
}

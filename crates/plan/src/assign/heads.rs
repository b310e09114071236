//! The heads that need no maximum, and the places of their scores in their tables.
//!
//! A head is *placed* if one offset is enough for all its rows ([`crate::function::powers`]). Two
//! ranges that calibration saw in the head decide this, both in units of log 2:
//!
//! * the **span** from its lowest to its highest score. An index holds [`REACH`] units in its
//!   finest cells and four times as many in its coarsest; of these the scores take their span,
//!   [`BELOW`] of it below and [`ABOVE`] units above for texts that reach further;
//! * the **width** from its lowest row maximum to its highest. A power has [`TOP`] bits at the
//!   upper end of the index. The lowest row keeps [`LEAST_BITS`] of them even if it lies [`DRIER`]
//!   units further down.
//!
//! Other heads are measured against a coarse maximum. The rest of the index goes to both ends, and
//! the outer half of each end raises range flags.
//!
//! The plan is public, so it tells what calibration saw in whole units only: the upper end of a
//! head's table is a whole number of units, which moves the ranges by half a unit at most, and so
//! is the width of the parts that raise flags.

use super::{Assigner, Observation};
use crate::function::powers::TOP;
use crate::function::{HeadClass, Lookup, LookupTable, PlacedHead};
use crate::graph::ValueId;

/// Bits of the index of a power.
pub(super) const INDEX_BITS: u32 = 9;
/// Fractional bits of the finest cells.
pub(super) const FINEST: i32 = 4;
/// Fractional bits of the coarsest.
pub(super) const COARSEST: i32 = 2;
/// Units that an index holds in its finest cells.
const REACH: f64 = (1 << (INDEX_BITS as i32 - FINEST)) as f64;
/// What is left free above the highest score, at least, in units.
const ABOVE: f64 = 4.0;
/// What is left free below the lowest score, at least, as a part of the span.
const BELOW: f64 = 0.3;
/// Units by which a row's maximum may be lower than the lowest that was seen.
const DRIER: f64 = 2.0;
/// Bits that the power of such a row's maximum has, at least.
const LEAST_BITS: f64 = 8.0;
/// A sum of powers below `2^DRY_BITS` has run dry.
pub(super) const DRY_BITS: u32 = LEAST_BITS as u32 - 1;

/// A head that needs no maximum.
struct HeadFit {
    /// Fractional bits of its cells.
    fraction: i32,
    /// The score at the upper end of its index, a whole number of units.
    top: f64,
    /// What is free below and above, in units.
    free: [f64; 2],
}

impl HeadFit {
    /// Fits a head, if one offset is enough for it.
    fn of(seen: &Observation) -> Option<Self> {
        let (span, width) = (seen.max - seen.min, seen.max - seen.min_row_max);
        let below = BELOW * span;
        let reach = |fraction: i32| REACH * f64::from(FINEST - fraction).exp2();
        let fits = |fraction: &i32| ABOVE + span + below <= reach(*fraction);
        let fraction = (COARSEST..=FINEST).rev().find(fits)?;
        // The largest power has TOP bits, and the lowest row has some of them left.
        let most = f64::from(TOP) - LEAST_BITS - DRIER - width;
        if most < ABOVE {
            return None;
        }
        let spare = reach(fraction) - (ABOVE + span + below);
        let top = (seen.max + (ABOVE + spare / 2.0).min(most)).round();
        let above = top - seen.max;
        Some(Self {
            fraction,
            top,
            free: [reach(fraction) - above - span, above],
        })
    }

    /// Returns what is added to its scores, in cells.
    fn offset(&self) -> i64 {
        let last = f64::from((1 << (INDEX_BITS - 1)) - 1);
        (last - self.top * f64::from(self.fraction).exp2()).round() as i64
    }

    /// Returns the cells at both ends that raise its flag.
    fn edge(&self) -> [u32; 2] {
        let cells = f64::from(self.fraction).exp2();
        self.free
            .map(|free| ((free / 2.0).round().max(1.0) * cells) as u32)
    }
}

impl Assigner<'_> {
    /// Returns the classes of heads that need no maximum, by their cells and edges, and the heads
    /// that do.
    pub(super) fn place_heads(&self, scores: ValueId) -> (Vec<HeadClass>, Vec<PlacedHead>) {
        let (mut classes, mut measured) = (Vec::<HeadClass>::new(), Vec::new());
        for (head, seen) in self.heads_of(scores).iter().enumerate() {
            let head = head as u16;
            let Some(fit) = HeadFit::of(seen) else {
                measured.push(PlacedHead { head, offset: 0 });
                continue;
            };
            let placed = PlacedHead {
                head,
                offset: fit.offset(),
            };
            let like = |class: &&mut HeadClass| class.lookup.fraction == fit.fraction;
            match classes.iter_mut().find(like) {
                Some(class) => {
                    class.heads.push(placed);
                    // One edge for all of them: the narrowest at either end.
                    let edges = class.lookup.edge.iter_mut().zip(fit.edge());
                    edges.for_each(|(edge, other)| *edge = (*edge).min(other));
                }
                None => classes.push(HeadClass {
                    heads: vec![placed],
                    lookup: powers(fit.fraction, fit.edge()),
                    measured: false,
                }),
            }
        }
        (classes, measured)
    }

    /// Returns what was seen of each head; of all together, if heads were not told apart.
    fn heads_of(&self, scores: ValueId) -> Vec<Observation> {
        match &self.by_head[scores.index()][..] {
            [] => vec![self.observations[scores.index()]; self.graph.shape.heads],
            heads => heads.to_vec(),
        }
    }
}

/// Returns the table of placed heads for cells of `fraction` fractional bits.
fn powers(fraction: i32, edge: [u32; 2]) -> Lookup {
    let cell = f64::from(-fraction).exp2();
    let last = f64::from((1 << (INDEX_BITS - 1)) - 1) * cell;
    let table = LookupTable::tabulate((INDEX_BITS, fraction), RESULT, |x| {
        // Below half a unit it rounds to zero.
        (f64::from(TOP) + x - last - f64::from(RESULT.1)).exp2()
    });
    let lookup = Lookup::new((INDEX_BITS, fraction), edge, vec![table]);
    lookup.expect("a table of powers is built from usable parameters")
}

/// Bits of a power with its sign, and fractional bits. The latter are nominal, as are all scales in
/// softmax before the division: they say how the scale of a product with a reciprocal is divided
/// between its factors.
pub(super) const RESULT: (u32, i32) = (TOP + 2, 18);

//! Factors that are lifted: the client's share comes late by one public bit.
//!
//! **Relation.** A lift (`primer_stops::lift`) leaves the server with `x̂` before it speaks and the
//! client with `r = r0 + e·r1`, element by element: `r0` and `r1` are known offline, the bits `e`
//! are public as soon as they are said. `r0` is the mask that the client draws for the value. Two
//! products read such a value: the squares of its rows, and its rows times a factor `g`, of which
//! the server holds `ĝ` and the client `s`, as of any other. With `U`, `V` the server's masks by
//! which `x̂` and `ĝ` are opened, `D = x̂ - U` and `E = ĝ - V`:
//!
//! ```text
//! Σ x²  =  Σ x̂² + 2·Σ U·r + 2·Σ D·r + Σ r²
//! x·g   =  x̂·ĝ + U·s + r·V + D·s + r·E + r·s
//! ```
//!
//! What is not known when the server has spoken is `U·r` and `r·V`, and both are affine in `e`.
//! So offline the parties share four products of masks, each by an exchange: those of `r0` as for
//! any factor, and those of `r1` element by element. The query of each is sent once.
//!
//! ```text
//! offline   squares   [Σ U·r0], [U∘r1]        scaled rows   [U·s + r0·V], [r1∘V]
//! online    a party's constant is its first share plus, where e is set, its second
//! ```
//!
//! To its shares the client adds what it knows itself, `r² = r0² + e·(2·r0·r1 + r1²)` and
//! `r·s = r0·s + e·r1·s`:
//!
//! ```text
//! squares       first   Σ r0² + 2·[Σ U·r0]      second   r1·(2·r0 + r1) + 2·[U∘r1]
//! scaled rows   first   r0·s + [U·s + r0·V]     second   r1·s + [r1∘V]
//! ```
//!
//! and goes on as for any factor, with `r` for its mask. The server's part of the squares, `Σ x̂²`
//! and its constant, is known before it speaks. So the lift, the squares, and a stop that wants the
//! server's share with its request (a root) take one round trip together.
//!
//! **Learned:** nothing. The bits are one-time pads; `D` is uniform to the client because `U` is,
//! and `x̂` is opened once, as ever. What the client sends is what it sends without a lift.

use super::{Bilinear, Factors};
use crate::masks::Masks;
use crate::program::Program;
use crate::share::Share;
use crate::stop;
use primer_ot::Bits;
use primer_plan::graph::{Graph, Op, StopFunction, ValueId};
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_stops::lift;

/// Tells whether a value is lifted: it is a linear step's, requantised, and all that reads it are
/// the squares of its rows and products of its rows with factors, in its own layer.
pub(crate) fn is_lifted(graph: &Graph, id: ValueId) -> bool {
    let maker = graph.maker(id);
    let Some(input) = requantised(&maker.op) else {
        return false;
    };
    let linear = matches!(graph.maker(input).op, Op::Linear { .. } | Op::Embed { .. });
    let mut readers = graph.readers(id).peekable();
    let read = readers.peek().is_some();
    linear
        && read
        && !graph.outputs.contains(&id)
        && readers.all(|step| {
            let by_rows = match step.op {
                Op::SquareSum { .. } => true,
                Op::ScaleRows { factor, .. } => factor != id,
                _ => false,
            };
            by_rows && step.layer == maker.layer
        })
}

/// Returns what a step requantises.
fn requantised(op: &Op) -> Option<ValueId> {
    match *op {
        Op::Stop {
            function: StopFunction::Requantise,
            input,
            ..
        } => Some(input),
        _ => None,
    }
}

/// Computes `r1` of a lifted value. The client's share of the linear step before it must be there.
pub(crate) fn second_part(program: &Program, masks: &mut Masks, id: ValueId) -> Share {
    let plan = program.plan();
    let input = requantised(&plan.graph().maker(id).op).expect("what is lifted is requantised");
    let sum = masks.get(input).first_rows(plan.graph().value(input).rows);
    let mut unseen = |_: ValueId, _: &Matrix<u64>| ();
    let shares = stop::truncated(plan, input, &sum, &mut unseen);
    let (mask, ring) = (masks.get(id), plan.truncation(input).ring_bits());
    Share::from_fn(mask.rows(), mask.cols(), |t, c| {
        lift::second_part(ring, shares[t * mask.cols() + c], mask.get(t, c))
    })
}

impl Factors {
    /// Makes shares of a mixed term of `r1` into those that count: squares have it twice.
    pub(super) fn second(self, mut mixed: Share) -> Share {
        if self.kind == Bilinear::Squares {
            mixed.shift(1);
        }
        mixed
    }

    /// Computes the second part of the client's constant, offline.
    pub(super) fn client_second(
        self,
        (r, s): (&Share, &Share),
        second: &Share,
        mixed: Share,
    ) -> Share {
        let mut constant = self.second(mixed);
        let own = Share::from_fn(second.rows(), second.cols(), |t, c| {
            let r1 = second.get(t, c);
            let other = match self.kind {
                Bilinear::Squares => modulus::add(modulus::add(r.get(t, c), r.get(t, c)), r1),
                _ => s.get(t, 0),
            };
            modulus::mul(r1, other)
        });
        constant.add(&own);
        constant
    }

    /// Computes a party's constant online, of what it kept and the bits that the server said.
    pub(super) fn constant(self, kept: Vec<Share>, turned: Option<&Bits>) -> Share {
        let mut kept = kept.into_iter();
        let mut constant = kept.next().expect("as many as were kept");
        let (Some(second), Some(turned)) = (kept.next(), turned) else {
            assert!(!self.lifted, "a lifted factor comes before its products");
            return constant;
        };
        for t in 0..second.rows() {
            for c in 0..second.cols() {
                // The bits are public.
                if turned.get(t * second.cols() + c) {
                    let into = match self.kind {
                        Bilinear::Squares => &mut constant.row_mut(t)[0],
                        _ => &mut constant.row_mut(t)[c],
                    };
                    *into = modulus::add(*into, second.get(t, c));
                }
            }
        }
        constant
    }
}

#[cfg(test)]
mod tests;

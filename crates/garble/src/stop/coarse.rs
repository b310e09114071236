//! The coarse maximum of a row.
//!
//! ```text
//! c_j = the sum of the shares      m - 1 AND gates
//! M   = max c_j                    2m for each element but the first
//! d_j = M - c_j                    m - 1
//! far = d_j >= 2^k                 m - k - 1
//! o_j = c_j + (far ? F : d_j)      k: a distance that is far loses its low bits
//! ```
//!
//! `5m - 3` in all: 27 for rings of 6 bits, 32 for 7. The last line has no adder: the bits of `c_j`
//! and of the distance leave through projections with weights of their own, and so does `far`, with
//! the weight `F`.

use super::argmax::order_as_unsigned;
use super::{SHARES, shared_row};
use crate::circuit::{Bit, Builder, Circuit};
use primer_plan::function::CoarseMaximum;

pub(super) fn circuit(coarse: &CoarseMaximum, row: usize) -> Circuit {
    let mut b = Builder::new(SHARES);
    let mut scores = shared_row(&mut b, coarse.ring_bits, row);
    scores.iter_mut().for_each(|s| order_as_unsigned(s));
    let mut max = scores[0].clone();
    for s in &scores[1..] {
        max = b.max(&max, s);
    }
    let near = coarse.near_bits as usize;
    // What makes scores unsigned.
    let half = 1i64 << (coarse.ring_bits - 1);
    for s in &scores {
        let distance = b.subtract(&max, s);
        let far = b.any(&distance[near..]);
        let low: Vec<Bit> = distance[..near].iter().map(|&d| b.and(d, !far)).collect();
        let out = b.output();
        b.project_number(out, s, 1);
        b.add_constant(out, -half);
        b.project_number(out, &low, 1);
        b.project(out, far, i64::from(coarse.far));
    }
    b.finish()
}

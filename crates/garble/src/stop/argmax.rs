//! The position of the largest element of a row, shown to the evaluator.
//!
//! One pass from left to right: an element takes the lead only if it is strictly larger, so the
//! first of equals stays. Positions are public constants that the comparisons choose between.

use super::{SHARES, shared_row};
use crate::circuit::{Bit, Builder, Circuit};

pub(super) fn circuit(ring_bits: u32, row: usize) -> Circuit {
    let mut b = Builder::new(SHARES);
    let width = usize::BITS - (row - 1).leading_zeros();
    let mut lead: Vec<Bit> = Vec::new();
    let mut position = vec![Bit::ZERO; width as usize];
    for i in 0..row {
        let mut x = shared_row(&mut b, ring_bits, 1).remove(0);
        order_as_unsigned(&mut x);
        if i == 0 {
            lead = x;
            continue;
        }
        let larger = b.less(&lead, &x);
        lead = b.mux_number(larger, &lead, &x);
        let here: Vec<Bit> = (0..width).map(|w| Bit::constant(i >> w & 1 == 1)).collect();
        position = b.mux_number(larger, &position, &here);
    }
    for bit in position {
        b.reveal(bit);
    }
    b.finish()
}

/// Complements the top bit, which turns signed order into unsigned order.
pub(super) fn order_as_unsigned(x: &mut [Bit]) {
    let top = x.last_mut().expect("rings have at least two bits");
    *top = !*top;
}

//! The hyperbolic tangent: a guarded table of magnitudes, and the sign put back by projections.
//!
//! For output bits `t_i` and the sign `s`, `±t = Σ (t_i XOR s)·2^i - s·(2^o - 1)`.

use super::{SHARES, magnitude, shared_element};
use crate::circuit::{Builder, Circuit};
use primer_plan::function::Tanh;

pub(super) fn circuit(tanh: &Tanh) -> Circuit {
    let mut b = Builder::new(SHARES);
    let x = shared_element(&mut b, tanh.ring_bits);
    let (sign, a) = magnitude(&mut b, &x);
    let table = &tanh.table;
    let (low, high) = a.split_at(tanh.dropped_bits() as usize + table.input_bits() as usize);
    let index = &low[tanh.dropped_bits() as usize..];
    let saturated = b.any(high);
    let t = b.guarded_table(!saturated, index, table.entries(), table.output_bits());
    let out = b.output();
    for (i, &bit) in t.iter().enumerate() {
        let signed = b.xor(bit, sign);
        b.project(out, signed, 1 << i);
    }
    b.project(out, sign, -((1 << t.len()) - 1));
    b.finish()
}

//! The hyperbolic tangent: a guarded table of magnitudes, and the sign put back by projections.
//!
//! For output bits `t_i` and the sign `s`, `±t = Σ (t_i XOR s)·2^i - s·(2^o - 1)`.

use super::{SHARES, magnitude, shared_element};
use crate::circuit::{Bit, Builder, Circuit};
use primer_plan::function::Tanh;

pub(super) fn circuit(tanh: &Tanh) -> Circuit {
    let mut b = Builder::new(SHARES);
    let x = shared_element(&mut b, tanh.ring_bits);
    let (signed, sign) = flipped(&mut b, tanh, &x);
    let out = b.output();
    for (i, &bit) in signed.iter().enumerate() {
        b.project(out, bit, 1 << i);
    }
    b.project(out, sign, -((1 << signed.len()) - 1));
    b.finish()
}

/// Computes the tangent of bits: where it stays labels, the sign is an increment.
pub(super) fn bits(b: &mut Builder, tanh: &Tanh, x: &[Bit]) -> Vec<Bit> {
    let (mut signed, sign) = flipped(b, tanh, x);
    signed.push(sign);
    let mut increment = vec![Bit::ZERO; signed.len()];
    increment[0] = sign;
    b.add(&signed, &increment)
}

/// Returns the bits of the magnitude, complemented if the sign is set, and the sign.
fn flipped(b: &mut Builder, tanh: &Tanh, x: &[Bit]) -> (Vec<Bit>, Bit) {
    let (sign, a) = magnitude(b, x);
    let table = &tanh.table;
    let (low, high) = a.split_at(tanh.dropped_bits() as usize + table.input_bits() as usize);
    let index = &low[tanh.dropped_bits() as usize..];
    let saturated = b.any(high);
    let t = b.guarded_table(!saturated, index, table.entries(), table.output_bits());
    (t.iter().map(|&bit| b.xor(bit, sign)).collect(), sign)
}

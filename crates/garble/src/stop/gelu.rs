//! GELU and ReLU.
//!
//! With `s` the sign and `a = x XOR s`: `2·ReLU(x) = x + a + s`. Bits of `x` and `a` leave through
//! projections, with half a unit as the weight of the lowest where necessary: `1/2` exists modulo p
//! and the sum is even. So ReLU costs the adder of the shares only. GELU adds the test for `a >= 4`
//! and the table of its correction, guarded by that test.

use super::{SHARES, magnitude, shared_element};
use crate::circuit::{Bit, Builder, Circuit, OutputId};
use primer_plan::function::Gelu;
use primer_ring::modulus::{self, P};

/// Adds `ReLU(x)·2^shift` to an output.
fn project_relu(b: &mut Builder, out: OutputId, x: &[Bit], sign: Bit, a: &[Bit], shift: u32) {
    const HALF: u64 = P.div_ceil(2);
    let unit = modulus::mul(HALF, 1 << shift);
    for (i, (&x, &a)) in x.iter().zip(a).enumerate() {
        let weight = modulus::mul(unit, 1 << i);
        b.project_residue(out, x, weight);
        b.project_residue(out, a, weight);
    }
    // The sign's own unit, and its weight -2^(m-1) as the top bit of x.
    let top = modulus::mul(unit, 1 << a.len());
    b.project_residue(out, sign, modulus::sub(unit, top));
}

pub(super) fn relu(ring_bits: u32) -> Circuit {
    let mut b = Builder::new(SHARES);
    let x = shared_element(&mut b, ring_bits);
    let (sign, a) = magnitude(&mut b, &x);
    let out = b.output();
    project_relu(&mut b, out, &x, sign, &a, 0);
    b.finish()
}

/// Returns by how much GELU is below ReLU, from the magnitude.
fn correction(b: &mut Builder, gelu: &Gelu, a: &[Bit]) -> Vec<Bit> {
    let table = &gelu.table;
    let (low, high) = a.split_at(gelu.dropped_bits() as usize + table.input_bits() as usize);
    let index = &low[gelu.dropped_bits() as usize..];
    let saturated = b.any(high);
    b.guarded_table(!saturated, index, table.entries(), table.output_bits())
}

const fn shift(gelu: &Gelu) -> u32 {
    (gelu.output_fraction - gelu.fraction) as u32
}

pub(super) fn circuit(gelu: &Gelu) -> Circuit {
    let mut b = Builder::new(SHARES);
    let x = shared_element(&mut b, gelu.ring_bits);
    let (sign, a) = magnitude(&mut b, &x);
    let out = b.output();
    project_relu(&mut b, out, &x, sign, &a, shift(gelu));
    let delta = correction(&mut b, gelu, &a);
    b.project_number(out, &delta, -1);
    b.finish()
}

/// Computes ReLU of bits: one AND gate for each below the sign.
pub(super) fn relu_bits(b: &mut Builder, x: &[Bit]) -> Vec<Bit> {
    let (&sign, low) = x.split_last().expect("rings have at least two bits");
    let mut out: Vec<Bit> = low.iter().map(|&bit| b.and(bit, !sign)).collect();
    out.push(Bit::ZERO);
    out
}

/// Computes GELU of bits: the correction, and what projections do for free, since the result stays
/// labels.
pub(super) fn bits(b: &mut Builder, gelu: &Gelu, x: &[Bit]) -> Vec<Bit> {
    let (_, a) = magnitude(b, x);
    let mut delta = correction(b, gelu, &a);
    let mut relu = vec![Bit::ZERO; shift(gelu) as usize];
    relu.extend(relu_bits(b, x));
    delta.resize(relu.len(), Bit::ZERO);
    b.subtract(&relu, &delta)
}

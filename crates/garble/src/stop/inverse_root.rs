//! The reciprocal square root: normalise by pairs of bits, look up, shift back.
//!
//! The leading one is found by halving: if the upper part of the number is empty, the number moves
//! up by that part and the result will move up by half as many places. After the last step the
//! leading one is in the top pair, which together with the bits after it is the table's index.

use super::{SHARES, shared_element};
use crate::circuit::{Bit, Builder, Circuit};
use primer_plan::function::InverseRoot;

pub(super) fn circuit(root: &InverseRoot) -> Circuit {
    let mut b = Builder::new(SHARES);
    let v = shared_element(&mut b, root.ring_bits);
    let value = bits(&mut b, root, &v);
    let out = b.output();
    b.project_number(out, &value, 1);
    b.finish()
}

/// Computes the root of bits; the result is not negative and has no sign.
pub(super) fn bits(b: &mut Builder, root: &InverseRoot, v: &[Bit]) -> Vec<Bit> {
    let mut u = at_least_one(b, v);
    // Whole pairs: H + 1 of them.
    let pairs = root.steps() as usize + 1;
    u.resize(2 * pairs, Bit::ZERO);
    let mut steps = Vec::new();
    let levels = usize::BITS - (pairs - 1).leading_zeros();
    for level in (0..levels).rev() {
        let distance = 1usize << level;
        let upper = &u[2 * (pairs - distance.min(pairs))..];
        let empty = !b.any(upper);
        u = b.shift_left_if(empty, &u, 2 * distance);
        steps.push((empty, distance));
    }
    let table = &root.table;
    let bits = table.input_bits() as usize;
    let mut index = vec![Bit::ZERO; bits.saturating_sub(u.len())];
    index.extend(&u[u.len().saturating_sub(bits)..]);
    let mut value = b.table(&index, table.entries(), table.output_bits());
    value.resize(root.output_bits() as usize, Bit::ZERO);
    for (empty, distance) in steps.into_iter().rev() {
        value = b.shift_left_if(empty, &value, distance);
    }
    value
}

/// Returns the bits of `max(v, 1)` below the sign.
fn at_least_one(b: &mut Builder, v: &[Bit]) -> Vec<Bit> {
    let (&sign, low) = v.split_last().expect("rings have at least two bits");
    let mut out: Vec<Bit> = low.iter().map(|&bit| b.and(bit, !sign)).collect();
    // Nothing set: the value was zero or negative.
    let upper = b.any(&out[1..]);
    out[0] = b.or(out[0], !upper);
    out
}

//! The reciprocal: normalise bit by bit, look up, shift back.
//!
//! As for the reciprocal root ([`super::inverse_root`]) the leading one is found by halving, but
//! numbers move by single bits, not by pairs, and the ring has no sign. A second output says
//! whether the number was too small to have a usable reciprocal.

use super::{SHARES, shared_element};
use crate::circuit::{Bit, Builder, Circuit};
use primer_plan::function::Reciprocal;

pub(super) fn circuit(reciprocal: &Reciprocal) -> Circuit {
    let mut b = Builder::new(SHARES);
    let v = shared_element(&mut b, reciprocal.ring_bits);
    let value = bits(&mut b, reciprocal, &v);
    let out = b.output();
    b.project_number(out, &value, 1);
    let dry = !b.any(&v[reciprocal.dry_bits as usize..]);
    let flag = b.output();
    b.project_number(flag, &[dry], 1);
    b.finish()
}

/// Computes the reciprocal of bits; the result is not negative and has no sign.
pub(super) fn bits(b: &mut Builder, reciprocal: &Reciprocal, v: &[Bit]) -> Vec<Bit> {
    let mut u = v.to_vec();
    let width = u.len();
    let mut moves = Vec::new();
    let mut distance = reciprocal.first_distance() as usize;
    while distance > 0 {
        let empty = !b.any(&u[width - distance..]);
        u = b.shift_left_if(empty, &u, distance);
        moves.push((empty, distance));
        distance /= 2;
    }
    let table = &reciprocal.table;
    let fine = table.input_bits() as usize;
    // The bits after the leading one, which is on top now.
    let mut index = vec![Bit::ZERO; fine.saturating_sub(width - 1)];
    index.extend(&u[(width - 1).saturating_sub(fine)..width - 1]);
    let mut value = b.table(&index, table.entries(), table.output_bits());
    let (dropped, kept) = (
        reciprocal.dropped as usize,
        reciprocal.output_bits() as usize,
    );
    value.resize(dropped + kept, Bit::ZERO);
    // Small moves first: the number is still short then.
    for (empty, distance) in moves.into_iter().rev() {
        value = b.shift_left_if(empty, &value, distance);
    }
    value.split_off(dropped)
}

//! A whole softmax row.
//!
//! ```text
//! M   = max s_j                    compare and choose: 2m AND gates for each element
//! z_j = M - s_j                    m - 1
//! e_j = power(z_j)                 the table and the shift below
//! L   = log_sum(Σ e_j)             carries saved: 12 for each element; leading one, small table
//! p_j = power(z_j + L)             f + 5, and the table and the shift again
//! ```
//!
//! `power` drops what its structure does not need. The leading bit of every table entry is 1, so it
//! folds away. The upper two bits of the shift and the saturation together leave few cases with a
//! result (shift by 0, 4 or 8; from 12 on nothing is left of 12 bits), coded one-hot: three AND
//! gates for all, and then one for each bit that survives. The bits of a distance above the shift
//! only feed one OR, computed once and used by both powers.

use super::argmax::order_as_unsigned;
use super::{SHARES, shared_row};
use crate::circuit::{Bit, Builder, CarrySave, Circuit};
use primer_plan::function::Softmax;

pub(super) fn circuit(softmax: &Softmax, row: usize) -> Circuit {
    let mut b = Builder::new(SHARES);
    let scores = shared_row(&mut b, softmax.ring_bits, row);
    probabilities(&mut b, softmax, scores, |b, p| {
        let out = b.output();
        b.project_number(out, &p, 1);
    });
    b.finish()
}

/// Computes the probabilities of a row of scores in bits and gives them to `leave` one after the
/// other as they are made; they are not negative and have no sign.
pub(super) fn probabilities(
    b: &mut Builder,
    softmax: &Softmax,
    mut scores: Vec<Vec<Bit>>,
    mut leave: impl FnMut(&mut Builder, Vec<Bit>),
) {
    let row = scores.len();
    for s in &mut scores {
        order_as_unsigned(s);
    }
    let mut max = scores[0].clone();
    for s in &scores[1..] {
        max = b.max(&max, s);
    }
    let near = (softmax.fraction + softmax.shift_bits()) as usize;
    // The function takes the logarithm of one plus the sum.
    let mut sum = CarrySave::new(row as u64 * u64::from(softmax.exp.entries()[0]) + 1);
    sum.add(b, &[Bit::ONE]);
    let mut distances = Vec::with_capacity(row);
    for s in &scores {
        let z = b.subtract(&max, s);
        let far = b.any(&z[near..]);
        let z = z[..near].to_vec();
        let e = power(b, softmax, &z, far);
        sum.add(b, &e);
        distances.push((z, far));
    }
    let sum = sum.finish(b);
    let log = log_sum(b, softmax, &sum);
    for (z, far) in &distances {
        let (total, carry) = b.add_carry(z, &log);
        let far = b.or(*far, carry);
        let p = power(b, softmax, &total, far);
        leave(b, p);
    }
}

/// Computes `2^-z` for a distance of `fraction + shift_bits` bits, zero if `far`.
pub(super) fn power(b: &mut Builder, softmax: &Softmax, z: &[Bit], far: Bit) -> Vec<Bit> {
    let (fraction, whole) = z.split_at(softmax.fraction as usize);
    let table = &softmax.exp;
    let v = b.table(fraction, table.entries(), table.output_bits());
    let &[by_1, by_2, by_4, by_8] = whole else {
        unreachable!("powers have four bits before the point")
    };
    // One-hot cases of the large shifts among values that are not far.
    let near_8 = b.and(!far, by_8);
    let below_8 = b.xor(!far, near_8);
    let case_4 = b.and(below_8, by_4);
    let case_0 = b.xor(below_8, case_4);
    let case_8 = b.and(near_8, !by_4);
    let case_12 = b.xor(near_8, case_8);
    let cases = [(case_0, 0), (case_4, 4), (case_8, 8), (case_12, 12)];
    let large: Vec<Bit> = (0..v.len())
        .map(|i| {
            let terms = cases.map(|(case, distance)| match v.get(i + distance) {
                Some(&bit) => b.and(case, bit),
                None => Bit::ZERO,
            });
            b.sum(terms)
        })
        .collect();
    b.shift_right(&large, &[by_1, by_2])
}

/// Computes `log2` of a number that is at least `2^output_bits`, as `Softmax::log_sum` defines it.
fn log_sum(b: &mut Builder, softmax: &Softmax, sum: &[Bit]) -> Vec<Bit> {
    let base = softmax.exp.output_bits() as usize;
    let fine = softmax.log.input_bits() as usize;
    let leading = b.leading_one(&sum[base..]);
    // The bits after the leading one: higher positions override lower ones.
    let mut index = sum[base - fine..base].to_vec();
    for position in base + 1..sum.len() {
        index = b.mux_number(sum[position], &index, &sum[position - fine..position]);
    }
    let mut log = b.table(&index, softmax.log.entries(), softmax.fraction);
    log.extend(b.encode(&leading.one_hot, softmax.shift_bits(), |i| i as u32));
    log
}

//! The products in plain Rust.

use super::{AGAIN, Block, FIRST, PANEL};
use crate::prime::Prime;

/// Fills `out`, `[row][column]`, for a block of so many rows.
pub(super) fn run(task: Block<'_>, height: usize, out: &mut [u32]) {
    let columns = out.len() / height;
    for (r, out) in out.chunks_exact_mut(columns).enumerate() {
        for (panel, out) in task
            .data
            .chunks_exact(PANEL * task.terms)
            .zip(out.chunks_exact_mut(PANEL))
        {
            let sums = sums(&task, r, height, panel);
            for (out, sum) in out.iter_mut().zip(sums) {
                let residue = reduced(task.prime, sum);
                *out = if task.add {
                    task.prime.add(*out, residue)
                } else {
                    residue
                };
            }
        }
    }
}

/// The corrected sums of one row in one panel.
fn sums(task: &Block<'_>, row: usize, height: usize, panel: &[u32]) -> [i64; PANEL] {
    let mut sums = [0i64; PANEL];
    let quadruple = 4 * i64::from(task.prime.value()).pow(2);
    let mut room = FIRST;
    let terms = panel
        .chunks_exact(PANEL)
        .zip(task.weights.chunks_exact(height));
    for (i, (columns, weights)) in terms.enumerate() {
        let weight = i64::from(weights[row] as i32);
        for (sum, column) in sums.iter_mut().zip(columns) {
            *sum += weight * i64::from(*column as i32);
        }
        room -= 1;
        if room == 0 || i + 1 == task.terms {
            for sum in &mut sums {
                // Plus or minus, by the sign: no branch.
                let sign = *sum >> 63;
                *sum -= (quadruple ^ sign) - sign;
            }
            room = AGAIN;
        }
    }
    sums
}

/// `sum·2^-32` for a corrected sum.
fn reduced(prime: Prime, sum: i64) -> u32 {
    let m = (sum as u32).wrapping_mul(prime.montgomery_inverse()) as i32;
    let t = (i64::from(m) * i64::from(prime.value())) >> 32;
    let r = ((sum >> 32) - t) as u32;
    // Between -1.5q and 1.5q; a negative number is a large one here.
    let r = r.min(r.wrapping_add(2 * prime.value()));
    r.min(r.wrapping_sub(prime.value()))
}

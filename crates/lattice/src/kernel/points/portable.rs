//! The products in plain Rust.

use super::{Block, FIRST, HALVED, LAST, PANEL, TILE, TOGETHER, Task, step};
use crate::prime::Prime;

/// Fills the sums of a point.
pub(super) fn run(task: Task<'_>) {
    for column in (0..task.points.columns()).step_by(PANEL) {
        for block in task.blocks {
            for row in block.rows.clone() {
                let sums = sums(&task, column, block, row - block.rows.start);
                let places = task.places(column);
                let first = row * task.sums.stride;
                for (sums, place) in sums.chunks_exact(TILE).zip(places) {
                    let out = &mut task.sums.data[first + place..][..TILE];
                    for (out, &sum) in out.iter_mut().zip(sums) {
                        *out = reduced(task.prime, sum);
                    }
                }
            }
        }
    }
}

/// Computes the sums of one row of a block in one panel: at most [`LAST`] products.
fn sums(task: &Task<'_>, column: usize, block: &Block, row: usize) -> [i64; PANEL] {
    let mut sums = [0i64; PANEL];
    let halving = step(task.prime);
    // Bounds the sums, in products.
    let mut size = 0;
    let weights = task.weights(block).chunks_exact(block.rows.len());
    for (i, weights) in weights.enumerate() {
        let room = if i + 1 == task.terms { LAST } else { FIRST };
        if size + 1 > room {
            for sum in &mut sums {
                *sum += if *sum < 0 { halving } else { -halving };
            }
            size = HALVED;
        }
        let at = i / TOGETHER * task.panels.stride + TOGETHER * column + i % TOGETHER * PANEL;
        let weight = i64::from(weights[row] as i32);
        for (sum, column) in sums.iter_mut().zip(&task.panels.data[at..][..PANEL]) {
            *sum += weight * i64::from(*column as i32);
        }
        size += 1;
    }
    sums
}

/// Returns `sum·2^-32` for a sum of at most [`LAST`] products.
fn reduced(prime: Prime, sum: i64) -> u32 {
    let m = (sum as u32).wrapping_mul(prime.montgomery_inverse()) as i32;
    let t = (i64::from(m) * i64::from(prime.value())) >> 32;
    let r = ((sum >> 32) - t) as u32;
    // Between -2q and 2q; a negative number is a large one here.
    let r = r.min(r.wrapping_add(2 * prime.value()));
    r.min(r.wrapping_sub(prime.value()))
}

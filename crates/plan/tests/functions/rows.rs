//! Functions of whole rows.

use crate::{expect_best, expect_worst};
use primer_plan::function::{CoarseMaximum, Softmax, SoftmaxScratch};

pub(crate) fn softmax(softmax: &Softmax) {
    powers(softmax);
    logarithms(softmax);
    pairs(softmax);
}

/// Checks powers at all distances: entries of the table as they are, and then what a shift leaves.
fn powers(softmax: &Softmax) {
    let (unit, one) = (
        f64::from(softmax.fraction).exp2(),
        f64::from(softmax.output_fraction()).exp2(),
    );
    let beyond = 1 << (softmax.fraction + softmax.shift_bits());
    for z in 0..beyond {
        let (got, want) = (softmax.power(z) as f64, (-(z as f64) / unit).exp2() * one);
        match z >> softmax.fraction {
            // The power of zero would need a bit more.
            0 => assert!(
                (got - want.min(one - 1.0)).abs() <= 0.5,
                "{z}: {got}, {want}"
            ),
            _ => assert!((-1.25..=0.25).contains(&(got - want)), "{z}: {got}, {want}"),
        }
        assert!(
            softmax.power(z + 1) <= softmax.power(z),
            "powers fall at {z}"
        );
    }
    assert_eq!(softmax.power(beyond), 0);
}

/// Checks the logarithms of all sums that a row can have.
fn logarithms(softmax: &Softmax) {
    let unit = f64::from(softmax.fraction).exp2();
    let (one, cells) = (softmax.output_fraction(), softmax.log.input_bits());
    let mut sums = vec![(0.0, 0u32); 1 << cells];
    let (mut worst, mut last): (f64, _) = (0.0, 0);
    let largest = softmax.max_row() as u64 * ((1 << one) - 1);
    for sum in (1 << one) - 1..=largest {
        let (got, whole) = (softmax.log_sum(sum), (sum + 1) as f64);
        let error = got as f64 - (whole.log2() - f64::from(one)) * unit;
        worst = worst.max(error.abs() / unit);
        assert!(got >= last, "logarithms rise at {sum}");
        last = got;
        let top = (sum + 1).ilog2();
        let cell = &mut sums[(((sum + 1) >> (top - cells)) & ((1 << cells) - 1)) as usize];
        // Each octave counts as much as any other.
        let weight = f64::from(one as u32 + 16 - top).exp2();
        *cell = (cell.0 + error * weight, cell.1 + weight as u32);
    }
    // The last entry would need a bit more.
    let most = f64::from((1u32 << softmax.log.output_bits()) - 1);
    for (entry, (sum, weight)) in sums.into_iter().enumerate() {
        let kept = softmax.log.at(entry as u64) as f64;
        let best = (kept - sum / f64::from(weight)).min(most);
        expect_best(&format!("logarithm, entry {entry}"), kept - best);
    }
    expect_worst("logarithm", worst, 0.031_25);
}

/// Checks two keys at all distances.
fn pairs(softmax: &Softmax) {
    let (unit, one) = (
        f64::from(softmax.fraction).exp2(),
        f64::from(softmax.output_fraction()).exp2(),
    );
    let (mut out, mut scratch) = ([0; 2], SoftmaxScratch::default());
    let mut worst: f64 = 0.0;
    for z in 0..1 << (softmax.ring_bits - 1) {
        softmax.apply(&[0, -z], &mut out, &mut scratch);
        let power = (-(z as f64) / unit).exp2();
        let want = [1.0 / (1.0 + power), power / (1.0 + power)];
        for (got, want) in out.into_iter().zip(want) {
            worst = worst.max((got as f64 / one - want).abs());
        }
    }
    expect_worst("softmax of two", worst, 0.0164);
}

/// Checks all pairs of coarse scores. Nothing is looked up; what is near is exact, what is far
/// stays far.
pub(crate) fn coarse_maximum(coarse: &CoarseMaximum) {
    let half = 1 << (coarse.ring_bits - 1);
    let mut out = [0; 2];
    for a in -half..half {
        for b in -half..=a {
            coarse.apply(&[a, b], &mut out);
            assert_eq!(out[0], a, "the maximum is its own reference");
            match a - b < 1 << coarse.near_bits {
                true => assert_eq!(out[1], a),
                false => assert_eq!(b - out[1], -i64::from(coarse.far)),
            }
            assert!(
                out.iter()
                    .all(|o| o >> (coarse.output_bits() - 1) == o >> 63)
            );
        }
    }
}

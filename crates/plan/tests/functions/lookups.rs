//! Functions of a short index.
//!
//! Truncation makes one of the two indices around an accumulator, the nearer one more often: a
//! distance `e` from an index `k` has a density that falls from `k` to its neighbours.

use crate::{expect_best, expect_worst};
use primer_plan::function::{Activation, CoarseMaximum, Lookup};
use primer_ring::stretch::Stretch;

/// Places of a cell.
const PARTS: i32 = 64;

/// The signed indices of a look-up.
fn indices(lookup: &Lookup) -> std::ops::Range<i64> {
    let half = 1 << (lookup.index_bits - 1);
    -half..half
}

/// Powers of two of what a coarse maximum leaves of scores.
pub(crate) fn power(lookup: &Lookup, coarse: &CoarseMaximum) {
    let table = &lookup.tables[0];
    let unit = f64::from(table.output_fraction()).exp2();
    let step = f64::from(-coarse.fraction).exp2();
    let cell = f64::from(-lookup.fraction).exp2();
    // The middle of the index is that of the range of rests.
    let exponent = |index: f64| index * cell - f64::from(coarse.far) * step / 2.0;
    let result = |index: i64| table.at(index) as f64 / unit;
    let mut worst: f64 = 0.0;
    for index in indices(lookup) {
        let at = exponent(index as f64);
        let want = match at > -12.0 {
            // More than a step above the reference is one score in 2^17.
            true => at.min(step).exp2(),
            false => 0.0,
        };
        expect_best(&format!("power of {at}"), (result(index) - want) * unit);
        assert!(table.at(index) >= 0);
        if index + 1 == indices(lookup).end {
            continue;
        }
        assert!(
            table.at(index + 1) >= table.at(index),
            "powers rise at {at}"
        );
        for part in 0..=PARTS {
            let t = f64::from(part) / f64::from(PARTS);
            let at = exponent(index as f64 + t);
            // Where entries are zero, what is left is less than a cell's worth of the last.
            if at > cell - 12.0 && at <= 0.0 {
                let mean = (1.0 - t) * result(index) + t * result(index + 1);
                worst = worst.max((mean - at.exp2()).abs());
            }
        }
    }
    expect_worst("power", worst, 0.000_234);
    // Scores that are far, truncated to the lower side, have no power; all rests have an index.
    let far = -(f64::from(coarse.far) - 2.0) * step;
    let ends = [indices(lookup).start, indices(lookup).end];
    let [first, last] = ends.map(|index| exponent(index as f64));
    assert!(far <= -12.0 && first <= -(f64::from(coarse.far) + 1.0) * step && last >= step);
}

/// The factor of an activation.
pub(crate) fn gate(lookup: &Lookup, activation: Activation, stated: [[f64; 2]; 2]) {
    let table = &lookup.tables[0];
    let unit = f64::from(table.output_fraction()).exp2();
    let cell = f64::from(-lookup.fraction).exp2();
    let kappa = 1.0 + f64::from(activation.stretch()) / f64::from(Stretch::MAX_PART);
    let centre = activation.centre();
    let real = |x: f64| activation.real(centre + x);
    // What the parties have for an argument that got an index.
    let result = |index: i64, x: f64| {
        let k = index as f64 * cell;
        real(0.0) + (x + (kappa - 1.0) * (x - k)) * table.at(index) as f64 / unit
    };
    let (mut single, mut mean): (f64, f64) = (0.0, 0.0);
    for index in indices(lookup) {
        let k = index as f64 * cell;
        let (mut products, mut squares) = (0.0, 0.0);
        for part in 1 - 4 * PARTS..4 * PARTS {
            let t = f64::from(part) / f64::from(4 * PARTS);
            let factor = k + kappa * t * cell;
            products += (1.0 - t.abs()) * factor * (real(k + t * cell) - real(0.0));
            squares += (1.0 - t.abs()) * factor * factor;
        }
        let best = products / squares;
        expect_best(
            &format!("{activation:?} at {k}"),
            table.at(index) as f64 - best * unit,
        );
        if index + 1 == indices(lookup).end {
            continue;
        }
        for part in 1..PARTS {
            let t = f64::from(part) / f64::from(PARTS);
            let x = k + t * cell;
            let errors = [index, index + 1].map(|index| result(index, x) - real(x));
            single = errors.iter().fold(single, |worst, e| worst.max(e.abs()));
            mean = mean.max(((1.0 - t) * errors[0] + t * errors[1]).abs());
        }
    }
    let name = format!("{activation:?} in cells of {cell}");
    let [of_single, of_mean] = match lookup.fraction {
        3 => stated[0],
        4 => stated[1],
        other => panic!("cells of {other} fractional bits need a bound"),
    };
    expect_worst(&name, single, of_single);
    expect_worst(&format!("mean of {name}"), mean, of_mean);
    // Far below it gets flat, far above it becomes the identity.
    let beyond = |low: f64, high: f64| {
        let inside = indices(lookup).filter(|index| (low..high).contains(&(*index as f64 * cell)));
        inside.map(|index| table.at(index)).collect::<Vec<i64>>()
    };
    let (below, above) = (beyond(f64::MIN, -2.0), beyond(1.0, f64::MAX));
    assert!(
        below.is_sorted_by(|a, b| a >= b) && *below.last().unwrap() <= 0,
        "{name}"
    );
    assert!(
        above.is_sorted() && *above.last().unwrap() as f64 <= unit,
        "{name}"
    );
}

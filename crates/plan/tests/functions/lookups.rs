//! Functions of a short index.
//!
//! Truncation gives one of the two indices around an accumulator, the nearer one more often: a
//! distance `e` from an index `k` has a density that falls from `k` to its neighbours.

use crate::{expect_best, expect_worst};
use primer_plan::function::powers::TOP;
use primer_plan::function::{Activation, CoarseMaximum, Lookup, Sorted};
use primer_ring::modulus::K;

/// Places of a cell.
const PARTS: i32 = 64;

/// Returns the signed indices of a look-up.
fn indices(lookup: &Lookup) -> std::ops::Range<i64> {
    let half = 1 << (lookup.index_bits - 1);
    -half..half
}

/// Checks powers of two of what a coarse maximum leaves of scores.
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

/// Checks powers of two of scores as they are: the largest is at the upper end of the index.
pub(crate) fn placed_power(lookup: &Lookup) {
    let (table, cell) = (&lookup.tables[0], f64::from(-lookup.fraction).exp2());
    let last = indices(lookup).end - 1;
    let power = |index: f64| (f64::from(TOP) + (index - last as f64) * cell).exp2();
    let (mut worst, bound): (f64, f64) = (0.0, (cell * std::f64::consts::LN_2).powi(2) / 8.0);
    for index in indices(lookup) {
        let name = format!("power of {index} in cells of {cell}");
        expect_best(&name, table.at(index) as f64 - power(index as f64));
        if index == last {
            continue;
        }
        assert!(table.at(index + 1) >= table.at(index));
        // From 2^8 on, where the lowest rows have their maxima.
        if power(index as f64) >= 256.0 {
            for part in 0..=PARTS {
                let t = f64::from(part) / f64::from(PARTS);
                let [a, b] = [index, index + 1].map(|index| table.at(index) as f64);
                let mean = (1.0 - t) * a + t * b;
                worst = worst.max((mean / power(index as f64 + t) - 1.0).abs());
            }
        }
    }
    // The straight line between neighbours, and the rounding of the smallest.
    assert!(
        worst < 1.05 * bound + 0.5 / 256.0,
        "{worst} in cells of {cell}"
    );
    assert_eq!(table.at(last), 1 << TOP);
}

/// Checks an activation whose columns are sorted: every class at places of every cell, with both
/// indices that truncation may give for each, and exactly what the parties add of the rest.
pub(crate) fn activation(sorted: &Sorted, activation: Activation, stated: [f64; 2]) {
    let real = |x: f64| activation.real(x);
    // Of the accumulator, which fills the ring of the widest class.
    let widest = &sorted.classes[0].lookup;
    let scale = f64::from(widest.fraction + (K - widest.index_bits) as i32).exp2();
    for ((_, by), class) in sorted.indices().zip(&sorted.classes) {
        let (lookup, table) = (&class.lookup, &class.lookup.tables[0]);
        let (unit, cell) = (
            f64::from(table.output_fraction()).exp2(),
            f64::from(-lookup.fraction).exp2(),
        );
        let name = format!("{activation:?} in cells of {cell}, slope {}", class.slope);
        let (mut single, mut mean): (f64, f64) = (0.0, 0.0);
        for index in indices(lookup) {
            let k = index as f64 * cell;
            expect_best(
                &format!("{name} at {k}"),
                table.at(index) as f64 - real(k) * unit,
            );
            // The outermost cells may wrap.
            if index == indices(lookup).start || index + 2 >= indices(lookup).end {
                continue;
            }
            for part in 1..PARTS {
                let t = f64::from(part) / f64::from(PARTS);
                let x = k + t * cell;
                let accumulator = (x * scale).round() as i64;
                // Client's shares that lead to the index below, and to the one above.
                let low = 1u64 << (K - lookup.index_bits) >> 8;
                let errors = [low, 0].map(|less| {
                    let finer = lookup.fraction + (K - lookup.index_bits) as i32;
                    let finer = finer - (widest.fraction + (K - widest.index_bits) as i32);
                    let share = (1u64 << (K - widest.index_bits)) - (less >> finer) - 1;
                    let share = if less == 0 { 1 } else { share };
                    let place = by.shared(accumulator, share);
                    (
                        place.0 - index,
                        Sorted::result(class, place) as f64 / unit - real(x),
                    )
                });
                let mut found = errors;
                found.sort_by_key(|(above, _)| *above);
                let [(0, below), (1, above)] = found else {
                    panic!("{name}: {x} is not truncated to its neighbours: {found:?}");
                };
                single = single.max(below.abs()).max(above.abs());
                mean = mean.max(((1.0 - t) * below + t * above).abs());
            }
        }
        // The slope's error is as wide as the cell, that of rounding is not.
        let wider = cell * 32.0;
        let rounding = (1.0 - wider).max(0.0) / unit;
        expect_worst(&name, single, stated[0] * wider + rounding);
        assert!(
            mean <= stated[1] * wider * wider + 1.5 / unit,
            "mean of {name}: {mean}"
        );
    }
}

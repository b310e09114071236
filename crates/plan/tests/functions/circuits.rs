//! Functions of one element that circuits compute.

use crate::{expect_best, expect_worst};
use primer_plan::function::{Activation, Gelu, InverseRoot, Reciprocal, Tanh};

/// Mean errors of each entry of a table.
struct Means(Vec<(f64, u32)>);

impl Means {
    fn new(entries: usize) -> Self {
        Self(vec![(0.0, 0); entries])
    }

    fn add(&mut self, entry: usize, error: f64) {
        self.0[entry].0 += error;
        self.0[entry].1 += 1;
    }

    /// Checks those entries that served an input; tells how many did.
    fn expect_best(&self, what: &str) -> usize {
        for (entry, &(sum, count)) in self.0.iter().enumerate() {
            if count > 0 {
                expect_best(&format!("{what}, entry {entry}"), sum / f64::from(count));
            }
        }
        self.0.iter().filter(|(_, count)| *count > 0).count()
    }
}

/// Returns the signed elements of a ring.
fn ring(bits: u32) -> std::ops::Range<i64> {
    -(1 << (bits - 1))..1 << (bits - 1)
}

/// Returns the one's complement magnitude, of which a table sees the upper bits.
const fn magnitude(x: i64) -> i64 {
    x ^ (x >> 63)
}

pub(crate) fn gelu(gelu: &Gelu, activation: Activation, stated: f64) {
    let (unit, out) = (
        f64::from(gelu.fraction).exp2(),
        f64::from(gelu.output_fraction).exp2(),
    );
    let entries = gelu.table.entries();
    let mut means = Means::new(entries.len());
    let mut worst: f64 = 0.0;
    for x in ring(gelu.ring_bits) {
        let error = gelu.apply(x) as f64 - activation.real(x as f64 / unit) * out;
        worst = worst.max(error.abs() / out);
        let entry = (magnitude(x) >> gelu.dropped_bits()) as usize;
        means.add(entry.min(entries.len() - 1), error);
    }
    assert_eq!(means.expect_best("GELU"), entries.len());
    expect_worst("GELU", worst, stated);
    // ReLU minus a correction that rises and falls once, and is gone at the end.
    let top = entries
        .iter()
        .position(|e| e == entries.iter().max().unwrap());
    let (rising, falling) = entries.split_at(top.unwrap());
    assert!(rising.is_sorted() && falling.is_sorted_by(|a, b| a >= b));
    assert_eq!(entries.last(), Some(&0));
}

pub(crate) fn tanh(tanh: &Tanh) {
    let (unit, out) = (
        f64::from(tanh.fraction).exp2(),
        f64::from(tanh.output_fraction()).exp2(),
    );
    let entries = tanh.table.entries();
    let mut means = Means::new(entries.len());
    let mut worst: f64 = 0.0;
    for x in ring(tanh.ring_bits) {
        let error = tanh.apply(x) as f64 - (x as f64 / unit).tanh() * out;
        worst = worst.max(error.abs() / out);
        assert_eq!(tanh.apply(!x), -tanh.apply(x));
        // The last entry serves what lies beyond the table as well.
        let entry = (magnitude(x) >> tanh.dropped_bits()) as usize;
        if entry < entries.len() {
            // It is an odd function: what is too large above zero is too small below.
            means.add(entry, if x < 0 { -error } else { error });
        }
    }
    assert_eq!(means.expect_best("tanh"), entries.len());
    expect_worst("tanh", worst, 0.0021);
    assert!(entries.is_sorted());
}

/// Checks the root of a sum of `width` squares with `fraction` fractional bits.
pub(crate) fn inverse_root(root: &InverseRoot, (width, fraction): (usize, i32)) {
    let (steps, fine) = (root.steps(), root.table.input_bits() - 2);
    let scale = (width as f64 * f64::from(fraction).exp2()).sqrt();
    let scale = scale * f64::from(root.output_fraction).exp2();
    let entries = root.table.entries().len();
    let mut means = Means::new(entries);
    let (mut worst, mut last): (f64, _) = (0.0, i64::MAX);
    for v in 1..ring(root.ring_bits).end {
        let (got, want) = (root.apply(v), scale / (v as f64).sqrt());
        worst = worst.max((got as f64 / want - 1.0).abs());
        assert!(got <= last, "the root falls at {v}");
        last = got;
        // Every u is met here, and has all its bits.
        let h = v.ilog2() / 2;
        if h == steps - 1 {
            let error = (got as f64 - want) / f64::from(steps - h).exp2();
            means.add((v >> (2 * h - fine)) as usize, error);
        }
    }
    // A quarter of the indices would be those of u < 1.
    assert_eq!(means.expect_best("root"), entries - entries / 4);
    expect_worst("root", worst, 0.002_45);
}

/// Checks the reciprocal of a sum with `fraction` fractional bits.
pub(crate) fn reciprocal(reciprocal: &Reciprocal, fraction: i32) {
    let (steps, fine) = (reciprocal.steps(), reciprocal.table.input_bits());
    let scale = f64::from(fraction + reciprocal.output_fraction).exp2();
    let entries = reciprocal.table.entries().len();
    let mut means = Means::new(entries);
    let (mut worst, mut last): (f64, _) = (0.0, i64::MAX);
    // Every cell of every size of numbers, at a few places; the largest have fewer bits.
    for h in reciprocal.smallest().ilog2()..=steps {
        let lost = (h + reciprocal.dropped).saturating_sub(steps);
        for entry in 0..entries {
            let from = ((entries + entry) as u64) << h >> fine;
            let to = ((entries + entry + 1) as u64) << h >> fine;
            for part in 0..16 {
                let v = from + (to - from) * (2 * part + 1) / 32;
                let (got, want) = (reciprocal.apply(v as i64), scale / v as f64);
                let error = (got as f64 / want - 1.0).abs();
                assert!(got <= last, "the reciprocal falls at {v}");
                last = got;
                if lost == 0 {
                    worst = worst.max(error);
                } else {
                    assert!(error < 0.004_23 + 1.0 / want, "{v}: {error}");
                }
                if lost == 0 && h + reciprocal.dropped == steps {
                    means.add(entry, got as f64 - want);
                }
            }
        }
    }
    assert_eq!(means.expect_best("reciprocal"), entries);
    expect_worst("reciprocal", worst, 0.004_23);
}

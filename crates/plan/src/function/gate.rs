//! An activation as one looked-up factor and one product.
//!
//! A look-up knows a coarse index of its argument only. Let `x` be the argument minus a *centre*
//! `c` of the activation `f`, `k` the index that truncation made of it, and `e = x - k` what it
//! left out, less than a cell `h` to either side. The activation is computed as
//!
//! ```text
//! f(c + x)  ≈  f(c) + (k + κ·e)·g(k)            k + κ·e = x + (κ - 1)·e
//! ```
//!
//! `g` is looked up, and `x + (κ - 1)·e` costs nothing: both parties have shares of `e`
//! ([`primer_ring::stretch`]). With `g(k)` the slope of the secant from `c` to `c + k` this is
//! right at every index. Between indices it is right to first order if `κ·g(k)` is the slope of
//! `f`, which holds everywhere for `f(c) + A·x^κ` and for nothing else. GELU has its minimum at
//! -0.75, looks like a square around it and like a straight line far above. The centre and κ here
//! make the error as small as it gets over the arguments that encoders have, most of which lie
//! between -2 and 1: `docs/numerics.md`, section 13. Around zero and with κ = 1 it would be
//! `x·Φ(k)`, whose slope is off by `x·φ(x)`, up to 0.24.
//!
//! The entry is not the secant itself but what is best on average over all `e`, which truncation
//! makes with a density that falls from the index to its neighbours in a straight line: the factor
//! of least squares. That takes off half the error of second order, and gives the index 0 an
//! entry.

use super::Activation;
use primer_ring::stretch::Stretch;

/// Points of the average over a cell.
const POINTS: i32 = 64;

impl Activation {
    /// What is taken off the argument, `c`. Both it and `f(c)` are folded into biases.
    pub const fn centre(self) -> f64 {
        match self {
            Self::GeluErf | Self::GeluTanh => -0.5625,
            Self::Relu => 0.0,
        }
    }

    /// How much of what truncation left out joins the product, `8·(κ - 1)`. ReLU has only two
    /// slopes, and its gate is one of them.
    pub const fn stretch(self) -> u32 {
        match self {
            Self::GeluErf | Self::GeluTanh => 5,
            Self::Relu => 0,
        }
    }

    /// The factor at an argument minus the centre, without an index: the slope of the secant.
    pub fn gate(self, x: f64) -> f64 {
        match x == 0.0 {
            // It is multiplied with zero.
            true => 0.0,
            false => self.beyond(x) / x,
        }
    }

    /// The factor at an index, for cells of some width.
    pub fn entry(self, index: f64, cell: f64) -> f64 {
        let kappa = 1.0 + f64::from(self.stretch()) / f64::from(Stretch::MAX_PART);
        let (mut products, mut squares) = (0.0, 0.0);
        for point in -POINTS..=POINTS {
            let part = f64::from(point) / f64::from(POINTS);
            let (weight, e) = (1.0 - part.abs(), part * cell);
            let factor = index + kappa * e;
            products += weight * factor * self.beyond(index + e);
            squares += weight * factor * factor;
        }
        products / squares
    }

    /// `f(c + x) - f(c)`.
    fn beyond(self, x: f64) -> f64 {
        self.real(self.centre() + x) - self.real(self.centre())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Activation; 3] = [Activation::GeluErf, Activation::GeluTanh, Activation::Relu];

    /// The worst error over all arguments up to 12 and all that truncation may leave out, in cells
    /// of some width: of a single result, and of the mean over what it leaves out of an argument.
    fn errors(
        activation: Activation,
        cell: f64,
        kappa: f64,
        entry: impl Fn(f64) -> f64,
    ) -> [f64; 2] {
        let (mut single, mut mean): (f64, f64) = (0.0, 0.0);
        for index in -(12.0 / cell) as i32..(12.0 / cell) as i32 {
            for part in 0..16 {
                let t = f64::from(part) / 16.0;
                let x = (f64::from(index) + t) * cell;
                let real = activation.real(activation.centre() + x);
                let result = |index: i32| {
                    let k = f64::from(index) * cell;
                    let factor = x + (kappa - 1.0) * (x - k);
                    activation.real(activation.centre()) + factor * entry(k) - real
                };
                let (below, above) = (result(index), result(index + 1));
                if t > 0.0 {
                    single = single.max(below.abs()).max(above.abs());
                }
                mean = mean.max(((1.0 - t) * below + t * above).abs());
            }
        }
        [single, mean]
    }

    #[test]
    fn results_are_within_their_bounds() {
        for gelu in [Activation::GeluErf, Activation::GeluTanh] {
            for (cell, bounds) in [(0.125, [0.0782, 0.0027]), (0.0625, [0.0391, 0.0012])] {
                let found = errors(gelu, cell, 1.625, |k| gelu.entry(k, cell));
                assert!(
                    found[0] < bounds[0] && found[1] < bounds[1],
                    "{gelu:?} in cells of {cell}: {found:?}"
                );
            }
        }
    }

    /// From -2 to 1, where most arguments are, the worst result is less than half as far off as
    /// that of a gate around zero which makes nothing of it.
    #[test]
    fn what_truncation_left_out_is_made_use_of() {
        let gelu = Activation::GeluErf;
        let cell = 0.125;
        let worst = |low: f64, high: f64, y: &dyn Fn(f64, f64) -> f64| {
            let mut worst: f64 = 0.0;
            for index in (low / cell) as i32..=(high / cell) as i32 {
                for part in -8..=8 {
                    let (k, e) = (f64::from(index) * cell, f64::from(part) / 8.0 * cell);
                    worst = worst.max((y(k, e) - gelu.real(k + e)).abs());
                }
            }
            worst
        };
        let plain = worst(-2.0, 1.0, &|k, e| match k == 0.0 {
            true => (k + e) * 0.5,
            false => (k + e) * gelu.real(k) / k,
        });
        let centre = gelu.centre();
        let ours = worst(-2.0, 1.0, &|k, e| {
            gelu.real(centre) + (k - centre + 1.625 * e) * gelu.entry(k - centre, cell)
        });
        assert!(2.0 * ours < plain, "{ours} against {plain}");
    }

    #[test]
    fn secants_and_entries_meet_where_cells_are_narrow() {
        for activation in ALL {
            for x in [-9.0, -1.5, -0.25, 0.5, 1.0, 7.0] {
                let (entry, gate) = (activation.entry(x, 1e-4), activation.gate(x));
                assert!((entry - gate).abs() < 1e-4, "{activation:?} at {x}");
            }
        }
    }

    /// A factor beyond one could take a product out of the range of what it multiplies.
    #[test]
    fn factors_are_at_most_one() {
        for activation in ALL {
            for index in -512..512 {
                let entry = activation.entry(f64::from(index) / 8.0, 0.125);
                assert!(
                    entry.abs() <= 1.0 + 1e-9,
                    "{activation:?} at {index}: {entry}"
                );
            }
        }
    }

    #[test]
    fn relu_has_its_two_slopes() {
        let entry = |index: i32| Activation::Relu.entry(f64::from(index) / 8.0, 0.125);
        assert!((-9..0).all(|index| entry(index).abs() < 1e-12));
        assert!((1..9).all(|index| (entry(index) - 1.0).abs() < 1e-12));
        assert!((entry(0) - 0.5).abs() < 1e-12);
    }
}

//! Where a figure lies between the two ends of an axis, and which numbers stand along it.

use super::number;

/// From where to where figures go, and where on the picture that is.
pub(super) struct Axis {
    /// Figures, or their powers of ten.
    ends: (f64, f64),
    /// Units of the picture; the first may be the larger.
    place: (f64, f64),
    powers: bool,
}

impl Axis {
    /// Makes an axis in proportion.
    pub(super) const fn linear(ends: (f64, f64), place: (f64, f64)) -> Self {
        Self {
            ends,
            place,
            powers: false,
        }
    }

    /// Makes an axis between the powers of ten around some figures, whose tens are as long.
    pub(super) fn powers(figures: impl Iterator<Item = f64>, place: (f64, f64)) -> Self {
        let figures = figures.filter(|v| *v > 0.0).map(f64::log10);
        let around = figures.fold(None, |ends: Option<(f64, f64)>, v| {
            let (low, high) = ends.unwrap_or((v, v));
            Some((low.min(v), high.max(v)))
        });
        let (low, high) = around.unwrap_or_default();
        Self {
            ends: (low.floor(), high.ceil().max(low.floor() + 1.0)),
            place,
            powers: true,
        }
    }

    /// Tells where a figure lies; what is beyond an end, at that end.
    pub(super) fn at(&self, figure: f64) -> f64 {
        let figure = if self.powers { figure.log10() } else { figure };
        let (low, high) = self.ends;
        // What has no logarithm is at the start.
        let part = ((figure.max(low) - low) / (high - low)).min(1.0);
        self.place.0 + part * (self.place.1 - self.place.0)
    }

    /// Returns the ends of the axis on the picture.
    pub(super) const fn place(&self) -> (f64, f64) {
        self.place
    }

    /// Places along the axis with the numbers that stand there. Some have none, for want of room.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        if !self.powers {
            let round = round_numbers(self.ends).into_iter();
            return round.map(|v| (self.at(v), number(v))).collect();
        }
        let (low, high) = (self.ends.0 as i32, self.ends.1 as i32);
        // Room for eight numbers.
        let every = (high - low) / 8 + 1;
        let tick = |power: i32| {
            let value = 10f64.powi(power);
            let named = (power - low) % every == 0;
            let name = if named { number(value) } else { String::new() };
            (self.at(value), name)
        };
        (low..=high).map(tick).collect()
    }
}

/// Steps of 1, 2 or 5 times a power of ten, about five of them.
fn round_numbers((low, high): (f64, f64)) -> Vec<f64> {
    let raw = (high - low) / 5.0;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|s| *s >= raw)
        .unwrap_or(power);
    let first = (low / step).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_steps() {
        assert_eq!(round_numbers((0.0, 10.0)), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(round_numbers((-1.0, 1.0)), [-1.0, -0.5, 0.0, 0.5, 1.0]);
    }

    #[test]
    fn a_factor_of_ten_is_always_as_long() {
        let axis = Axis::powers([10.0, 100.0, 1000.0, 1.0].into_iter(), (128.0, 610.0));
        let (a, b, c) = (axis.at(1.0), axis.at(10.0), axis.at(100.0));
        assert!((c - b - (b - a)).abs() < 1e-9);
        assert_eq!(axis.at(1000.0), 610.0);
        assert_eq!(axis.at(0.0), 128.0, "what has no logarithm is at the start");
        let axis = Axis::linear((0.0, 2000.0), (128.0, 610.0));
        assert_eq!(axis.at(1000.0), 369.0);
        assert_eq!(axis.at(3000.0), 610.0, "nothing is beyond the end");
    }

    #[test]
    fn an_axis_may_point_up() {
        let axis = Axis::linear((-1.0, 1.0), (200.0, 100.0));
        assert_eq!([-1.0, 0.0, 1.0].map(|v| axis.at(v)), [200.0, 150.0, 100.0]);
    }

    #[test]
    fn wide_axes_name_some_lines_only() {
        let named = |axis: &Axis| axis.ticks().iter().filter(|t| !t.1.is_empty()).count();
        let axis = |low, high| Axis::powers([low, high].into_iter(), (0.0, 1.0));
        assert_eq!(named(&axis(1.0, 1e4)), 5);
        assert_eq!(named(&axis(1e-5, 1e8)), 7);
        assert_eq!(axis(1e-5, 1e8).ticks().len(), 14);
    }
}

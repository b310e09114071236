//! Polynomials in Chebyshev's basis on an interval, and how they are fitted.
//!
//! A polynomial of degree `2^k - 1` of a number `u` in `[-1, 1]` is evaluated in `k` levels: split
//! it as `p = a·T_g + b` with `g = 2^(k-1)` and both parts of degree below `g`, and go on until the
//! parts are linear; `T_2g = 2·T_g² - 1`. The linear map that takes the interval to `[-1, 1]` costs
//! no level: the weights of the step before carry it.

/// A polynomial on an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Chebyshev {
    low: f64,
    high: f64,
    /// Of `T_0`, `T_1` and so on.
    coefficients: Vec<f64>,
}

impl Chebyshev {
    /// Makes a polynomial from its coefficients.
    ///
    /// # Panics
    /// If there is no coefficient or the interval is empty.
    pub fn new(low: f64, high: f64, coefficients: Vec<f64>) -> Self {
        assert!(low < high && !coefficients.is_empty());
        Self {
            low,
            high,
            coefficients,
        }
    }

    /// Returns the ends of the interval.
    pub fn interval(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// Returns the coefficients of `T_0`, `T_1` and so on.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// Returns the number of levels that its evaluation takes.
    pub fn depth(&self) -> usize {
        depth(self.coefficients.len() - 1)
    }

    /// Returns where a number lies in the interval, from -1 to 1.
    pub fn normalise(&self, x: f64) -> f64 {
        (2.0 * x - self.low - self.high) / (self.high - self.low)
    }

    /// Evaluates the polynomial at a number, which may lie outside the interval: there the
    /// polynomial diverges.
    pub fn at(&self, x: f64) -> f64 {
        let u = self.normalise(x);
        // Clenshaw's recurrence.
        let (mut next, mut after) = (0.0, 0.0);
        for c in self.coefficients[1..].iter().rev() {
            (next, after) = (c + 2.0 * u * next - after, next);
        }
        self.coefficients[0] + u * next - after
    }

    /// Fits the polynomial that is nearest to a function in the sum of weighted squares over given
    /// points.
    ///
    /// # Panics
    /// If the interval is empty or the points do not determine the polynomial.
    pub fn fit(
        low: f64,
        high: f64,
        degree: usize,
        points: impl IntoIterator<Item = (f64, f64)>,
        function: impl Fn(f64) -> f64,
    ) -> Self {
        let size = degree + 1;
        let mut normal = vec![vec![0.0; size + 1]; size];
        let shape = Self::new(low, high, vec![0.0; size]);
        let mut basis = vec![1.0; size];
        for (x, weight) in points {
            let (u, y) = (shape.normalise(x), function(x));
            for i in 1..size {
                basis[i] = if i == 1 {
                    u
                } else {
                    2.0 * u * basis[i - 1] - basis[i - 2]
                };
            }
            for i in 0..size {
                for j in 0..=i {
                    normal[i][j] += weight * basis[i] * basis[j];
                }
                normal[i][size] += weight * basis[i] * y;
            }
        }
        for i in 0..size {
            for j in i + 1..size {
                normal[i][j] = normal[j][i];
            }
        }
        Self::new(low, high, solve(normal))
    }
}

/// Returns the number of levels of a polynomial of some degree.
pub fn depth(degree: usize) -> usize {
    (degree + 1).next_power_of_two().trailing_zeros() as usize
}

/// Lists `count` points of an interval, which crowd at its ends, each with the same share of a
/// weight.
pub fn nodes(low: f64, high: f64, count: usize, weight: f64) -> impl Iterator<Item = (f64, f64)> {
    (0..count).map(move |i| {
        let angle = std::f64::consts::PI * (i as f64 + 0.5) / count as f64;
        let x = (low + high) / 2.0 - (high - low) / 2.0 * angle.cos();
        (x, weight / count as f64)
    })
}

/// Solves a symmetric positive system, whose right-hand side is the last column.
fn solve(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let size = rows.len();
    for i in 0..size {
        let pivot = (i..size)
            .max_by(|a, b| rows[*a][i].abs().total_cmp(&rows[*b][i].abs()))
            .expect("rows are left");
        rows.swap(i, pivot);
        assert!(rows[i][i] != 0.0, "the points determine the polynomial");
        let (head, tail) = rows.split_at_mut(i + 1);
        for row in tail {
            let factor = row[i] / head[i][i];
            for (x, y) in row[i..].iter_mut().zip(&head[i][i..]) {
                *x -= factor * y;
            }
        }
    }
    let mut out = vec![0.0; size];
    for i in (0..size).rev() {
        let known: f64 = (i + 1..size).map(|j| rows[i][j] * out[j]).sum();
        out[i] = (rows[i][size] - known) / rows[i][i];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_polynomials_exactly_and_others_closely() {
        let cubic = |x: f64| 1.0 - 2.0 * x + 0.5 * x.powi(3);
        let p = Chebyshev::fit(-3.0, 5.0, 3, nodes(-3.0, 5.0, 40, 1.0), cubic);
        for x in [-3.0, -0.3, 0.0, 2.2, 5.0, 6.0] {
            assert!((p.at(x) - cubic(x)).abs() < 1e-9, "{x}");
        }
        let p = Chebyshev::fit(0.5, 4.0, 15, nodes(0.5, 4.0, 200, 1.0), f64::recip);
        let worst = (50..400).map(|i| (p.at(i as f64 / 100.0) - 100.0 / i as f64).abs());
        assert!(worst.fold(0.0, f64::max) < 1e-4);
    }

    #[test]
    fn weights_decide_where_a_polynomial_is_close() {
        let near = nodes(-1.0, 1.0, 100, 1.0).chain(nodes(-8.0, 8.0, 100, 1e-3));
        let p = Chebyshev::fit(-8.0, 8.0, 7, near, f64::abs);
        let q = Chebyshev::fit(-8.0, 8.0, 7, nodes(-8.0, 8.0, 100, 1.0), f64::abs);
        assert!((p.at(0.0)).abs() < (q.at(0.0)).abs() / 2.0);
    }

    #[test]
    fn depths() {
        assert_eq!(
            [1, 2, 3, 4, 7, 8, 15, 31].map(depth),
            [1, 2, 2, 3, 3, 4, 4, 5]
        );
    }
}

//! Polynomials on encrypted vectors.

use crate::arithmetic::Arithmetic;
use crate::packing::lowered;

/// Evaluates polynomials in Chebyshev's basis on numbers in `[-1, 1]`, one for each class of slots;
/// [`crate::chebyshev`] says how.
///
/// # Panics
/// If there is no polynomial, they are not all of the same length, or the vector has fewer levels
/// than they take.
pub fn evaluate<A: Arithmetic>(
    a: &mut A,
    x: &A::Value,
    coefficients: &[Vec<f64>],
    class: &dyn Fn(usize) -> usize,
) -> A::Value {
    let mut coefficients = coefficients.to_vec();
    let length = coefficients[0].len().next_power_of_two().max(2);
    for c in &mut coefficients {
        c.resize(length, 0.0);
    }
    let depth = length.trailing_zeros() as usize;
    // T_1, T_2, T_4 and so on, each one level below the one before.
    let mut powers = vec![a.copy(x)];
    for i in 1..depth {
        let mut next = a.products(&[(&powers[i - 1], &powers[i - 1])]);
        let again = a.copy(&next);
        a.add(&mut next, &again);
        a.add_constant(&mut next, -1.0);
        powers.push(next);
    }
    let level = a.level(x) - depth;
    part(a, &powers, &coefficients, class, level)
}

/// Evaluates a part of the polynomials at a level.
fn part<A: Arithmetic>(
    a: &mut A,
    powers: &[A::Value],
    c: &[Vec<f64>],
    class: &dyn Fn(usize) -> usize,
    level: usize,
) -> A::Value {
    let half = c[0].len() / 2;
    if half == 1 {
        if c.len() == 1 {
            let mut out = a.scale(&powers[0], c[0][1], level);
            a.add_constant(&mut out, c[0][0]);
            return out;
        }
        let x = lowered(a, &powers[0], level + 1);
        let sum = a.weighted_sum(&[(&x, &|s| c[class(s)][1])]);
        let mut out = a.rescale(sum);
        a.add_slots(&mut out, &|s| c[class(s)][0]);
        return out;
    }
    // T_(half+j) = 2·T_half·T_j - T_(half-j).
    let mut high: Vec<Vec<f64>> = c.iter().map(|c| c[half..].to_vec()).collect();
    let mut low: Vec<Vec<f64>> = c.iter().map(|c| c[..half].to_vec()).collect();
    for (c, (high, low)) in c.iter().zip(high.iter_mut().zip(&mut low)) {
        for j in 1..half {
            high[j] *= 2.0;
            low[half - j] -= c[half + j];
        }
    }
    let high = part(a, powers, &high, class, level + 1);
    let by = lowered(a, &powers[half.trailing_zeros() as usize], level + 1);
    let mut out = a.products(&[(&high, &by)]);
    let low = part(a, powers, &low, class, level);
    a.add(&mut out, &low);
    out
}

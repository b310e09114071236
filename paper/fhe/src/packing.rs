//! Matrices in slots: one packing for all steps, and what is linear in it.
//!
//! A matrix of `T` tokens (a power of two) and `w` features (padded to a power of two) lies in a
//! vector tokens-first: slot `s` holds token `s mod T` and feature `(s/T) mod w`, over and over.
//! Because the content repeats, rotating by `r·T` rotates the features cyclically for any number of
//! them, with no masks: sums over features are rotations and additions, and a product with a matrix
//! is the sum over diagonals of a rotation times a vector in the clear, in baby and giant steps
//! (Halevi and Shoup 2014). A matrix that is too wide for one vector takes several, each of the
//! largest width.

use crate::arithmetic::Arithmetic;

/// A matrix in vectors.
pub struct Packed<V> {
    /// Features, padded.
    pub width: usize,
    /// One vector, or several of the largest width.
    pub parts: Vec<V>,
}

/// A weight matrix with what the packing needs to know of it: input feature, output feature, token.
pub type Entries<'a> = dyn Fn(usize, usize, usize) -> f64 + 'a;

/// Returns the largest width of one vector.
pub fn capacity(slots: usize, tokens: usize) -> usize {
    slots / tokens
}

/// Returns a vector at a level that is not above its own.
pub fn lowered<A: Arithmetic>(a: &mut A, x: &A::Value, level: usize) -> A::Value {
    if a.level(x) == level {
        a.copy(x)
    } else {
        a.scale(x, 1.0, level)
    }
}

/// Adds rotations by `step`, `2·step` and so on, `times` of them: the sum of `2^times` neighbours.
pub fn fold<A: Arithmetic>(a: &mut A, x: &mut A::Value, step: usize, times: u32) {
    for i in 0..times {
        let rotated = a.rotations(x, &[(step << i) as i32]);
        a.add(x, &rotated[0]);
    }
}

/// Computes `x·W` for `W` of any size, padded by zeros; one level.
pub fn linear<A: Arithmetic>(
    a: &mut A,
    tokens: usize,
    x: &Packed<A::Value>,
    width: usize,
    entries: &Entries<'_>,
) -> Packed<A::Value> {
    let most = capacity(a.slots(), tokens);
    let (from, to) = (x.width.min(most), width.min(most));
    let (diagonals, period) = (from.min(to), from.max(to));
    let babies = 1 << diagonals.trailing_zeros().div_ceil(2);
    let steps: Vec<i32> = (1..babies).map(|b| (b * tokens) as i32).collect();
    let rotated: Vec<Vec<A::Value>> = (x.parts.iter())
        .map(|part| a.rotations(part, &steps))
        .collect();
    let mut parts = Vec::new();
    for part in 0..width.div_ceil(most) {
        let mut sum: Option<A::Value> = None;
        for giant in (0..diagonals).step_by(babies) {
            let mut slots: Vec<Box<dyn Fn(usize) -> f64 + '_>> = Vec::new();
            let mut values = Vec::new();
            for input in 0..x.parts.len() {
                for baby in 0..babies.min(diagonals) {
                    values.push(match baby {
                        0 => &x.parts[input],
                        _ => &rotated[input][baby - 1],
                    });
                    slots.push(Box::new(move |s| {
                        // The product is rotated by the giant step afterwards.
                        let j = (s / tokens + period - giant) % period;
                        let i = (j + giant + baby) % from;
                        entries(input * most + i, part * most + j % to, s % tokens)
                    }));
                }
            }
            let terms: Vec<_> = values.into_iter().zip(slots.iter().map(|s| &**s)).collect();
            let mut term = a.weighted_sum(&terms);
            if giant > 0 {
                term = a.rotations(&term, &[(giant * tokens) as i32]).remove(0);
            }
            match &mut sum {
                None => sum = Some(term),
                Some(sum) => a.add(sum, &term),
            }
        }
        let mut sum = a.rescale(sum.expect("there is a diagonal"));
        fold(a, &mut sum, to * tokens, (period / to).trailing_zeros());
        parts.push(sum);
    }
    Packed { width, parts }
}

/// Moves every token's row to the token `shift` places before it, cyclically; one level.
///
/// A rotation by `shift` carries the last tokens of a feature into the next one, so two rotations
/// complete each other.
pub fn shift_tokens<A: Arithmetic>(
    a: &mut A,
    tokens: usize,
    x: &A::Value,
    level: usize,
) -> Vec<A::Value> {
    let x = &lowered(a, x, level);
    let steps: Vec<i32> = (1..tokens as i32)
        .flat_map(|shift| [shift, shift - tokens as i32])
        .collect();
    let rotated = a.rotations(x, &steps);
    let mut out = vec![lowered(a, x, level - 1)];
    for (i, pair) in rotated.chunks_exact(2).enumerate() {
        let here = move |s: usize| f64::from(u8::from(s % tokens + i + 1 < tokens));
        let there = move |s: usize| 1.0 - here(s);
        let sum = a.weighted_sum(&[(&pair[0], &here), (&pair[1], &there)]);
        out.push(a.rescale(sum));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic::Counting;
    use crate::ckks::ciphertext::Fresh;
    use crate::ckks::evaluate::Evaluator;
    use crate::ckks::keys::{EvaluationKeys, SecretKey};
    use crate::ckks::params::Params;
    use primer_ring::prg::Prg;

    /// Compares `x·W` on ciphertexts with the product itself, for vectors of 128 numbers and 4
    /// tokens.
    fn check(from: usize, to: usize) {
        let params = Params::toy(256, 2, 2);
        let (tokens, slots) = (4, params.slots());
        let most = capacity(slots, tokens);
        let x = |t: usize, i: usize| ((3 * t + 7 * i) as f64).sin();
        let w = |i: usize, j: usize| ((5 * i + 2 * j) as f64).cos() / 4.0;
        let mut counting = Counting::new(slots);
        let parts = vec![2; from.div_ceil(most)];
        let packed = Packed { width: from, parts };
        linear(&mut counting, tokens, &packed, to, &|_, _, _| 0.0);
        let mut rng = Prg::new(&[1; 16]);
        let secret = SecretKey::generate(&params, &mut rng);
        let rotations: Vec<i32> = counting.rotations.iter().copied().collect();
        let keys = EvaluationKeys::generate(&secret, &rotations, &mut rng);
        let mut evaluator = Evaluator::new(&keys);
        let parts = (0..from.div_ceil(most)).map(|part| {
            let slot = |s: usize| x(s % tokens, part * most + s / tokens % from.min(most));
            let values: Vec<f64> = (0..slots).map(slot).collect();
            Fresh::encrypt(&secret, &values, 2, &mut rng).expand(&params)
        });
        let packed = Packed {
            width: from,
            parts: parts.collect(),
        };
        let out = linear(&mut evaluator, tokens, &packed, to, &|i, j, _| w(i, j));
        assert_eq!(evaluator.finish().0, counting.count);
        for (part, ciphertext) in out.parts.iter().enumerate() {
            let got = ciphertext.decrypt(&secret);
            for (s, got) in got.iter().enumerate() {
                let j = part * most + s / tokens % to.min(most);
                let want: f64 = (0..from).map(|i| x(s % tokens, i) * w(i, j)).sum();
                assert!(
                    (got - want).abs() < 1e-3,
                    "{from}x{to}, slot {s}: {got} {want}"
                );
            }
        }
    }

    #[test]
    fn products_of_all_shapes() {
        for (from, to) in [
            (8, 8),
            (4, 16),
            (16, 4),
            (32, 32),
            (2, 2),
            (64, 8),
            (8, 64),
            (64, 64),
        ] {
            check(from, to);
        }
    }
}

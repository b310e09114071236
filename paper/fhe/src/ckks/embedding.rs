//! The canonical embedding: vectors of real numbers as polynomials with integer coefficients.
//!
//! Slot `s` of a polynomial `m` is the real part of its value at `ζ^(3^s)`, `ζ` a complex root of
//! unity of order `2N`. A vector is encoded by putting its numbers there, and their conjugates
//! (themselves) at the conjugate roots, going back to coefficients by a Fourier transform, and
//! rounding at a scale. `X -> X^(3^r)` rotates the vector by `r` to the left, see
//! [`primer_lattice::automorphism`].

use primer_lattice::automorphism::GENERATOR;
use primer_lattice::ntt::bit_reverse;
use std::f64::consts::PI;

type Complex = (f64, f64);

fn times(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// The encoder of one degree.
pub struct Embedding {
    degree: usize,
    /// `ζ^i` for `i` below `2N`.
    roots: Vec<Complex>,
    /// Of each slot, the place of its root and that of the conjugate among odd powers.
    places: Vec<(u32, u32)>,
}

impl Embedding {
    /// Makes the encoder of a power-of-two degree.
    pub fn new(degree: usize) -> Self {
        let angle = |i: usize| PI * i as f64 / degree as f64;
        let roots = (0..2 * degree)
            .map(|i| (angle(i).cos(), angle(i).sin()))
            .collect();
        let mut places = Vec::with_capacity(degree / 2);
        let mut e = 1;
        for _ in 0..degree / 2 {
            places.push(((e / 2) as u32, ((2 * degree - e) / 2) as u32));
            e = e * GENERATOR % (2 * degree);
        }
        Self {
            degree,
            roots,
            places,
        }
    }

    /// Computes `out_i = Σ_k a_k·ζ^(±2ik)`, in place.
    fn transform(&self, a: &mut [Complex], inverse: bool) {
        let n = self.degree;
        let log = n.trailing_zeros();
        for i in 0..n {
            let j = bit_reverse(i, log);
            if i < j {
                a.swap(i, j);
            }
        }
        let mut half = 1;
        while half < n {
            let step = n / half;
            for chunk in a.chunks_exact_mut(2 * half) {
                let (low, high) = chunk.split_at_mut(half);
                for (j, (x, y)) in low.iter_mut().zip(high).enumerate() {
                    let (re, im) = self.roots[j * step];
                    let t = times(*y, (re, if inverse { -im } else { im }));
                    *y = (x.0 - t.0, x.1 - t.1);
                    *x = (x.0 + t.0, x.1 + t.1);
                }
            }
            half *= 2;
        }
    }

    /// Encodes a vector as coefficients at a scale, rounded.
    ///
    /// # Panics
    /// If there are not as many numbers as slots, or one is too large for its scale.
    pub fn encode(&self, values: &[f64], scale: f64) -> Vec<i64> {
        assert_eq!(values.len(), self.degree / 2);
        let mut a = vec![(0.0, 0.0); self.degree];
        for (&v, &(at, conjugate)) in values.iter().zip(&self.places) {
            a[at as usize] = (v, 0.0);
            a[conjugate as usize] = (v, 0.0);
        }
        self.transform(&mut a, true);
        let by = scale / self.degree as f64;
        (a.iter().zip(&self.roots))
            .map(|(&x, &(re, im))| {
                let real = times(x, (re, -im)).0 * by;
                assert!(
                    real.abs() < 2f64.powi(59),
                    "a number is too large to encode"
                );
                real.round() as i64
            })
            .collect()
    }

    /// Decodes coefficients at a scale to their vector.
    pub fn decode(&self, coefficients: &[i64], scale: f64) -> Vec<f64> {
        assert_eq!(coefficients.len(), self.degree);
        let mut a: Vec<Complex> = (coefficients.iter().zip(&self.roots))
            .map(|(&c, &(re, im))| (c as f64 / scale * re, c as f64 / scale * im))
            .collect();
        self.transform(&mut a, false);
        self.places
            .iter()
            .map(|&(at, _)| a[at as usize].0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_rotations_are_slot_wise() {
        let n = 64;
        let embedding = Embedding::new(n);
        let scale = 2f64.powi(25);
        let a: Vec<f64> = (0..n / 2).map(|i| (i as f64).sin() * 3.0).collect();
        let b: Vec<f64> = (0..n / 2).map(|i| (i as f64 * 2.0).cos()).collect();
        let (pa, pb) = (embedding.encode(&a, scale), embedding.encode(&b, scale));
        let back = embedding.decode(&pa, scale);
        assert!(a.iter().zip(&back).all(|(x, y)| (x - y).abs() < 1e-6));
        let mut product = vec![0i64; n];
        for (i, &x) in pa.iter().enumerate() {
            for (j, &y) in pb.iter().enumerate() {
                let sign = if i + j < n { 1 } else { -1 };
                product[(i + j) % n] += sign * x * y;
            }
        }
        let got = embedding.decode(&product, scale * scale);
        for s in 0..n / 2 {
            assert!((got[s] - a[s] * b[s]).abs() < 1e-5);
        }
        for steps in [1, 7] {
            let g = primer_lattice::automorphism::rotation(n, steps);
            let mut image = vec![0; n];
            for (i, &c) in pa.iter().enumerate() {
                let e = i * g % (2 * n);
                image[e % n] = if e < n { c } else { -c };
            }
            let got = embedding.decode(&image, scale);
            for s in 0..n / 2 {
                let from = (s + steps as usize) % (n / 2);
                assert!((got[s] - a[from]).abs() < 1e-6);
            }
        }
    }
}

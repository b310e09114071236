//! How much the shares of a value may tell about the secrets of a batch.
//!
//! A server that learns `r` and `y` of some rows knows `y + z - r·W` there: linear forms in the
//! secrets `t`, `e`, `s` and in the dither, with coefficients that it knows, plus the noise `δ`.
//! How much of the secrets' width is left is a question of the largest singular values of these
//! forms (Hint-RLWE; `docs/rlwe.md`, section 3). They are computed here from what a hint is made
//! of, and a hint is refused whose weights leave too little.
//!
//! Products of ring elements act on values at the roots of unity one by one, so the singular values
//! of a matrix of ring elements are those of small complex matrices, one for each root. Real
//! polynomials modulo `X^n + 1` have `n/2` of them and their conjugates; `Transform` computes
//! these. Largest eigenvalues of Gram matrices are bounded from above by `(tr G^16)^(1/16)`, which
//! is at most `25^(1/16) = 1.22` times too large.

use crate::error::HintError;
use crate::params::{DEGREE, LANES, PACKING_BITS, ROUND_BITS, TERMS};
use crate::ring::Packing;
use crate::sample::{BINOMIAL, Wide};
use primer_ring::matrix::Matrix;
use primer_ring::modulus::P;
use std::f64::consts::PI;
use zeroize::Zeroizing;

/// Numbers at all roots: real parts and imaginary parts. Those of digits tell the weights, so they
/// are wiped.
type Values = Zeroizing<[Vec<f64>; 2]>;

fn zeros(roots: usize) -> Values {
    Zeroizing::new([vec![0.0; roots], vec![0.0; roots]])
}

/// Evaluates real polynomials modulo `X^n + 1` at half of the roots; the values at the others are
/// their conjugates. With `X^(n/2) = i` at these, it is a transform of half the length.
struct Transform {
    /// `e^(πi·k/n)` for all `k` below `n`: cosines and sines.
    turns: Vec<(f64, f64)>,
}

impl Transform {
    fn new(degree: usize) -> Self {
        let turn = |k: usize| {
            let (sin, cos) = (PI * k as f64 / degree as f64).sin_cos();
            (cos, sin)
        };
        Self {
            turns: (0..degree).map(turn).collect(),
        }
    }

    fn values(&self, coefficients: impl ExactSizeIterator<Item = f64> + Clone) -> Values {
        let degree = self.turns.len();
        let half = degree / 2;
        let bits = half.ilog2();
        let mut out = zeros(half);
        let [re, im] = &mut *out;
        let pairs = coefficients.clone().zip(coefficients.skip(half));
        for ((n, (a, b)), (cos, sin)) in pairs.enumerate().zip(&self.turns) {
            let at = n.reverse_bits() >> (usize::BITS - bits);
            (re[at], im[at]) = (a * cos - b * sin, a * sin + b * cos);
        }
        let mut size = 1;
        while size < half {
            for at in (0..half).step_by(2 * size) {
                let (low_re, high_re) = re[at..at + 2 * size].split_at_mut(size);
                let (low_im, high_im) = im[at..at + 2 * size].split_at_mut(size);
                for k in 0..size {
                    let (wr, wi) = self.turns[k * (degree / size)];
                    let (xr, xi) = (high_re[k], high_im[k]);
                    let (tr, ti) = (xr * wr - xi * wi, xr * wi + xi * wr);
                    (high_re[k], high_im[k]) = (low_re[k] - tr, low_im[k] - ti);
                    (low_re[k], low_im[k]) = (low_re[k] + tr, low_im[k] + ti);
                }
            }
            size *= 2;
        }
        out
    }
}

/// The Gram matrices of rows of ring elements: one Hermitian matrix for each root.
struct Gram {
    size: usize,
    /// Upper triangles: `[pair][root]`.
    sums: Vec<Values>,
}

impl Gram {
    fn new(size: usize, roots: usize) -> Self {
        let pairs = size * (size + 1) / 2;
        Self {
            size,
            sums: (0..pairs).map(|_| zeros(roots)).collect(),
        }
    }

    /// Adds a row.
    fn add(&mut self, row: &[Values]) {
        let mut sums = self.sums.iter_mut();
        for (i, a) in row.iter().enumerate() {
            for b in &row[i..] {
                let ([ar, ai], [br, bi]) = (&**a, &**b);
                let [re, im] = &mut **sums.next().expect("a sum for each pair");
                let a = ar.iter().zip(ai);
                let b = br.iter().zip(bi);
                let sums = re.iter_mut().zip(im);
                for (((re, im), (ar, ai)), (br, bi)) in sums.zip(a).zip(b) {
                    *re += ar * br + ai * bi;
                    *im += ar * bi - ai * br;
                }
            }
        }
    }

    /// Bounds the largest eigenvalue at any root, from above.
    fn largest(&self) -> f64 {
        let roots = self.sums[0][0].len();
        (0..roots).map(|root| self.at(root)).fold(0.0, f64::max)
    }

    /// Bounds the largest eigenvalue at a root.
    fn at(&self, root: usize) -> f64 {
        let n = self.size;
        let mut matrix = vec![(0.0, 0.0); n * n];
        let mut sums = self.sums.iter();
        for i in 0..n {
            for j in i..n {
                let [re, im] = &**sums.next().expect("a sum for each pair");
                matrix[i * n + j] = (re[root], im[root]);
                matrix[j * n + i] = (re[root], -im[root]);
            }
        }
        let trace: f64 = (0..n).map(|i| matrix[i * n + i].0).sum();
        if trace <= 0.0 {
            return 0.0;
        }
        matrix
            .iter_mut()
            .for_each(|(re, im)| (*re, *im) = (*re / trace, *im / trace));
        for _ in 0..4 {
            matrix = square(&matrix, n);
        }
        let power: f64 = (0..n).map(|i| matrix[i * n + i].0).sum();
        trace * power.powf(1.0 / 16.0)
    }
}

fn square(matrix: &[(f64, f64)], n: usize) -> Vec<(f64, f64)> {
    let mut out = vec![(0.0, 0.0); n * n];
    for i in 0..n {
        for k in 0..n {
            let (ar, ai) = matrix[i * n + k];
            for j in 0..n {
                let (br, bi) = matrix[k * n + j];
                let sum = &mut out[i * n + j];
                *sum = (sum.0 + ar * br - ai * bi, sum.1 + ar * bi + ai * br);
            }
        }
    }
    out
}

/// The forms of a hint that is being built.
pub(crate) struct Forms {
    /// In the errors of the message: digits, and the secret of the hint.
    errors: Gram,
    /// In the key: the error of the hint and what publishing rounds away.
    key: Gram,
    /// In the secret of masks: what digits leave out.
    secret: Gram,
    ring: Transform,
    subring: Transform,
}

impl Forms {
    pub(crate) fn new() -> Self {
        Self {
            errors: Gram::new(TERMS + 1, DEGREE / 2),
            key: Gram::new(1, DEGREE / 2),
            secret: Gram::new(DEGREE / LANES, LANES / 2),
            ring: Transform::new(DEGREE),
            subring: Transform::new(LANES),
        }
    }

    /// Adds an element: its digits and secret, and its error.
    pub(crate) fn element<'a>(&mut self, polys: impl Iterator<Item = &'a [i16]>, error: &[i64]) {
        let ring = &self.ring;
        let row = polys.map(|poly| ring.values(poly.iter().map(|&x| f64::from(x))));
        self.errors.add(&row.collect::<Vec<_>>());
        self.key
            .add(&[ring.values(error.iter().map(|&x| x as f64))]);
    }

    /// Adds what the digits of an output leave out, in units of `q'`: a polynomial of lanes for
    /// each part of the secret.
    pub(crate) fn output(&mut self, left: &[Vec<f64>]) {
        let row = left
            .iter()
            .map(|left| self.subring.values(left.iter().copied()));
        self.secret.add(&row.collect::<Vec<_>>());
    }

    /// Returns the margin of a hint for these weights.
    pub(crate) fn margin(&self, weights: &Matrix<i16>) -> Margin {
        let unit = Packing::get().modulus() as f64 / P as f64;
        Margin {
            errors: self.errors.largest().sqrt() / unit,
            key: self.key.largest().sqrt() / unit,
            secret: self.secret.largest().sqrt() / unit,
            dither: spectral_norm(weights) / f64::from(1 << ROUND_BITS),
        }
    }
}

/// The largest singular values of the forms in which shares tell about secrets, in units of Z_p.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margin {
    /// Of the errors of the message.
    pub errors: f64,
    /// Of the key `t`.
    pub key: f64,
    /// Of the secret `s` of masks.
    pub secret: f64,
    /// Of the dither of masks.
    pub dither: f64,
}

/// Bits that a modulus may have with a key and errors of deviation 3.24, for the security that the
/// table's 53 give with a ternary key.
const MODULUS_BITS: f64 = 55.0;
/// The share of noise that is set aside for what may be known of `s`.
const SECRET: f64 = 1.0;
/// The same for the dither: of its deviation of 74 at least 1.65 is left then, by which masks
/// modulo 49 bits are harder than messages modulo 53 are with 3.24.
const DITHER: f64 = 1000.0;

impl Margin {
    /// Returns by how much the noise of shares narrows key and errors: `β`. None if it is not wide
    /// enough at all.
    pub fn narrowing(&self) -> Option<f64> {
        let dither = f64::from(1 << ROUND_BITS).powi(2) / 12.0;
        let other =
            2.0 / 3.0 * self.secret.powi(2) / SECRET + dither * self.dither.powi(2) / DITHER;
        let left = Wide::SHARE.deviation().powi(2) - other;
        let forms = BINOMIAL * (self.errors.powi(2) + self.key.powi(2));
        (left > 0.0).then(|| forms / left)
    }

    /// Returns the bits of the modulus with which plain samples would be as hard: at most
    /// `MODULUS_BITS`, or the hint is refused.
    pub fn modulus_bits(&self) -> f64 {
        let lost = |beta: f64| (2.0 * (1.0 + beta)).log2();
        f64::from(PACKING_BITS) + self.narrowing().map_or(f64::INFINITY, lost)
    }

    pub(crate) fn check(&self) -> Result<(), HintError> {
        match self.modulus_bits() <= MODULUS_BITS {
            true => Ok(()),
            false => Err(HintError::Margin {
                bits: self.modulus_bits(),
                limit: MODULUS_BITS,
            }),
        }
    }
}

/// Bounds the largest singular value of the weights: a power iteration, and a fifth more, which is
/// more than what 30 steps are expected to miss of any matrix here (Kuczyński, Woźniakowski 1992).
fn spectral_norm(weights: &Matrix<i16>) -> f64 {
    let (rows, cols) = (weights.rows(), weights.cols());
    let mut right: Vec<f64> = (0..cols).map(|j| 1.0 + (j % 7) as f64 / 7.0).collect();
    let mut norm = 0.0;
    for _ in 0..30 {
        let length = right.iter().map(|x| x * x).sum::<f64>().sqrt();
        if length == 0.0 {
            return 0.0;
        }
        right.iter_mut().for_each(|x| *x /= length);
        let mut next = vec![0.0; cols];
        norm = 0.0;
        for i in 0..rows {
            let row = weights.row(i);
            let left: f64 = row.iter().zip(&right).map(|(&w, x)| f64::from(w) * x).sum();
            norm += left * left;
            let pairs = next.iter_mut().zip(row);
            pairs.for_each(|(next, &w)| *next += left * f64::from(w));
        }
        right = next;
    }
    1.2 * norm.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_at_roots() {
        let coefficients: Vec<f64> = (0..64).map(|n| f64::from(n * n % 23) - 11.0).collect();
        let transform = Transform::new(64);
        let values = transform.values(coefficients.iter().copied());
        let [re, im] = &*values;
        assert_eq!(re.len(), 32);
        // The product of a polynomial with itself has the squares of its values.
        let mut square = vec![0.0; 64];
        for (i, a) in coefficients.iter().enumerate() {
            for (j, b) in coefficients.iter().enumerate() {
                let sign = if i + j < 64 { 1.0 } else { -1.0 };
                square[(i + j) % 64] += sign * a * b;
            }
        }
        let squares = transform.values(square.iter().copied());
        let [sr, si] = &*squares;
        for k in 0..32 {
            assert!((sr[k] - (re[k] * re[k] - im[k] * im[k])).abs() < 1e-6);
            assert!((si[k] - 2.0 * re[k] * im[k]).abs() < 1e-6);
        }
        // And their lengths are those of the coefficients.
        let length: f64 = coefficients.iter().map(|x| x * x).sum();
        let sum: f64 = re.iter().zip(im).map(|(a, b)| a * a + b * b).sum();
        assert!((sum / 32.0 - length).abs() < 1e-6 * length);
    }

    #[test]
    fn largest_eigenvalues_are_bounded_closely() {
        // Rows (x, y) of constants: the Gram matrix of [[3, 0], [0, 4]] has 9 and 16.
        let constant = |x: f64| Zeroizing::new([vec![x; 2], vec![0.0; 2]]);
        let mut gram = Gram::new(2, 2);
        gram.add(&[constant(3.0), constant(0.0)]);
        gram.add(&[constant(0.0), constant(4.0)]);
        assert!((16.0..16.1).contains(&gram.largest()), "{}", gram.largest());
        let weights = Matrix::from_vec(2, 3, vec![3, 0, 0, 0, 4, 0]);
        let norm = spectral_norm(&weights) / 1.2;
        assert!((norm - 4.0).abs() < 0.01, "{norm}");
        assert_eq!(spectral_norm(&Matrix::zeros(2, 2)), 0.0);
    }

    #[test]
    fn too_little_noise_is_refused() {
        let fine = Margin {
            errors: 650.0,
            key: 1150.0,
            secret: 1100.0,
            dither: 96.0,
        };
        let beta = fine.narrowing().unwrap();
        assert!((0.1..0.3).contains(&beta), "{beta}");
        assert!(fine.check().is_ok() && fine.modulus_bits() < 54.5);
        for margin in [
            Margin {
                key: 4000.0,
                ..fine
            },
            Margin {
                errors: 4000.0,
                ..fine
            },
            Margin {
                secret: 20_000.0,
                ..fine
            },
            Margin {
                dither: 6000.0,
                ..fine
            },
        ] {
            let error = margin.check().unwrap_err();
            assert!(error.to_string().contains("limit of 55"), "{error}");
        }
    }
}

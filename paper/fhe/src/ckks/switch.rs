//! The parts of key switching: numbers from one set of primes to another, digits, and division.

use super::keys::SwitchKey;
use super::params::Params;
use primer_lattice::kernel::{elementwise, inner::inner};

/// Numbers given modulo some primes, ready to be taken modulo others.
///
/// With `Q` the product of the primes and `x̂_j = x·(Q/q_j)^-1 mod q_j`, the number of least
/// absolute value is `Σ x̂_j·(Q/q_j) - v·Q` with `v = round(Σ x̂_j/q_j)`: `v` is computed in
/// floating point, which is exact enough unless a number is practically halfway, where either
/// answer will do.
struct Lifted<'a> {
    params: &'a Params,
    from: Vec<usize>,
    /// `x̂_j` for every prime and then `v`.
    terms: Vec<u32>,
}

impl<'a> Lifted<'a> {
    /// Makes them from coefficients modulo each prime of `from`, end to end.
    fn new(params: &'a Params, from: Vec<usize>, mut coefficients: Vec<u32>) -> Self {
        let n = params.degree();
        let mut quotient = vec![0.0f64; n];
        for (&i, limb) in from.iter().zip(coefficients.chunks_exact_mut(n)) {
            let prime = params.prime(i);
            let others = from.iter().filter(|&&j| j != i);
            let rest = others.fold(1, |acc, &j| {
                prime.mul(acc, params.prime(j).value() % prime.value())
            });
            elementwise::scale(params.simd(), prime, limb, prime.shoup(prime.invert(rest)));
            let by = f64::from(prime.value()).recip();
            for (sum, &x) in quotient.iter_mut().zip(&*limb) {
                *sum += f64::from(x) * by;
            }
        }
        coefficients.extend(quotient.iter().map(|v| v.round() as u32));
        Self {
            params,
            from,
            terms: coefficients,
        }
    }

    /// Writes the numbers modulo prime `i`.
    fn modulo(&self, i: usize, out: &mut [u32]) {
        let prime = self.params.prime(i);
        let product = |skip: Option<usize>| {
            let factors = self.from.iter().filter(|&&j| Some(j) != skip);
            factors.fold(1, |acc, &j| {
                prime.mul(acc, self.params.prime(j).value() % prime.value())
            })
        };
        let mut factors: Vec<u32> = self.from.iter().map(|&j| product(Some(j))).collect();
        factors.push(prime.neg(product(None)));
        factors
            .iter_mut()
            .for_each(|f| *f = prime.to_montgomery(*f));
        elementwise::combine(self.params.simd(), prime, out, &self.terms, &factors);
    }
}

/// The digits of a polynomial modulo every prime that key switching needs.
pub(super) struct Digits {
    limbs: usize,
    /// By prime (data, then key-switching), by digit, by position.
    values: Vec<u32>,
}

/// Returns the index of the prime behind place `at` of a ciphertext with `limbs` limbs that is
/// extended by the key-switching primes.
fn extended(params: &Params, limbs: usize, at: usize) -> usize {
    if at < limbs {
        at
    } else {
        params.data() + at - limbs
    }
}

impl Digits {
    /// Cuts a polynomial, given by values, into its digits.
    pub(super) fn new(params: &Params, polynomial: &[u32]) -> Self {
        let n = params.degree();
        let limbs = polynomial.len() / n;
        let places = limbs + params.special();
        // Digits that have run out of primes are zero.
        let count = params.digits();
        let mut values = vec![0; places * count * n];
        for (digit, first) in (0..limbs).step_by(params.special()).enumerate() {
            let own: Vec<usize> = (first..limbs.min(first + params.special())).collect();
            let mut coefficients = polynomial[first * n..(own[own.len() - 1] + 1) * n].to_vec();
            for (&i, limb) in own.iter().zip(coefficients.chunks_exact_mut(n)) {
                params.ntt(i).inverse(limb);
            }
            let lifted = Lifted::new(params, own.clone(), coefficients);
            for at in 0..places {
                let out = &mut values[(at * count + digit) * n..][..n];
                let prime = extended(params, limbs, at);
                if own.contains(&prime) {
                    out.copy_from_slice(&polynomial[prime * n..][..n]);
                } else {
                    lifted.modulo(prime, out);
                    params.ntt(prime).forward(out);
                }
            }
        }
        Self { limbs, values }
    }

    /// Returns both halves of what replaces the polynomial: an encryption of its product with the
    /// key's message.
    pub(super) fn switch(&self, params: &Params, key: &SwitchKey) -> [Vec<u32>; 2] {
        let (n, count) = (params.degree(), params.digits());
        let places = self.limbs + params.special();
        let mut halves = [vec![0; places * n], vec![0; places * n]];
        let [out0, out1] = &mut halves;
        for at in 0..places {
            let prime = extended(params, self.limbs, at);
            inner(
                params.simd(),
                params.prime(prime),
                &self.values[at * count * n..][..count * n],
                key.modulo(params, prime),
                &mut out0[at * n..][..n],
                &mut out1[at * n..][..n],
            );
        }
        halves.map(|half| self.divide(params, half))
    }

    /// Divides by the key-switching primes.
    fn divide(&self, params: &Params, mut half: Vec<u32>) -> Vec<u32> {
        let n = params.degree();
        let mut rest = half.split_off(self.limbs * n);
        let switching: Vec<usize> = (params.data()..params.all()).collect();
        for (&i, limb) in switching.iter().zip(rest.chunks_exact_mut(n)) {
            params.ntt(i).inverse(limb);
        }
        let lifted = Lifted::new(params, switching.clone(), rest);
        let mut limb = vec![0; n];
        for (j, out) in half.chunks_exact_mut(n).enumerate() {
            let prime = params.prime(j);
            lifted.modulo(j, &mut limb);
            params.ntt(j).forward(&mut limb);
            let product = switching.iter().fold(1, |acc, &i| {
                prime.mul(acc, params.prime(i).value() % prime.value())
            });
            let inverse = prime.shoup(prime.invert(product));
            elementwise::divide_limb(params.simd(), prime, out, &limb, 0, inverse);
        }
        half
    }
}

/// Divides a polynomial by the prime of its last limb, which goes away.
pub(super) fn rescale(params: &Params, polynomial: &mut Vec<u32>) {
    let n = params.degree();
    let last = polynomial.len() / n - 1;
    let mut rest = polynomial.split_off(last * n);
    let dropped = params.prime(last);
    let half = dropped.value() / 2;
    params.ntt(last).inverse(&mut rest);
    elementwise::add_constant(params.simd(), dropped, &mut rest, half);
    let mut limb = vec![0; n];
    for (j, out) in polynomial.chunks_exact_mut(n).enumerate() {
        let prime = params.prime(j);
        let offset = prime.value() - half % prime.value();
        elementwise::add_lazy(params.simd(), &mut limb, &rest, offset);
        params.ntt(j).forward(&mut limb);
        let inverse = prime.shoup(prime.invert(dropped.value() % prime.value()));
        elementwise::divide_limb(params.simd(), prime, out, &limb, 0, inverse);
    }
}

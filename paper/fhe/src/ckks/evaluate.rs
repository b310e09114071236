//! What the server computes on ciphertexts.

use super::ciphertext::{Ciphertext, encode};
use super::keys::EvaluationKeys;
use super::params::{BASE, Params};
use super::switch::{Digits, rescale};
use crate::arithmetic::{Arithmetic, Count, Location, Operation, Slots};
use primer_lattice::kernel::elementwise;
use primer_plan::times::Times;
use primer_wire::clock::ThreadClock;

/// Computes with a client's keys, and counts and times what it does.
pub struct Evaluator<'a> {
    params: &'a Params,
    keys: &'a EvaluationKeys,
    place: Location,
    since: ThreadClock,
    count: Count,
    times: Times,
}

impl<'a> Evaluator<'a> {
    /// Makes an evaluator with a client's keys.
    pub fn new(keys: &'a EvaluationKeys) -> Self {
        Self {
            params: &keys.params,
            keys,
            place: Location::default(),
            since: ThreadClock::start(),
            count: Count::default(),
            times: Times::default(),
        }
    }

    fn note(&mut self, operation: Operation, level: usize, times: usize) {
        self.count.add(self.place, operation, level, times);
    }

    /// Records the processor time since the last change of place for the place that ends.
    fn settle(&mut self) {
        let Location { step, in_layer } = self.place;
        self.times.record(step, in_layer, self.since.elapsed());
        self.since = ThreadClock::start();
    }

    /// Returns what was done, and the processor time of this thread by step.
    pub fn finish(mut self) -> (Count, Times) {
        self.settle();
        (self.count, self.times)
    }

    fn truncated(&self, x: &Ciphertext, level: usize) -> Ciphertext {
        let len = (level + BASE) * self.params.degree();
        Ciphertext {
            level,
            halves: [x.halves[0][..len].to_vec(), x.halves[1][..len].to_vec()],
        }
    }

    /// Returns the residue of a number at a scale, for each limb.
    fn constants(&self, value: f64, scale: f64, limbs: usize) -> impl Iterator<Item = u32> {
        let whole = (value * scale).round();
        assert!(
            whole.abs() < 2f64.powi(59),
            "a constant is too large to encode"
        );
        let params = self.params;
        (0..limbs).map(move |i| params.prime(i).from_signed_wide(whole as i64))
    }

    fn each(
        &self,
        out: &mut [u32],
        other: &[u32],
        f: fn(primer_lattice::simd::Simd, primer_lattice::prime::Prime, &mut [u32], &[u32]),
    ) {
        let n = self.params.degree();
        let limbs = out.chunks_exact_mut(n).zip(other.chunks_exact(n));
        for (i, (out, other)) in limbs.enumerate() {
            f(self.params.simd(), self.params.prime(i), out, other);
        }
    }

    fn mul_add(&self, out: &mut [u32], a: &[u32], b: &[u32]) {
        let n = self.params.degree();
        for (i, out) in out.chunks_exact_mut(n).enumerate() {
            let (a, b) = (&a[i * n..][..n], &b[i * n..][..n]);
            elementwise::mul_add(self.params.simd(), self.params.prime(i), out, a, b);
        }
    }
}

impl Arithmetic for Evaluator<'_> {
    type Value = Ciphertext;

    fn enter(&mut self, place: Location) {
        self.settle();
        self.place = place;
    }

    fn slots(&self) -> usize {
        self.params.slots()
    }

    fn level(&self, x: &Ciphertext) -> usize {
        x.level
    }

    fn copy(&self, x: &Ciphertext) -> Ciphertext {
        self.truncated(x, x.level)
    }

    fn add(&mut self, x: &mut Ciphertext, y: &Ciphertext) {
        assert_eq!(x.level, y.level);
        self.each(&mut x.halves[0], &y.halves[0], elementwise::add_assign);
        self.each(&mut x.halves[1], &y.halves[1], elementwise::add_assign);
    }

    fn subtract(&mut self, x: &mut Ciphertext, y: &Ciphertext) {
        assert_eq!(x.level, y.level);
        self.each(&mut x.halves[0], &y.halves[0], elementwise::sub_assign);
        self.each(&mut x.halves[1], &y.halves[1], elementwise::sub_assign);
    }

    fn add_slots(&mut self, x: &mut Ciphertext, slots: &Slots<'_>) {
        self.note(Operation::Encoding, x.level, 1);
        let values: Vec<f64> = (0..self.slots()).map(slots).collect();
        let plain = encode(self.params, &values, x.level, self.params.scale(x.level));
        self.each(&mut x.halves[0], &plain, elementwise::add_assign);
    }

    fn add_constant(&mut self, x: &mut Ciphertext, value: f64) {
        let n = self.params.degree();
        let constants = self.constants(value, self.params.scale(x.level), x.level + BASE);
        for (i, (limb, c)) in x.halves[0].chunks_exact_mut(n).zip(constants).enumerate() {
            elementwise::add_constant(self.params.simd(), self.params.prime(i), limb, c);
        }
    }

    fn rotations(&mut self, x: &Ciphertext, steps: &[i32]) -> Vec<Ciphertext> {
        if steps.is_empty() {
            return Vec::new();
        }
        self.note(Operation::Digits, x.level, 1);
        self.note(Operation::Rotation, x.level, steps.len());
        let (params, n) = (self.params, self.params.degree());
        let digits = Digits::new(params, &x.halves[1]);
        let rotate = |steps: &i32| {
            let entry = self.keys.rotations.get(steps);
            let (key, map) = entry.unwrap_or_else(|| panic!("no key for a rotation by {steps}"));
            let mut halves = digits.switch(params, key);
            self.each(&mut halves[0], &x.halves[0], elementwise::add_assign);
            let halves = halves.map(|half| {
                let mut out = vec![0; half.len()];
                for (out, half) in out.chunks_exact_mut(n).zip(half.chunks_exact(n)) {
                    map.apply(params.simd(), half, out);
                }
                out
            });
            Ciphertext {
                level: x.level,
                halves,
            }
        };
        steps.iter().map(rotate).collect()
    }

    fn weighted_sum(&mut self, terms: &[(&Ciphertext, &Slots<'_>)]) -> Ciphertext {
        let level = terms[0].0.level;
        self.note(Operation::Encoding, level, terms.len());
        self.note(Operation::PlainProduct, level, terms.len());
        let len = (level + BASE) * self.params.degree();
        let mut halves = [vec![0; len], vec![0; len]];
        for (x, slots) in terms {
            assert_eq!(x.level, level);
            let values: Vec<f64> = (0..self.slots()).map(slots).collect();
            let plain = encode(self.params, &values, level, self.params.scale(level));
            for (out, half) in halves.iter_mut().zip(&x.halves) {
                self.mul_add(out, half, &plain);
            }
        }
        Ciphertext { level, halves }
    }

    fn rescale(&mut self, mut x: Ciphertext) -> Ciphertext {
        self.note(Operation::Rescale, x.level, 1);
        for half in &mut x.halves {
            rescale(self.params, half);
        }
        x.level -= 1;
        x
    }

    fn scale(&mut self, x: &Ciphertext, factor: f64, level: usize) -> Ciphertext {
        assert!(level < x.level, "scaling takes a level");
        self.note(Operation::ScalarProduct, level + 1, 1);
        let (params, n) = (self.params, self.params.degree());
        // The scale of the factor makes up for the scale of this level.
        let dropped = f64::from(params.prime(level + BASE).value());
        let scale = params.scale(level) * dropped / params.scale(x.level);
        let mut x = self.truncated(x, level + 1);
        for half in &mut x.halves {
            let constants = self.constants(factor, scale, level + 1 + BASE);
            for (i, (limb, c)) in half.chunks_exact_mut(n).zip(constants).enumerate() {
                let prime = params.prime(i);
                elementwise::scale(params.simd(), prime, limb, prime.shoup(c));
            }
        }
        self.rescale(x)
    }

    fn products(&mut self, terms: &[(&Ciphertext, &Ciphertext)]) -> Ciphertext {
        let level = terms[0].0.level;
        self.note(Operation::Product, level, terms.len());
        self.note(Operation::Relinearise, level, 1);
        let len = (level + BASE) * self.params.degree();
        let mut sum = [vec![0; len], vec![0; len], vec![0; len]];
        for (x, y) in terms {
            assert!(x.level == level && y.level == level);
            let [low, middle, high] = &mut sum;
            self.mul_add(low, &x.halves[0], &y.halves[0]);
            self.mul_add(middle, &x.halves[0], &y.halves[1]);
            self.mul_add(middle, &x.halves[1], &y.halves[0]);
            self.mul_add(high, &x.halves[1], &y.halves[1]);
        }
        let [low, middle, high] = sum;
        let mut halves = Digits::new(self.params, &high).switch(self.params, &self.keys.product);
        self.each(&mut halves[0], &low, elementwise::add_assign);
        self.each(&mut halves[1], &middle, elementwise::add_assign);
        self.rescale(Ciphertext { level, halves })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ciphertext::Fresh;
    use super::super::keys::SecretKey;
    use super::*;
    use crate::evaluation::evaluate;
    use crate::packing::lowered;
    use primer_ring::prg::Prg;
    use proptest::prelude::*;

    fn vector(slots: usize, seed: u64) -> Vec<f64> {
        (0..slots)
            .map(|i| ((seed.wrapping_mul(31) + i as u64) as f64 * 0.7).sin())
            .collect()
    }

    fn close(got: &[f64], want: impl Fn(usize) -> f64, bound: f64) -> Result<(), TestCaseError> {
        for (i, got) in got.iter().enumerate() {
            prop_assert!((got - want(i)).abs() < bound, "{i}: {got} {}", want(i));
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(6))]

        #[test]
        fn operations_are_those_on_vectors(
            log in 6u32..=9,
            levels in 3usize..=7,
            digits in 1usize..=4,
            seed in 0u64..1000,
        ) {
            let params = Params::toy(1 << log, levels, digits);
            let slots = params.slots();
            let mut rng = Prg::new(&[seed as u8; 16]);
            let secret = SecretKey::generate(&params, &mut rng);
            let steps = [1, 5, -3];
            let keys = EvaluationKeys::generate(&secret, &steps, &mut rng);
            let (x, y) = (vector(slots, seed), vector(slots, seed + 1));
            let fresh = |v: &[f64], rng: &mut Prg| {
                Fresh::encrypt(&secret, v, levels, rng).expand(&params)
            };
            let (cx, cy) = (fresh(&x, &mut rng), fresh(&y, &mut rng));
            close(&cx.decrypt(&secret), |i| x[i], 1e-5)?;
            let mut e = Evaluator::new(&keys);
            let product = e.products(&[(&cx, &cy), (&cx, &cx)]);
            prop_assert_eq!(product.level(), levels - 1);
            close(&product.decrypt(&secret), |i| x[i] * y[i] + x[i] * x[i], 1e-4)?;
            for (&by, rotated) in steps.iter().zip(e.rotations(&cx, &steps)) {
                let from = |i: usize| (i as i32 + by).rem_euclid(slots as i32) as usize;
                close(&rotated.decrypt(&secret), |i| x[from(i)], 1e-4)?;
            }
            let sum = e.weighted_sum(&[(&cx, &|s| y[s]), (&cy, &|s| 0.5 * x[s])]);
            let sum = e.rescale(sum);
            close(&sum.decrypt(&secret), |i| 1.5 * x[i] * y[i], 1e-4)?;
            let mut low = lowered(&mut e, &cx, 0);
            e.add_constant(&mut low, 100.0);
            e.add_slots(&mut low, &|s| y[s]);
            close(&low.decrypt(&secret), |i| x[i] + y[i] + 100.0, 1e-4)?;
            let mut difference = e.scale(&cx, -2.0, 1);
            let other = lowered(&mut e, &cy, 1);
            e.subtract(&mut difference, &other);
            close(&difference.decrypt(&secret), |i| -2.0 * x[i] - y[i], 1e-4)?;
        }
    }

    #[test]
    fn polynomials_take_the_levels_that_they_say() {
        let params = Params::toy(128, 5, 3);
        let mut rng = Prg::new(&[3; 16]);
        let secret = SecretKey::generate(&params, &mut rng);
        let keys = EvaluationKeys::generate(&secret, &[], &mut rng);
        let x = vector(64, 9);
        let cx = Fresh::encrypt(&secret, &x, 5, &mut rng).expand(&params);
        for degree in [1, 3, 7, 15, 12] {
            let classes: Vec<Vec<f64>> = (0..2)
                .map(|class| {
                    (0..=degree)
                        .map(|i| 1.0 / (1.0 + i as f64 + class as f64))
                        .collect()
                })
                .collect();
            for count in [1, 2] {
                let mut e = Evaluator::new(&keys);
                let got = evaluate(&mut e, &cx, &classes[..count], &|s| s % count);
                assert_eq!(got.level(), 5 - crate::chebyshev::depth(degree));
                for (s, got) in got.decrypt(&secret).into_iter().enumerate() {
                    let c = classes[s % count].clone();
                    let want = crate::chebyshev::Chebyshev::new(-1.0, 1.0, c).at(x[s]);
                    assert!((got - want).abs() < 1e-3, "degree {degree}: {got} {want}");
                }
            }
        }
    }
}

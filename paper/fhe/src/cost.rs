//! What an operation costs at a level, from what this machine takes for its parts; and models that
//! are too deep to run.
//!
//! Every operation is a number of transforms, passes and sums of products over limbs of `N`
//! numbers. With `m` limbs, `α` key-switching primes and `d` digits, of which `a = ⌈m/α⌉` are in
//! use:
//!
//! | operation | transforms | other |
//! |---|---|---|
//! | encoding | `m` | one complex transform, `m` passes |
//! | product with a plaintext, with a ciphertext | | `2m`, `4m` passes |
//! | product with a number | | `2m` passes |
//! | rescaling | `2m` | `2m` passes |
//! | digits | `m + a·(m + α) - m` | `(a·(m + α) - m)·(α + 1)` terms of a conversion |
//! | rotation (key switching) | `2·(m + α)` | `d·(m + α)` inner, `2m·(α + 1)` terms, `4m` passes |
//! | relinearisation | both of the above | |
//!
//! [`Units::measure`] measures the parts on one thread; [`Units::seconds`] adds them up. Rings
//! beyond the largest that this crate runs are extrapolated: transforms as `N·log N`, the rest as
//! `N`, with no allowance for caches that such limbs leave behind, and a security limit that
//! doubles with the degree. No bootstrapping: a deep model is one deep computation.
//! [`Estimate::refreshed`] is the cost if refreshing between layers were free.

use crate::arithmetic::{Count, Location, Operation};
use crate::ckks::params::{BASE, Params, SECURITY_TABLE, special_primes};
use crate::error::FheError;
use crate::polynomials::Degrees;
use crate::setup::{Counted, fitting_digits};
use primer_lattice::kernel::{elementwise, inner};
use primer_plan::shape::Shape;
use primer_wire::clock::ThreadClock;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a run of a measurement takes.
const RUN: Duration = Duration::from_millis(200);

/// Sizes that decide what operations cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    /// Degree.
    pub degree: usize,
    /// Levels.
    pub levels: usize,
    /// Digits of key switching.
    pub digits: usize,
}

impl Ring {
    /// Returns the ring of parameters.
    pub fn of(params: &Params) -> Self {
        Self {
            degree: params.degree(),
            levels: params.levels(),
            digits: params.digits(),
        }
    }

    /// Returns the number of key-switching primes.
    pub const fn special(&self) -> usize {
        special_primes(self.levels, self.digits)
    }

    /// Returns the number of all primes.
    pub const fn primes(&self) -> usize {
        self.levels + BASE + self.special()
    }

    /// Returns the bytes of one key in the server's memory.
    pub const fn key_memory(&self) -> usize {
        8 * self.digits * self.primes() * self.degree
    }

    /// Returns the bytes of one key on the wire.
    pub const fn key_bytes(&self) -> usize {
        16 + self.digits * self.primes() * self.limb_bytes()
    }

    /// Returns the bytes of one fresh ciphertext on the wire.
    pub const fn ciphertext_bytes(&self) -> usize {
        16 + (self.levels + BASE) * self.limb_bytes()
    }

    const fn limb_bytes(&self) -> usize {
        self.degree * 30 / 8
    }
}

/// Nanoseconds of the parts, for one number of a limb.
#[derive(Debug, Clone, Copy)]
pub struct Units {
    /// A transform, divided by `N·log2 N`.
    pub transform: f64,
    /// A complex transform with its rounding, divided by `N·log2 N`.
    pub embedding: f64,
    /// A pass over a limb that multiplies and adds.
    pub pass: f64,
    /// A term of a conversion between primes.
    pub term: f64,
    /// A digit of the inner product with a key, both halves.
    pub inner: f64,
}

/// Measures the least processor time of some work in several runs, in nanoseconds. The clock is
/// coarse, so a run repeats the work many times.
fn best(mut work: impl FnMut()) -> f64 {
    let time = |_| {
        let (started, clock) = (Instant::now(), ThreadClock::start());
        let mut times = 0.0;
        while started.elapsed() < RUN {
            work();
            times += 1.0;
        }
        clock.elapsed().as_secs_f64() * 1e9 / times
    };
    (0..5).map(time).fold(f64::INFINITY, f64::min)
}

impl Units {
    /// Measures this machine on one thread with a parameter set, a few seconds.
    pub fn measure(params: &Params) -> Self {
        let (n, simd) = (params.degree(), params.simd());
        let log = f64::from(n.trailing_zeros());
        // As many limbs as a ciphertext has, so that caches are as cold as they are in use.
        let limbs = params.data();
        let mut x = vec![1; limbs * n];
        let y = vec![2; limbs * n];
        let per = (limbs * n) as f64;
        let transform = best(|| {
            for (i, limb) in x.chunks_exact_mut(n).enumerate() {
                params.ntt(i).forward(limb);
            }
        });
        let pass = best(|| {
            for (i, limb) in x.chunks_exact_mut(n).enumerate() {
                let prime = params.prime(i);
                elementwise::mul_add(simd, prime, limb, &y[i * n..][..n], &y[i * n..][..n]);
            }
        });
        let terms = params.special() + 1;
        let sources = vec![3; terms * n];
        let factors = vec![5; terms];
        let term = best(|| {
            for (i, limb) in x.chunks_exact_mut(n).enumerate() {
                elementwise::combine(simd, params.prime(i), limb, &sources, &factors);
            }
        });
        let digits = vec![3; params.digits() * n];
        let key = vec![7; 2 * params.digits() * n * limbs];
        let mut other = vec![0; n];
        let inner = best(|| {
            for (i, limb) in x.chunks_exact_mut(n).enumerate() {
                let key = &key[i * 2 * digits.len()..][..2 * digits.len()];
                inner::inner(simd, params.prime(i), &digits, key, limb, &mut other);
            }
        });
        let values = vec![0.5; params.slots()];
        let embedding = best(|| {
            std::hint::black_box(params.embedding().encode(&values, 1e9));
        });
        Self {
            transform: transform / (per * log),
            embedding: embedding / (n as f64 * log),
            pass: pass / per,
            term: term / (per * terms as f64),
            inner: inner / (per * params.digits() as f64),
        }
    }

    /// Returns the seconds of one operation at a level.
    pub fn seconds(&self, ring: &Ring, operation: Operation, level: usize) -> f64 {
        let n = ring.degree as f64;
        let log = n.log2();
        let (m, special, digits) = (
            (level + BASE) as f64,
            ring.special() as f64,
            ring.digits as f64,
        );
        let used = (m / special).ceil();
        let transform = self.transform * log;
        let terms = (special + 1.0) * self.term;
        let cut = used * (m + special) * transform + (used * (m + special) - m) * terms;
        let switch = digits * (m + special) * self.inner
            + 2.0 * (m + special) * transform
            + 2.0 * m * terms
            + 4.0 * m * self.pass;
        let nanoseconds = match operation {
            Operation::Encoding => self.embedding * log + m * (transform + self.pass),
            Operation::PlainProduct | Operation::ScalarProduct => 2.0 * m * self.pass,
            Operation::Product => 4.0 * m * self.pass,
            Operation::Rescale => 2.0 * m * (transform + self.pass),
            Operation::Digits => cut,
            Operation::Rotation => switch,
            Operation::Relinearise => cut + switch,
        };
        nanoseconds * n * 1e-9
    }

    /// Sums up the seconds of all operations of a count, by place.
    pub fn total(&self, ring: &Ring, count: &Count) -> BTreeMap<Location, f64> {
        let mut seconds = BTreeMap::new();
        for (place, operation, level, times) in count.entries() {
            let spent = times as f64 * self.seconds(ring, operation, level);
            *seconds.entry(place).or_default() += spent;
        }
        seconds
    }
}

/// What a model would cost, whether or not its ring can be run here.
pub struct Estimate {
    /// Its ring: the smallest that is deep enough.
    pub ring: Ring,
    /// Whether the ring is beyond the security table, and so only extrapolated.
    pub extrapolated: bool,
    /// Operations.
    pub counted: Counted,
    /// Seconds of the server on one thread, by place.
    pub seconds: BTreeMap<Location, f64>,
}

impl Estimate {
    /// Estimates an inference.
    ///
    /// # Errors
    /// [`FheError`] if the model is no classifier, or deeper than any ring up to degree `2^24`.
    pub fn of(
        shape: &Shape,
        tokens: usize,
        degrees: &Degrees,
        units: &Units,
    ) -> Result<Self, FheError> {
        let (largest, bits) = SECURITY_TABLE[SECURITY_TABLE.len() - 1];
        let mut depth = 0;
        for log in 15..=24 {
            let degree = 1usize << log;
            let known = SECURITY_TABLE.iter().find(|entry| entry.0 == degree);
            let limit = known.map_or(degree / largest * bits as usize, |entry| entry.1 as usize);
            let counted = match Counted::of(shape, tokens, degrees, degree / 2) {
                Err(FheError::Range { .. }) if log < 24 => continue,
                counted => counted?,
            };
            depth = counted.depth;
            let Some(digits) = fitting_digits(depth, limit, 8) else {
                continue;
            };
            let ring = Ring {
                degree,
                levels: depth,
                digits,
            };
            return Ok(Self {
                seconds: units.total(&ring, &counted.count),
                extrapolated: known.is_none(),
                ring,
                counted,
            });
        }
        Err(FheError::TooDeep { depth, levels: 0 })
    }

    /// Returns the seconds in all.
    pub fn total(&self) -> f64 {
        self.seconds.values().sum()
    }

    /// Returns the seconds of a model with `layers` of this estimate's layers if ciphertexts could
    /// be refreshed between layers for nothing, once a layer: what is inside layers that many
    /// times, the rest once.
    pub fn refreshed(&self, layers: usize) -> f64 {
        let inside = |inside: bool| -> f64 {
            let places = self
                .seconds
                .iter()
                .filter(|(place, _)| place.in_layer == inside);
            places.map(|(_, seconds)| seconds).sum()
        };
        inside(false) + layers as f64 * inside(true)
    }

    /// Returns the bytes of all keys in the server's memory.
    pub fn key_memory(&self) -> usize {
        (self.counted.rotations.len() + 1) * self.ring.key_memory()
    }

    /// Returns the bytes that the client sends once for a session.
    pub fn key_bytes(&self) -> usize {
        (self.counted.rotations.len() + 1) * self.ring.key_bytes()
    }

    /// Returns the bytes that the client sends for each inference.
    pub fn input_bytes(&self) -> usize {
        self.counted.ciphertexts * self.ring.ciphertext_bytes()
    }
}

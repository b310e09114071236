//! What travels is uniform for every client, and shares are wrong as often as the formulas have it:
//! one product in slots of the ring, below the face of [`crate::product`].

use super::finish::{Finish, round};
use super::odds::Split;
use super::open::Opener;
use super::{nearest, query};
use crate::ciphertext::{Halves, SeededCiphertext, add_product, encode, zero};
use crate::error::HeError;
use crate::keys::{PublicKey, SecretKey};
use crate::params::Params;
use crate::wire;
use primer_lattice::poly::{Poly, Values};
use primer_ring::modulus::{self, P};
use primer_ring::prg::Prg;
use std::sync::Arc;

/// Bytes of a coefficient where nothing else is said.
const WIDTH: usize = 13;

struct Setting {
    params: Arc<Params>,
    secret: SecretKey,
    public: PublicKey,
    rng: Prg,
}

/// An answer: what travels, and the server's coefficients.
struct Told {
    bytes: Vec<u8>,
    share: Vec<u64>,
}

/// What the server multiplies with, by values.
type Weights = Poly<Values>;

impl Setting {
    fn new(seed: u8) -> Self {
        let params = Params::split();
        let mut rng = Prg::new(&[seed; 16]);
        let secret = SecretKey::generate(&params, &mut rng);
        let public = PublicKey::generate(&secret, &mut rng);
        Self {
            params,
            secret,
            public,
            rng,
        }
    }

    fn slots(&mut self) -> Vec<u64> {
        let n = self.params.degree();
        (0..n).map(|_| modulus::random(&mut self.rng)).collect()
    }

    /// Returns a fresh ciphertext, through the bytes of a query.
    fn encrypt(&mut self, slots: &[u64]) -> SeededCiphertext {
        let mut plain = vec![0; self.params.degree()];
        self.params.slots().encode(slots, &mut plain);
        self.encrypt_plain(&plain)
    }

    /// Returns a fresh ciphertext of coefficients.
    fn encrypt_plain(&mut self, plain: &[u64]) -> SeededCiphertext {
        let described = wire::Described {
            form: 2,
            numbers: [8, 1024, 0, 1],
        };
        let mut message = wire::start_query(&self.params, &described);
        let out = wire::query_ciphertexts(&mut message);
        query::encrypt(&self.secret, 1, &mut self.rng, out, |_, to, _| {
            to.copy_from_slice(plain);
        });
        let mut sent = wire::read_query(&self.params, &described, &message).unwrap();
        sent.remove(0)
    }

    fn product(&self, query: &SeededCiphertext, weights: &Weights) -> Halves {
        let mut sum = zero(&self.params);
        add_product(&self.params, &mut sum, &query.expand(&self.params), weights);
        sum
    }

    /// Answers a query under some public key, by the server's coins.
    fn answer_with(
        &self,
        public: &PublicKey,
        query: &SeededCiphertext,
        weights: &Weights,
        width: usize,
        coins: &mut Prg,
    ) -> Told {
        let (params, n) = (&*self.params, self.params.degree());
        let sum = self.product(query, weights);
        let all: Vec<usize> = (0..n).collect();
        let mut finish = Finish::default();
        finish.start(params, 1, n, coins);
        for limb in 0..params.data_primes() {
            let halves = [sum[0].limb(limb), sum[1].limb(limb)];
            finish.limb(public, 0, limb, &all, halves);
        }
        let (mut bytes, mut share) = (vec![0; n * width], vec![0; n]);
        finish.split(params, 0, width, &mut share, &mut bytes);
        Told { bytes, share }
    }

    fn answer(&mut self, query: &SeededCiphertext, weights: &Weights, width: usize) -> Told {
        let mut coins = self.rng.fork();
        self.answer_with(&self.public, query, weights, width, &mut coins)
    }

    /// Answers without an encryption of zero: what the client could read weights from.
    fn bare(&self, query: &SeededCiphertext, weights: &Weights) -> Told {
        let (params, n) = (&*self.params, self.params.degree());
        let halves = self.product(query, weights);
        let [c0, c1] = halves.map(|half| half.into_coefficients(params.basis()));
        let (mut bytes, mut share) = (vec![0; n * WIDTH], vec![0; n]);
        let halves = [c0.data(), c1.data()];
        round(
            params,
            WIDTH,
            halves,
            &mut vec![0; n],
            &mut share,
            &mut bytes,
        );
        Told { bytes, share }
    }

    /// Returns the client's coefficients.
    fn open(&self, told: &Told, width: usize) -> Vec<u64> {
        let n = self.params.degree();
        let all: Vec<usize> = (0..n).collect();
        let mut out = vec![0; n];
        let mut opener = Opener::new(&self.secret, width).unwrap();
        opener.open(&told.bytes, &all, &mut out).unwrap();
        out
    }

    /// Counts the wrong coefficients of a random product.
    fn wrong(&mut self, width: usize) -> usize {
        let (params, n) = (self.params.clone(), self.params.degree());
        let (x, w) = (self.slots(), self.slots());
        let query = self.encrypt(&x);
        let told = self.answer(&query, &encode(&params, &w), width);
        let ours = self.open(&told, width);
        let slots: Vec<u64> = x
            .iter()
            .zip(&w)
            .map(|(&x, &w)| modulus::mul(x, w))
            .collect();
        let mut want = vec![0; n];
        params.slots().encode(&slots, &mut want);
        let sums = ours.iter().zip(&told.share);
        let sums = sums.map(|(&ours, &theirs)| modulus::add(ours, theirs));
        sums.zip(&want).filter(|(sum, want)| sum != *want).count()
    }
}

/// Returns what the products of this file are to the formulas.
fn split(params: &Params, answers: usize) -> Split {
    let n = params.degree();
    Split {
        coefficients: answers * n,
        energy: n as f64 * (P as f64).powi(2) / 12.0,
    }
}

#[test]
fn shares_add_up_at_the_parameters_in_use() {
    let mut setting = Setting::new(1);
    for width in [13, 14] {
        assert_eq!((0..40).map(|_| setting.wrong(width)).sum::<usize>(), 0);
    }
}

/// Checks that with fewer bytes shares do go wrong: as often as `E|η|` says, and less often than
/// its bound.
#[test]
fn shares_are_wrong_as_often_as_derived() {
    let mut setting = Setting::new(2);
    for (width, answers) in [(6, 4), (7, 250)] {
        let wrong: usize = (0..answers).map(|_| setting.wrong(width)).sum();
        let n = setting.params.degree() as f64;
        // The mean of the absolute value of a Gaussian.
        let deviation = (2.0 / 3.0 * n / 12.0).sqrt() * P as f64 * (-8.0 * width as f64).exp2();
        let mean = (2.0 / std::f64::consts::PI).sqrt() * deviation * n * answers as f64;
        let off = wrong as f64 / mean - 1.0;
        assert!(off.abs() < 5.0 / mean.sqrt() + 0.02, "{wrong} of {mean:.0}");
        let bound = split(&setting.params, answers).odds_at(&setting.params, width);
        assert!((wrong as f64) < bound && mean < bound && bound < 1.4 * mean);
    }
}

/// Measures the other part of `η`, which rounding would hide at any width where errors can be
/// counted.
#[test]
fn noise_is_what_the_weights_make_of_errors() {
    let mut setting = Setting::new(3);
    let (params, n) = (setting.params.clone(), setting.params.degree());
    let (x, w) = (setting.slots(), setting.slots());
    let query = setting.encrypt(&x);
    let [mut c0, mut c1] = setting.product(&query, &encode(&params, &w));
    c1.mul_assign(params.basis(), setting.secret.values());
    c0.add_assign(params.basis(), &c1);
    let mut fractions = vec![0; n];
    let phase = c0.into_coefficients(params.basis());
    params.basis().fractions(phase.data(), &mut fractions);
    // What p times a fraction is beyond an integer.
    let noise = fractions.iter().map(|x| {
        let beyond = x.wrapping_mul(P.into()) as i128;
        beyond as f64 / 128f64.exp2()
    });
    let square = noise.map(|x| x * x).sum::<f64>() / n as f64;
    let split = split(&params, 1);
    let wide = split.odds_at(&params, 16) / split.coefficients as f64;
    let ratio = square.sqrt() / wide;
    // The bounds of what is not measured here make up for the rest.
    assert!((0.85..1.0).contains(&ratio), "{ratio}");
    assert!((wide.log2() + 61.6).abs() < 0.2, "{}", wide.log2());
}

/// Checks that errors of a query, and the rounding of its plaintext, have the variance that odds
/// are made of.
#[test]
fn fresh_noise_has_the_variance_of_the_formulas() {
    let mut setting = Setting::new(9);
    let (params, n) = (setting.params.clone(), setting.params.degree());
    let plain = setting.slots();
    let [mut c0, mut c1] = setting.encrypt_plain(&plain).expand(&params);
    c1.mul_assign(params.basis(), setting.secret.values());
    c0.add_assign(params.basis(), &c1);
    let mut phase = c0.into_coefficients(params.basis());
    // Without the plaintext, rounded to the nearest, errors are left: of a few units.
    let negated: Vec<u64> = plain.iter().map(|&m| modulus::sub(0, m)).collect();
    params.add_plaintext(params.data_primes(), &negated, phase.data_mut());
    let q = params.prime(0).value();
    let errors = phase.limb(0).iter().map(|&x| {
        let above = if x > q / 2 { f64::from(q) } else { 0.0 };
        f64::from(x) - above
    });
    let errors: Vec<f64> = errors.collect();
    let mean = errors.iter().sum::<f64>() / n as f64;
    let square = errors.iter().map(|e| e * e).sum::<f64>() / n as f64;
    assert!(mean.abs() < 0.2, "{mean}");
    assert!((10.0..11.5).contains(&square), "{square}");
    assert!(errors.iter().all(|e| e.abs() <= 22.0));
}

/// Returns what clients may send: a plaintext, none, and one with half a unit in it.
fn clients(setting: &mut Setting) -> Vec<SeededCiphertext> {
    let x = setting.slots();
    let honest = setting.encrypt(&x);
    let params = &*setting.params;
    let with = |c0| SeededCiphertext {
        seed: honest.seed,
        c0,
    };
    let nothing = with(Poly::zero(params.basis(), params.data_primes()));
    // q/2p, modulo each prime -1/2p but for a rounding, as a constant: the same at all points.
    let mut fractional = honest.c0.copy();
    for limb in 0..params.data_primes() {
        let prime = params.prime(limb);
        let half = prime.neg(prime.invert(prime.reduce(2 * P)));
        let values = fractional.limb_mut(limb).iter_mut();
        values.for_each(|x| *x = prime.add(*x, half));
    }
    vec![with(honest.c0.copy()), nothing, with(fractional)]
}

/// Checks that what travels is a function of seeds, weights and the server's coins: no byte depends
/// on what the client encrypted, nor on the half of its public key that it sends.
#[test]
fn nothing_that_a_client_says_reaches_what_it_is_told() {
    let mut setting = Setting::new(4);
    let w = setting.slots();
    let weights = encode(&setting.params, &w);
    let none = Poly::zero(setting.params.basis(), setting.params.data_primes());
    let other = PublicKey::from_parts(&setting.params, setting.public.seed, none);
    let clients = clients(&mut setting);
    let tell = |public: &PublicKey, query: &SeededCiphertext| {
        let mut coins = Prg::new(&[7; 16]);
        setting.answer_with(public, query, &weights, WIDTH, &mut coins)
    };
    let first = tell(&setting.public, &clients[0]);
    for query in &clients {
        for public in [&setting.public, &other] {
            assert!(tell(public, query).bytes == first.bytes);
        }
    }
    // The server's share does depend on it.
    assert!(tell(&setting.public, &clients[1]).share != first.share);
}

/// Checks that a seed with which `a` vanishes somewhere is not accepted, though a client chooses
/// the seed and may send anything with it.
#[test]
fn keys_that_vanish_at_a_point_are_refused() {
    // The first of the numbers 0, 1, 2, … with which that happens.
    const VANISHING: u64 = 10_948;
    let setting = Setting::new(8);
    let mut bytes = setting.public.to_bytes();
    let at = bytes.len() - 5 * 30_720 - 16;
    assert_eq!(bytes[at..at + 16], setting.public.seed);
    for number in [VANISHING - 1, VANISHING, VANISHING + 1] {
        bytes[at..at + 16].copy_from_slice(&u128::from(number).to_le_bytes());
        let refused = PublicKey::from_bytes(&setting.params, &bytes).err();
        let vanishing = Some(HeError::VanishingKey).filter(|_| number == VANISHING);
        assert_eq!(refused, vanishing);
    }
}

/// Tells whether bytes look drawn: 255 degrees of freedom, eight deviations.
fn uniform(bytes: impl Iterator<Item = u8>) -> bool {
    let (mut seen, mut all) = ([0u64; 256], 0);
    for byte in bytes {
        seen[usize::from(byte)] += 1;
        all += 1;
    }
    let mean = all as f64 / 256.0;
    let square: f64 = seen.iter().map(|&x| (x as f64 - mean).powi(2)).sum();
    square / mean < 255.0 + 8.0 * (2.0 * 255f64).sqrt()
}

/// Answers to the same question have nothing in common, for all clients and for weights of all
/// kinds; they are equal if the encryption of zero is left out.
#[test]
fn what_travels_is_fresh_for_every_client() {
    let mut setting = Setting::new(5);
    let n = setting.params.degree();
    let drawn = setting.slots();
    let weights = [drawn, vec![0; n], vec![1; n]].map(|w| encode(&setting.params, &w));
    let difference = |a: &Told, b: &Told, at: usize| -> Vec<u8> {
        let number = |bytes: &[u8]| {
            let mut number = [0; 16];
            number[..WIDTH].copy_from_slice(bytes);
            u128::from_le_bytes(number)
        };
        let both = a.bytes.chunks_exact(WIDTH).zip(b.bytes.chunks_exact(WIDTH));
        let differences = both.map(|(a, b)| number(a).wrapping_sub(number(b)));
        differences.map(|x| x.to_le_bytes()[at]).collect()
    };
    for query in clients(&mut setting) {
        for weights in &weights {
            let [a, b] = [(); 2].map(|()| setting.answer(&query, weights, WIDTH));
            for at in [0, WIDTH / 2, WIDTH - 1] {
                assert!(uniform(a.bytes.iter().skip(at).step_by(WIDTH).copied()));
                assert!(uniform(difference(&a, &b, at).into_iter()));
            }
            let [a, b] = [(); 2].map(|()| setting.bare(&query, weights));
            assert!(!uniform(difference(&a, &b, WIDTH - 1).into_iter()));
        }
        let bare = setting.bare(&query, &weights[1]);
        assert!(!uniform(bare.bytes.into_iter()), "zero times anything");
    }
}

/// Checks that each share alone is uniform, though the product never changes.
#[test]
fn shares_are_uniform() {
    let mut setting = Setting::new(6);
    let n = setting.params.degree();
    let zeros = encode(&setting.params, &vec![0; n]);
    let query = setting.encrypt(&vec![0; n]);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let told = setting.answer(&query, &zeros, WIDTH);
        ours.extend(setting.open(&told, WIDTH));
        theirs.extend(told.share);
    }
    for share in [ours, theirs] {
        let top = |x: &u64| ((u128::from(*x) << 8) / u128::from(P)) as u8;
        assert!(uniform(share.iter().map(top)));
        assert!(uniform(share.iter().map(|&x| x as u8)));
    }
}

#[test]
fn residues_are_the_nearest() {
    assert_eq!(nearest(0), 0);
    assert_eq!(nearest(u128::MAX), 0);
    let unit = u128::MAX / u128::from(P);
    for m in [1, 2, 77, P / 2, P - 1] {
        let middle = unit * u128::from(m);
        for off in [0, unit / 2 - (1 << 50)] {
            assert_eq!(nearest(middle + off), m);
            assert_eq!(nearest(middle - off), m);
        }
        let next = if m + 1 == P { 0 } else { m + 1 };
        assert_eq!(nearest(middle + unit / 2 + (1 << 50)), next);
    }
}

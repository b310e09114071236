//! Circuit privacy and noise of products without rotations, below the face of [`crate::product`].

use super::privacy::distance;
use super::residues;
use crate::ciphertext::SeededCiphertext;
use crate::error::HeError;
use crate::keys::{PublicKey, SecretKey};
use crate::params::Params;
use crate::subring::Workspace;
use crate::subring::dense::DenseWeights;
use crate::subring::noise::Margins;
use crate::subring::open::Opener;
use crate::subring::query;
use crate::subring::shape::Blocks;
use crate::wire::{self, Described};
use primer_ring::prg::Prg;
use std::sync::Arc;

struct Setting {
    params: Arc<Params>,
    secret: SecretKey,
    public: PublicKey,
    blocks: Blocks,
    sent: Vec<SeededCiphertext>,
    rng: Prg,
}

/// A client with an encrypted 240×32 matrix of which one answer holds all 4 outputs.
fn setting() -> Setting {
    let params = Params::without_rotations(8192, 4).unwrap();
    let mut rng = Prg::new(&[5; 16]);
    let secret = SecretKey::generate(&params, &mut rng);
    let public = PublicKey::generate(&secret, &mut rng);
    let public = PublicKey::from_bytes(&params, &public.to_bytes()).unwrap();
    let blocks = Blocks {
        stride: 8,
        width: 4,
        ..Blocks::choose(&params, 240, 32, 4)
    };
    let x = residues(&mut rng, 240, 32);
    let described = Described {
        form: 0,
        numbers: [240, 32, blocks.stride, blocks.queries()],
    };
    let mut message = wire::start_query(&params, &described);
    let out = wire::query_ciphertexts(&mut message);
    query::encrypt(&secret, 1, 8192, &mut rng, out, |index, plain, _| {
        for t in 0..240 {
            let from = index * blocks.stride;
            for i in from..32.min(from + blocks.stride) {
                plain[blocks.lanes.at(t, i - from)] = x.get(t, i);
            }
        }
    });
    let sent = wire::read_query(&params, &described, &message).unwrap();
    Setting {
        params,
        secret,
        public,
        blocks,
        sent,
        rng,
    }
}

impl Setting {
    fn answer(&mut self, weights: &DenseWeights) -> Vec<u8> {
        let mask = residues(&mut self.rng, 240, 4);
        let margins = Margins::of(&self.params).unwrap();
        let lengths = (0..self.blocks.answers())
            .map(|answer| margins.answer_len(8192, self.blocks.sent_len(0, answer)));
        let mut out = vec![0; lengths.sum()];
        let mut work = Workspace::default();
        let (public, queries) = (&self.public, [&self.sent[..]]);
        weights
            .answer(public, &mut work, &queries, &mask, &mut self.rng, &mut out)
            .unwrap();
        out
    }

    /// The noise of all coefficients, in units of `q/p`.
    fn noise(&self, answer: &[u8]) -> Result<Vec<f64>, HeError> {
        let margins = Margins::of(&self.params)?;
        let mut opener = Opener::new(&self.secret)?;
        let (mut all, mut rest) = (Vec::new(), answer);
        for index in 0..self.blocks.answers() {
            let sent = self.blocks.sent(0, index);
            let (now, later) = rest.split_at(margins.answer_len(8192, sent.len()));
            rest = later;
            opener.open(now, &sent, index, &mut vec![0; sent.len()])?;
            all.extend(&opener.noise);
        }
        Ok(all)
    }
}

#[test]
fn noise_does_not_tell_weights_apart() {
    let mut setting = setting();
    let margins = Margins::of(&setting.params).unwrap();
    let kept = |entry: fn(usize, usize) -> i64, setting: &Setting| {
        DenseWeights::kept(&setting.params, setting.blocks, entry, None)
    };
    let zero = kept(|_, _| 0, &setting);
    let large = kept(
        |i, o| if (i + o) % 3 == 0 { -0x3fff } else { 0x3fff },
        &setting,
    );
    let answers = 60;
    let mut noises = [&zero, &large].map(|weights| {
        let told: Vec<_> = (0..answers).map(|_| setting.answer(weights)).collect();
        // The same question never gets the same ciphertext: both halves are fresh.
        for (a, b) in told.iter().zip(&told[1..]) {
            let same = a.iter().zip(b).filter(|(x, y)| x == y).count();
            assert!(same < a.len() / 128, "{same} bytes of {} agree", a.len());
        }
        let noise = told.iter().flat_map(|told| setting.noise(told).unwrap());
        noise.collect::<Vec<f64>>()
    });
    // Three uniforms of variance 1/3 each, and a little rounding.
    let room = (setting.params.modulus_bits(4) - (primer_ring::modulus::P as f64).log2()).exp2();
    let flood = f64::from(margins.flood.bits).exp2() / room;
    let rounding = (8192.0 * 2.0 / 3.0 / 12.0f64).sqrt() * 2f64.powi(41 - 52);
    let width = flood.hypot(rounding);
    for noise in &noises {
        let n = noise.len() as f64;
        let mean = noise.iter().sum::<f64>() / n;
        let deviation = (noise.iter().map(|x| x * x).sum::<f64>() / n).sqrt();
        assert!(mean.abs() < 5.0 * width / n.sqrt(), "{mean}");
        assert!(
            (deviation / width - 1.0).abs() < 0.02,
            "{deviation} {width}"
        );
    }
    let [a, b] = &mut noises;
    let n = a.len() as f64;
    // Equal distributions exceed this distance with probability 2e-8.
    let limit = (-(1e-8f64).ln() / 2.0).sqrt() * (2.0 / n).sqrt();
    let found = distance(a, b);
    assert!(found < limit, "{found} of {limit}");
    // The test would see a shift of a twentieth of the flood's deviation.
    let mut shifted: Vec<f64> = a.iter().map(|x| x + width / 20.0).collect();
    assert!(distance(&mut shifted, b) > limit);
}

#[test]
fn too_much_noise_is_refused() {
    let mut setting = setting();
    // Nobody who uses products can make such weights: fifty bits of noise come with them.
    let weights = DenseWeights::kept(&setting.params, setting.blocks, |_, _| 1 << 55, None);
    let told = setting.answer(&weights);
    // 2^55·√(32·4·10.5) is far below the flood, and more of it is not.
    assert!(setting.noise(&told).is_ok());
    let mut plain = setting.sent.swap_remove(0);
    for x in plain.c0.data_mut() {
        *x = (*x + 1) % (1 << 29);
    }
    setting.sent.insert(0, plain);
    let told = setting.answer(&weights);
    let exhausted = |told: &[u8]| {
        let read = setting.noise(told);
        assert!(matches!(read, Err(HeError::NoiseExhausted { .. })));
    };
    exhausted(&told);
    exhausted(&vec![0x55; told.len()]);
}

#[test]
fn damage_of_either_half_is_seen() {
    let mut setting = setting();
    let weights = DenseWeights::kept(&setting.params, setting.blocks, |i, o| (i * o) as i64, None);
    let told = setting.answer(&weights);
    assert!(setting.noise(&told).is_ok());
    // Half a unit of the plaintext: bit 4 of 46 of each eighth coefficient of c0, bit 10 of 52 of
    // one coefficient of c1.
    let mut first = told.clone();
    (0..960 / 8).for_each(|i| first[46 * i] ^= 0x10);
    let mut second = told.clone();
    second[960 * 46 / 8 + 1] ^= 4;
    for damaged in [first, second] {
        let read = setting.noise(&damaged);
        assert!(matches!(read, Err(HeError::NoiseExhausted { .. })));
    }
}

#[test]
fn fresh_noise_has_the_variance_that_bounds_are_made_of() {
    let setting = setting();
    let params = &setting.params;
    let [mut c0, mut c1] = setting.sent[0].expand(params).halves;
    c1.mul_assign(params.basis(), setting.secret.values());
    c0.add_assign(params.basis(), &c1);
    let phase = c0.into_coefficients(params.basis());
    // Beyond the block there is no plaintext, and all that is left is the error.
    let q = params.prime(0).value();
    let first = setting.blocks.lanes.at(0, setting.blocks.stride);
    let errors = phase.limb(0)[first..].iter().map(|&x| {
        let above = if x > q / 2 { f64::from(q) } else { 0.0 };
        f64::from(x) - above
    });
    let errors: Vec<f64> = errors.collect();
    let mean = errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64;
    assert!((mean / 10.5 - 1.0).abs() < 0.1, "{mean}");
    assert!(errors.iter().all(|e| e.abs() <= 21.0));
}

//! Finishing answers: nothing of the weights is left in them but the result.
//!
//! For every ciphertext, with nothing optional:
//!
//! 1. add `(b·u, a·u + e1)` with fresh `u` and `e1` to the halves: `c1` becomes pseudorandom. The
//!    error that an encryption of zero has in its other half would be lost in step 3, or stay with
//!    the server, so none is drawn. Where the public key has several encryptions of zero, as many
//!    answers share a `u`, each with an `a` and `b` of its own ([`crate::keys::PublicKey`]): it is
//!    transformed once for them;
//! 2. take the coefficients of `c0` that carry results; the others are never sent, and where the
//!    results of a dense product are all, most of them are not computed ([`Part`]);
//! 3. add the mask and flooding noise to each of them;
//! 4. round both halves from `q` to a power of two, the fewest bits that still decrypt.
//!
//! Answers to products of two secrets end otherwise after step 2: they are [split](super::split).
//!
//! Several answers are finished together, one prime after the other: the tables of a prime, keys
//! and roots, are a third of a megabyte, and stay in the cache while its part of step 1 and 2 is
//! done for all of them. The last two steps then go answer by answer.

use super::noise::Margins;
use super::workspace::sized;
use crate::keys::PublicKey;
use crate::params::Params;
use primer_lattice::kernel::elementwise;
use primer_lattice::ntt::{Masked, Part};
use primer_lattice::sample;
use primer_ring::pack;
use rand_core::CryptoRng;
use zeroize::Zeroize;

/// Which coefficients of `c0` are sent.
#[derive(Clone, Copy)]
pub(super) enum Sent<'a> {
    /// Some of all.
    Coefficients(&'a [usize]),
    /// Some of a part.
    Part(&'a Part, &'a [usize]),
}

/// Adds to one half of a product by values.
pub(super) type More<'a> = &'a dyn Fn(usize, &mut [u32]);

/// The memory of answers that are being finished. What is in it depends on weights and is wiped.
#[derive(Default)]
pub(super) struct Finish {
    /// `[answer][N]`, and `[answers that share it][N]`.
    e1: Vec<i8>,
    small_u: Vec<i8>,
    /// `[answer][limb][coefficients that are sent]`, with room for `most` of them.
    first: Vec<u32>,
    most: usize,
    /// `[answer][limb][N]`.
    second: Vec<u32>,
    /// One limb each: `u` by values, and its quotients.
    u: Vec<u32>,
    quotients: Vec<u32>,
    /// Which `u` that is, and modulo which prime.
    current: Option<(usize, usize)>,
    /// One limb each: `c0`, and the halves to which something was added.
    limb: Vec<u32>,
    more: [Vec<u32>; 2],
    part: Vec<u32>,
    fractions: Vec<u64>,
}

impl Finish {
    /// Draws what so many answers need, each of which sends at most `most` coefficients of `c0`.
    pub(super) fn start(
        &mut self,
        params: &Params,
        answers: usize,
        most: usize,
        rng: &mut impl CryptoRng,
    ) {
        let (n, limbs) = (params.degree(), params.data_primes());
        self.most = most;
        sized(&mut self.first, answers * limbs * most);
        sized(&mut self.second, answers * limbs * n);
        self.current = None;
        let shared = answers.div_ceil(params.zeros());
        let (simd, u) = (params.simd(), sized(&mut self.small_u, shared * n));
        u.chunks_exact_mut(n)
            .for_each(|u| sample::fill_ternary(simd, rng, u));
        let e1 = sized(&mut self.e1, answers * n).chunks_exact_mut(n);
        e1.for_each(|e1| sample::fill_error(simd, rng, e1));
    }

    /// Step 1 and 2 of an answer modulo one prime, given both halves of the product by values;
    /// `more` adds to them.
    pub(super) fn limb(
        &mut self,
        public: &PublicKey,
        answer: usize,
        limb: usize,
        sent: Sent<'_>,
        halves: [&[u32]; 2],
        more: Option<More<'_>>,
    ) {
        let params = &*public.params;
        let (n, limbs, simd) = (params.degree(), params.data_primes(), params.simd());
        let (prime, ntt) = (params.prime(limb), params.ntt(limb));
        let (shared, zero) = (answer / params.zeros(), answer % params.zeros());
        let (u, quotients) = (sized(&mut self.u, n), sized(&mut self.quotients, n));
        if self.current != Some((shared, limb)) {
            elementwise::from_small(simd, prime, u, &self.small_u[shared * n..][..n]);
            ntt.forward(u);
            elementwise::quotients(simd, prime, quotients, u);
            self.current = Some((shared, limb));
        }
        let mut halves = halves;
        if let Some(more) = more {
            for (i, (half, buffer)) in halves.iter_mut().zip(&mut self.more).enumerate() {
                let buffer = sized(buffer, n);
                buffer.copy_from_slice(half);
                more(i, buffer);
                *half = buffer;
            }
        }
        let masked = Masked {
            halves,
            keys: public.zero(zero, limb),
            u: [u, quotients],
            error: &self.e1[answer * n..][..n],
        };
        let c0 = sized(&mut self.limb, n);
        let c1 = &mut self.second[(answer * limbs + limb) * n..][..n];
        let (found, places) = match sent {
            Sent::Coefficients(places) => {
                ntt.inverse_masked(&masked, None, c0, c1);
                (c0, places)
            }
            Sent::Part(part, places) => {
                let found = sized(&mut self.part, part.room());
                ntt.inverse_masked(&masked, Some((part, found)), c0, c1);
                (found, places)
            }
        };
        let first = &mut self.first[answer * limbs * self.most + limb * places.len()..];
        for (to, &from) in first.iter_mut().zip(places) {
            *to = found[from];
        }
    }

    /// What step 1 and 2 left of an answer whose limbs are all there, by limbs: the `count`
    /// coefficients of `c0` that were asked for, and `c1`.
    pub(super) fn halves(&self, params: &Params, answer: usize, count: usize) -> [&[u32]; 2] {
        let (n, limbs) = (params.degree(), params.data_primes());
        [
            &self.first[answer * limbs * self.most..][..limbs * count],
            &self.second[answer * limbs * n..][..limbs * n],
        ]
    }

    /// Step 3 and 4 of an answer whose limbs are all there, into its bytes. `mask` has a residue
    /// for each coefficient that is sent.
    pub(super) fn write(
        &mut self,
        params: &Params,
        margins: &Margins,
        answer: usize,
        mask: &[u64],
        rng: &mut impl CryptoRng,
        out: &mut [u8],
    ) {
        let (n, limbs, count) = (params.degree(), params.data_primes(), mask.len());
        let (simd, basis) = (params.simd(), params.basis());
        let first = &mut self.first[answer * limbs * self.most..][..limbs * count];
        let second = &self.second[answer * limbs * n..][..limbs * n];
        params.add_plaintext(limbs, mask, first);
        let primes = &basis.primes()[..limbs];
        sample::add_flood(simd, margins.flood, primes, rng, count, first);
        let (bytes, more) = out.split_at_mut(margins.first_len(count));
        for (half, len, bits, bytes) in [
            (&*first, count, margins.c0_bits, bytes),
            (second, n, margins.c1_bits, more),
        ] {
            let fractions = sized(&mut self.fractions, len);
            basis.fractions(half, fractions);
            let rounded = fractions
                .iter()
                .map(|&x| x.wrapping_add(1 << (63 - bits)) >> (64 - bits));
            pack::pack_into(rounded, bits, bytes);
        }
    }
}

impl Drop for Finish {
    fn drop(&mut self) {
        self.e1.zeroize();
        self.small_u.zeroize();
        self.fractions.zeroize();
        self.more.iter_mut().for_each(Zeroize::zeroize);
        for buffer in [
            &mut self.first,
            &mut self.second,
            &mut self.u,
            &mut self.quotients,
            &mut self.limb,
            &mut self.part,
        ] {
            buffer.zeroize();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SecretKey;
    use primer_ring::prg::Prg;

    /// Five answers share two `u` with four keys, and one each where there is one key: all of them
    /// are fresh encryptions of zero, whichever prime comes first.
    #[test]
    fn every_answer_is_an_encryption_of_zero_of_its_own() {
        for (primes, shared) in [(4, 2), (5, 5)] {
            let params = Params::without_rotations(8192, primes).unwrap();
            let n = params.degree();
            let mut rng = Prg::new(&[8; 16]);
            let secret = SecretKey::generate(&params, &mut rng);
            let public = PublicKey::generate(&secret, &mut rng);
            let all: Vec<usize> = (0..n).collect();
            let nothing = vec![0; n];
            let mut finish = Finish::default();
            finish.start(&params, 5, n, &mut rng);
            assert_eq!(finish.small_u.len(), shared * n);
            for limb in [1, 0] {
                for answer in 0..5 {
                    let sent = Sent::Coefficients(&all);
                    let halves = [&nothing[..]; 2];
                    finish.limb(&public, answer, limb, sent, halves, None);
                }
            }
            let mut seen = Vec::new();
            for answer in 0..5 {
                let phases = [0, 1].map(|limb| {
                    let (prime, ntt) = (params.prime(limb), params.ntt(limb));
                    let at = (answer * primes + limb) * n;
                    let mut phase = finish.second[at..][..n].to_vec();
                    seen.push(phase.clone());
                    ntt.forward(&mut phase);
                    let secret = secret.values().limb(limb);
                    elementwise::mul_assign(params.simd(), prime, &mut phase, secret);
                    ntt.inverse(&mut phase);
                    elementwise::add_assign(
                        params.simd(),
                        prime,
                        &mut phase,
                        &finish.first[at..][..n],
                    );
                    phase.into_iter().map(move |x| {
                        let q = i64::from(prime.value());
                        let x = i64::from(x);
                        if x > q / 2 { x - q } else { x }
                    })
                });
                let [first, second] = phases.map(Iterator::collect::<Vec<_>>);
                // e·u + e1·s: a deviation of √(14·8192), ten of them at most.
                assert!(first == second && first.iter().all(|x| x.abs() < 3400));
                assert!(first.iter().any(|x| x.abs() > 340));
            }
            for (i, c1) in seen.iter().enumerate() {
                assert!(seen[..i].iter().all(|other| {
                    let same = other.iter().zip(c1).filter(|(x, y)| x == y).count();
                    same < 8
                }));
            }
        }
    }
}

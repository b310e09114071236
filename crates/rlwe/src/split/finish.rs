//! The server's side of an answer: a fresh encryption of zero, then the halves part.
//!
//! For every ciphertext, with nothing optional:
//!
//! 1. add `(b·u, a·u + e1)` with fresh `u` and `e1` to the halves: `c1` becomes pseudorandom. The
//!    error that an encryption of zero has in its other half would stay with the server, so none is
//!    drawn;
//! 2. take the coefficients of `c0` that count, and round each to a residue modulo p: the server's
//!    share;
//! 3. round all coefficients of `c1` to some whole bytes: what is sent.
//!
//! # What the client sees
//!
//! *Claim.* No matter what a client sends as public key and queries, all that it gets of any number
//! of answers is computationally indistinguishable from uniform numbers, if ring LWE holds.
//!
//! *Proof.* It gets `c1' = round((a·u + e1 + Σ w·a_i)·2^b/q)` and nothing else. `Σ w·a_i` is made
//! of weights and of uniform halves that come from seeds; what was encrypted, and `b`, meet `c0`
//! alone (a test compares bytes: with the same coins they are the same for all that the client
//! might encrypt). Each answer has a `u` and an `e1` of its own, so `a·u + e1` is a fresh sample
//! and replaced by a uniform one, answer by answer; a uniform number plus something is uniform, and
//! rounding is a function of it.
//!
//! `a` has to be as good as uniform. A client sends its seed, of 128 bits, and not `a`: in the
//! ideal-cipher model it chooses among `2^128` uniform polynomials. Where one vanishes at a point
//! of the transform, `u` does not reach `c1`, so a key whose `a` vanishes at any of the 40,960
//! points is refused (`VanishingKey`, one seed in 26,000, which an honest client draws again). Then
//! `a` has an inverse, and ring LWE with a uniform invertible factor is as hard as with any (the
//! two differ in the 26,000th part of all cases). It is assumed, not proved, that picking the seed
//! gives nothing beyond that, as for every `a` that comes out of a hash. ∎
//!
//! # Order of work
//!
//! Several answers are finished together, one prime after the other: the tables of a prime, keys
//! and roots, are a third of a megabyte, and stay in the cache while its part of step 1 is done for
//! all of them. Rounding needs all primes, and goes answer by answer.

use super::nearest;
use super::workspace::sized;
use crate::keys::PublicKey;
use crate::params::Params;
use primer_lattice::kernel::elementwise;
use primer_lattice::ntt::Masked;
use primer_lattice::sample;
use rand_core::CryptoRng;
use zeroize::Zeroize;

/// The memory of answers that are being finished. What is in it depends on weights and is wiped.
#[derive(Default)]
pub(super) struct Finish {
    /// `[answer][N]`.
    e1: Vec<i8>,
    small_u: Vec<i8>,
    /// `[answer][limb][coefficients that count]`, with room for `most` of them.
    first: Vec<u32>,
    most: usize,
    /// `[answer][limb][N]`.
    second: Vec<u32>,
    /// One limb each: `u` by values, its quotients, and `c0`.
    u: Vec<u32>,
    quotients: Vec<u32>,
    limb: Vec<u32>,
    fractions: Vec<u128>,
}

impl Finish {
    /// Draws what some answers need, each of which has at most `most` coefficients that count.
    pub(super) fn start(
        &mut self,
        params: &Params,
        answers: usize,
        most: usize,
        rng: &mut impl CryptoRng,
    ) {
        let (n, limbs, simd) = (params.degree(), params.data_primes(), params.simd());
        self.most = most;
        sized(&mut self.first, answers * limbs * most);
        sized(&mut self.second, answers * limbs * n);
        let u = sized(&mut self.small_u, answers * n).chunks_exact_mut(n);
        u.for_each(|u| sample::fill_ternary(simd, rng, u));
        let e1 = sized(&mut self.e1, answers * n).chunks_exact_mut(n);
        e1.for_each(|e1| sample::fill_error(simd, rng, e1));
    }

    /// Adds the encryption of zero to an answer modulo one prime, given both halves of the product
    /// by values, and keeps `c1` and the coefficients of `c0` that count.
    pub(super) fn limb(
        &mut self,
        public: &PublicKey,
        answer: usize,
        limb: usize,
        counted: &[usize],
        halves: [&[u32]; 2],
    ) {
        let params = &*public.params;
        let (n, limbs, simd) = (params.degree(), params.data_primes(), params.simd());
        let (prime, ntt) = (params.prime(limb), params.ntt(limb));
        let (u, quotients) = (sized(&mut self.u, n), sized(&mut self.quotients, n));
        elementwise::from_small(simd, prime, u, &self.small_u[answer * n..][..n]);
        ntt.forward(u);
        elementwise::quotients(simd, prime, quotients, u);
        let masked = Masked {
            halves,
            keys: public.limb(limb),
            u: [u, quotients],
            error: &self.e1[answer * n..][..n],
        };
        let c0 = sized(&mut self.limb, n);
        let c1 = &mut self.second[(answer * limbs + limb) * n..][..n];
        ntt.inverse_masked(&masked, c0, c1);
        let first = &mut self.first[answer * limbs * self.most + limb * counted.len()..];
        for (to, &from) in first.iter_mut().zip(counted) {
            *to = c0[from];
        }
    }

    /// Splits an answer whose limbs are all there: `c1` goes into its bytes, `width` of them a
    /// coefficient, and the coefficients of `c0` that count become the server's share.
    pub(super) fn split(
        &mut self,
        params: &Params,
        answer: usize,
        width: usize,
        share: &mut [u64],
        out: &mut [u8],
    ) {
        let (n, limbs) = (params.degree(), params.data_primes());
        let c0 = &self.first[answer * limbs * self.most..][..limbs * share.len()];
        let c1 = &self.second[answer * limbs * n..][..limbs * n];
        let fractions = sized(&mut self.fractions, n);
        round(params, width, [c0, c1], fractions, share, out);
    }
}

/// Rounds both halves of an answer, given by limbs: `c1` to numbers of `width` bytes, into its
/// bytes, and some coefficients of `c0` to residues. `fractions` is a buffer of a polynomial.
pub(super) fn round(
    params: &Params,
    width: usize,
    [c0, c1]: [&[u32]; 2],
    fractions: &mut [u128],
    share: &mut [u64],
    out: &mut [u8],
) {
    let basis = params.basis();
    basis.fractions(c1, fractions);
    let shift = 128 - 8 * width;
    for (out, &x) in out.chunks_exact_mut(width).zip(&*fractions) {
        let rounded = x.wrapping_add(1 << (shift - 1)) >> shift;
        out.copy_from_slice(&rounded.to_le_bytes()[..width]);
    }
    let fractions = &mut fractions[..share.len()];
    basis.fractions(c0, fractions);
    for (to, &x) in share.iter_mut().zip(&*fractions) {
        *to = nearest(x);
    }
}

impl Drop for Finish {
    fn drop(&mut self) {
        self.e1.zeroize();
        self.small_u.zeroize();
        self.fractions.zeroize();
        for buffer in [
            &mut self.first,
            &mut self.second,
            &mut self.u,
            &mut self.quotients,
            &mut self.limb,
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

    /// Answers that are finished together have fresh encryptions of zero of their own, whichever
    /// prime comes first.
    #[test]
    fn every_answer_is_an_encryption_of_zero_of_its_own() {
        let params = Params::split();
        let (n, limbs) = (params.degree(), params.data_primes());
        let mut rng = Prg::new(&[8; 16]);
        let secret = SecretKey::generate(&params, &mut rng);
        let public = PublicKey::generate(&secret, &mut rng);
        let all: Vec<usize> = (0..n).collect();
        let nothing = vec![0; n];
        let mut finish = Finish::default();
        finish.start(&params, 3, n, &mut rng);
        for limb in [1, 0] {
            for answer in 0..3 {
                finish.limb(&public, answer, limb, &all, [&nothing[..]; 2]);
            }
        }
        let mut seen = Vec::new();
        for answer in 0..3 {
            let phases = [0, 1].map(|limb| {
                let (prime, ntt, simd) = (params.prime(limb), params.ntt(limb), params.simd());
                let at = (answer * limbs + limb) * n;
                let mut phase = finish.second[at..][..n].to_vec();
                seen.push(phase.clone());
                ntt.forward(&mut phase);
                elementwise::mul_assign(simd, prime, &mut phase, secret.values().limb(limb));
                ntt.inverse(&mut phase);
                elementwise::add_assign(simd, prime, &mut phase, &finish.first[at..][..n]);
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

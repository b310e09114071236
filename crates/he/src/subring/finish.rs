//! Finishing answers: nothing of the weights is left in them but the result.
//!
//! For every ciphertext, with nothing optional:
//!
//! 1. add `(b·u, a·u + e1)` with fresh `u` and `e1` to the halves: `c1` becomes pseudorandom. The
//!    error that an encryption of zero has in its other half would be lost in step 3, so none is
//!    drawn;
//! 2. take the coefficients of `c0` that carry results; the others are never sent;
//! 3. add the mask and flooding noise to each of them;
//! 4. round both halves from `q` to a power of two, the fewest bits that still decrypt.
//!
//! Several answers are finished together, one prime after the other: the tables of a prime, keys
//! and roots, are a third of a megabyte, and stay in the cache while its part of step 1 and 2 is
//! done for all of them. The last two steps then go answer by answer.

use super::noise::Margins;
use super::workspace::sized;
use crate::keys::PublicKey;
use crate::params::Params;
use primer_lattice::kernel::elementwise;
use primer_lattice::sample;
use primer_ring::pack;
use rand_core::CryptoRng;
use zeroize::Zeroize;

/// The memory of answers that are being finished. What is in it depends on weights and is wiped.
#[derive(Default)]
pub(super) struct Finish {
    /// `[answer][u, e1][N]`.
    drawn: Vec<i8>,
    /// `[answer][limb][coefficients that are sent]`, with room for `most` of them.
    first: Vec<u32>,
    most: usize,
    /// `[answer][limb][N]`.
    second: Vec<u32>,
    /// One limb each: `u` and `c0` by values.
    u: Vec<u32>,
    limb: Vec<u32>,
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
        for drawn in sized(&mut self.drawn, 2 * answers * n).chunks_exact_mut(2 * n) {
            let (u, e1) = drawn.split_at_mut(n);
            sample::fill_ternary(params.simd(), rng, u);
            sample::fill_error(params.simd(), rng, e1);
        }
    }

    /// Step 1 and 2 of an answer modulo one prime, given both halves of the product by values;
    /// `more` may add to them.
    pub(super) fn limb(
        &mut self,
        public: &PublicKey,
        answer: usize,
        limb: usize,
        sent: &[usize],
        halves: [&[u32]; 2],
        mut more: impl FnMut(usize, &mut [u32]),
    ) {
        let params = &*public.params;
        let (n, limbs, simd) = (params.degree(), params.data_primes(), params.simd());
        let (prime, ntt) = (params.prime(limb), params.ntt(limb));
        let (u, e1) = self.drawn[2 * answer * n..][..2 * n].split_at(n);
        let values_u = sized(&mut self.u, n);
        elementwise::from_small(simd, prime, values_u, u);
        ntt.forward(values_u);
        let c0 = sized(&mut self.limb, n);
        public.product_onto(limb, 0, values_u, halves[0], c0);
        more(0, c0);
        ntt.inverse(c0);
        let first = &mut self.first[answer * limbs * self.most + limb * sent.len()..];
        for (to, &from) in first.iter_mut().zip(sent) {
            *to = c0[from];
        }
        let c1 = &mut self.second[(answer * limbs + limb) * n..][..n];
        public.product_onto(limb, 1, values_u, halves[1], c1);
        more(1, c1);
        ntt.inverse(c1);
        elementwise::add_small(simd, prime, c1, e1);
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
        self.drawn.zeroize();
        self.fractions.zeroize();
        for buffer in [
            &mut self.first,
            &mut self.second,
            &mut self.u,
            &mut self.limb,
        ] {
            buffer.zeroize();
        }
    }
}

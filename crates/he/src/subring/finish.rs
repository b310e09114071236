//! Finishing an answer: nothing of the weights is left in it but the result.
//!
//! For every ciphertext, with nothing optional:
//!
//! 1. add `(b·u, a·u + e1)` with fresh `u` and `e1` to the halves: `c1` becomes pseudorandom. The
//!    error that an encryption of zero has in its other half would be lost in step 3, so none is
//!    drawn;
//! 2. take the coefficients of `c0` that carry results; the others are never sent;
//! 3. add the mask and flooding noise to each of them;
//! 4. round both halves from `q` to a power of two, the fewest bits that still decrypt.

use super::noise::Margins;
use super::workspace::{Scratch, sized};
use crate::keys::PublicKey;
use primer_lattice::kernel::elementwise;
use primer_lattice::sample;
use primer_ring::pack;
use rand_core::CryptoRng;

/// Appends a finished ciphertext to a message. `values` writes a half of the product modulo a
/// prime, by values; `mask` has a residue for each coefficient that is sent.
pub(super) fn finish(
    public: &PublicKey,
    margins: &Margins,
    scratch: &mut Scratch,
    sent: &[usize],
    mask: &[u64],
    mut values: impl FnMut(usize, usize, &mut [u32]),
    rng: &mut impl CryptoRng,
    out: &mut Vec<u8>,
) {
    let params = &*public.params;
    let (n, limbs, count) = (params.degree(), params.data_primes(), sent.len());
    assert_eq!(mask.len(), count, "a mask for each result");
    let (simd, basis) = (params.simd(), params.basis());
    let u = sample::ternary(rng, n);
    let e1 = sample::error(rng, n);
    let small = sized(&mut scratch.small, n);
    let limb = sized(&mut scratch.limb, n);
    let c0 = sized(&mut scratch.first, limbs * count);
    let c1 = sized(&mut scratch.second, limbs * n);
    for i in 0..limbs {
        let (prime, ntt) = (params.prime(i), params.ntt(i));
        elementwise::from_small(simd, prime, small, &u);
        ntt.forward(small);
        values(i, 0, limb);
        public.add_product(i, 0, small, limb);
        ntt.inverse(limb);
        for (to, &from) in c0[i * count..][..count].iter_mut().zip(sent) {
            *to = limb[from];
        }
        let c1 = &mut c1[i * n..][..n];
        values(i, 1, c1);
        public.add_product(i, 1, small, c1);
        ntt.inverse(c1);
        elementwise::from_small(simd, prime, small, &e1);
        elementwise::add_assign(simd, prime, c1, small);
    }
    params.add_plaintext(limbs, mask, c0);
    sample::add_flood(margins.flood, &basis.primes()[..limbs], rng, count, c0);
    for (half, len, bits) in [(c0, count, margins.c0_bits), (c1, n, margins.c1_bits)] {
        let fractions = sized(&mut scratch.fractions, len);
        basis.fractions(half, fractions);
        let rounded = fractions
            .iter()
            .map(|&x| x.wrapping_add(1 << (63 - bits)) >> (64 - bits));
        pack::pack(rounded, bits, out);
    }
}

//! The first inverse layers of a ciphertext to which an encryption of zero is added: see
//! [`super::super::Masked`].

use super::super::{Masked, Ntt};
use super::up::{Abreast, block_up};
use super::{BLOCK, Factor, Lanes, lanes, load, mul_lazy, reduce, up};
use std::arch::x86_64::*;

/// Runs all layers: see [`Ntt::inverse_masked`].
pub(in super::super) fn inverse_masked(
    ntt: &Ntt,
    masked: &Masked<'_>,
    first: &mut [u32],
    second: &mut [u32],
) {
    let n = ntt.degree;
    let ([c0, c1], [b, a], [u, quotients]) = (masked.halves, masked.keys, masked.u);
    assert!(
        [c0, c1, b, a, u, quotients]
            .iter()
            .all(|values| values.len() == n)
    );
    assert!(masked.error.len() == n && first.len() == n && second.len() == n && n >= 2 * BLOCK);
    // SAFETY: `Level::Avx2` is only made where the instructions exist.
    unsafe {
        blocks(ntt, masked, first, second);
        up::rest::<true>(ntt, second, masked.error);
        up::rest::<false>(ntt, first, &[]);
    }
}

/// Computes the sums and their first five layers.
#[target_feature(enable = "avx2")]
fn blocks(ntt: &Ntt, masked: &Masked<'_>, first: &mut [u32], second: &mut [u32]) {
    let l = lanes(ntt.prime.value());
    let ([c0, c1], [b, a], [u, quotients]) = (masked.halves, masked.keys, masked.u);
    let outs = first
        .chunks_exact_mut(BLOCK)
        .zip(second.chunks_exact_mut(BLOCK));
    for (g, (first, second)) in outs.enumerate() {
        let block = g * BLOCK..(g + 1) * BLOCK;
        let halves = [&c0[block.clone()], &c1[block.clone()]];
        let keys = [&b[block.clone()], &a[block.clone()]];
        let factors = [&u[block.clone()], &quotients[block]];
        // SAFETY: all of them are blocks.
        let x = unsafe {
            [
                sums(l, halves, keys, factors, 0),
                sums(l, halves, keys, factors, 8),
                sums(l, halves, keys, factors, 16),
                sums(l, halves, keys, factors, 24),
            ]
        };
        block_up(l, ntt, g, x, [first, second]);
    }
}

/// Computes eight of the sums of both halves, below `2q`.
///
/// # Safety
/// Eight numbers must follow in all slices.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn sums(
    l: Lanes,
    halves: [&[u32]; 2],
    keys: [&[u32]; 2],
    [u, quotients]: [&[u32]; 2],
    at: usize,
) -> Abreast<2> {
    // SAFETY: the caller's promise.
    unsafe {
        let factor = Factor {
            value: load(u.as_ptr().add(at)),
            quotient: load(quotients.as_ptr().add(at)),
        };
        let odd = _mm256_srli_epi64::<32>(factor.quotient);
        let first = mul_lazy(l, load(keys[0].as_ptr().add(at)), factor, odd);
        let second = mul_lazy(l, load(keys[1].as_ptr().add(at)), factor, odd);
        // A residue and less than two primes.
        let first = _mm256_add_epi32(load(halves[0].as_ptr().add(at)), first);
        let second = _mm256_add_epi32(load(halves[1].as_ptr().add(at)), second);
        [reduce(first, l.q2), reduce(second, l.q2)]
    }
}

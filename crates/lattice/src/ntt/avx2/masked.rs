//! The first inverse layers of a ciphertext to which an encryption of zero is added: see
//! [`super::super::Masked`].

use super::super::{Masked, Ntt, Part};
use super::up::block_up;
use super::{BLOCK, Factor, LEAST_RUN, lanes, load, mul_lazy, part, reduce, up};
use std::arch::x86_64::*;

/// All layers: see [`Ntt::inverse_masked`].
pub(in super::super) fn inverse_masked(
    ntt: &Ntt,
    masked: &Masked<'_>,
    wanted: Option<(&Part, &mut [u32])>,
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
        match wanted {
            Some((wanted, out)) if wanted.run >= LEAST_RUN => part::rest(ntt, wanted, first, out),
            other => {
                up::rest::<false>(ntt, first, &[]);
                if let Some((wanted, out)) = other {
                    wanted.pick(first, out);
                }
            }
        }
    }
}

/// Sums, and their first five layers.
#[target_feature(enable = "avx2")]
fn blocks(ntt: &Ntt, masked: &Masked<'_>, first: &mut [u32], second: &mut [u32]) {
    let l = lanes(ntt.prime.value());
    let [u, quotients] = masked.u;
    let outs = first
        .chunks_exact_mut(BLOCK)
        .zip(second.chunks_exact_mut(BLOCK));
    for (g, (first, second)) in outs.enumerate() {
        let at = g * BLOCK;
        for (half, out) in [first, second].into_iter().enumerate() {
            let (from, key) = (&masked.halves[half][at..], &masked.keys[half][at..]);
            let slices = [from, key, &u[at..], &quotients[at..]];
            assert!(slices.iter().all(|slice| slice.len() >= BLOCK));
            let sum = |i: usize| {
                // SAFETY: `i + 8` is at most a block, which all slices have.
                let [from, key, value, quotient] =
                    slices.map(|s| unsafe { load(s.as_ptr().add(i)) });
                let odd = _mm256_srli_epi64::<32>(quotient);
                let product = mul_lazy(l, key, Factor { value, quotient }, odd);
                // A residue and less than two primes.
                reduce(_mm256_add_epi32(from, product), l.q2)
            };
            block_up(l, ntt, g, [sum(0), sum(8), sum(16), sum(24)], out);
        }
    }
}

//! Some coefficients of an inverse transform: see [`super::super::Part`].

use super::super::{Ntt, Part, Roots};
use super::up::{blocks_up, layer_up, two_layers_up};
use super::{BLOCK, Lanes, broadcast, lanes, load, mul_lazy, reduce, store};
use std::arch::x86_64::*;

/// The coefficients of a part, into the first numbers of `out`.
pub(in super::super) fn inverse_part(ntt: &Ntt, part: &Part, a: &mut [u32], out: &mut [u32]) {
    assert!(a.len() == ntt.degree && part.degree == ntt.degree && part.run >= BLOCK);
    assert!(out.len() == part.room() && ntt.degree >= 2 * BLOCK);
    // SAFETY: `Level::Avx2` is only made where the instructions exist.
    unsafe {
        blocks_up(lanes(ntt.prime.value()), ntt, a);
        rest(ntt, part, a, out);
    }
}

/// The layers after those of blocks.
#[target_feature(enable = "avx2")]
pub(super) fn rest(ntt: &Ntt, part: &Part, a: &mut [u32], out: &mut [u32]) {
    let (l, roots) = (lanes(ntt.prime.value()), &ntt.inverse_roots);
    climb(l, roots, a, 1, BLOCK, part.run);
    gather(l, part, a, out);
    let block = part.kept * part.run;
    let blocks = out.len() / block;
    for (g, out) in out.chunks_exact_mut(block).enumerate() {
        climb(l, roots, out, blocks + g, part.run, block);
    }
    sum(l, ntt, out, block);
}

/// The inverse layers from one stride up to another on the values below one node of the tree of
/// factors.
#[target_feature(enable = "avx2")]
fn climb(l: Lanes, roots: &Roots, a: &mut [u32], node: usize, mut stride: usize, until: usize) {
    let len = a.len();
    let first = |stride: usize| node * (len / (2 * stride));
    while 4 * stride <= until {
        two_layers_up(l, roots, first(2 * stride), a, stride);
        stride *= 4;
    }
    if stride < until {
        layer_up(l, roots, first(stride), a, stride);
    }
}

/// Adds up the runs that belong together.
#[target_feature(enable = "avx2")]
fn gather(l: Lanes, part: &Part, a: &[u32], out: &mut [u32]) {
    let outs = out.chunks_exact_mut(part.run);
    for (out, order) in outs.zip(part.order.chunks_exact(part.skip)) {
        for (i, out) in out.chunks_exact_mut(8).enumerate() {
            let mut sum = _mm256_setzero_si256();
            for &run in order {
                let from = &a[run as usize * part.run + 8 * i..][..8];
                // SAFETY: these are eight numbers.
                let x = unsafe { load(from.as_ptr()) };
                sum = reduce(_mm256_add_epi32(sum, x), l.q2);
            }
            // SAFETY: a chunk has eight numbers.
            unsafe { store(out.as_mut_ptr(), sum) };
        }
    }
}

/// The sum of all blocks in the place of the first, divided by the degree and reduced.
#[target_feature(enable = "avx2")]
fn sum(l: Lanes, ntt: &Ntt, out: &mut [u32], block: usize) {
    let scale = broadcast(ntt.scale);
    let (first, others) = out.split_at_mut(block);
    for (i, first) in first.chunks_exact_mut(8).enumerate() {
        // SAFETY: a chunk has eight numbers.
        let mut sum = unsafe { load(first.as_ptr()) };
        for other in others.chunks_exact(block) {
            let other = &other[8 * i..][..8];
            // SAFETY: these are eight numbers.
            let x = unsafe { load(other.as_ptr()) };
            sum = reduce(_mm256_add_epi32(sum, x), l.q2);
        }
        let scaled = reduce(mul_lazy(l, sum, scale, scale.quotient), l.q);
        // SAFETY: a chunk has eight numbers.
        unsafe { store(first.as_mut_ptr(), scaled) };
    }
}

//! The transform in plain Rust: the meaning of the vector form, and its fallback.

use super::Ntt;
use crate::prime::reduce_once;

pub(super) fn forward(ntt: &Ntt, a: &mut [u32]) {
    let q = ntt.prime.value();
    let (mut stride, mut groups) = (ntt.degree / 2, 1);
    while stride > 0 {
        for (g, chunk) in a.chunks_exact_mut(2 * stride).enumerate() {
            let w = ntt.roots.get(groups + g);
            let (xs, ys) = chunk.split_at_mut(stride);
            for (x, y) in xs.iter_mut().zip(ys) {
                let u = reduce_once(*x, 2 * q);
                let v = ntt.prime.mul_shoup_lazy(*y, w);
                *x = u + v;
                *y = u + 2 * q - v;
            }
        }
        stride /= 2;
        groups *= 2;
    }
    for x in a {
        *x = reduce_once(reduce_once(*x, 2 * q), q);
    }
}

pub(super) fn inverse(ntt: &Ntt, a: &mut [u32]) {
    let q = ntt.prime.value();
    let (mut stride, mut groups) = (1, ntt.degree / 2);
    while groups > 1 {
        for (g, chunk) in a.chunks_exact_mut(2 * stride).enumerate() {
            let w = ntt.inverse_roots.get(groups + g);
            let (xs, ys) = chunk.split_at_mut(stride);
            for (x, y) in xs.iter_mut().zip(ys) {
                let (u, v) = (*x, *y);
                *x = reduce_once(u + v, 2 * q);
                *y = ntt.prime.mul_shoup_lazy(u + 2 * q - v, w);
            }
        }
        stride *= 2;
        groups /= 2;
    }
    let (xs, ys) = a.split_at_mut(stride);
    for (x, y) in xs.iter_mut().zip(ys) {
        let (u, v) = (*x, *y);
        *x = ntt.prime.mul_shoup(u + v, ntt.scale);
        *y = ntt.prime.mul_shoup(u + 2 * q - v, ntt.scale_last);
    }
}

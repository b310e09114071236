//! Speed of the products in the clear on this machine, and how speed is measured.

use crate::matrix::{Matrix, Packed, Scratch, product_mod};
use crate::modulus;
use crate::prg::Prg;
use rand_core::Rng;
use std::time::Instant;

/// Returns the best time of some repetitions, in seconds of the wall clock.
pub fn best(repetitions: usize, f: impl FnMut()) -> f64 {
    best_by(&wall(Instant::now()), repetitions, f)
}

/// Returns the wall clock, in seconds since `origin`.
pub fn wall(origin: Instant) -> impl Fn() -> f64 {
    move || origin.elapsed().as_secs_f64()
}

/// Returns the best time of some repetitions by a given clock.
pub fn best_by(clock: &impl Fn() -> f64, repetitions: usize, mut f: impl FnMut()) -> f64 {
    (0..repetitions)
        .map(|_| {
            let start = clock();
            f();
            clock() - start
        })
        .fold(f64::INFINITY, f64::min)
}

/// Measures how many billions of multiply-adds of residues by packed weights one thread does per
/// second: `(rows, inputs, outputs)`, best of some repetitions.
pub fn clear_gmac_per_s(
    (rows, inputs, outputs): (usize, usize, usize),
    repetitions: usize,
    rng: &mut Prg,
) -> f64 {
    let x = Matrix::from_fn(rows, inputs, |_, _| modulus::random(rng));
    let w = Matrix::from_fn(inputs, outputs, |_, _| (rng.next_u32() as i16) >> 1);
    let (w, mut scratch) = (Packed::new(&w), Scratch::default());
    let seconds = best(repetitions, || {
        std::hint::black_box(product_mod(&x, &w, &mut scratch));
    });
    (rows * inputs * outputs) as f64 / seconds / 1e9
}

//! The sums of [`super`], compiled for 256-bit vectors.
#![allow(unsafe_code)] // Instructions that are there: nothing else needs care.

pub(super) fn add(rows: &[&[i16]], sums: &mut [i32]) {
    // SAFETY: `Kernel::Avx2` is only made where the instructions exist.
    unsafe { run(rows, sums) }
}

#[target_feature(enable = "avx2")]
fn run(rows: &[&[i16]], sums: &mut [i32]) {
    super::add(rows, sums);
}

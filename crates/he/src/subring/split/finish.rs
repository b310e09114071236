//! The server's side: a finished answer becomes the bytes of `c1` and a share.

use super::nearest;
use crate::params::Params;
use crate::subring::workspace::sized;
use zeroize::Zeroize;

/// The memory of answers that are being split. What is in it depends on weights and is wiped.
#[derive(Default)]
pub(in crate::subring) struct Splitter {
    fractions: Vec<u128>,
}

impl Splitter {
    /// Rounds both halves of an answer: `c1` to numbers of `width` bytes, into its bytes, and the
    /// coefficients of `c0` that count to residues. Both are given by limbs.
    pub(in crate::subring) fn split(
        &mut self,
        params: &Params,
        width: usize,
        [c0, c1]: [&[u32]; 2],
        share: &mut [u64],
        out: &mut [u8],
    ) {
        let basis = params.basis();
        let fractions = sized(&mut self.fractions, params.degree());
        basis.wide_fractions(c1, fractions);
        let shift = 128 - 8 * width;
        for (out, &x) in out.chunks_exact_mut(width).zip(&*fractions) {
            let rounded = x.wrapping_add(1 << (shift - 1)) >> shift;
            out.copy_from_slice(&rounded.to_le_bytes()[..width]);
        }
        let fractions = &mut fractions[..share.len()];
        basis.wide_fractions(c0, fractions);
        for (to, &x) in share.iter_mut().zip(&*fractions) {
            *to = nearest(x);
        }
    }
}

impl Drop for Splitter {
    fn drop(&mut self) {
        self.fractions.zeroize();
    }
}

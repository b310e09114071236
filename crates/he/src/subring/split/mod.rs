//! Split answers: each party keeps a half of the ciphertext, and both round it to a share.
//!
//! # The idea
//! An answer `(c0, c1)` decrypts by `c0 + c1·s = q/p·m + ν`, with `s` the client's and `ν` small.
//! That is a sum of two numbers, and they need not be added up. The server never sends `c0`; it
//! sends `c1`, and
//!
//! ```text
//! server   ⌊c0·p/q⌉  modulo p        client   ⌊c1·s·p/q⌉  modulo p
//! ```
//!
//! are shares of `m`: they add up to `m + ⌊x⌉ + ⌊-x + η⌉` with `x` the server's number and
//! `η = ν·p/q`, which is `m` unless `x` lies within `|η|` of the middle between two integers.
//! Decoding (slots, sums of lanes) is linear modulo p, so each party decodes its own share.
//!
//! # What the client learns
//! `c1`, and nothing else. [`super::finish`] adds `(b·u, a·u + e1)` with fresh `u` and `e1` before
//! the halves part, so `c1` is a fresh sample of ring LWE plus something: pseudorandom, *whatever
//! the client encrypted*. `a` comes out of a seed that the client sends, and has to have an
//! inverse; `b` may be anything, as it meets `c0` alone. Nothing is hidden statistically: there is
//! no flood, no mask of slots that hold no result (they are in `c0`, and in the client's own
//! product with its secret), and no number of answers after which a client knows more.
//!
//! # How often the shares are wrong
//! Only with the probability that [`odds`] bounds: each answer's `c1` is rounded to as many bytes
//! as make that small. Neither party notices a wrong share, and neither notices a wrong key or a
//! changed bit: every `c1` is as good as any other. That messages arrive as they were sent is for
//! the channel to see to.

mod finish;
mod odds;
mod open;

pub(super) use finish::Splitter;
pub use odds::ODDS;
pub(crate) use odds::{Split, check};
pub(crate) use open::SplitOpener;

use primer_ring::modulus::P;

/// The residue modulo p nearest to `fraction/2^128·p`.
#[inline(always)]
fn nearest(fraction: u128) -> u64 {
    let (high, low) = ((fraction >> 64) as u64, fraction as u64);
    let p = u128::from(P);
    // The low word of the product moves nothing but a number that it cannot carry over a half.
    let product = p * u128::from(high) + ((p * u128::from(low)) >> 64);
    let near = ((product + (1 << 63)) >> 64) as u64;
    // p itself stands for zero.
    near.min(near.wrapping_sub(P))
}

#[cfg(test)]
mod tests;

//! Products of two secrets, without rotations, whose answers each party has a half of.
//!
//! # The relation
//! The client holds a matrix `X`, the server a matrix `M`, both secret: masks of one inference. In
//! the end each party has a share of their product, modulo p. The client sends `Enc(X)`, once; the
//! server multiplies and sends back one half of the result. Nothing is rotated, so there are no
//! keys but the public one.
//!
//! # The packing
//! In `Z[X]/(X^N + 1)` let `T` be a power of two, `F = N/T` and `Y = X^T`. A polynomial is `T`
//! polynomials in `Y` side by side, one for each power `X^t` with `t < T`, and a polynomial that
//! has powers of `Y` only multiplies each of them alone. Row `t` of the client's matrix (a token,
//! of one bundle or another) has a lane of the ciphertext ([`lanes`]), in one of two ways:
//!
//! * [`heads`], slots of the subring: row `t` lives at `X^t`. Modulo p, polynomials in `Y` are `F`
//!   numbers that multiply one by one, the same `F` of the server's for all rows. Head, replica and
//!   lane of a sum make a slot; sums over ciphertexts are taken by the server, sums over lanes by
//!   each party. By values, a factor of the server's has `F` numbers, each of which meets `T`
//!   consecutive values of a ciphertext: for each of the `F` points the sum over ciphertexts is a
//!   plain matrix product modulo a small prime ([`primer_lattice::kernel::points`]).
//! * [`slots`], slots of the whole ring: the server's factor differs from row to row. Row sums,
//!   scaled rows and products of elements.
//!
//! The server's numbers fill all 41 bits of p, so nothing is lost by encoding them in slots.
//!
//! # Split answers
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
//! `c1`, and nothing else. [`finish`] adds `(b·u, a·u + e1)` with fresh `u` and `e1` before the
//! halves part, so `c1` is a fresh sample of ring LWE plus something: pseudorandom, *for every
//! ciphertext of the client*. `a` comes out of a seed that the client sends, and has to have an
//! inverse; `b` may be anything, as it meets `c0` alone. Nothing is hidden statistically: there is
//! no flood, no mask of slots that hold no result (they are in `c0`, and in the client's own
//! product with its secret), and no number of answers after which a client knows more.
//!
//! # How often the shares are wrong
//! Only with the probability that [`odds`] bounds: each answer's `c1` is rounded to as many bytes
//! as make that small. Neither party notices a wrong share, and neither notices a wrong key or a
//! changed bit: every `c1` is as good as any other. That messages arrive as they were sent is for
//! the channel to see to.
//!
//! # A walk through the house
//! [`lanes`]: where rows lie. [`query`]: what the client sends. [`heads`] and [`slots`]: the two
//! packings, both parties' sides of each; [`cost`] chooses among ways of packing heads.
//! [`finish`]: the server parts an answer; [`open`] and [`answers`]: the client reads its half.
//! [`transform`] and [`workspace`] are what the server computes with. Proofs are in
//! [`finish`] and [`odds`], figures in `docs/rlwe.md`.

mod answers;
mod cost;
mod finish;
pub(crate) mod heads;
pub(crate) mod lanes;
mod odds;
mod open;
mod query;
pub(crate) mod slots;
#[cfg(test)]
mod tests;
mod transform;
mod workspace;

pub use odds::ODDS;
pub(crate) use odds::{Split, check};
pub(crate) use workspace::Workspace;

use primer_ring::modulus::P;

/// Returns the residue modulo p nearest to `fraction/2^128·p`.
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

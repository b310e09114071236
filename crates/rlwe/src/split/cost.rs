//! What the ciphertexts of a product cost, in bytes and seconds, as a formula.
//!
//! With `a` ciphertexts in the query and `b` in the answer, of `w` bytes a coefficient,
//!
//! ```text
//! up       a·(16 + 30·L·N/8)
//! down     b·N·w
//! seconds  L·(a·QUERY + b·ANSWER)
//! ```
//!
//! Products of ciphertexts come on top, as many however heads are packed. So a packing is chosen by
//! these alone, a second counting as much as the bytes that a link moves in it. Bytes are exact,
//! the constants of seconds are estimates.

use crate::params::Params;
use crate::wire;

/// Bytes that cost as much as a second: those of a link of 200 megabits.
const LINK: f64 = 25e6;
/// Seconds of both parties for one limb of a query's ciphertext: encryption, expansion, packing.
const QUERY: f64 = 1.2e-4;
/// Seconds of both parties for one limb of an answer's ciphertext: zero, rounding, decryption.
const ANSWER: f64 = 1.0e-4;

/// Returns what is to be as small as possible, in seconds: the price of some ciphertexts of a query
/// and of an answer, each of which has `bytes`.
pub(super) fn price(params: &Params, queries: usize, answers: usize, bytes: usize) -> f64 {
    let limbs = params.data_primes() as f64;
    let up = (queries * wire::ciphertext_len(params)) as f64;
    let down = (answers * bytes) as f64;
    let seconds = limbs * (queries as f64 * QUERY + answers as f64 * ANSWER);
    seconds + (up + down) / LINK
}

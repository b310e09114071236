//! What a product costs, in bytes and seconds, as a formula.
//!
//! With `a` ciphertexts in the query and `b` in the answer, of `s` coefficients each,
//!
//! ```text
//! up       a·(16 + 30·L·N/8)
//! down     b·(N·b1/8 + s·b0/8)
//! seconds  a·QUERY + b·ANSWER + 2·N·L·(products of ciphertexts)·TERM
//! ```
//!
//! The last term is the same however a dense product is cut; `a·b` is fixed by `km ≤ F`. So blocks
//! are chosen by the first two, a second counting as much as the bytes that a link moves in it.
//! `measure` compares the seconds with a clock; the bytes are exact.

use super::noise::Margins;
use super::shape::Blocks;
use crate::params::Params;
use crate::wire;

/// Bytes that cost as much as a second: those of a link of 200 megabits.
const LINK: f64 = 25e6;
/// Seconds of both parties for one limb of a query's ciphertext: encryption, expansion, packing.
const QUERY: f64 = 1.2e-4;
/// Seconds of both parties for one limb of an answer's ciphertext: zero, rounding, decryption.
const ANSWER: f64 = 1.0e-4;
/// Seconds of one multiply-add modulo one prime.
const TERM: f64 = 0.9e-10;

/// Bytes up and down, and seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    pub(crate) up: f64,
    pub(crate) down: f64,
    pub(crate) seconds: f64,
}

/// The cost of ciphertexts alone, which is all that packings of one product differ in.
pub(crate) fn ciphertexts(params: &Params, queries: usize, answers: usize, sent: usize) -> Cost {
    let limbs = params.data_primes() as f64;
    let margins = Margins::of(params);
    let answer = margins.map_or(0, |margins| margins.answer_len(params.degree(), sent));
    Cost {
        up: (queries * wire::ciphertext_len(params)) as f64,
        down: (answers * answer) as f64,
        seconds: limbs * (queries as f64 * QUERY + answers as f64 * ANSWER),
    }
}

/// The cost of a dense product.
pub(crate) fn dense(params: &Params, blocks: &Blocks) -> Cost {
    let (queries, answers) = (blocks.queries(), blocks.answers());
    let runs = blocks.lanes.runs();
    let sent = blocks.lanes.of_run(0).len() * blocks.width;
    let mut cost = ciphertexts(params, runs * queries, runs * answers, sent);
    let terms = 2 * params.degree() * params.data_primes() * runs * queries * answers;
    cost.seconds += terms as f64 * TERM;
    cost
}

/// What is to be as small as possible, in seconds.
pub(crate) fn price(cost: Cost) -> f64 {
    cost.seconds + (cost.up + cost.down) / LINK
}

//! Shares of one-hot vectors at a sum of two secrets, from correlated transfers and small trees.
//!
//! The *receiver* of the transfers (the server, in Primer) draws an offset `u`, the *sender* (the
//! client) holds an index `b`, both below `N = 2^m`. They end with vectors of `N` bits that differ
//! at one place only: `receiver XOR sender = e_{(u + b) mod N}`. Nobody learns the other's number.
//!
//! **By polynomials.** A vector is an element of `R = F_2[X]/(X^N - 1)`, `e_i` is `X^i`, and adding
//! to an index is multiplying by a power of `X`. So what is wanted are shares of `X^u · X^b`, one
//! factor known to each party. It is made digit by digit: `u` is cut into digits `u_0, u_1, …` with
//! weights `s_0 = 1, s_1, …`, and shares of a vector `v` are turned into shares of `X^(s·d) · v`
//! for one digit `d` at a time, beginning with `v = X^b`, all of which is the sender's share.
//!
//! **One digit of D bits.** The sender grows a tree with `2^D` leaves and stretches each leaf to a
//! row in `R`. By `D` transfers, chosen by the bits of `d`, the receiver learns all leaves but leaf
//! `d`. With `v_s`, `v_r` the shares of `v`:
//!
//! ```text
//! sender     C = v_s + Σ row_i                    sends C, N bits        keeps Σ X^(s·i)·row_i
//! receiver   row_d := C + v_r + Σ_{i≠d} row_i                            keeps Σ X^(s·i)·row_i
//! ```
//!
//! The receiver's row `d` is the sender's plus `v_s + v_r = v`, all other rows are equal, so the
//! two results differ by `X^(s·d)·v`. `C` is masked by row `d`, which the receiver cannot compute.
//! The next digit needs nothing from the receiver, so all digits travel in one message.
//!
//! **The tree** is the half-tree of Guo et al. (EUROCRYPT 2023): one hash for two children, and the
//! sum of each level is the offset Δ of the transfers, so that one block for each level corrects a
//! transfer to what the receiver lacks. `H(x) = AES_k(σ(x)) + σ(x)` as in garbling; a node `x` has
//! the children `H(x) + x` (bit 0) and `H(x)` (bit 1). With `q_l` the sender's row of the transfer
//! for level `l`, and `t_l = q_l + d_l·Δ` the receiver's:
//!
//! ```text
//! level 1    nodes q_1 + Δ and q_1: the receiver's t_1 is the node of bit 1 - d_1      no message
//! level l    sender sends c_l = q_l + (sum of the nodes whose last bit is 1)             16 bytes
//!            receiver: c_l + t_l is the sum of the nodes whose last bit is 1 - d_l;
//!            it knows all of them but one, the sibling of the path to leaf d
//! ```
//!
//! The leaves still add up to Δ, so they are hashed once more, under another key, to become rows.
//! `docs/protocol/ot.md` has the bound.
//!
//! **How the digits are cut** ([`Shape`]) trades bytes for work: a digit costs `N/8` bytes and a
//! level 16, and a digit of D bits `2^D·N/128` ciphers. Up to 128 entries single bits are both the
//! shortest and the fastest; above, two digits are nearly as short as one tree of `N` leaves and
//! several times faster. A wider index is one more digit. A shape that *carries* has a vector of
//! `2N` entries for two numbers below `N`: the sum does not wrap.
//!
//! **Threads.** Batches of elements need nothing of each other, so as many as there are threads
//! ([`crate::CotSender::set_threads`]) are grown side by side and handed over in order. The bytes
//! are the same for any number of them.
//!
//! **Constant time.** The receiver numbers nodes by `i XOR d`, so the path that it lacks is always
//! at place 0 and neither an address nor a branch depends on `d`: its bits only mask. The sender's
//! index is placed by masks too.
//!
//! Sources: trees for shares of a unit vector in Boyle, Gilboa, Ishai (EUROCRYPT 2015) and Doerner,
//! shelat (CCS 2017), sums of punctured rows in Chase, Ghosh, Poburinnaya (CRYPTO 2020), shares of
//! a rotated table in ROTL (PoPETs 2026.2). Cutting the offset into digits is the only thing that
//! we have not found there in this form.

mod kernel;
mod keys;
mod lanes;
mod receiver;
mod sender;
mod shape;
#[cfg(test)]
mod tests;

pub(crate) use keys::TreeKeys;
pub use receiver::receive;
pub use sender::send;
pub use shape::{MAX_BITS, MIN_BITS, Shape};

use primer_ring::threads;

/// Elements that share the keys of a hash.
const BATCH: usize = 64;
/// Elements that a thread works on before all hand over what they have: a quarter of a megabyte of
/// corrections for the longest index, and enough work to be worth a thread.
const TURN: usize = 16 * BATCH;

/// Does each job with a worker of its own, the last in this thread, the others in threads of
/// theirs.
fn side_by_side<W: Send, J: Send>(
    workers: &mut [W],
    jobs: impl Iterator<Item = J>,
    run: impl Fn(&mut W, J) + Sync,
) {
    let pairs = workers.iter_mut().zip(jobs).collect();
    threads::each(pairs, |(worker, job)| run(worker, job));
}

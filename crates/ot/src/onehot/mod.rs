//! Shares of one-hot vectors at a sum of two secrets, from correlated transfers in both directions.
//!
//! The *offset party* (the server, in Primer) ends with a random offset `u`, the *index party* (the
//! client) holds an index `b`, both below `N = 2^m`, and they end with vectors of `N` bits that
//! differ at one place only: `e_{(u + b) mod N}` is their sum. Neither learns the other's number.
//!
//! **The place.** Both draw a random part, `s` and `c`, and the place of the bit is `r = s XOR c`.
//! Bit `k` of `s` chooses in a transfer, so the index party has pads `H(q), H(q + Δ)` and the other
//! the one of its bit. Three things are made with these pads, one message of corrections:
//!
//! * *The unit vector of the lower bits of `r`*, `2^l` places. The index party begins with the unit
//!   vector of its own part, and for each bit of `s` both halves along that axis change places if
//!   it is set, which is adding the sum of both halves to each. A product of a bit that one party
//!   knows with half a vector that the other knows is a transfer: `2^(l-1)` bits of correction.
//! * *The unit vector of the upper bits*, in the same way: `2^h` marks, one for each block.
//! * *The place as a number.* `r = Σ 2^k·(s_k + c_k - 2·s_k·c_k)`, and shares of each `s_k·c_k`
//!   modulo `2^(m-1-k)` are a transfer again. The index party subtracts its share from `b` and
//!   sends the difference, masked as its share is; so the offset party has `u = r - b`.
//!
//! **The blocks.** Block `i` is to be the lower vector `v` if `i` is marked, and zero if not. Let
//! `t_i` be the parties' shares of mark `i`, and `Δ`, `Δ'` their offsets. Each chooses with its
//! `t_i` in transfers that the other sends; adding up its rows of both directions and `t_i` times
//! its own offset, each party has a seed `S_i`, and
//!
//! ```text
//! S_i + S'_i  =  (t_i + t'_i)·(Δ + Δ')        equal, or differing by what no party knows
//! ```
//!
//! Pads `H(S_i)` of blocks that are not marked cancel. Both send `Σ_i H(S_i) + v`, with their share
//! of `v`; the sum `C` of the two messages is `v` and both pads of the marked block, so
//! `H(S_i) + t_i·C` are shares of block `i`.
//!
//! The marks have the sum 1. So the seed of block 0 needs no transfer: it is the sum of all others
//! and the party's own offset. This also means that a party gains nothing by choosing with bits
//! other than its shares: the number of blocks whose seeds differ stays odd, never zero, and so
//! what the other sends stays masked by a pad that is not known.
//!
//! **Bytes** ([`Shape`]): of 512 places 64 are in a block. `N/8` bytes for all marks and the whole
//! vector are never sent: 140 bytes with 23 transfers of four, where shares by trees of `N` leaves
//! cut in two had 276.
//!
//! **Messages.** Three for a chunk after the first transfers: corrections, and the blocks of either
//! party. A chunk begins with the message that carries the second half of the one before it, so `n`
//! chunks take `n + 1` round trips.
//!
//! **Threads.** Batches of elements do not depend on each other, and are divided among the threads
//! of [`crate::CotSender::set_threads`]. The bytes are the same for any number of threads.
//!
//! **Constant time.** No branch and no address depends on a part of a place, a share or an index:
//! bits are masks.
//!
//! `docs/protocol/ot.md` has the bounds and the sources.

mod axes;
mod blocks;
mod chunk;
mod hash;
mod index;
mod keys;
mod offset;
mod place;
mod planes;
mod shape;
#[cfg(test)]
mod tests;

pub use index::with_indices;
pub(crate) use keys::VectorKeys;
pub use offset::with_offsets;
pub use shape::{MAX_BITS, MIN_BITS, Shape};

use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Elements that share the keys of a hash.
const BATCH: usize = 64;

/// Draws a party's random parts of some places.
fn parts(shape: &Shape, count: usize, rng: &mut impl CryptoRng) -> Zeroizing<Vec<u16>> {
    let mut parts = Zeroizing::new(vec![0u16; count]);
    rng.fill_bytes(bytemuck::cast_slice_mut(&mut parts));
    let mask = (shape.entries() - 1) as u16;
    parts.iter_mut().for_each(|part| *part &= mask);
    parts
}

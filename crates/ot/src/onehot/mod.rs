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
//! and the party's own offset.
//!
//! # What the parties can learn
//!
//! *The offset party* sees corrections, each masked by the pad of its pair that it lacks, a point
//! `y ⊕ Δ` of the hash; an extension; and `Σ_i H(S'_i) ⊕ v'`. In that sum the pad of the marked
//! block is `H(y ⊕ Δ)` for a `y` that it knows, `Δ` being the other party's offset, and no other
//! message contains it. Of the index it hears `b - r` plus what it can compute itself, and `r` is
//! uniform to it: `c` is drawn for one vector, and enters its messages under pads only.
//!
//! *The index party* sees two extensions, which hide `s` and `t`, and `Σ_i H(S_i) ⊕ v`. So `r` is
//! uniform to it, and so is what the server later opens, an index minus `u`.
//!
//! *An index party that deviates* may choose by other bits than its shares `t'`. Let `e_i` be the
//! sums of what was chosen, so that `S_i` is a value that it knows plus `e_i` times the offset
//! party's offset. If all were zero it could take off all pads, and would only have to guess which
//! of `2^h` blocks is marked. But the seed of block 0 is the sum of the others and that offset, so
//! `e_0 = 1 ⊕ Σ_{i>0} e_i`: the number of pads that it lacks is odd, never zero. Two of them may
//! cancel if their points do, an odd number never does. `choosing_by_other_marks_opens_nothing`
//! runs the attack, and sees it succeed if both offsets are one. Changed corrections make the
//! strings wrong: an error that may depend on which block is marked, so on the index (selective
//! failure). An offset party that deviates can make the other's string wrong, unnoticed.
//!
//! # Costs
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
//! `hash` has the bound, `docs/protocol/ot.md` the sources.

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

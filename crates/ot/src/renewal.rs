//! Fresh transfers from others: new offsets for both directions, without public keys.
//!
//! An offset opens everything that was made with it, so what is kept for long should not share one.
//! Base transfers are slow and large ([`crate::base`]), but two parties that have transfers in
//! *both* directions can make new base transfers of them. The party that is to have the new offset
//! `Δ'` chooses with its bits in 128 transfers in which it receives; hashed, the rows are the seeds
//! of base transfers:
//!
//! ```text
//! P   receives with choices Δ'_i:    t_i = q_i ⊕ Δ'_i·Δ     seed H(t_i)
//! Q   has q_i and Δ:                                        seeds H(q_i), H(q_i ⊕ Δ)
//! Q   grows trees of its seeds for P (`leaves`): P is the sender of new transfers, with Δ'
//! ```
//!
//! Both directions do this at once, each on the other's transfers, in one and a half round trips
//! for any number of new pairs ([`Drawn`], [`Met`]). The old transfers are used for nothing else.
//!
//! **Why it is private.** `Δ'` is a receiver's choices, which the extension hides from `Q`, no
//! matter what `Q` does: the sender of an extension sends nothing. Transfers guarantee that `P`
//! lacks the other seed of each pair, and if `P` is not trusted, the extension is
//! [checked](Variant::checked). The hash is that of all other uses of rows, under the positions of
//! these transfers. `Q` is the receiver of the new transfers and may deviate as it may after base
//! transfers with public keys: its trees are checked in the same way, and the name of the new state
//! covers them.
//!
//! Precomputed transfers: Beaver, *Precomputing Oblivious Transfer*, CRYPTO 1995.

use crate::base::{COUNT, Chosen, Pairs, Session};
use crate::bits::Bits;
use crate::block::State;
use crate::cot::{CotReceiver, CotSender, Delta};
use crate::error::Result;
use crate::leaves;
use crate::variant::Variant;
use primer_net::Channel;
use primer_ring::prg::SEED_BYTES;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// A party that has drawn a new offset.
#[must_use = "the other party waits for its trees to be taken"]
pub struct Drawn {
    delta: Delta,
    seeds: Chosen,
    name: Session,
}

/// A party that has both seeds of each base transfer of a new offset.
#[must_use = "the other party waits for the trees"]
pub struct Met {
    pairs: Pairs,
    name: Session,
}

/// Returns the public name of new transfers: that of the old ones, and where in them they begin.
fn name(state: &State) -> Session {
    let mut hasher = blake3::Hasher::new_derive_key("primer ot renewed transfers v1");
    hasher.update(&state.session);
    hasher.update(&state.spent.to_le_bytes());
    *hasher.finalize().as_bytes()
}

/// Returns the seeds that rows hash to, under the positions of their transfers.
fn seeds(mut rows: Zeroizing<Vec<u128>>, hash: impl FnOnce(&mut [u128])) -> Chosen {
    hash(&mut rows);
    let seeds = rows.iter().map(|row| row.to_le_bytes());
    Zeroizing::new(seeds.collect::<Vec<[u8; SEED_BYTES]>>())
}

impl CotReceiver {
    /// Draws a new offset and chooses with its bits. The other party [meets](CotSender::meet) it.
    ///
    /// # Errors
    /// As [`Self::extend`].
    pub fn draw(&mut self, channel: &mut Channel, rng: &mut impl CryptoRng) -> Result<Drawn> {
        let delta = Delta::random(rng);
        let (name, first) = (name(&self.state), self.spent());
        let label = Zeroizing::new(delta.label());
        let choices = Bits::from_fn(COUNT, |i| *label >> i & 1 == 1);
        let rows = self.extend_vec(channel, &choices)?;
        let hash = self.hash();
        Ok(Drawn {
            delta,
            seeds: seeds(rows, |rows| hash.hash_rows(first.into(), rows)),
            name,
        })
    }
}

impl CotSender {
    /// Takes the choices of a party that [draws](CotReceiver::draw) a new offset.
    ///
    /// # Errors
    /// As [`Self::extend`].
    pub fn meet(&mut self, channel: &mut Channel) -> Result<Met> {
        let (name, first) = (name(&self.state), self.spent());
        let zeros = self.extend_vec(channel, COUNT)?;
        let offset = Zeroizing::new(self.delta().label());
        let ones = zeros.iter().map(|row| row ^ *offset);
        let ones = Zeroizing::new(ones.collect::<Vec<_>>());
        let hash = self.hash();
        let [zeros, ones] =
            [zeros, ones].map(|rows| seeds(rows, |rows| hash.hash_rows(first.into(), rows)));
        let pairs = zeros.iter().zip(ones.iter()).map(|(a, b)| [*a, *b]);
        Ok(Met {
            pairs: Zeroizing::new(pairs.collect()),
            name,
        })
    }
}

impl Drawn {
    /// Receives the trees of the other party and becomes the sender of transfers with the new
    /// offset.
    ///
    /// # Errors
    /// As [`CotSender::setup`].
    pub fn finish(self, channel: &mut Channel, variant: Variant) -> Result<CotSender> {
        let offset = Zeroizing::new(self.delta.label());
        let (leaves, session) =
            leaves::receive(channel, variant, &self.name, &self.seeds, *offset)?;
        Ok(CotSender {
            delta: self.delta,
            state: State::new(variant, &leaves, session),
        })
    }
}

impl Met {
    /// Sends the trees and becomes the receiver of transfers with the other party's new offset.
    ///
    /// # Errors
    /// As [`CotReceiver::setup`].
    pub fn finish(
        self,
        channel: &mut Channel,
        variant: Variant,
        rng: &mut impl CryptoRng,
    ) -> Result<CotReceiver> {
        let (leaves, session) = leaves::send(channel, variant, &self.name, &self.pairs)?;
        Ok(CotReceiver::new(variant, &leaves, session, rng))
    }
}

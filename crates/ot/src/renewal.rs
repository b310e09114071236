//! Fresh transfers from others: new offsets for both directions, without public keys.
//!
//! An offset opens everything that was made with it, so what is kept for long should not share one.
//! Base transfers are slow and large ([`crate::base`]), but two parties that have transfers in
//! *both* directions can make new base transfers of them. The party that is to have the new offset
//! `Δ'` chooses with its bits in 128 transfers in which it receives; hashed, the rows are the seeds
//! of base transfers:
//!
//! ```text
//! P   receives with choices Δ'_i:    t_i = q_i ⊕ Δ'_i·Δ     seed H(t_i, Δ'_i)
//! Q   has q_i and Δ:                                        seeds H(q_i, 0), H(q_i ⊕ Δ, 1)
//! Q   grows trees of its seeds for P (`leaves`): P is the sender of new transfers, with Δ'
//! ```
//!
//! Both directions do this at once, each on the other's transfers, in one and a half round trips
//! for any number of new pairs ([`Drawn`], [`Met`]). The old transfers are used for nothing else.
//!
//! **Why it is private.** `Δ'` is a receiver's choices, which the extension hides from `Q`, no
//! matter what `Q` does: the sender of an extension sends nothing. Transfers guarantee that `P`
//! lacks the other seed of each pair, and if `P` is not trusted, the extension is
//! [checked](Variant::checked). The hash is that of all other uses of rows, under tweaks of the
//! positions of these transfers and of the side: a `Q` whose own offset is zero would otherwise
//! have pairs of equal seeds, trees of which half the leaves are alike, and rows of 32 columns. `Q`
//! is the receiver of the new transfers and may deviate as it may after base transfers with public
//! keys: its trees are checked in the same way, and the name of the new state covers them.
//!
//! **Bundles do not open each other.** A hybrid over the renewals replaces the seeds of each by
//! random ones; then its state is that of a session with base transfers of its own. So what is said
//! of transfers holds for each bundle, even if everything is known of the others: with the server's
//! half of one bundle *and* all that a client has, one knows `Δ'`, so the choices of that renewal
//! and that stretch of the streams that hid them. The stretches that hide other renewals stay
//! pseudorandom. The session's Δ, seeds and streams are kept in memory and end with it.
//!
//! Precomputed transfers: Beaver, *Precomputing Oblivious Transfer*, CRYPTO 1995.

use crate::base::{COUNT, Chosen, Pairs, Session};
use crate::bits::Bits;
use crate::block::State;
use crate::cot::{CotReceiver, CotSender, Delta};
use crate::error::Result;
use crate::hash::Hash;
use crate::leaves;
use crate::variant::Variant;
use primer_ring::prg::SEED_BYTES;
use primer_wire::Channel;
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

/// The bit of a tweak that tells the seeds of choice one from those of choice zero.
const SIDE: u32 = 127;

/// Returns the seeds that rows hash to, under the positions of their transfers, from `first` on,
/// and the bits of `sides`.
fn seeds(hash: &Hash, first: u64, mut rows: Zeroizing<Vec<u128>>, sides: u128) -> Chosen {
    for (i, row) in rows.iter_mut().enumerate() {
        let tweak = (u128::from(first) + i as u128) | ((sides >> i & 1) << SIDE);
        hash.hash_rows(tweak, std::slice::from_mut(row));
    }
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
        Ok(Drawn {
            delta,
            seeds: seeds(&self.hash(), first, rows, *label),
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
            [(zeros, 0), (ones, u128::MAX)].map(|(rows, side)| seeds(&hash, first, rows, side));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BaseOt, Setup};
    use primer_ring::prg::Prg;
    use primer_wire::run_pair;

    /// Checks that a client whose offset is zero, which only it could know, still makes pairs of
    /// two seeds, and receives rows in which all columns occur.
    #[test]
    fn an_offset_of_zero_makes_no_equal_seeds() {
        const TRANSFERS: usize = 4096;
        let variant = Variant::SOFT_4;
        let setup = |variant| Setup::new(variant, BaseOt::Ristretto);
        let ((rows, equal), _) = run_pair(
            |channel: &mut Channel| {
                let mut rng = Prg::new(&[1; 16]);
                let mut labels = CotReceiver::setup(setup(variant.checked()), channel, &mut rng)?;
                let mut transfers = CotSender::setup(setup(variant), channel, Delta(0), &mut rng)?;
                let drawn = labels.draw(channel, &mut rng)?;
                channel.flush()?;
                let met = transfers.meet(channel)?;
                let equal = met.pairs.iter().filter(|pair| pair[0] == pair[1]).count();
                let _sender = drawn.finish(channel, variant)?;
                let mut receiver = met.finish(channel, variant.checked(), &mut rng)?;
                let choices = Bits::from_fn(TRANSFERS, |i| i % 3 == 0);
                let rows = receiver.extend_vec(channel, &choices)?;
                channel.flush()?;
                Ok::<_, crate::OtError>((rows, equal))
            },
            |channel: &mut Channel| {
                let mut rng = Prg::new(&[2; 16]);
                let delta = Delta::random(&mut rng);
                let mut labels =
                    CotSender::setup(setup(variant.checked()), channel, delta, &mut rng)?;
                let mut transfers = CotReceiver::setup(setup(variant), channel, &mut rng)?;
                let met = labels.meet(channel)?;
                let drawn = transfers.draw(channel, &mut rng)?;
                let _receiver = met.finish(channel, variant, &mut rng)?;
                channel.flush()?;
                let mut sender = drawn.finish(channel, variant.checked())?;
                sender.extend_vec(channel, TRANSFERS)
            },
        )
        .unwrap();
        assert_eq!(equal, 0);
        assert_eq!(rows.iter().fold(0, |all, row| all | row), u128::MAX);
    }
}

//! Transfers whose choices are known offline and whose messages are known online.
//!
//! The counterpart of [`crate::product`], where the choice comes late. With the choice known there
//! is nothing to correct: offline the receiver extends with its choices, and both hash their rows
//! to *pads*,
//!
//! ```text
//! sender   (k_0, k_1)        receiver   c and k_c         residues of one modulus, uniform
//! ```
//!
//! Online one message goes from the sender to the receiver, in one of two forms.
//!
//! * **A product**, one residue. The sender has a number `x` and sends `τ = x + k_0 - k_1`; the
//!   receiver takes `k_c + c·τ = k_0 + c·x`, and the sender `-k_0`: shares of `c·x`.
//! * **A choice**, two residues. The sender has two messages and sends `m_0 + k_0` and `m_1 + k_1`;
//!   the receiver takes off the pad that it has.
//!
//! Why it is private: the sender receives only the extension, which hides `c`. The receiver lacks
//! one pad of each pair, and what it may not see is masked by that one: `τ` is masked by `k_(1-c)`,
//! with either sign, and so is `m_(1-c)`.
//!
//! A choice may serve several numbers: a transfer then has several pairs of pads, all from the same
//! row and chosen by the same bit.

use crate::bits::Bits;
use crate::cot::{CotReceiver, CotSender};
use crate::error::Result;
use crate::offline::{self, add, sub};
use crate::stored::{ChoiceMaterial, PairMaterial};
use primer_ring::wipe::SecretBytes;
use primer_wire::Channel;

/// The sender's pads. Each pair is for one message.
pub struct PadSender(PairMaterial);

/// The receiver's choices and pads. Each pad is for one message.
pub struct PadReceiver {
    material: ChoiceMaterial,
    each: usize,
}

impl PadSender {
    /// Makes `n` transfers with `each` pairs of pads, residues of `modulus` (2 to 2^57): the
    /// offline phase.
    ///
    /// # Errors
    /// As [`CotSender::extend`]; [`crate::OtError::Modulus`].
    pub fn prepare(
        cot: &mut CotSender,
        channel: &mut Channel,
        n: usize,
        each: usize,
        modulus: u64,
    ) -> Result<Self> {
        offline::send(cot, channel, n, each, modulus).map(Self)
    }

    /// Packs the pads for a store. A stored copy must be loaded once only.
    pub fn into_bytes(self) -> SecretBytes {
        self.0.into_bytes()
    }

    /// Reads the pads of `n` transfers from a store.
    ///
    /// # Errors
    /// [`crate::OtError::StoredLength`], [`crate::OtError::Stored`] if the bytes are not that;
    /// [`crate::OtError::Modulus`].
    pub fn from_bytes(bytes: &[u8], n: usize, each: usize, modulus: u64) -> Result<Self> {
        PairMaterial::from_bytes(bytes, n, each, modulus).map(Self)
    }

    /// Returns what is sent for a product of pair `i`, and the sender's share.
    ///
    /// # Panics
    /// If there is no such pair.
    #[inline]
    pub fn product(&self, i: usize, number: u64) -> (u64, u64) {
        let ([zero, one], m) = (self.0.pairs[i], self.0.modulus);
        (sub(add(number, zero, m), one, m), sub(0, zero, m))
    }

    /// Returns what is sent for a choice of pair `i`.
    ///
    /// # Panics
    /// If there is no such pair.
    #[inline]
    pub fn choice(&self, i: usize, messages: [u64; 2]) -> [u64; 2] {
        let ([zero, one], m) = (self.0.pairs[i], self.0.modulus);
        [add(messages[0], zero, m), add(messages[1], one, m)]
    }
}

impl PadReceiver {
    /// Makes a transfer for each choice, with `each` pads, residues of `modulus` (2 to 2^57): the
    /// offline phase.
    ///
    /// # Errors
    /// As [`CotReceiver::extend`]; [`crate::OtError::Modulus`].
    pub fn prepare(
        cot: &mut CotReceiver,
        channel: &mut Channel,
        choices: Bits,
        each: usize,
        modulus: u64,
    ) -> Result<Self> {
        let material = offline::receive(cot, channel, choices, each, modulus)?;
        Ok(Self { material, each })
    }

    /// Packs the choices and pads for a store. A stored copy must be loaded once only.
    pub fn into_bytes(self) -> SecretBytes {
        self.material.into_bytes()
    }

    /// Reads the choices and pads of `n` transfers from a store.
    ///
    /// # Errors
    /// [`crate::OtError::StoredLength`], [`crate::OtError::Stored`] or [`crate::OtError::Padding`]
    /// if the bytes are not that; [`crate::OtError::Modulus`].
    pub fn from_bytes(bytes: &[u8], n: usize, each: usize, modulus: u64) -> Result<Self> {
        let material = ChoiceMaterial::from_bytes(bytes, n, each, modulus)?;
        Ok(Self { material, each })
    }

    /// Returns all ones if the choice behind pad `i` is 1, else zero.
    ///
    /// # Panics
    /// If there is no such pad.
    #[inline]
    pub fn mask(&self, i: usize) -> u64 {
        u64::from(self.material.choices.get(i / self.each)).wrapping_neg()
    }

    /// Returns the receiver's share of the product of pad `i`.
    ///
    /// # Panics
    /// If there is no such pad.
    #[inline]
    pub fn product(&self, i: usize, sent: u64) -> u64 {
        let ChoiceMaterial {
            values, modulus, ..
        } = &self.material;
        add(values[i], sent & self.mask(i), *modulus)
    }

    /// Returns the message that the choice of pad `i` takes.
    ///
    /// # Panics
    /// If there is no such pad.
    #[inline]
    pub fn choice(&self, i: usize, sent: [u64; 2]) -> u64 {
        let ChoiceMaterial {
            values, modulus, ..
        } = &self.material;
        let mask = self.mask(i);
        sub(sent[0] & !mask | sent[1] & mask, values[i], *modulus)
    }
}

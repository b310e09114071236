//! Products of two bits that come late: each party learns its own bit online, the receiver first.
//!
//! In [`crate::product`] one factor is known offline. Here neither is, and what is left for offline
//! is the product of two *random* bits, one of each party, shared modulo `m`:
//!
//! ```text
//! offline    random transfer: sender (k_0, k_1), receiver its choice α and k_α
//! sender     draws β           τ = β + k_0 - k_1                    sends one residue
//!            keeps β and       y = -k_0
//! receiver   keeps α and       x = k_α + α·τ  =  k_0 + α·β          so x + y = α·β
//!
//! online     receiver learns a, sender learns b
//! receiver   e = a ⊕ α                                              sends one bit
//! sender     f = b ⊕ β                                              sends one bit
//!            takes   (e ? b : 0) ± y                  - if one of e and f is set
//! receiver   takes   ±(f ? α - x : x)                 - if e is set
//! ```
//!
//! These are shares of `a·b`: `a = e + (1-2e)·α`, and `α·b = f·α + (1-2f)·αβ`, so
//!
//! ```text
//! a·b  =  e·b + (1-2e)·(f·α + (1-2f)·(x + y))
//! ```
//!
//! whose terms in `b` and `y` are the sender's and whose terms in `α` and `x` are the receiver's.
//!
//! Why it is private: `e` and `f` are one-time pads of the bits. The sender gets nothing but the
//! extension, which hides `α`. The receiver gets `τ`, masked by `k_(1-α)`, the pad that it lacks,
//! with either sign: it is uniform for every `β`.
//!
//! This is Beaver's multiplication (CRYPTO 1991) of a bit of each party, on a correlation made as
//! in Gilboa (CRYPTO 1999).

use crate::bits::Bits;
use crate::cot::{CotReceiver, CotSender};
use crate::error::Result;
use crate::offline::{self, add, check_modulus, sub};
use crate::stored::ChoiceMaterial;
use primer_ring::wipe::SecretBytes;
use primer_wire::Channel;
use primer_wire::kind::bit_product::{CORRELATION, OPENED};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// The sender's offline material, `β` and `y`. Spent by one answer.
pub struct BitSender(ChoiceMaterial);

/// A sender that has the receiver's opened bits.
pub struct BitAnswering {
    material: ChoiceMaterial,
    theirs: Bits,
}

/// The receiver's offline material, `α` and `x`. Spent by one request.
pub struct BitReceiver(ChoiceMaterial);

/// A receiver that has opened its bits and waits for the sender's.
pub struct BitWaiting {
    material: ChoiceMaterial,
    ours: Bits,
}

/// Returns `value`, or its negative. The sign is public.
fn signed(value: u64, negative: bool, modulus: u64) -> u64 {
    match negative {
        true => sub(0, value, modulus),
        false => value,
    }
}

/// Receives as many opened bits as were prepared.
fn hear(channel: &mut Channel, n: usize) -> Result<Bits> {
    // They are public: one-time pads.
    let mut bytes = vec![0; n.div_ceil(8)];
    channel.recv_exact(OPENED, &mut bytes)?;
    Bits::from_bytes(bytes, n)
}

impl BitSender {
    /// Prepares `n` products, shared modulo `modulus` (2 to 2^57): the offline phase.
    ///
    /// # Errors
    /// As [`CotSender::extend`]; [`crate::OtError::Modulus`].
    pub fn prepare(
        cot: &mut CotSender,
        channel: &mut Channel,
        rng: &mut impl CryptoRng,
        n: usize,
        modulus: u64,
    ) -> Result<Self> {
        let width = check_modulus(modulus)?;
        let choices = Bits::random(n, rng);
        let pads = offline::send(cot, channel, n, 1, modulus)?;
        let mut values = Zeroizing::new(vec![0; n]);
        let correlation = pads.pairs.iter().zip(values.iter_mut()).enumerate();
        let correlation = correlation.map(|(j, ([zero, one], value))| {
            *value = sub(0, *zero, modulus);
            let raised = add(u64::from(choices.get(j)), *zero, modulus);
            sub(raised, *one, modulus)
        });
        channel.send_residues(CORRELATION, width, correlation)?;
        channel.flush()?;
        Ok(Self(ChoiceMaterial {
            choices,
            values,
            modulus,
        }))
    }

    /// Packs the material for a store. A stored copy must be loaded once only.
    pub fn into_bytes(self) -> SecretBytes {
        self.0.into_bytes()
    }

    /// Reads material for `n` products from a store.
    ///
    /// # Errors
    /// [`crate::OtError::StoredLength`], [`crate::OtError::Stored`] or [`crate::OtError::Padding`]
    /// if the bytes are not that; [`crate::OtError::Modulus`].
    pub fn from_bytes(bytes: &[u8], n: usize, modulus: u64) -> Result<Self> {
        ChoiceMaterial::from_bytes(bytes, n, 1, modulus).map(Self)
    }

    /// Takes the receiver's opened bits: the first half of the online phase.
    ///
    /// # Errors
    /// [`crate::OtError::Padding`], and those of the channel.
    pub fn listen(self, channel: &mut Channel) -> Result<BitAnswering> {
        let theirs = hear(channel, self.0.choices.len())?;
        Ok(BitAnswering {
            material: self.0,
            theirs,
        })
    }
}

impl BitAnswering {
    /// Opens the sender's bits and returns its shares of the products: the second half of the
    /// online phase.
    ///
    /// # Errors
    /// [`crate::OtError::Count`] if the bits are too many or too few, and those of the channel.
    pub fn answer(self, channel: &mut Channel, bits: &Bits) -> Result<Zeroizing<Vec<u64>>> {
        let ChoiceMaterial {
            choices,
            values,
            modulus,
        } = &self.material;
        let ours = choices.xor(bits)?;
        channel.send(OPENED, ours.bytes())?;
        let shares = values.iter().enumerate().map(|(j, &y)| {
            let (e, f) = (self.theirs.get(j), ours.get(j));
            let own = u64::from(bits.get(j)) & u64::from(e).wrapping_neg();
            add(own, signed(y, e != f, *modulus), *modulus)
        });
        Ok(Zeroizing::new(shares.collect()))
    }
}

impl BitReceiver {
    /// Prepares `n` products, shared modulo `modulus` (2 to 2^57): the offline phase.
    ///
    /// # Errors
    /// As [`CotReceiver::extend`]; [`crate::OtError::Modulus`].
    pub fn prepare(
        cot: &mut CotReceiver,
        channel: &mut Channel,
        rng: &mut impl CryptoRng,
        n: usize,
        modulus: u64,
    ) -> Result<Self> {
        let width = check_modulus(modulus)?;
        let mut material = offline::receive(cot, channel, Bits::random(n, rng), 1, modulus)?;
        let mut correlation = vec![0; n];
        channel.recv_residues(CORRELATION, width, modulus, &mut correlation)?;
        let values = material.values.iter_mut();
        for (j, (value, tau)) in values.zip(correlation).enumerate() {
            let mask = u64::from(material.choices.get(j)).wrapping_neg();
            *value = add(*value, tau & mask, modulus);
        }
        Ok(Self(material))
    }

    /// Packs the material for a store. A stored copy must be loaded once only.
    pub fn into_bytes(self) -> SecretBytes {
        self.0.into_bytes()
    }

    /// Reads material for `n` products from a store.
    ///
    /// # Errors
    /// [`crate::OtError::StoredLength`], [`crate::OtError::Stored`] or [`crate::OtError::Padding`]
    /// if the bytes are not that; [`crate::OtError::Modulus`].
    pub fn from_bytes(bytes: &[u8], n: usize, modulus: u64) -> Result<Self> {
        ChoiceMaterial::from_bytes(bytes, n, 1, modulus).map(Self)
    }

    /// Opens the receiver's bits: the first half of the online phase.
    ///
    /// # Errors
    /// [`crate::OtError::Count`] if the bits are too many or too few, and those of the channel.
    pub fn request(self, channel: &mut Channel, bits: &Bits) -> Result<BitWaiting> {
        let ours = self.0.choices.xor(bits)?;
        channel.send(OPENED, ours.bytes())?;
        Ok(BitWaiting {
            material: self.0,
            ours,
        })
    }
}

impl BitWaiting {
    /// Returns the receiver's shares of the products: the second half of the online phase.
    ///
    /// # Errors
    /// [`crate::OtError::Padding`], and those of the channel.
    pub fn receive(self, channel: &mut Channel) -> Result<Zeroizing<Vec<u64>>> {
        let ChoiceMaterial {
            choices,
            values,
            modulus,
        } = &self.material;
        let theirs = hear(channel, choices.len())?;
        let shares = values.iter().enumerate().map(|(j, &x)| {
            let other = match theirs.get(j) {
                true => sub(u64::from(choices.get(j)), x, *modulus),
                false => x,
            };
            signed(other, self.ours.get(j), *modulus)
        });
        Ok(Zeroizing::new(shares.collect()))
    }
}

//! Transfers whose messages are known offline: half the online bytes.
//!
//! The receiver holds a bit `c_j` that it learns online. The sender holds `o_j` and `δ_j`, residues
//! of one modulus, from offline on. The receiver gets `o_j + c_j·δ_j`: the transfer of the
//! messages `(o_j, o_j + δ_j)`.
//!
//! This is what requantisation needs. The server's top bit chooses, `δ_j` depends on the client's
//! top bit, and `o_j` carries the client's new mask `-ρ_j`, so that the parties end with shares of
//! the chosen value of which the client's, `ρ_j`, was known before.
//!
//! ```text
//! offline    random transfer: sender (a_j, b_j), receiver r_j and its pad
//! sender     τ_j = a_j + δ_j - b_j                                 sends one residue
//! receiver   y_j = pad + r_j·τ_j  =  a_j + r_j·δ_j
//!
//! online
//! receiver   d_j = c_j ⊕ r_j                                       sends one bit
//! sender     v_j = d_j ? o_j + δ_j + a_j : o_j - a_j               sends one residue
//! receiver   v_j + (d_j ? -y_j : y_j)
//! ```
//!
//! This is right because `c = d + (1-2d)·r` gives `c·δ = d·δ + (1-2d)·(y - a)`. The receiver learns
//! no more than its output: `y_j` is uniform (`b_j` or `a_j` masks it), and `v_j` is the output
//! minus a value that it already has. The sender sees `d_j`, a one-time pad of the choice.
//!
//! **Before the answer.** `v_j` and `(d_j ? -y_j : y_j)` are shares of the output, and each party
//! has its share as soon as it has sent or received `d_j` ([`ProductWaiting::provisional`],
//! [`ProductAnswering::answers`]). What is linear in the output can begin with them.
//!
//! Derandomisation as in Beaver (CRYPTO 1995) applied to the additively correlated transfer of
//! Asharov et al. (CCS 2013); the online form is ours, a line of algebra.

use crate::bits::Bits;
use crate::cot::{CotReceiver, CotSender};
use crate::error::Result;
use crate::offline::{self, add, check_modulus, check_values, sub};
use crate::stored::{ChoiceMaterial, PairMaterial};
use primer_ring::wipe::SecretBytes;
use primer_wire::Channel;
use primer_wire::kind::transfer::{CORRECTIONS, CORRELATION, PRODUCTS};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// The sender's offline material. Spent by one answer.
///
/// The pairs are the two answers, `o_j - a_j` and `o_j + δ_j + a_j`.
pub struct ProductSender(PairMaterial);

/// A sender that has the corrections and owes the answer.
pub struct ProductAnswering {
    material: PairMaterial,
    corrections: Bits,
}

/// The receiver's offline material. Spent by one request.
///
/// The values are `y_j`.
pub struct ProductReceiver(ChoiceMaterial);

/// A receiver that has sent its corrections and waits for the answer.
pub struct ProductWaiting {
    corrections: Bits,
    shares: Zeroizing<Vec<u64>>,
    modulus: u64,
}

impl ProductSender {
    /// Prepares one transfer for each offset and its difference, residues of `modulus` (2 to 2^57):
    /// the offline phase.
    ///
    /// # Errors
    /// As [`CotSender::extend`]; [`crate::OtError::Modulus`], [`crate::OtError::Count`] if there
    /// are not as many differences as offsets, [`crate::OtError::NotResidues`].
    pub fn prepare(
        cot: &mut CotSender,
        channel: &mut Channel,
        (offsets, differences): (&[u64], &[u64]),
        modulus: u64,
    ) -> Result<Self> {
        let width = check_modulus(modulus)?;
        let n = offsets.len();
        check_values("offsets", n, offsets, modulus)?;
        check_values("differences", n, differences, modulus)?;
        let mut material = offline::send(cot, channel, n, 1, modulus)?;
        let correlation = material
            .pairs
            .iter_mut()
            .zip(offsets.iter().zip(differences))
            .map(|(pads, (&offset, &difference))| {
                let raised = add(pads[0], difference, modulus);
                let tau = sub(raised, pads[1], modulus);
                *pads = [sub(offset, pads[0], modulus), add(offset, raised, modulus)];
                tau
            });
        channel.send_residues(CORRELATION, width, correlation)?;
        channel.flush()?;
        Ok(Self(material))
    }

    /// Returns the number of transfers prepared.
    pub fn len(&self) -> usize {
        self.0.pairs.len()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.pairs.is_empty()
    }

    /// Packs the material for a store. A stored copy must be loaded once only.
    pub fn into_bytes(self) -> SecretBytes {
        self.0.into_bytes()
    }

    /// Reads material for `n` transfers from a store.
    ///
    /// # Errors
    /// [`crate::OtError::StoredLength`], [`crate::OtError::Stored`] or [`crate::OtError::Padding`]
    /// if the bytes are not that; [`crate::OtError::Modulus`].
    pub fn from_bytes(bytes: &[u8], n: usize, modulus: u64) -> Result<Self> {
        PairMaterial::from_bytes(bytes, n, 1, modulus).map(Self)
    }

    /// Receives the corrections and answers: the online phase.
    ///
    /// # Errors
    /// [`crate::OtError::Padding`], and those of the channel.
    pub fn answer(self, channel: &mut Channel) -> Result<()> {
        self.listen(channel)?.answer(channel)
    }

    /// Receives the corrections: the first half of the online phase. Several transfers that listen
    /// before the first of them answers take one round trip together.
    ///
    /// # Errors
    /// [`crate::OtError::Padding`], and those of the channel.
    pub fn listen(self, channel: &mut Channel) -> Result<ProductAnswering> {
        // They are public: one-time pads of the choices.
        let mut bytes = vec![0; self.len().div_ceil(8)];
        channel.recv_exact(CORRECTIONS, &mut bytes)?;
        Ok(ProductAnswering {
            corrections: Bits::from_bytes(bytes, self.len())?,
            material: self.0,
        })
    }
}

impl ProductAnswering {
    /// Sends the answers: the second half of the online phase.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn answer(self, channel: &mut Channel) -> Result<()> {
        let width = check_modulus(self.material.modulus)?;
        channel.send_residues(PRODUCTS, width, self.answers())?;
        Ok(channel.flush()?)
    }

    /// Returns what will be answered: the sender's shares of the outputs.
    pub fn answers(&self) -> impl ExactSizeIterator<Item = u64> {
        // The correction is public, so it may choose.
        let pairs = self.material.pairs.iter().enumerate();
        pairs.map(|(j, pair)| pair[usize::from(self.corrections.get(j))])
    }
}

impl ProductReceiver {
    /// Prepares `n` transfers of residues of `modulus` (2 to 2^57): the offline phase.
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
        for (j, (share, tau)) in values.zip(correlation).enumerate() {
            let mask = u64::from(material.choices.get(j)).wrapping_neg();
            *share = add(*share, tau & mask, modulus);
        }
        Ok(Self(material))
    }

    /// Returns the number of transfers prepared.
    pub fn len(&self) -> usize {
        self.0.values.len()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.values.is_empty()
    }

    /// Packs the material for a store. A stored copy must be loaded once only.
    pub fn into_bytes(self) -> SecretBytes {
        self.0.into_bytes()
    }

    /// Reads material for `n` transfers from a store.
    ///
    /// # Errors
    /// [`crate::OtError::StoredLength`], [`crate::OtError::Stored`] or [`crate::OtError::Padding`]
    /// if the bytes are not that; [`crate::OtError::Modulus`].
    pub fn from_bytes(bytes: &[u8], n: usize, modulus: u64) -> Result<Self> {
        ChoiceMaterial::from_bytes(bytes, n, 1, modulus).map(Self)
    }

    /// Sends the corrections for the real choices: the first half of the online phase.
    ///
    /// # Errors
    /// [`crate::OtError::Count`] if the choices are too many or too few, and those of the channel.
    pub fn request(self, channel: &mut Channel, choices: &Bits) -> Result<ProductWaiting> {
        let corrections = self.0.choices.xor(choices)?;
        channel.send(CORRECTIONS, corrections.bytes())?;
        Ok(ProductWaiting {
            corrections,
            shares: self.0.values,
            modulus: self.0.modulus,
        })
    }
}

impl ProductWaiting {
    /// Returns offset plus choice times difference, for each transfer: the second half of the
    /// online phase.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn receive(self, channel: &mut Channel) -> Result<Zeroizing<Vec<u64>>> {
        let m = self.modulus;
        let mut values = Zeroizing::new(vec![0; self.shares.len()]);
        channel.recv_residues(PRODUCTS, check_modulus(m)?, m, &mut values)?;
        for (value, share) in values.iter_mut().zip(self.provisional()) {
            *value = add(*value, share, m);
        }
        Ok(values)
    }

    /// Returns the receiver's shares of the outputs: the answers are to be added.
    pub fn provisional(&self) -> impl ExactSizeIterator<Item = u64> {
        let shares = self.shares.iter().enumerate();
        shares.map(|(j, &share)| match self.corrections.get(j) {
            true => sub(0, share, self.modulus),
            false => share,
        })
    }
}

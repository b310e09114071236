//! Chosen-message transfers, prepared offline: Beaver's derandomisation.
//!
//! Offline the parties make random transfers with random choices `r_j`: the sender has pads `(a_j, b_j)`, the
//! receiver `r_j` and the pad it chose. Online the receiver knows its real choice `c_j`, the sender its
//! messages `(m_j0, m_j1)`, all residues of one modulus:
//!
//! ```text
//! receiver   d_j = c_j ⊕ r_j                                            sends one bit
//! sender     e_j0 = m_j0 + (d_j ? b_j : a_j),  e_j1 = m_j1 + (d_j ? a_j : b_j)   sends two residues
//! receiver   m_j[c_j] = e_j[c_j] - its pad
//! ```
//!
//! `d_j` is a one-time pad of the choice, and the message not chosen stays under a pad the receiver does not have.
//! If the *difference* of the messages is known offline, [`crate::product`] does the same with one residue.
//!
//! Source: Beaver, "Precomputing Oblivious Transfer", CRYPTO 1995.

use crate::bits::Bits;
use crate::cot::{CotReceiver, CotSender};
use crate::error::{Result, expect_count};
use crate::offline::{self, add, check_modulus, sub};
use primer_net::{Channel, Kind};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

pub(crate) const CORRECTIONS: Kind = Kind::new(0x23, "transfer corrections");
const MESSAGES: Kind = Kind::new(0x24, "masked transfer messages");

/// Receives the corrections of `n` transfers. They are public: one-time pads of the choices.
pub(crate) fn receive_corrections(channel: &mut Channel, n: usize) -> Result<Bits> {
    let mut bytes = vec![0; n.div_ceil(8)];
    channel.recv_exact(CORRECTIONS, &mut bytes)?;
    Bits::from_bytes(bytes, n)
}

/// The sender's offline material. Spent by one answer.
pub struct ChosenSender {
    pads: Zeroizing<Vec<[u64; 2]>>,
    modulus: u64,
}

/// The receiver's offline material. Spent by one request.
pub struct ChosenReceiver {
    choices: Bits,
    pads: Zeroizing<Vec<u64>>,
    modulus: u64,
}

/// A receiver that has sent its corrections and waits for the messages.
pub struct ChosenWaiting {
    choices: Bits,
    pads: Zeroizing<Vec<u64>>,
    modulus: u64,
}

impl ChosenSender {
    /// Offline: prepares `n` transfers of residues of `modulus` (2 to 2^57).
    ///
    /// # Errors
    /// As [`CotSender::extend`]; [`crate::OtError::Modulus`].
    pub fn prepare(
        cot: &mut CotSender,
        channel: &mut Channel,
        n: usize,
        modulus: u64,
    ) -> Result<Self> {
        let pads = offline::send(cot, channel, n, modulus)?;
        Ok(Self { pads, modulus })
    }

    /// Transfers prepared.
    pub fn len(&self) -> usize {
        self.pads.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pads.is_empty()
    }

    /// Online: takes the corrections and sends the masked messages, residues all.
    ///
    /// # Errors
    /// [`crate::OtError::Count`] if the messages are too many or too few, [`crate::OtError::Padding`], and
    /// those of the channel.
    pub fn answer(self, channel: &mut Channel, messages: &[[u64; 2]]) -> Result<()> {
        expect_count("message pairs", self.len(), messages.len())?;
        let corrections = receive_corrections(channel, self.len())?;
        let m = self.modulus;
        let mut masked = Vec::with_capacity(2 * messages.len());
        for (j, (pair, pads)) in messages.iter().zip(self.pads.iter()).enumerate() {
            let d = usize::from(corrections.get(j));
            masked.push(add(pair[0], pads[d], m));
            masked.push(add(pair[1], pads[1 - d], m));
        }
        channel.send_residues(MESSAGES, check_modulus(m)?, masked.into_iter())?;
        Ok(channel.flush()?)
    }
}

impl ChosenReceiver {
    /// Offline: prepares `n` transfers of residues of `modulus` (2 to 2^57).
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
        let (choices, pads) = offline::receive(cot, channel, rng, n, modulus)?;
        channel.flush()?;
        Ok(Self {
            choices,
            pads,
            modulus,
        })
    }

    /// Transfers prepared.
    pub fn len(&self) -> usize {
        self.pads.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pads.is_empty()
    }

    /// Online, first half: sends the corrections for the real choices.
    ///
    /// # Errors
    /// [`crate::OtError::Count`] if the choices are too many or too few, and those of the channel.
    pub fn request(self, channel: &mut Channel, choices: Bits) -> Result<ChosenWaiting> {
        let corrections = self.choices.xor(&choices)?;
        channel.send(CORRECTIONS, corrections.bytes())?;
        Ok(ChosenWaiting {
            choices,
            pads: self.pads,
            modulus: self.modulus,
        })
    }
}

impl ChosenWaiting {
    /// Online, second half: the chosen messages.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn receive(self, channel: &mut Channel) -> Result<Zeroizing<Vec<u64>>> {
        let m = self.modulus;
        let mut masked = vec![0; 2 * self.pads.len()];
        channel.recv_residues(MESSAGES, check_modulus(m)?, m, &mut masked)?;
        let pairs = masked.chunks_exact(2).zip(self.pads.iter());
        let chosen = pairs.enumerate().map(|(j, (pair, &pad))| {
            // A mask, not an index: the choice is secret.
            let mask = u64::from(self.choices.get(j)).wrapping_neg();
            sub(pair[0] ^ (mask & (pair[0] ^ pair[1])), pad, m)
        });
        Ok(Zeroizing::new(chosen.collect()))
    }
}

//! Correlated transfers by extension: SoftSpokenOT with the free-XOR offset as its secret.
//!
//! ```text
//! sender   has Δ (128 bits, lowest bit 1), gets q_j               the label of 0
//! receiver has choice bits c_j,            gets t_j = q_j ⊕ c_j·Δ  the label of c_j
//! ```
//!
//! **Set-up.** 128 base transfers with the roles reversed: the receiver here gets pairs of seeds,
//! the sender, choosing with the bits of Δ, one of each. Δ is cut into blocks of `k` bits
//! ([`Variant`]: 1, 2 or 4), and [`crate::leaves`] turns the `k` transfers of a block into `2^k`
//! seeds `s_x`, of which the sender lacks the one whose index is its block of Δ.
//!
//! **Extension**, for `n` transfers. In each block, with `r_x = G(s_x)` streams of `n` bits
//! ([`crate::streams`]) and `x_j` bit `j` of the index `x`:
//!
//! ```text
//! receiver   t^j = Σ x_j·r_x,   u = c ⊕ Σ r_x           sends u: n bits, 16/k bytes per transfer
//! sender     q^j = Σ (x ⊕ Δ)_j·r_x ⊕ Δ_j·u  =  t^j ⊕ Δ_j·c
//! both       transpose the 128 columns of all blocks: row j of q and t
//! ```
//!
//! The sender's sum does not need the stream it lacks: for `x = Δ` every weight is zero. With
//! `k = 1` this is IKNP, byte for byte. A larger `k` sends less and computes more.
//!
//! There is no second message: the rows are the result. The sender learns nothing about `c`, which
//! is masked in every block by a stream it does not have; the receiver gets no message at all.
//! *Rows are not independent keys*: all pairs differ by the same Δ. For wire labels this is what
//! free XOR needs, and the garbling hash must be correlation robust, as it must be anyway; for
//! anything else they are hashed first ([`crate::hash`], [`crate::onehot`]). The lowest bit of Δ is
//! 1 so that labels carry their colour; the base transfer of that bit has a known choice, which
//! costs one of 128 bits of Δ's entropy, as in every garbler with point-and-permute.
//!
//! A receiver that deviates could use different choices in different blocks, and see from what
//! follows whether it guessed bits of Δ correctly. A [checked](Variant::checked) variant makes it
//! prove that its choices are the same in all blocks ([`crate::check`]), and before that, that the
//! sender's seeds are those of whole trees ([`crate::leaves`]).
//!
//! **State.** A state can be extended any number of times; the generators only move forward, so no
//! mask is ever used twice. Both parties must extend by the same counts in the same order; the
//! first bytes of the message carry the position and a difference is an error.
//!
//! Sources: Roy, *SoftSpokenOT*, CRYPTO 2022; Ishai, Kilian, Nissim, Petrank, CRYPTO 2003; with the
//! seed compression of Asharov, Lindell, Schneider, Zohner, CCS 2013.

use crate::base;
use crate::bits::Bits;
pub use crate::block::BLOCK;
use crate::block::{Block, State};
use crate::check::{Check, MASKING};
use crate::error::{OtError, Result};
use crate::hash::Hash;
use crate::leaves;
use crate::onehot::VectorKeys;
use crate::setup::Setup;
use crate::streams::Correction;
use crate::variant::Variant;
use primer_ring::prg::{Prg, SecretSeed};
use primer_wire::kind::transfer::EXTENSION;
use primer_wire::{Channel, RecvStream, SendStream};
use rand_core::CryptoRng;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes in front of the columns: the position.
pub(crate) const POSITION_BYTES: usize = 8;

/// The secret difference of all pairs: the free-XOR offset. Its lowest bit is 1.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Delta(pub(crate) u128);

impl Delta {
    /// Draws a fresh offset.
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        let mut bytes = Zeroizing::new([0; 16]);
        rng.fill_bytes(&mut *bytes);
        Self(u128::from_le_bytes(*bytes) | 1)
    }

    /// Takes the offset of a garbler that has one already; its lowest bit is set if it is not.
    pub fn from_label(label: u128) -> Self {
        Self(label | 1)
    }

    /// Returns the offset as a label. It opens every pair made with it: keep it in the garbler.
    pub fn label(&self) -> u128 {
        self.0
    }
}

/// The sender of an extension.
pub struct CotSender {
    pub(crate) delta: Delta,
    pub(crate) state: State,
}

/// The receiver of an extension.
pub struct CotReceiver {
    pub(crate) state: State,
    /// Where the choices that mask a check come from.
    masking: Option<Prg>,
}

impl CotSender {
    /// Runs the base transfers with an offset, once per session.
    ///
    /// # Errors
    /// [`OtError`] if the channel fails or the peer's messages are not right;
    /// [`OtError::Inconsistent`] if a checked receiver's trees are not whole.
    pub fn setup(
        setup: Setup,
        channel: &mut Channel,
        delta: Delta,
        rng: &mut impl CryptoRng,
    ) -> Result<Self> {
        let Setup {
            variant,
            base,
            nonce,
        } = setup;
        let choices = Zeroizing::new(delta.0);
        let (seeds, session) = base::receive(channel, rng, base, &nonce, &choices)?;
        let (leaves, session) = leaves::receive(channel, variant, &session, &seeds, delta.0)?;
        Ok(Self {
            delta,
            state: State::new(variant, &leaves, session),
        })
    }

    /// Returns the offset.
    pub fn delta(&self) -> &Delta {
        &self.delta
    }

    /// Returns the variant that was set up.
    pub fn variant(&self) -> Variant {
        self.state.variant
    }

    /// Transfers spent so far.
    pub fn spent(&self) -> u64 {
        self.state.spent
    }

    /// Makes `n` more transfers: `sink(first, rows)` gets the labels of 0, block by block.
    ///
    /// Rows of a checked variant must not be used before this has returned `Ok`.
    ///
    /// # Errors
    /// As [`Self::setup`], [`OtError::OutOfStep`] and [`OtError::Inconsistent`].
    pub fn extend(
        &mut self,
        channel: &mut Channel,
        n: usize,
        mut sink: impl FnMut(usize, &[u128]),
    ) -> Result<()> {
        let (expected, mut check) = self.state.begin(n);
        let payload = crate::cost::extension_payload(self.state.variant, n);
        let mut stream = channel.recv_stream(EXTENSION, payload)?;
        let mut got = [0; POSITION_BYTES];
        stream.get(&mut got)?;
        let got = u64::from_le_bytes(got);
        if got != expected {
            return Err(OtError::OutOfStep { expected, got });
        }
        let mut block = Block::new(n);
        for first in (0..n).step_by(BLOCK) {
            let count = BLOCK.min(n - first);
            sink(
                first,
                self.block(&mut stream, &mut block, count, check.as_mut())?,
            );
        }
        if let Some(mut check) = check {
            self.block(&mut stream, &mut block, MASKING, Some(&mut check))?;
            check.verify(&mut stream, self.delta.0)?;
        }
        self.state.streams.align();
        Ok(stream.finish()?)
    }

    fn block<'a>(
        &mut self,
        stream: &mut RecvStream<'_>,
        block: &'a mut Block,
        n: usize,
        check: Option<&mut Check>,
    ) -> Result<&'a [u128]> {
        let (delta, stride) = (self.delta.0, Block::stride(n));
        let bits = self.state.variant.bits();
        let check = check.map(|check| (check, None));
        block.run(
            &mut self.state,
            n,
            check,
            |tree, columns, message, streams| {
                stream.get(&mut message[..n.div_ceil(8)])?;
                let correction = Correction::Apply(message, delta >> (bits * tree));
                streams.columns(tree, columns, stride, correction);
                Ok(())
            },
        )
    }

    /// Makes `n` more transfers and returns all their labels of 0 at once.
    ///
    /// # Errors
    /// As [`Self::extend`].
    pub fn extend_vec(&mut self, channel: &mut Channel, n: usize) -> Result<Zeroizing<Vec<u128>>> {
        let mut labels = Zeroizing::new(vec![0; n]);
        self.extend(channel, n, |first, rows| {
            labels[first..first + rows.len()].copy_from_slice(rows);
        })?;
        Ok(labels)
    }

    /// Returns the hash of this state.
    pub(crate) fn hash(&self) -> Hash {
        Hash::new(&self.state.session)
    }

    /// Returns the keys of this state's one-hot vectors.
    pub(crate) fn vector_keys(&self) -> VectorKeys {
        VectorKeys::new(&self.state.session)
    }

    /// Sets the number of threads that make one-hot vectors ([`crate::onehot`]); one, unless this
    /// is called. Nothing that is sent reveals how many there are.
    pub fn set_threads(&mut self, threads: usize) {
        self.state.threads = threads.max(1);
    }

    /// Returns the number of threads that may make one-hot vectors.
    pub(crate) fn threads(&self) -> usize {
        self.state.threads
    }
}

impl CotReceiver {
    /// Runs the base transfers, once per session.
    ///
    /// # Errors
    /// [`OtError`] if the channel fails or the peer's messages are not right.
    pub fn setup(setup: Setup, channel: &mut Channel, rng: &mut impl CryptoRng) -> Result<Self> {
        let Setup {
            variant,
            base,
            nonce,
        } = setup;
        let (pairs, session) = base::send(channel, rng, base, &nonce)?;
        let (leaves, session) = leaves::send(channel, variant, &session, &pairs)?;
        Ok(Self::new(variant, &leaves, session, rng))
    }

    /// Starts from the leaves of all trees.
    pub(crate) fn new(
        variant: Variant,
        leaves: &leaves::Leaves,
        session: base::Session,
        rng: &mut impl CryptoRng,
    ) -> Self {
        let mut seed = || {
            let mut seed = Zeroizing::new(SecretSeed::default());
            rng.fill_bytes(&mut *seed);
            Prg::secret(&seed)
        };
        Self {
            state: State::new(variant, leaves, session),
            masking: variant.is_checked().then(&mut seed),
        }
    }

    /// Returns the variant that was set up.
    pub fn variant(&self) -> Variant {
        self.state.variant
    }

    /// Transfers spent so far.
    pub fn spent(&self) -> u64 {
        self.state.spent
    }

    /// Makes one more transfer per choice: `sink(first, rows)` gets the labels of the choices,
    /// block by block.
    ///
    /// The last bytes leave with the channel's next flush or receive.
    ///
    /// # Errors
    /// As [`Self::setup`].
    pub fn extend(
        &mut self,
        channel: &mut Channel,
        choices: &Bits,
        mut sink: impl FnMut(usize, &[u128]),
    ) -> Result<()> {
        let n = choices.len();
        let (position, mut check) = self.state.begin(n);
        let payload = crate::cost::extension_payload(self.state.variant, n);
        let mut stream = channel.send_stream(EXTENSION, payload)?;
        stream.put(&position.to_le_bytes())?;
        let mut block = Block::new(n);
        for (index, choices) in choices.bytes().chunks(BLOCK / 8).enumerate() {
            let first = index * BLOCK;
            let count = BLOCK.min(n - first);
            let rows = self.block(&mut stream, &mut block, count, choices, check.as_mut())?;
            sink(first, rows);
        }
        if let (Some(mut check), Some(masking)) = (check, &mut self.masking) {
            let choices = Zeroizing::new(masking.seed());
            self.block(
                &mut stream,
                &mut block,
                MASKING,
                &*choices,
                Some(&mut check),
            )?;
            check.prove(&mut stream)?;
        }
        self.state.streams.align();
        Ok(stream.finish()?)
    }

    fn block<'a>(
        &mut self,
        stream: &mut SendStream<'_>,
        block: &'a mut Block,
        n: usize,
        choices: &[u8],
        check: Option<&mut Check>,
    ) -> Result<&'a [u128]> {
        let stride = Block::stride(n);
        let check = check.map(|check| (check, Some(choices)));
        block.run(
            &mut self.state,
            n,
            check,
            |tree, columns, message, streams| {
                let (front, rest) = message.split_at_mut(choices.len());
                front.copy_from_slice(choices);
                rest.fill(0);
                streams.columns(tree, columns, stride, Correction::Make(message));
                Ok(stream.put(&message[..choices.len()])?)
            },
        )
    }

    /// Makes one more transfer per choice and returns the labels of all choices at once.
    ///
    /// # Errors
    /// As [`Self::extend`].
    pub fn extend_vec(
        &mut self,
        channel: &mut Channel,
        choices: &Bits,
    ) -> Result<Zeroizing<Vec<u128>>> {
        let mut labels = Zeroizing::new(vec![0; choices.len()]);
        self.extend(channel, choices, |first, rows| {
            labels[first..first + rows.len()].copy_from_slice(rows);
        })?;
        Ok(labels)
    }

    /// Returns the hash of this state.
    pub(crate) fn hash(&self) -> Hash {
        Hash::new(&self.state.session)
    }

    /// Returns the keys of this state's one-hot vectors.
    pub(crate) fn vector_keys(&self) -> VectorKeys {
        VectorKeys::new(&self.state.session)
    }

    /// Sets the number of threads that make one-hot vectors ([`crate::onehot`]); one, unless this
    /// is called. Nothing that is sent reveals how many there are.
    pub fn set_threads(&mut self, threads: usize) {
        self.state.threads = threads.max(1);
    }

    /// Returns the number of threads that may make one-hot vectors.
    pub(crate) fn threads(&self) -> usize {
        self.state.threads
    }
}

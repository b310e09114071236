//! Correlated transfers by extension: IKNP with the free-XOR offset as its secret.
//!
//! ```text
//! sender   has Δ (128 bits, lowest bit 1), gets q_j               the label of 0
//! receiver has choice bits c_j,            gets t_j = q_j ⊕ c_j·Δ  the label of c_j
//! ```
//!
//! **Set-up.** 128 base transfers with the roles reversed: the receiver here gets pairs of seeds
//! `(k_i0, k_i1)`, the sender, choosing with bit `i` of Δ, gets `k_i = k_i[Δ_i]`.
//!
//! **Extension**, for `n` transfers, columns `i = 0..128` of `n` bits, `G` the generator [`Prg`]:
//!
//! ```text
//! receiver   t^i = G(k_i0),  u^i = G(k_i0) ⊕ G(k_i1) ⊕ c        sends u^i: 16 bytes per transfer
//! sender     q^i = G(k_i) ⊕ Δ_i·u^i  =  t^i ⊕ Δ_i·c
//! both       transpose: row j of q and t
//! ```
//!
//! There is no second message: the rows are the result. The sender learns nothing of `c`, which is
//! masked in every column by the half of the seeds it does not have; the receiver gets no message
//! at all. *Rows are not independent keys*: all pairs differ by the same Δ. As wire labels that is
//! what free XOR wants, and the garbling hash must be correlation robust, which it must be anyway;
//! for anything else they are hashed first ([`crate::hash`]). The lowest bit of Δ is 1 so that
//! labels carry their colour; the base transfer of that bit has a known choice, which costs one of
//! 128 bits of Δ's entropy, as in every garbler with point-and-permute.
//!
//! **State.** A state can be extended any number of times; the generators only move forward, so no
//! mask is ever used twice. Both parties must extend by the same counts in the same order; the
//! first bytes of the message carry the position and a difference is an error.
//!
//! Source: Ishai, Kilian, Nissim, Petrank, CRYPTO 2003; with the seed compression of Asharov,
//! Lindell, Schneider, Zohner, CCS 2013.

use crate::base::{self, BaseOt, Session};
use crate::bits::Bits;
use crate::error::{OtError, Result};
use crate::hash::Hash;
use crate::onehot::TreeKeys;
use crate::transpose::{COLUMNS, transpose};
use primer_net::{Channel, Kind};
use primer_ring::prg::Prg;
use rand_core::CryptoRng;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

pub(crate) const EXTENSION: Kind = Kind::new(0x22, "transfer extension columns");

/// Transfers handled at once: their columns (256 KiB) stay in a core's cache.
pub const BLOCK: usize = 1 << 14;
/// Bytes in front of the columns: the position.
pub(crate) const POSITION_BYTES: usize = 8;

/// The secret difference of all pairs: the free-XOR offset. Its lowest bit is 1.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Delta(u128);

impl Delta {
    /// A fresh offset.
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        let mut bytes = Zeroizing::new([0; 16]);
        rng.fill_bytes(&mut *bytes);
        Self(u128::from_le_bytes(*bytes) | 1)
    }

    /// The offset of a garbler that has one already; its lowest bit is set if it is not.
    pub fn from_label(label: u128) -> Self {
        Self(label | 1)
    }

    /// The offset as a label. It opens every pair made with it: keep it in the garbler.
    pub fn label(&self) -> u128 {
        self.0
    }
}

/// A buffer for the columns of a block, wiped when dropped.
struct Columns {
    matrix: Zeroizing<Vec<u8>>,
    rows: Zeroizing<Vec<u128>>,
    scratch: Zeroizing<Vec<u8>>,
}

impl Columns {
    /// Bytes from one column of `n` bits to the next: whole squares, and one cache line more, since
    /// columns a power of two apart would all compete for the same few lines when they are read
    /// side by side.
    fn stride(n: usize) -> usize {
        n.div_ceil(128) * 16 + 64
    }

    /// For blocks of at most `n` transfers.
    fn new(n: usize) -> Self {
        let n = n.min(BLOCK);
        let stride = Self::stride(n);
        Self {
            matrix: Zeroizing::new(vec![0; COLUMNS * stride]),
            rows: Zeroizing::new(vec![0; n]),
            scratch: Zeroizing::new(vec![0; stride]),
        }
    }

    /// Fills column by column with `fill(i, column, scratch)`, where both are `⌈n/8⌉` bytes, and
    /// transposes.
    fn block(
        &mut self,
        n: usize,
        mut fill: impl FnMut(usize, &mut [u8], &mut [u8]) -> Result<()>,
    ) -> Result<&[u128]> {
        let stride = Self::stride(n);
        let bytes = n.div_ceil(8);
        let matrix = &mut self.matrix[..COLUMNS * stride];
        for (i, column) in matrix.chunks_exact_mut(stride).enumerate() {
            fill(i, &mut column[..bytes], &mut self.scratch[..bytes])?;
        }
        transpose(matrix, stride, &mut self.rows[..n]);
        Ok(&self.rows[..n])
    }
}

/// What both roles keep: the position of the state and the session it belongs to.
struct Position {
    session: Session,
    /// Transfers begun so far.
    spent: u64,
}

impl Position {
    fn new(session: Session) -> Self {
        Self { session, spent: 0 }
    }

    fn advance(&mut self, n: usize) -> u64 {
        let before = self.spent;
        self.spent += n as u64;
        before
    }
}

/// The sender of an extension.
pub struct CotSender {
    delta: Delta,
    columns: Vec<Prg>,
    position: Position,
}

/// The receiver of an extension.
pub struct CotReceiver {
    columns: Vec<[Prg; 2]>,
    position: Position,
}

impl CotSender {
    /// Runs the base transfers with an offset, once per session.
    ///
    /// # Errors
    /// [`OtError`] if the channel fails or the peer's messages are not right.
    pub fn setup(
        channel: &mut Channel,
        base: BaseOt,
        delta: Delta,
        rng: &mut impl CryptoRng,
    ) -> Result<Self> {
        let choices = Zeroizing::new(delta.0);
        let (seeds, session) = base::receive(channel, rng, base, &choices)?;
        Ok(Self {
            delta,
            columns: seeds.iter().map(Prg::new).collect(),
            position: Position::new(session),
        })
    }

    /// The offset.
    pub fn delta(&self) -> &Delta {
        &self.delta
    }

    /// Transfers spent so far.
    pub fn spent(&self) -> u64 {
        self.position.spent
    }

    /// `n` more transfers: `sink(first, rows)` gets the labels of 0, block by block.
    ///
    /// # Errors
    /// As [`Self::setup`], and [`OtError::OutOfStep`].
    pub fn extend(
        &mut self,
        channel: &mut Channel,
        n: usize,
        mut sink: impl FnMut(usize, &[u128]),
    ) -> Result<()> {
        let expected = self.position.advance(n);
        let mut stream = channel.recv_stream(EXTENSION, crate::cost::extension_payload(n))?;
        let mut got = [0; POSITION_BYTES];
        stream.get(&mut got)?;
        let got = u64::from_le_bytes(got);
        if got != expected {
            return Err(OtError::OutOfStep { expected, got });
        }
        let mut block = Columns::new(n);
        for first in (0..n).step_by(BLOCK) {
            let rows = block.block(BLOCK.min(n - first), |i, q, u| {
                self.columns[i].fill(q);
                stream.get(u)?;
                let mask = ((self.delta.0 >> i & 1) as u8).wrapping_neg();
                for (q, u) in q.iter_mut().zip(u) {
                    *q ^= *u & mask;
                }
                Ok(())
            })?;
            sink(first, rows);
        }
        self.columns.iter_mut().for_each(Prg::align);
        Ok(stream.finish()?)
    }

    /// The labels of 0 of `n` transfers at once.
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

    /// The hash of this state.
    pub(crate) fn hash(&self) -> Hash {
        Hash::new(&self.position.session)
    }

    /// The keys of this state's trees.
    pub(crate) fn tree_keys(&self) -> TreeKeys {
        TreeKeys::new(&self.position.session)
    }
}

impl CotReceiver {
    /// Runs the base transfers, once per session.
    ///
    /// # Errors
    /// [`OtError`] if the channel fails or the peer's messages are not right.
    pub fn setup(channel: &mut Channel, base: BaseOt, rng: &mut impl CryptoRng) -> Result<Self> {
        let (pairs, session) = base::send(channel, rng, base)?;
        let columns = pairs
            .iter()
            .map(|[zero, one]| [Prg::new(zero), Prg::new(one)])
            .collect();
        Ok(Self {
            columns,
            position: Position::new(session),
        })
    }

    /// Transfers spent so far.
    pub fn spent(&self) -> u64 {
        self.position.spent
    }

    /// One more transfer per choice: `sink(first, rows)` gets the labels of the choices, block by
    /// block.
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
        let position = self.position.advance(n);
        let mut stream = channel.send_stream(EXTENSION, crate::cost::extension_payload(n))?;
        stream.put(&position.to_le_bytes())?;
        let mut block = Columns::new(n);
        for (index, choices) in choices.bytes().chunks(BLOCK / 8).enumerate() {
            let first = index * BLOCK;
            let rows = block.block(BLOCK.min(n - first), |i, t, u| {
                let [zero, one] = &mut self.columns[i];
                zero.fill(t);
                one.fill(u);
                for ((u, t), c) in u.iter_mut().zip(t).zip(choices) {
                    *u ^= *t ^ c;
                }
                Ok(stream.put(u)?)
            })?;
            sink(first, rows);
        }
        self.columns.iter_mut().flatten().for_each(Prg::align);
        Ok(stream.finish()?)
    }

    /// The labels of all choices at once.
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

    /// The hash of this state.
    pub(crate) fn hash(&self) -> Hash {
        Hash::new(&self.position.session)
    }

    /// The keys of this state's trees.
    pub(crate) fn tree_keys(&self) -> TreeKeys {
        TreeKeys::new(&self.position.session)
    }
}

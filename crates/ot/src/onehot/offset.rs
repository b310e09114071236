//! The party that draws the offset.

use super::chunk::{Chunk, Opened};
use super::shape::Shape;
use super::{parts, planes};
use crate::cot::{CotReceiver, CotSender};
use crate::error::{OtError, Result};
use primer_wire::Channel;
use primer_wire::kind::one_hot::{BLOCKS, CORRECTIONS};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// A chunk whose places are shared.
struct Followed {
    chunk: Chunk,
    offsets: Zeroizing<Vec<u16>>,
    /// The rows of the transfers that the other party chose by its marks.
    sent: Zeroizing<Vec<u128>>,
}

/// Makes shares of `e_{u + b}` for `count` offsets u, which are drawn here. In `transfers` the
/// party is the receiver, in `labels` the sender.
///
/// `sink(first, offsets, vectors)` gets the offsets and the party's vectors in order, some at a
/// time; see [`super::with_indices`].
///
/// # Errors
/// Those of [`CotReceiver::extend`] and of the channel; those of the sink.
pub fn with_offsets<E: From<OtError>>(
    (transfers, labels): (&mut CotReceiver, &mut CotSender),
    channel: &mut Channel,
    shape: Shape,
    count: usize,
    rng: &mut impl CryptoRng,
    mut sink: impl FnMut(usize, &[u16], &[u8]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let mut party = Party {
        shape,
        delta: Zeroizing::new(labels.delta().label()),
        transfers,
        labels,
    };
    let (mut chunks, mut followed, mut done) = (shape.chunks(count), None, 0);
    loop {
        let begun = chunks.next();
        let begun = begun.map(|n| party.begin(channel, n, rng)).transpose()?;
        let opened = followed.take();
        if begun.is_none() && opened.is_none() {
            return Ok(());
        }
        let opened = opened.map(|half| party.open(channel, half)).transpose()?;
        channel.flush().map_err(OtError::from)?;
        let mut found = None;
        if let Some((chunk, parts, rows)) = begun {
            let half = party.follow(channel, chunk, (&parts, &rows))?;
            match shape.block_transfers() {
                0 => found = Some((half.chunk.whole(), half.offsets)),
                _ => followed = Some(half),
            }
        }
        if let Some((Followed { chunk, offsets, .. }, opened)) = opened {
            let mut theirs = vec![0; chunk.len() * shape.block_correction_bytes()];
            channel
                .recv_exact(BLOCKS, &mut theirs)
                .map_err(OtError::from)?;
            found = Some((chunk.close(opened, &theirs), offsets));
        }
        if let Some((vectors, offsets)) = found {
            sink(done, &offsets, &vectors)?;
            done += offsets.len();
        }
    }
}

/// The party's transfers in both directions.
struct Party<'a> {
    shape: Shape,
    delta: Zeroizing<u128>,
    transfers: &'a mut CotReceiver,
    labels: &'a mut CotSender,
}

/// Room for the shares of a chunk, this party's parts of its places, and their rows.
type Begun = (Chunk, Zeroizing<Vec<u16>>, Zeroizing<Vec<u128>>);

impl Party<'_> {
    fn begin(
        &mut self,
        channel: &mut Channel,
        n: usize,
        rng: &mut impl CryptoRng,
    ) -> Result<Begun> {
        let (shape, transfers) = (self.shape, &mut *self.transfers);
        let at = (transfers.spent(), transfers.threads());
        let chunk = Chunk::new(shape, transfers.vector_keys(), at, n);
        let parts = parts(&shape, n, rng);
        let choices = planes::choices(&parts, 0, shape.place_transfers())?;
        let rows = transfers.extend_vec(channel, &choices)?;
        Ok((chunk, parts, rows))
    }

    /// Takes the corrections of a chunk, and the other party's choices by its marks.
    fn follow(
        &mut self,
        channel: &mut Channel,
        mut chunk: Chunk,
        (parts, rows): (&[u16], &[u128]),
    ) -> Result<Followed> {
        let mut message = vec![0; chunk.len() * self.shape.correction_bytes()];
        channel.recv_exact(CORRECTIONS, &mut message)?;
        let offsets = chunk.follow(parts, rows, &message);
        let sent = match self.shape.block_transfers() {
            0 => Zeroizing::default(),
            _ => self.labels.extend_vec(channel, chunk.block_transfers())?,
        };
        Ok(Followed {
            chunk,
            offsets,
            sent,
        })
    }

    /// Chooses by this party's marks, and sends its second half of the chunk.
    fn open(&mut self, channel: &mut Channel, half: Followed) -> Result<(Followed, Opened)> {
        let received = self.transfers.extend_vec(channel, &half.chunk.marks()?)?;
        let opened = half.chunk.open([&half.sent, &received], *self.delta);
        channel.send(BLOCKS, &opened.message)?;
        Ok((half, opened))
    }
}

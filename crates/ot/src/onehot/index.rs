//! The party with the index.

use super::chunk::Chunk;
use super::parts;
use super::shape::Shape;
use crate::cot::{CotReceiver, CotSender};
use crate::error::{OtError, Result};
use primer_wire::Channel;
use primer_wire::kind::one_hot::{BLOCKS, CORRECTIONS};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// A chunk whose blocks are marked.
struct Marked {
    chunk: Chunk,
    /// The rows of the transfers that were chosen by the marks.
    received: Zeroizing<Vec<u128>>,
}

/// Makes shares of `e_{u + b}` for each of the party's `indices` b. In `transfers` it is the
/// sender, in `labels` the receiver.
///
/// `sink(first, vectors)` gets the party's vectors in order, some at a time, each
/// [`Shape::vector_bytes`] long, entry 0 in the lowest bit of the first byte. The other party must
/// call [`super::with_offsets`] with the same shape and count.
///
/// # Errors
/// [`OtError::NotResidues`] if an index is out of range; those of [`CotSender::extend`]; those of
/// the sink.
pub fn with_indices<E: From<OtError>>(
    (transfers, labels): (&mut CotSender, &mut CotReceiver),
    channel: &mut Channel,
    shape: Shape,
    indices: &[u16],
    rng: &mut impl CryptoRng,
    mut sink: impl FnMut(usize, &[u8]) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let limit = shape.entries();
    let wrong = (indices.iter()).fold(false, |wrong, &b| wrong | (usize::from(b) >= limit));
    if wrong {
        return Err(OtError::NotResidues { what: "indices" }.into());
    }
    let mut party = Party {
        shape,
        delta: Zeroizing::new(transfers.delta().label()),
        transfers,
        labels,
    };
    let (mut chunks, mut marked, mut done) = (indices.chunks(shape.chunk()), None, 0);
    loop {
        // The other party begins a chunk together with the second half of the one before it.
        let begun = chunks.next();
        let begun = begun
            .map(|indices| party.begin(channel, indices))
            .transpose()?;
        let opened = marked.take();
        if begun.is_none() && opened.is_none() {
            return Ok(());
        }
        let opened = opened.map(|half| party.hear(channel, half)).transpose()?;
        let mut vectors = None;
        if let Some((indices, chunk, rows)) = begun {
            let chunk = party.mark(channel, indices, (chunk, &rows), rng)?;
            match shape.block_transfers() {
                0 => vectors = Some(chunk.chunk.whole()),
                _ => marked = Some(chunk),
            }
        }
        if let Some((chunk, opened, theirs)) = opened {
            channel
                .send(BLOCKS, &opened.message)
                .map_err(OtError::from)?;
            vectors = Some(chunk.close(opened, &theirs));
        }
        channel.flush().map_err(OtError::from)?;
        if let Some(vectors) = vectors {
            sink(done, &vectors)?;
            done += vectors.len() / shape.vector_bytes();
        }
    }
}

/// The party's transfers in both directions.
struct Party<'a> {
    shape: Shape,
    delta: Zeroizing<u128>,
    transfers: &'a mut CotSender,
    labels: &'a mut CotReceiver,
}

/// The indices of a chunk, room for its shares, and the rows for its places.
type Begun<'a> = (&'a [u16], Chunk, Zeroizing<Vec<u128>>);

impl Party<'_> {
    fn begin<'a>(&mut self, channel: &mut Channel, indices: &'a [u16]) -> Result<Begun<'a>> {
        let (shape, transfers) = (self.shape, &mut *self.transfers);
        let at = (transfers.spent(), transfers.threads());
        let chunk = Chunk::new(shape, transfers.vector_keys(), at, indices.len());
        let rows = transfers.extend_vec(channel, indices.len() * shape.place_transfers())?;
        Ok((indices, chunk, rows))
    }

    /// Sends the corrections of a chunk, and chooses by its marks.
    fn mark(
        &mut self,
        channel: &mut Channel,
        indices: &[u16],
        (mut chunk, rows): (Chunk, &[u128]),
        rng: &mut impl CryptoRng,
    ) -> Result<Marked> {
        let parts = parts(&self.shape, indices.len(), rng);
        let message = chunk.correct((indices, &parts), (rows, *self.delta));
        channel.send(CORRECTIONS, &message)?;
        let received = match self.shape.block_transfers() {
            0 => Zeroizing::default(),
            _ => self.labels.extend_vec(channel, &chunk.marks()?)?,
        };
        Ok(Marked { chunk, received })
    }

    /// Receives the other party's second half of a chunk, and makes this party's.
    fn hear(
        &mut self,
        channel: &mut Channel,
        Marked { chunk, received }: Marked,
    ) -> Result<(Chunk, super::chunk::Opened, Vec<u8>)> {
        let sent = self
            .transfers
            .extend_vec(channel, chunk.block_transfers())?;
        let mut theirs = vec![0; chunk.len() * self.shape.block_correction_bytes()];
        channel.recv_exact(BLOCKS, &mut theirs)?;
        let opened = chunk.open([&sent, &received], *self.delta);
        Ok((chunk, opened, theirs))
    }
}

//! The party with the index, who grows the trees.

use super::kernel::{Grow, Octet};
use super::shape::Shape;
use super::{BATCH, CORRECTIONS, lanes};
use crate::cot::CotSender;
use crate::engine::{Backend, LANES};
use crate::error::OtError;
use primer_net::Channel;
use zeroize::Zeroizing;

/// Makes shares of `e_{u + b}` for each of the sender's `indices` b.
///
/// `sink(first, vectors)` gets the sender's vectors in order, some at a time, each
/// [`Shape::vector_bytes`] long, entry 0 in the lowest bit of the first byte. Memory does not grow
/// with the number of indices. The receiver must call [`super::receive`] with the same shape and
/// count.
///
/// # Errors
/// [`OtError::NotResidues`] if an index is out of range; those of [`CotSender::extend`]; those of
/// the sink.
pub fn send<E: From<OtError>>(
    cot: &mut CotSender,
    channel: &mut Channel,
    shape: Shape,
    indices: &[u16],
    mut sink: impl FnMut(usize, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let limit = shape.indices();
    let wrong = indices
        .iter()
        .fold(false, |w, &b| w | (usize::from(b) >= limit));
    if wrong {
        return Err(OtError::NotResidues { what: "indices" }.into());
    }
    for (index, chunk) in indices.chunks(shape.chunk()).enumerate() {
        let first = index * shape.chunk();
        send_chunk(cot, channel, &shape, chunk, |at, vectors| {
            sink(first + at, vectors)
        })?;
    }
    Ok(())
}

fn send_chunk<E: From<OtError>>(
    cot: &mut CotSender,
    channel: &mut Channel,
    shape: &Shape,
    indices: &[u16],
    mut sink: impl FnMut(usize, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let backend = Backend::detect();
    let keys = cot.tree_keys();
    let mut position = cot.spent();
    let per_element = shape.transfers();
    let rows = cot.extend_vec(channel, indices.len() * per_element)?;
    let delta = Zeroizing::new(cot.delta().label());
    let mut octet = Octet::new(shape);
    let length = indices.len() * shape.correction_bytes();
    let stream = channel.send_stream(CORRECTIONS, length as u64);
    let mut stream = stream.map_err(OtError::from)?;
    let mut message = Vec::with_capacity(LANES * shape.correction_bytes());
    let mut vectors = Zeroizing::new(Vec::with_capacity(BATCH * shape.vector_bytes()));
    let batches = indices.chunks(BATCH).zip(rows.chunks(BATCH * per_element));
    for (index, (indices, rows)) in batches.enumerate() {
        let keys = keys.at(backend, position);
        for (at, eight) in indices.chunks(LANES).enumerate() {
            lanes::gather(rows, indices.len(), LANES * at, &mut octet.transfers);
            lanes::place(eight, &mut octet.share);
            backend.run(Grow {
                shape,
                keys: &keys,
                delta: *delta,
                octet: &mut octet,
            });
            lanes::unload_blocks(&octet.levels, eight.len(), &mut message);
            for masked in octet.masked.chunks_exact(shape.blocks()) {
                lanes::unload(shape, masked, eight.len(), &mut message);
            }
            stream.put(&message).map_err(OtError::from)?;
            message.clear();
            lanes::unload(shape, &octet.share, eight.len(), &mut vectors);
        }
        sink(index * BATCH, &vectors)?;
        vectors.clear();
        position += rows.len() as u64;
    }
    stream.finish().map_err(OtError::from)?;
    Ok(channel.flush().map_err(OtError::from)?)
}

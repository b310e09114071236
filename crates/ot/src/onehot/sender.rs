//! The party with the index, who grows the trees.

use super::kernel::{Grow, Octet};
use super::shape::Shape;
use super::{BATCH, TURN, TreeKeys, lanes, side_by_side};
use crate::cot::CotSender;
use crate::engine::{Backend, LANES};
use crate::error::OtError;
use primer_net::Channel;
use primer_net::kind::one_hot::CORRECTIONS;
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
    let position = cot.spent();
    let per_element = shape.transfers();
    let rows = cot.extend_vec(channel, indices.len() * per_element)?;
    let trees = Trees {
        shape,
        backend,
        keys: &keys,
        delta: Zeroizing::new(cot.delta().label()),
    };
    let turns = indices.len().div_ceil(TURN);
    let mut growers: Vec<Grower> = (0..cot.threads().min(turns).max(1))
        .map(|_| Grower::new(shape))
        .collect();
    let length = indices.len() * shape.correction_bytes();
    let stream = channel.send_stream(CORRECTIONS, length as u64);
    let mut stream = stream.map_err(OtError::from)?;
    let round = growers.len() * TURN;
    for (index, now) in indices.chunks(round).enumerate() {
        let first = index * round;
        let jobs = now.chunks(TURN).enumerate().map(|(turn, indices)| {
            let at = (first + turn * TURN) * per_element;
            (indices, &rows[at..][..indices.len() * per_element], at)
        });
        side_by_side(&mut growers, jobs, |grower, (indices, rows, at)| {
            grower.grow(&trees, indices, rows, position + at as u64);
        });
        for (turn, grower) in growers[..now.len().div_ceil(TURN)].iter().enumerate() {
            stream.put(&grower.message).map_err(OtError::from)?;
            sink(first + turn * TURN, &grower.vectors)?;
        }
    }
    stream.finish().map_err(OtError::from)?;
    Ok(channel.flush().map_err(OtError::from)?)
}

/// What all trees of a chunk have in common.
struct Trees<'a> {
    shape: &'a Shape,
    backend: Backend,
    keys: &'a TreeKeys,
    delta: Zeroizing<u128>,
}

/// A thread's room, and what it has made of some elements.
struct Grower {
    octet: Octet,
    /// Corrections. They go to the receiver as they are.
    message: Vec<u8>,
    vectors: Zeroizing<Vec<u8>>,
}

impl Grower {
    fn new(shape: &Shape) -> Self {
        // Reserved at once: a buffer that grows would leave copies behind.
        Self {
            octet: Octet::new(shape),
            message: Vec::with_capacity(TURN * shape.correction_bytes()),
            vectors: Zeroizing::new(Vec::with_capacity(TURN * shape.vector_bytes())),
        }
    }

    /// Grows the trees of some elements, batch by batch. The first of their rows has this position.
    fn grow(&mut self, trees: &Trees<'_>, indices: &[u16], rows: &[u128], mut position: u64) {
        let Self {
            octet,
            message,
            vectors,
        } = self;
        let shape = trees.shape;
        message.clear();
        vectors.clear();
        let batches = rows.chunks(BATCH * shape.transfers());
        for (indices, rows) in indices.chunks(BATCH).zip(batches) {
            let keys = trees.keys.at(trees.backend, position);
            for (at, eight) in indices.chunks(LANES).enumerate() {
                lanes::gather(rows, indices.len(), LANES * at, &mut octet.transfers);
                lanes::place(eight, &mut octet.share);
                trees.backend.run(Grow {
                    shape,
                    keys: &keys,
                    delta: *trees.delta,
                    octet,
                });
                lanes::unload_blocks(&octet.levels, eight.len(), message);
                for masked in octet.masked.chunks_exact(shape.blocks()) {
                    lanes::unload(shape, masked, eight.len(), message);
                }
                lanes::unload(shape, &octet.share, eight.len(), vectors);
            }
            position += rows.len() as u64;
        }
    }
}

//! The party that draws the offset and learns all rows but one.

use super::kernel::{Octet, Regrow};
use super::shape::Shape;
use super::{BATCH, TURN, TreeKeys, lanes, side_by_side};
use crate::bits::Bits;
use crate::cot::CotReceiver;
use crate::engine::{Backend, LANES, Wide};
use crate::error::OtError;
use primer_net::Channel;
use primer_net::kind::one_hot::CORRECTIONS;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Makes shares of `e_{u + b}` for `count` offsets u, which are drawn here.
///
/// `sink(first, offsets, vectors)` gets the offsets and the receiver's vectors in order, some at a
/// time; see [`super::send`].
///
/// # Errors
/// Those of [`CotReceiver::extend`] and of the channel; those of the sink.
pub fn receive<E: From<OtError>>(
    cot: &mut CotReceiver,
    channel: &mut Channel,
    shape: Shape,
    count: usize,
    rng: &mut impl CryptoRng,
    mut sink: impl FnMut(usize, &[u16], &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    for first in (0..count).step_by(shape.chunk()) {
        let elements = shape.chunk().min(count - first);
        let choices = Bits::random(elements * shape.transfers(), rng);
        receive_chunk(cot, channel, &shape, &choices, |at, offsets, vectors| {
            sink(first + at, offsets, vectors)
        })?;
    }
    Ok(())
}

pub(super) fn receive_chunk<E: From<OtError>>(
    cot: &mut CotReceiver,
    channel: &mut Channel,
    shape: &Shape,
    choices: &Bits,
    mut sink: impl FnMut(usize, &[u16], &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let backend = Backend::detect();
    let keys = cot.tree_keys();
    let position = cot.spent();
    let per_element = shape.transfers();
    let count = choices.len() / per_element;
    let rows = cot.extend_vec(channel, choices)?;
    let trees = Trees {
        shape,
        backend,
        keys: &keys,
        choices,
    };
    let mut growers: Vec<Regrower> = (0..cot.threads().min(count.div_ceil(TURN)).max(1))
        .map(|_| Regrower::new(shape))
        .collect();
    let length = count * shape.correction_bytes();
    let stream = channel.recv_stream(CORRECTIONS, length as u64);
    let mut stream = stream.map_err(OtError::from)?;
    let round = growers.len() * TURN;
    for first in (0..count).step_by(round) {
        let now = round.min(count - first);
        let turns = now.div_ceil(TURN);
        let elements = |turn: usize| TURN.min(now - turn * TURN);
        for (turn, grower) in growers[..turns].iter_mut().enumerate() {
            (grower.message).resize(elements(turn) * shape.correction_bytes(), 0);
            stream.get(&mut grower.message).map_err(OtError::from)?;
        }
        let jobs = (0..turns).map(|turn| {
            let at = (first + turn * TURN) * per_element;
            (&rows[at..][..elements(turn) * per_element], at)
        });
        side_by_side(&mut growers, jobs, |grower, (rows, at)| {
            grower.regrow(&trees, rows, (position + at as u64, at));
        });
        for (turn, grower) in growers[..turns].iter().enumerate() {
            sink(first + turn * TURN, &grower.offsets, &grower.vectors)?;
        }
    }
    Ok(stream.finish().map_err(OtError::from)?)
}

/// What all trees of a chunk have in common.
struct Trees<'a> {
    shape: &'a Shape,
    backend: Backend,
    keys: &'a TreeKeys,
    choices: &'a Bits,
}

/// A thread's room, and what it has made of some elements.
struct Regrower {
    octet: Octet,
    /// The sender's corrections.
    message: Vec<u8>,
    /// The choices of eight elements, a byte for each bit of the offset.
    bits: Zeroizing<Vec<u8>>,
    offsets: Zeroizing<Vec<u16>>,
    vectors: Zeroizing<Vec<u8>>,
}

impl Regrower {
    fn new(shape: &Shape) -> Self {
        // Reserved at once: a buffer that grows would leave copies behind.
        Self {
            octet: Octet::new(shape),
            message: Vec::with_capacity(TURN * shape.correction_bytes()),
            bits: Zeroizing::new(vec![0; shape.transfers()]),
            offsets: Zeroizing::new(Vec::with_capacity(TURN)),
            vectors: Zeroizing::new(Vec::with_capacity(TURN * shape.vector_bytes())),
        }
    }

    /// Grows the trees of some elements again, batch by batch. The first of their rows has this
    /// position, and this choice.
    fn regrow(&mut self, trees: &Trees<'_>, rows: &[u128], (mut position, chosen): (u64, usize)) {
        let Self {
            octet,
            message,
            bits,
            offsets,
            vectors,
        } = self;
        let shape = trees.shape;
        offsets.clear();
        vectors.clear();
        let (mut message, mut chosen) = (&message[..], chosen);
        for rows in rows.chunks(BATCH * shape.transfers()) {
            let elements = rows.len() / shape.transfers();
            let keys = trees.keys.at(trees.backend, position);
            for first in (0..elements).step_by(LANES) {
                let eight = LANES.min(elements - first);
                for (bit, lanes) in bits.iter_mut().enumerate() {
                    *lanes = (trees.choices).eight(chosen + bit * elements + first, eight);
                }
                offsets.extend((0..eight).map(|lane| {
                    let set = bits.iter().enumerate();
                    set.fold(0, |u, (i, b)| u | u16::from(b >> lane & 1) << i)
                }));
                let (now, later) = message.split_at(eight * shape.correction_bytes());
                message = later;
                let (levels, masked) = now.split_at(16 * eight * shape.levels());
                lanes::load_blocks(levels, eight, &mut octet.levels);
                let each = octet.masked.chunks_exact_mut(shape.blocks());
                for (blocks, bytes) in each.zip(masked.chunks_exact(eight * shape.vector_bytes())) {
                    lanes::load(shape, bytes, eight, blocks);
                }
                lanes::gather(rows, elements, first, &mut octet.transfers);
                octet.share.fill(Wide::ZERO);
                trees.backend.run(Regrow {
                    shape,
                    keys: &keys,
                    offsets: bits,
                    octet,
                });
                lanes::unload(shape, &octet.share, eight, vectors);
            }
            position += rows.len() as u64;
            chosen += rows.len();
        }
    }
}

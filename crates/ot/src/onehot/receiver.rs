//! The party that draws the offset and learns all rows but one.

use super::kernel::{Octet, Regrow};
use super::shape::Shape;
use super::{BATCH, CORRECTIONS, lanes};
use crate::bits::Bits;
use crate::cot::CotReceiver;
use crate::engine::{Backend, LANES, Wide};
use crate::error::OtError;
use primer_net::Channel;
use rand_core::CryptoRng;
use zeroize::{Zeroize, Zeroizing};

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
    let mut position = cot.spent();
    let per_element = shape.transfers();
    let count = choices.len() / per_element;
    let rows = cot.extend_vec(channel, choices)?;
    let mut octet = Octet::new(shape);
    let length = count * shape.correction_bytes();
    let stream = channel.recv_stream(CORRECTIONS, length as u64);
    let mut stream = stream.map_err(OtError::from)?;
    let mut message = vec![0; LANES * shape.correction_bytes()];
    let mut vectors = Zeroizing::new(Vec::with_capacity(BATCH * shape.vector_bytes()));
    let mut offsets = Zeroizing::new([0u16; BATCH]);
    let mut bits = Zeroizing::new(vec![0; per_element]);
    let mut chosen = 0;
    for (index, rows) in rows.chunks(BATCH * per_element).enumerate() {
        let elements = rows.len() / per_element;
        let keys = keys.at(backend, position);
        for first in (0..elements).step_by(LANES) {
            let eight = LANES.min(elements - first);
            for (bit, lanes) in bits.iter_mut().enumerate() {
                *lanes = choices.eight(chosen + bit * elements + first, eight);
            }
            for (lane, offset) in offsets[first..first + eight].iter_mut().enumerate() {
                let set = bits.iter().enumerate();
                *offset = set.fold(0, |u, (i, b)| u | u16::from(b >> lane & 1) << i);
            }
            let message = &mut message[..eight * shape.correction_bytes()];
            stream.get(message).map_err(OtError::from)?;
            let (levels, masked) = message.split_at(16 * eight * shape.levels());
            lanes::load_blocks(levels, eight, &mut octet.levels);
            let each = octet.masked.chunks_exact_mut(shape.blocks());
            for (blocks, bytes) in each.zip(masked.chunks_exact(eight * shape.vector_bytes())) {
                lanes::load(shape, bytes, eight, blocks);
            }
            lanes::gather(rows, elements, first, &mut octet.transfers);
            octet.share.fill(Wide::ZERO);
            backend.run(Regrow {
                shape,
                keys: &keys,
                offsets: &bits,
                octet: &mut octet,
            });
            lanes::unload(shape, &octet.share, eight, &mut vectors);
        }
        sink(index * BATCH, &offsets[..elements], &vectors)?;
        vectors.zeroize();
        position += rows.len() as u64;
        chosen += rows.len();
    }
    Ok(stream.finish().map_err(OtError::from)?)
}

//! A model's hint, on its way from the server to the client.
//!
//! The card names it. Its list of hashes and its chunks come when they are asked for, and each is
//! compared with what names it before it is used.

use super::{HINT_CHUNK, HINT_INDEX, nonsense};
use crate::ServiceError;
use primer_hint::published::{Identity, Index};
use primer_wire::Channel;

/// Chunks that one request may ask for.
pub const MAX_CHUNKS: u32 = 64;

/// Sends the hashes of a hint.
///
/// # Errors
/// If the channel fails.
pub fn send_hint_index(channel: &mut Channel, index: &Index) -> Result<(), ServiceError> {
    channel.send(HINT_INDEX, &index.encode())?;
    Ok(channel.flush()?)
}

/// Receives the hashes of the hint that a card announced.
///
/// # Errors
/// [`ServiceError::Nonsense`] if they are those of another one.
pub fn receive_hint_index(
    channel: &mut Channel,
    identity: &Identity,
) -> Result<Index, ServiceError> {
    // A card with a hint beyond all bounds is not accepted, so this is not much.
    let mut bytes = vec![0; identity.index_bytes() as usize];
    channel.recv_exact(HINT_INDEX, &mut bytes)?;
    Index::decode(identity, &bytes)
        .or_else(|_| nonsense("the hashes of a hint that its card does not announce".into()))
}

/// Sends a chunk of a hint; the last one has to be flushed.
///
/// # Errors
/// If the channel fails.
pub fn send_hint_chunk(channel: &mut Channel, bytes: &[u8]) -> Result<(), ServiceError> {
    Ok(channel.send(HINT_CHUNK, bytes)?)
}

/// Receives a chunk of a hint.
///
/// # Errors
/// [`ServiceError::Nonsense`] if it is another one.
pub fn receive_hint_chunk(
    channel: &mut Channel,
    index: &Index,
    chunk: usize,
) -> Result<Vec<u8>, ServiceError> {
    let place = index.place(chunk);
    let mut bytes = vec![0; (place.end - place.start) as usize];
    channel.recv_exact(HINT_CHUNK, &mut bytes)?;
    match index.check(chunk, &bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => nonsense(format!(
            "chunk {chunk} of a hint that its card does not announce"
        )),
    }
}

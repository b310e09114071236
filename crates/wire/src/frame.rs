//! Frames: the unit in which the parties talk.
//!
//! ```text
//! byte 0        bytes 1..8                 bytes 8..8+length
//! kind          length, little-endian      payload
//! ```
//!
//! Eight bytes of header, so that payloads stay aligned in the buffers. The kind says which message
//! of the protocol this is; the receiver names the kind it expects, and with it the longest payload
//! that makes sense at this point. There is no frame-size constant anywhere: the limit belongs to
//! the message.

use crate::kind::Kind;

/// Bytes in front of every payload.
pub const HEADER_BYTES: u64 = 8;
/// The longest payload that a header can announce.
pub const MAX_PAYLOAD: u64 = (1 << 56) - 1;

/// Writes a header.
///
/// # Panics
/// If the length needs more than 56 bits: no value in memory does.
pub(crate) fn encode_header(kind: Kind, length: u64) -> [u8; HEADER_BYTES as usize] {
    assert!(length <= MAX_PAYLOAD, "a frame holds less than 2^56 bytes");
    (length << 8 | u64::from(kind.code())).to_le_bytes()
}

/// Reads a header: the code of the kind and the announced length.
pub(crate) fn decode_header(bytes: [u8; HEADER_BYTES as usize]) -> (u8, u64) {
    let word = u64::from_le_bytes(bytes);
    (word as u8, word >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_round_trip(code: u8, length in 0..=MAX_PAYLOAD) {
            let bytes = encode_header(Kind::unlisted(code), length);
            prop_assert_eq!(bytes[0], code);
            prop_assert_eq!(decode_header(bytes), (code, length));
        }
    }
}

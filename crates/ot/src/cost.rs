//! What transfers cost: bytes of frames as the meter counts them, headers included.
//!
//! Tests compare these formulas with the meter, so they can be used for sizing. For `n` transfers
//! of messages of `w` bits, from the extension's sender to its receiver and back; every 8 is a
//! frame header:
//!
//! | step | rounds | sender → receiver | receiver → sender |
//! |---|---|---|---|
//! | set-up, ML-KEM-768 | 1 | 8 + 32 + 128·1184 | 8 + 128·2·1088 |
//! | set-up, ristretto255 | 1 | 8 + 32 + 128·32 | 8 + 32 |
//! | … trees of SoftSpokenOT | with the answers | | 8 + 32·(128/k)·(k-1) |
//! | extension, IKNP (`k = 1`) | ½ | | 16 + 128·⌈n/8⌉ |
//! | extension, SoftSpokenOT | ½ | | 16 + (128/k)·⌈n/8⌉ |
//! | … with its check | with the extension | | (128/k)·16 + 48 more |
//! | … in the set-up | with the trees | | (128/k)·32 + 32 more |
//! | renewal | 1½ for any number | | as extension by 128, and trees |
//! | product, or one of late bits, offline | 1 | 8 + ⌈nw/8⌉ | as extension |
//! | the same online | 1 | 8 + ⌈nw/8⌉ | 8 + ⌈n/8⌉ |
//!
//! A set-up is made once for a session and direction, a renewal for each bundle and direction.

use crate::base::{BaseOt, COUNT, mlkem, ristretto};
use crate::check::{MASKING, PROOF_BYTES};
use crate::cot::POSITION_BYTES;
use crate::leaves;
use crate::onehot::Shape;
use crate::variant::Variant;
use primer_ring::pack::packed_len;
use primer_wire::frame::HEADER_BYTES;

/// Bytes in each direction of one step. Which party is the sender is left open here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransferBytes {
    /// From the sender of the extension to its receiver.
    pub from_sender: u64,
    /// From the receiver of the extension to its sender.
    pub from_receiver: u64,
}

/// Returns the cost of the base transfers of one extension; one round, begun by the extension's
/// sender.
pub fn setup(base: BaseOt) -> TransferBytes {
    let (keys, answers) = match base {
        BaseOt::MlKem => (mlkem::KEYS_BYTES, mlkem::ANSWERS_BYTES),
        BaseOt::Ristretto => (ristretto::KEYS_BYTES, ristretto::ANSWERS_BYTES),
    };
    TransferBytes {
        from_sender: HEADER_BYTES + keys as u64,
        from_receiver: HEADER_BYTES + answers as u64,
    }
}

/// Returns the cost of the set-up of an extension: the base transfers, and the trees of a variant
/// that has some.
pub fn setup_as(variant: Variant, base: BaseOt) -> TransferBytes {
    let mut bytes = setup(base);
    bytes.from_receiver += trees(variant);
    bytes
}

/// Returns the number of bytes of the message of the trees, zero if there is none.
fn trees(variant: Variant) -> u64 {
    match leaves::payload(variant) as u64 {
        0 => 0,
        payload => HEADER_BYTES + payload,
    }
}

/// Returns the payload bytes of an extension by `n`: the position, and `n` bits for each tree; if
/// it is checked, the masking transfers and the proof.
pub(crate) fn extension_payload(variant: Variant, n: usize) -> u64 {
    let messages = |n: usize| (variant.trees() * n.div_ceil(8)) as u64;
    let check = match variant.is_checked() {
        true => messages(MASKING) + PROOF_BYTES as u64,
        false => 0,
    };
    POSITION_BYTES as u64 + messages(n) + check
}

/// Returns the cost of `n` correlated transfers of the default variant: `16·n` and a constant, one
/// way.
pub fn extension(n: usize) -> TransferBytes {
    extension_as(Variant::default(), n)
}

/// Returns the cost of `n` correlated transfers of a variant, one way.
pub fn extension_as(variant: Variant, n: usize) -> TransferBytes {
    TransferBytes {
        from_sender: 0,
        from_receiver: HEADER_BYTES + extension_payload(variant, n),
    }
}

/// Returns the cost of new transfers from old ones ([`crate::renewal`]): what a party sends to
/// renew the direction in which it receives, of one variant. One round for both directions.
pub fn renewal(variant: Variant) -> u64 {
    extension_as(variant, COUNT).from_receiver + trees(variant)
}

/// Returns the bit width of a residue of `modulus`.
pub fn width(modulus: u64) -> u32 {
    u64::BITS - modulus.saturating_sub(1).leading_zeros()
}

fn residues(n: usize, modulus: u64) -> u64 {
    HEADER_BYTES + packed_len(n, width(modulus)).unwrap_or(usize::MAX) as u64
}

fn correction(n: usize) -> u64 {
    HEADER_BYTES + n.div_ceil(8) as u64
}

/// Returns the cost of `n` products with a known factor, offline: an extension of the default
/// variant and one residue each.
pub fn product_offline(n: usize, modulus: u64) -> TransferBytes {
    product_offline_as(Variant::default(), n, modulus)
}

/// Returns the cost of `n` products with a known factor, offline, on transfers of a variant.
pub fn product_offline_as(variant: Variant, n: usize, modulus: u64) -> TransferBytes {
    TransferBytes {
        from_sender: residues(n, modulus),
        ..extension_as(variant, n)
    }
}

/// Returns the cost of shares of `count` one-hot vectors ([`crate::onehot`]): what the index party
/// sends, and what the offset party sends, on transfers of these variants that the index party and
/// the offset party receive. The round trips are [`onehot_rounds`].
pub fn onehot([to_index, to_offset]: [Variant; 2], shape: &Shape, count: usize) -> [u64; 2] {
    let (places, blocks) = (shape.place_transfers(), shape.block_transfers());
    let extension = |variant, n| extension_as(variant, n).from_receiver;
    let message = |bytes: usize, n| HEADER_BYTES + (bytes * n) as u64;
    let mut sent = [0; 2];
    for n in shape.chunks(count) {
        sent[0] += message(shape.correction_bytes(), n);
        sent[1] += extension(to_offset, n * places);
        if blocks > 0 {
            let both = message(shape.block_correction_bytes(), n);
            sent[0] += extension(to_index, n * blocks) + both;
            sent[1] += extension(to_offset, n * blocks) + both;
        }
    }
    sent
}

/// Returns the number of round trips of [`onehot()`]: one for each chunk, begun by the offset
/// party, and one more if a vector has several blocks.
pub fn onehot_rounds(shape: &Shape, count: usize) -> usize {
    let chunks = shape.chunks(count).count();
    chunks + usize::from(chunks > 0 && shape.block_transfers() > 0)
}

/// Returns the cost of `n` products with a known factor, online: a bit up, one residue down, one
/// round.
pub fn product_online(n: usize, modulus: u64) -> TransferBytes {
    TransferBytes {
        from_sender: residues(n, modulus),
        from_receiver: correction(n),
    }
}

/// Returns the cost of `n` products of bits that both come late, offline: as many bytes as if one
/// of the factors were known, [`product_offline_as`].
pub fn bit_product_offline_as(variant: Variant, n: usize, modulus: u64) -> TransferBytes {
    product_offline_as(variant, n, modulus)
}

/// Returns the cost of `n` products of bits that both come late, online: a bit each way, one round.
pub fn bit_product_online(n: usize) -> TransferBytes {
    TransferBytes {
        from_sender: correction(n),
        from_receiver: correction(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_the_protocol_page() {
        assert_eq!(setup(BaseOt::MlKem).from_sender, 8 + 151_584);
        assert_eq!(setup(BaseOt::MlKem).from_receiver, 8 + 278_528);
        assert_eq!(setup(BaseOt::Ristretto).from_sender, 8 + 4_128);
        assert_eq!(setup(BaseOt::Ristretto).from_receiver, 8 + 32);
        assert_eq!(extension(1 << 20).from_receiver, 16 + (16 << 20));
        let p = (1 << 41) - (1 << 16) + 1;
        assert_eq!(width(p), 41);
        assert_eq!(width(1 << 41), 41);
        assert_eq!((width(2), width(3), width(4)), (1, 2, 2));
        let n = 8000;
        // 5.25 bytes per element, and two headers.
        let product = product_online(n, p);
        assert_eq!(product.from_sender + product.from_receiver, 16 + 42_000);
    }
}

//! What transfers cost: bytes of frames as the meter counts them, headers included.
//!
//! Tests compare these formulas with the meter, so they can be used for sizing.

use crate::base::{BaseOt, mlkem, ristretto};
use crate::cot::POSITION_BYTES;
use primer_net::frame::HEADER_BYTES;
use primer_ring::pack::packed_len;

/// Bytes in each direction of one step. Which party is the sender is not decided here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransferBytes {
    /// From the sender of the extension to its receiver.
    pub from_sender: u64,
    /// From the receiver of the extension to its sender.
    pub from_receiver: u64,
}

/// The base transfers of one extension; one round, begun by the extension's sender.
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

/// The payload of an extension by `n`: the position, and 128 columns of `n` bits.
pub(crate) fn extension_payload(n: usize) -> u64 {
    POSITION_BYTES as u64 + 128 * (n as u64).div_ceil(8)
}

/// `n` correlated transfers: `16·n` and a constant, one way.
pub fn extension(n: usize) -> TransferBytes {
    TransferBytes {
        from_sender: 0,
        from_receiver: HEADER_BYTES + extension_payload(n),
    }
}

/// Bits of a residue of `modulus`.
pub fn width(modulus: u64) -> u32 {
    u64::BITS - modulus.saturating_sub(1).leading_zeros()
}

fn residues(n: usize, modulus: u64) -> u64 {
    HEADER_BYTES + packed_len(n, width(modulus)).unwrap_or(usize::MAX) as u64
}

fn correction(n: usize) -> u64 {
    HEADER_BYTES + n.div_ceil(8) as u64
}

/// `n` products with a known factor, offline: an extension and one residue each.
pub fn product_offline(n: usize, modulus: u64) -> TransferBytes {
    TransferBytes {
        from_sender: residues(n, modulus),
        ..extension(n)
    }
}

/// `n` products with a known factor, online: a bit up, one residue down, one round.
pub fn product_online(n: usize, modulus: u64) -> TransferBytes {
    TransferBytes {
        from_sender: residues(n, modulus),
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

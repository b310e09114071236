//! The bits of numbers as choices of transfers: in a batch, the bits of equal weight side by side.

use super::BATCH;
use crate::bits::Bits;
use crate::error::Result;
use zeroize::Zeroizing;

/// Returns bits `first..first + count` of all numbers, batch by batch, and in a batch weight by
/// weight.
pub(super) fn choices(numbers: &[u16], first: u32, count: usize) -> Result<Bits> {
    let len = numbers.len() * count;
    // Reserved at once: a buffer that grows would leave copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(len.div_ceil(8) + 16));
    let (mut waiting, mut held) = (Zeroizing::new(0u128), 0);
    for batch in numbers.chunks(BATCH) {
        for weight in first..first + count as u32 {
            let bit = |(j, number): (usize, &u16)| u64::from(number >> weight & 1) << j;
            let plane: u64 = batch.iter().enumerate().map(bit).sum();
            *waiting |= u128::from(plane) << held;
            held += batch.len();
            let whole = held / 8;
            bytes.extend_from_slice(&waiting.to_le_bytes()[..whole]);
            *waiting >>= 8 * whole;
            held %= 8;
        }
    }
    bytes.extend_from_slice(&waiting.to_le_bytes()[..held.div_ceil(8)]);
    Bits::from_bytes(std::mem::take(&mut *bytes), len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_equal_weight_lie_side_by_side() {
        for n in [0, 1, 7, 63, 64, 65, 130] {
            let numbers: Vec<u16> = (0..n).map(|i| (i * 40_503) as u16).collect();
            let bits = choices(&numbers, 1, 7).unwrap();
            assert_eq!(bits.len(), 7 * n);
            let mut at = 0;
            for batch in numbers.chunks(BATCH) {
                for weight in 1..8 {
                    for number in batch {
                        assert_eq!(bits.get(at), number >> weight & 1 == 1);
                        at += 1;
                    }
                }
            }
        }
    }
}

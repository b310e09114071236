//! Bit packing: residues of `w` bits laid end to end, least significant bit first.
//!
//! Every message that carries residues uses this one layout: 41-bit shares, 30-bit limbs, 16-bit
//! ring values. Packing is exact: `n` values of `w` bits take `⌈n·w/8⌉` bytes and the unused high
//! bits of the last byte are zero, which decoding checks, so that every byte string has at most
//! one meaning.

use crate::modulus::K;
use thiserror::Error;

/// Why packed bytes were refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PackError {
    /// The byte count does not belong to the announced number of values.
    #[error("{values} packed values of {width} bits take {expected} bytes, not {actual}")]
    Length {
        /// Values announced.
        values: usize,
        /// Bits of each.
        width: u32,
        /// Bytes that would be right.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// A value is not below the modulus.
    #[error("packed value {index} is not a residue of its modulus")]
    OutOfRange {
        /// Its position.
        index: usize,
    },
    /// The unused bits at the end are not zero.
    #[error("the padding after the last packed value is not zero")]
    Padding,
}

/// Returns the number of bytes taken by `values` values of `width` bits, or `None` if that
/// overflows.
pub fn packed_len(values: usize, width: u32) -> Option<usize> {
    Some(values.checked_mul(width as usize)?.div_ceil(8))
}

/// Calls `$run` with a width, as a constant for the widths of which messages have many values:
/// shifts by constants are several times as fast.
macro_rules! with_width {
    ($width:expr, $run:expr) => {
        match $width {
            30 => $run(30),
            K => $run(K),
            46 => $run(46),
            52 => $run(52),
            width => $run(width),
        }
    };
}

/// Appends values of `width` bits (1 to 57) to a buffer.
///
/// # Panics
/// If the width is out of range. Values must fit the width (checked in debug builds).
pub fn pack(values: impl ExactSizeIterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    let start = out.len();
    let len = packed_len(values.len(), width).expect("values in memory can be counted");
    out.resize(start + len, 0);
    pack_into(values, width, &mut out[start..]);
}

/// Writes values of `width` bits (1 to 57) over a slice of their length.
///
/// # Panics
/// If the width is out of range or the slice has another length. Values must fit the width (checked
/// in debug builds).
pub fn pack_into(values: impl ExactSizeIterator<Item = u64>, width: u32, out: &mut [u8]) {
    assert!(
        (1..=57).contains(&width),
        "packable widths are 1 to 57 bits"
    );
    assert_eq!(Some(out.len()), packed_len(values.len(), width));
    with_width!(width, |width| pack_octets(values, width, out));
}

/// Packs eight values at a time, which fill whole bytes.
#[inline(always)]
fn pack_octets(mut values: impl ExactSizeIterator<Item = u64>, width: u32, out: &mut [u8]) {
    for out in out.chunks_mut(width as usize) {
        let mut words = [[0; 8]; 8];
        let (mut sum, mut bits, mut at) = (0u128, 0, 0);
        for _ in 0..8 {
            let v = values.next().unwrap_or(0);
            debug_assert!(v >> width == 0, "a packed value fits its width");
            sum |= u128::from(v) << bits;
            bits += width;
            if bits >= 64 {
                words[at] = (sum as u64).to_le_bytes();
                (sum, bits, at) = (sum >> 64, bits - 64, at + 1);
            }
        }
        // Eight values of 57 bits leave eight bits for the last word.
        words[at] = (sum as u64).to_le_bytes();
        out.copy_from_slice(&words.as_flattened()[..out.len()]);
    }
}

/// Reads `out.len()` values of `width` bits, each below `modulus`.
///
/// # Errors
/// [`PackError`] if the length, a value or the padding is wrong; `out` is unspecified then.
pub fn unpack(bytes: &[u8], width: u32, modulus: u64, out: &mut [u64]) -> Result<(), PackError> {
    unpack_each(bytes, width, modulus, out.len(), |i, v| out[i] = v)
}

/// Reads `out.len()` values of `width` bits (32 at most), each below `modulus`.
///
/// # Errors
/// As [`unpack`].
pub fn unpack_u32(
    bytes: &[u8],
    width: u32,
    modulus: u32,
    out: &mut [u32],
) -> Result<(), PackError> {
    assert!(width <= 32, "values of 32 bits");
    unpack_each(bytes, width, modulus.into(), out.len(), |i, v| {
        out[i] = v as u32
    })
}

fn unpack_each(
    bytes: &[u8],
    width: u32,
    modulus: u64,
    values: usize,
    emit: impl FnMut(usize, u64),
) -> Result<(), PackError> {
    assert!(
        (1..=57).contains(&width),
        "packable widths are 1 to 57 bits"
    );
    let expected = packed_len(values, width).unwrap_or(usize::MAX);
    if bytes.len() != expected {
        return Err(PackError::Length {
            values,
            width,
            expected,
            actual: bytes.len(),
        });
    }
    with_width!(width, |width| unpack_octets(
        bytes, width, modulus, values, emit
    ))
}

#[inline(always)]
fn unpack_octets(
    bytes: &[u8],
    width: u32,
    modulus: u64,
    values: usize,
    mut emit: impl FnMut(usize, u64),
) -> Result<(), PackError> {
    let (mask, size) = ((1u64 << width) - 1, width as usize);
    let mut outside = None;
    let mut done = 0;
    // Eight values at a time, as long as eight bytes follow each of them.
    while let Some(octet) = bytes.get(done / 8 * size..done / 8 * size + size + 8) {
        let mut found = [0; 8];
        let mut inside = true;
        for (i, v) in found.iter_mut().enumerate() {
            let word = octet[i * size / 8..].first_chunk().expect("eight bytes");
            *v = (u64::from_le_bytes(*word) >> (i * size % 8)) & mask;
            inside &= *v < modulus;
        }
        for (i, v) in found.into_iter().enumerate() {
            emit(done + i, v);
        }
        if !inside {
            let first = found.iter().position(|&v| v >= modulus);
            outside = outside.or(first.map(|i| done + i));
        }
        done += 8;
    }
    // The eight bytes from a value's first byte hold it whole: 57 bits and a shift of up to 7.
    let read = |bit: usize| {
        let rest = bytes[bit / 8..].iter().take(8).rev();
        rest.fold(0, |word, &b| (word << 8) | u64::from(b)) >> (bit % 8)
    };
    for i in done..values {
        let v = read(i * size) & mask;
        emit(i, v);
        if v >= modulus {
            outside = outside.or(Some(i));
        }
    }
    let used = values * size;
    if let Some(index) = outside {
        Err(PackError::OutOfRange { index })
    } else if !used.is_multiple_of(8) && read(used) != 0 {
        Err(PackError::Padding)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trip(width in 1u32..=57, raw in proptest::collection::vec(any::<u64>(), 0..50)) {
            let most = (1 << width) - 2;
            let values: Vec<u64> = raw.iter().map(|v| (v & (most + 1)).min(most)).collect();
            let mut bytes = vec![0xaa];
            pack(values.iter().copied(), width, &mut bytes);
            prop_assert_eq!(bytes.len() - 1, packed_len(values.len(), width).unwrap());
            let mut back = vec![0; values.len()];
            unpack(&bytes[1..], width, 1 << width, &mut back).unwrap();
            prop_assert_eq!(&back, &values);
            if width <= 32 {
                let mut short = vec![0; values.len()];
                unpack_u32(&bytes[1..], width, u32::MAX, &mut short).unwrap();
                prop_assert!(short.iter().zip(&values).all(|(&s, &v)| u64::from(s) == v));
            }
        }
    }

    #[test]
    fn refusals() {
        let mut bytes = Vec::new();
        pack([5u64, 6, 7].into_iter(), 3, &mut bytes);
        let mut out = [0; 3];
        assert_eq!(
            unpack(&bytes, 3, 7, &mut out),
            Err(PackError::OutOfRange { index: 2 })
        );
        assert!(matches!(
            unpack(&bytes[..1], 3, 8, &mut out),
            Err(PackError::Length { .. })
        ));
        bytes[1] |= 0x80;
        assert_eq!(unpack(&bytes, 3, 8, &mut out), Err(PackError::Padding));
        assert_eq!(packed_len(usize::MAX, 41), None);
    }
}

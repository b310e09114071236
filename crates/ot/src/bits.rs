//! A secret string of bits, packed least significant bit first.

use crate::error::{OtError, Result};
use rand_core::CryptoRng;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Choice bits. Wiped when dropped; does not print, compare or clone.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    /// Makes a string whose bit `i` is `bit(i)`.
    pub fn from_fn(len: usize, mut bit: impl FnMut(usize) -> bool) -> Self {
        let mut bytes = vec![0; len.div_ceil(8)];
        for i in 0..len {
            bytes[i / 8] |= u8::from(bit(i)) << (i % 8);
        }
        Self { bytes, len }
    }

    /// Draws uniform bits.
    pub fn random(len: usize, rng: &mut impl CryptoRng) -> Self {
        let mut bytes = vec![0; len.div_ceil(8)];
        rng.fill_bytes(&mut bytes);
        if let Some(last) = bytes.last_mut() {
            *last &= last_mask(len);
        }
        Self { bytes, len }
    }

    /// Takes packed bytes as they came from the peer.
    ///
    /// # Errors
    /// [`OtError::Count`] if the length is wrong, [`OtError::Padding`] if unused bits are set.
    pub fn from_bytes(bytes: Vec<u8>, len: usize) -> Result<Self> {
        crate::error::expect_count("packed bytes", len.div_ceil(8), bytes.len())?;
        match bytes.last() {
            Some(last) if last & !last_mask(len) != 0 => Err(OtError::Padding { bits: len }),
            _ => Ok(Self { bytes, len }),
        }
    }

    /// Returns the number of bits.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns bit `i`.
    ///
    /// # Panics
    /// If there is no such bit.
    pub fn get(&self, i: usize) -> bool {
        assert!(i < self.len, "bit {i} of {}", self.len);
        self.bytes[i / 8] >> (i % 8) & 1 == 1
    }

    /// Returns the packed bytes; unused bits are zero.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the sum without carry of two strings of the same length.
    ///
    /// # Errors
    /// [`OtError::Count`] if the lengths differ.
    pub fn xor(&self, other: &Self) -> Result<Self> {
        crate::error::expect_count("choice bits", self.len, other.len)?;
        let bytes = self.bytes.iter().zip(&other.bytes).map(|(a, b)| a ^ b);
        Ok(Self {
            bytes: bytes.collect(),
            len: self.len,
        })
    }
}

/// Returns the mask of the used bits of the last byte.
fn last_mask(len: usize) -> u8 {
    0xff >> ((8 - len % 8) % 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_from_the_peer_are_right_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..10),
            len in 0usize..80,
        ) {
            match Bits::from_bytes(bytes.clone(), len) {
                Ok(bits) => {
                    prop_assert_eq!(bits.bytes(), &bytes[..]);
                    let again = Bits::from_fn(len, |i| bits.get(i));
                    prop_assert_eq!(again.bytes(), &bytes[..]);
                }
                Err(OtError::Count { .. }) => prop_assert!(bytes.len() != len.div_ceil(8)),
                Err(OtError::Padding { .. }) => {
                    prop_assert!(u32::from(*bytes.last().unwrap()) >> (len % 8) != 0);
                }
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
    }

    #[test]
    fn random_bits_have_clean_padding() {
        let mut rng = Prg::new(&[1; 16]);
        for len in 0..40 {
            let bits = Bits::random(len, &mut rng);
            assert!(Bits::from_bytes(bits.bytes().to_vec(), len).is_ok());
            let zero = bits.xor(&bits).unwrap();
            assert!(zero.bytes().iter().all(|&b| b == 0));
        }
        let (a, b) = (Bits::from_fn(9, |_| true), Bits::from_fn(10, |_| true));
        assert!(a.xor(&b).is_err());
    }
}

//! The name of a bundle, the same on both sides.

use crate::error::{Result, StoreError};
use rand_core::CryptoRng;
use std::fmt;
use std::str::FromStr;

/// Sixteen random bytes: they name a bundle and reveal nothing about it.
///
/// Chosen by one party before the offline phase and used by both. A name alone must not be enough
/// to get a bundle from a server: [`crate::BundleStore::spend`] asks for the peer as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundleId([u8; 16]);

impl BundleId {
    /// Draws a fresh name.
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        let mut bytes = [0; 16];
        rng.fill_bytes(&mut bytes);
        Self(bytes)
    }

    /// Makes the name with these bytes, as it came over the wire.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for BundleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BundleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for BundleId {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.as_bytes();
        let mut bytes = [0; 16];
        // Each name has one spelling, since files are found by it.
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        if digits.len() == 32 {
            let pairs = bytes.iter_mut().zip(digits.chunks_exact(2));
            let read = pairs.map(|(byte, pair)| {
                *byte = value(pair[0])? << 4 | value(pair[1])?;
                Some(())
            });
            if read.collect::<Option<()>>().is_some() {
                return Ok(Self(bytes));
            }
        }
        Err(StoreError::NotAnId {
            text: text.chars().take(64).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;

    #[test]
    fn names_print_and_parse() {
        let id = BundleId::random(&mut Prg::new(&[3; 16]));
        let text = id.to_string();
        assert_eq!(text.len(), 32);
        assert_eq!(text.parse::<BundleId>().unwrap(), id);
        assert_eq!(format!("{id:?}"), text);
        let upper = BundleId::from_bytes([0xab; 16]).to_string().to_uppercase();
        for wrong in [
            "",
            "00",
            &text[1..],
            &format!("{text}0"),
            &upper,
            &"é".repeat(16),
        ] {
            assert!(matches!(
                wrong.parse::<BundleId>(),
                Err(StoreError::NotAnId { .. })
            ));
        }
    }
}

//! What an encrypted transport knows of the other end.

use std::fmt;
use std::str::FromStr;

/// The SHA-256 fingerprint of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Takes the hash of a certificate, which its caller computed.
    pub const fn from_hash(hash: [u8; 32]) -> Self {
        Self(hash)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    /// Reads 64 hexadecimal digits; colons between bytes are allowed.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "a fingerprint is 64 hexadecimal digits".to_owned();
        let digits: Vec<u32> = text
            .chars()
            .filter(|&c| c != ':')
            .map(|c| c.to_digit(16).ok_or_else(wrong))
            .collect::<Result<_, _>>()?;
        let bytes: Vec<u8> = digits
            .chunks(2)
            .filter_map(|pair| Some((pair[0] << 4 | *pair.get(1)?) as u8))
            .collect();
        if digits.len() != 64 {
            return Err(wrong());
        }
        Ok(Self(bytes.try_into().map_err(|_| wrong())?))
    }
}

/// What the two ends of a TLS connection agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    /// The key-exchange group, such as `X25519MLKEM768`.
    pub key_exchange: String,
    /// The cipher suite.
    pub cipher_suite: String,
    /// The fingerprint of the peer's certificate, if it showed one.
    pub peer: Option<Fingerprint>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_text_and_back() {
        let fingerprint = Fingerprint::from_hash(std::array::from_fn(|i| 0xa7 ^ i as u8));
        let text = fingerprint.to_string();
        assert_eq!(text.len(), 64);
        assert_eq!(text.parse(), Ok(fingerprint));
        let colons: Vec<String> = (0..32)
            .map(|i| text[2 * i..2 * i + 2].to_uppercase())
            .collect();
        assert_eq!(colons.join(":").parse(), Ok(fingerprint));
        for wrong in [
            "",
            "00",
            &text[1..],
            &format!("{text}0"),
            &text.replace('a', "x"),
        ] {
            assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
        }
    }
}

//! Access tokens: who may use the server.
//!
//! A file with one token a line; empty lines and lines that begin with `#` do not count. Tokens are
//! compared as keyed hashes in constant time, so that neither their bytes nor their number of right
//! characters can be learnt by asking, and the server keeps no token in memory.

use crate::service::message::MAX_TOKEN;
use crate::service::{ServiceError, io_error, random};
use std::path::Path;
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

/// The shortest token that is worth guessing at length.
const MIN_TOKEN: usize = 16;

/// The tokens that a server admits.
pub struct AccessTokens {
    key: [u8; 32],
    hashes: Vec<[u8; 32]>,
}

impl AccessTokens {
    /// Reads a file of tokens.
    ///
    /// # Errors
    /// [`ServiceError`] naming the file and the line at fault.
    pub fn read(path: &Path) -> Result<Self, ServiceError> {
        let text = std::fs::read_to_string(path)
            .map(Zeroizing::new)
            .map_err(io_error(format!("reading the tokens {}", path.display())))?;
        Self::parse(&text)
            .map_err(|why| ServiceError::Options(format!("{}: {why}", path.display())))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let key = random().map_err(|error| error.to_string())?;
        let mut hashes = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let token = line.trim();
            if token.is_empty() || token.starts_with('#') {
                continue;
            }
            if token.len() < MIN_TOKEN || token.len() > MAX_TOKEN {
                return Err(format!(
                    "line {}: a token has {MIN_TOKEN} to {MAX_TOKEN} characters, this one {}",
                    number + 1,
                    token.len()
                ));
            }
            hashes.push(*blake3::keyed_hash(&key, token.as_bytes()).as_bytes());
        }
        if hashes.is_empty() {
            return Err("there is no token, so nobody could connect".into());
        }
        Ok(Self { key, hashes })
    }

    /// Whether a token is one of them.
    pub fn admits(&self, token: Option<&str>) -> bool {
        let given = token.unwrap_or_default();
        let hash = blake3::keyed_hash(&self.key, given.as_bytes());
        let known = self.hashes.iter().fold(Choice::from(0), |known, entry| {
            known | entry.ct_eq(hash.as_bytes())
        });
        bool::from(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_whole_lines() {
        let tokens =
            AccessTokens::parse("# for the tests\n\n0123456789abcdef\n a-second-token-16 \n");
        let tokens = tokens.unwrap();
        assert!(tokens.admits(Some("0123456789abcdef")));
        assert!(tokens.admits(Some("a-second-token-16")));
        for wrong in [
            None,
            Some(""),
            Some("0123456789abcde"),
            Some("# for the tests"),
        ] {
            assert!(!tokens.admits(wrong));
        }
    }

    #[test]
    fn useless_files_are_refused_by_line() {
        let refused = |text| AccessTokens::parse(text).err().unwrap();
        assert!(refused("\n0123456789abcdef\nshort\n").starts_with("line 3"));
        assert!(refused("# nothing\n").contains("no token"));
        assert!(refused(&"x".repeat(257)).contains("257"));
    }
}

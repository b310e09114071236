//! One line of the file: a hash, perhaps limits, a name.
//!
//! ```text
//! blake3:5d1c… the laptop of the archive
//! blake3:77e0…;answers=1000/day,100000;prepared=5000 another user
//! ```
//!
//! Limits stand in the word of the hash, so every line of before means what it meant, under every
//! name; and a program of before refuses a line with limits instead of admitting without them.

use primer_service::hex;
use primer_service::message::printable;
use primer_store::{Account, Allowance, Allowances};

/// What a line begins with.
pub(super) const SCHEME: &str = "blake3:";
/// Digits that tell a token without a name, or of several with one.
const ID_DIGITS: usize = 8;

pub(super) type Hash = [u8; 32];

/// What a token may have, where its line says so; otherwise the server's options say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenLimits {
    /// Bundles prepared.
    pub prepared: Option<Allowance>,
    /// Answers.
    pub answers: Option<Allowance>,
}

impl TokenLimits {
    /// Takes these limits, and for what they leave open those of the server.
    pub(crate) fn or(self, server: Allowances) -> Allowances {
        Allowances {
            prepared: self.prepared.unwrap_or(server.prepared),
            answers: self.answers.unwrap_or(server.answers),
        }
    }
}

/// A token as the server's file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenLine {
    pub(super) hash: Hash,
    /// Whose it is.
    pub name: String,
    /// What it may have.
    pub limits: TokenLimits,
}

impl TokenLine {
    /// Reads a line that is neither empty nor a comment.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let end = line.iter().position(u8::is_ascii_whitespace);
        let (word, name) = line.split_at(end.unwrap_or(line.len()));
        // A name may be in any encoding; the rest may not.
        let mut parts = std::str::from_utf8(word).ok()?.split(';');
        let digits = parts.next()?.strip_prefix(SCHEME)?;
        let hash = *blake3::Hash::from_hex(digits).ok()?.as_bytes();
        let mut limits = TokenLimits::default();
        for part in parts {
            let (key, value) = part.split_once('=')?;
            let place = match key {
                "prepared" => &mut limits.prepared,
                "answers" => &mut limits.answers,
                _ => return None,
            };
            if place.replace(value.parse().ok()?).is_some() {
                return None;
            }
        }
        Some(Self {
            hash,
            name: printable(String::from_utf8_lossy(name.trim_ascii()).as_ref()),
            limits,
        })
    }

    /// Returns the hash that a line begins with, whatever follows: whose line it is, if it is
    /// damaged.
    pub(super) fn hash_in(line: &[u8]) -> Option<Hash> {
        let digits = line.strip_prefix(SCHEME.as_bytes())?.get(..64)?;
        Some(*blake3::Hash::from_hex(digits).ok()?.as_bytes())
    }

    /// Writes the word before the name.
    pub(super) fn word(&self) -> String {
        let mut word = format!("{SCHEME}{}", hex(&self.hash));
        let limits = [
            ("prepared", self.limits.prepared),
            ("answers", self.limits.answers),
        ];
        for (key, limit) in limits {
            if let Some(limit) = limit {
                word += &format!(";{key}={limit}");
            }
        }
        word
    }

    /// Returns the first digits of its hash: they open nothing, and tell tokens of one name apart.
    pub fn id(&self) -> String {
        hex(&self.hash[..ID_DIGITS / 2])
    }

    /// Returns what it is called in logs and metrics: its name, or `#` and its [`id`](Self::id).
    pub fn label(&self) -> String {
        match self.name.is_empty() {
            true => format!("#{}", self.id()),
            false => self.name.clone(),
        }
    }

    /// Returns the name under which a store counts for it.
    pub fn account(&self) -> Account {
        Account {
            id: blake3::derive_key("primer 2026 account of an access token", &self.hash),
            lasting: true,
        }
    }

    /// Tells whether this is what is called so: by its name, or by the first digits of its hash.
    pub(super) fn is_called(&self, what: &str) -> bool {
        let digits = what.strip_prefix('#').unwrap_or(what);
        self.name == what || digits.len() >= ID_DIGITS && hex(&self.hash).starts_with(digits)
    }
}

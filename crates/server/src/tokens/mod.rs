//! Access tokens: who may use the server, and how much of it.
//!
//! A token is 256 random bits, so guessing it is hopeless and a plain hash of it can be told to
//! anyone: there is no dictionary to try. The server's file holds such hashes, one a line, each
//! with a name for its owner and, if they differ from the server's, limits ([`TokenLine`]); empty
//! lines and lines that begin with `#` do not count:
//!
//! ```text
//! # made by `primer token new`
//! blake3:5d1c… the laptop of the archive
//! blake3:77e0…;answers=1000/day,100000 another user
//! ```
//!
//! [`new_token`] makes a token, appends its hash, and gives the token out once. No party but the
//! file's owner may have any right to it: who can write it admits whom they like.
//!
//! # Reading the file again
//!
//! A server reads the file when it starts, where any fault is an error, and again when it is told
//! to ([`AccessTokens::reload`]). Then there may be tokens to withdraw, and a fault must not keep
//! them: *a token whose line is not in the file is never admitted*, even if all else is wrong.
//!
//! | the file | is admitted from then on |
//! |---|---|
//! | has no fault | every token in it |
//! | has a damaged line, or is not its owner's alone | known tokens of good lines, as they were |
//! | is empty, missing, too long or cannot be read | none: every client is refused |
//!
//! So a file with a fault adds no token and changes no limit: it may not be its owner's who wrote
//! it.
//!
//! # Sessions that are inside
//!
//! An open session follows the file by its token:
//!
//! | its token | it may have |
//! |---|---|
//! | is admitted | what stands in its line now |
//! | has only damaged lines, which begin with its hash | what it might have last |
//! | is in no line, or there are no lines to be read | nothing more: each request is refused |
//!
//! A line that is damaged in its hash names no token, and cannot be told from one that was deleted.
//!
//! Tokens are hashed as they come and compared in constant time with every line, so that neither
//! their bytes nor their number of right characters can be learnt by asking.

mod file;
mod line;

pub use file::{find_token, limit_token, list_tokens, new_token, revoke_token};
pub use line::{TokenLimits, TokenLine};

use file::{look_closely, read};
use line::{Hash, SCHEME};
use primer_service::ServiceError;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use subtle::{ConditionallySelectable, ConstantTimeEq};

/// The tokens that a server admits.
pub struct AccessTokens {
    path: PathBuf,
    lines: RwLock<Lines>,
}

/// What is known of the file.
struct Lines {
    /// The tokens that are admitted.
    admitted: Vec<TokenLine>,
    /// Tokens that were, and are still in the file, but have no good line: for open sessions.
    inside: Vec<TokenLine>,
}

impl AccessTokens {
    /// Reads a file of hashes.
    ///
    /// # Errors
    /// [`ServiceError`] naming the file and what is wrong with it: a line, or that others have
    /// rights to it.
    pub fn read(path: &Path) -> Result<Self, ServiceError> {
        Ok(Self {
            path: path.to_owned(),
            lines: RwLock::new(Lines {
                admitted: read(path)?,
                inside: Vec::new(),
            }),
        })
    }

    /// Reads the file again. Tokens that are no longer in it are withdrawn, all of them if it
    /// cannot be read; a file with a fault adds none, and changes no limit.
    pub fn reload(&self) -> Reloaded {
        let (mut found, fault, damaged) = match look_closely(&self.path) {
            Ok(found) => found,
            Err(fault) => (Vec::new(), Some(fault), Vec::new()),
        };
        let mut lines = self.lines.write().unwrap_or_else(PoisonError::into_inner);
        let in_file = found.iter().map(|line| line.hash).chain(damaged);
        let mut left: HashSet<Hash> = in_file.collect();
        if fault.is_some() {
            let known = lines.admitted.iter();
            let known = |new: &TokenLine| known.clone().find(|old| old.hash == new.hash).cloned();
            found = found.iter().filter_map(known).collect();
        }
        for line in &found {
            left.remove(&line.hash);
        }
        let known = lines.admitted.iter().chain(&lines.inside);
        let inside = known
            .filter(|line| left.remove(&line.hash))
            .cloned()
            .collect();
        *lines = Lines {
            admitted: found,
            inside,
        };
        Reloaded {
            tokens: lines.admitted.len(),
            fault,
        }
    }

    /// Counts the tokens that are admitted.
    pub fn count(&self) -> usize {
        let lines = self.lines.read().unwrap_or_else(PoisonError::into_inner);
        lines.admitted.len()
    }

    /// Returns the line of a token, if it is admitted. (Of several lines of one token the first
    /// holds.)
    pub fn admits(&self, token: Option<&str>) -> Option<TokenLine> {
        let hash = hash(token.unwrap_or_default());
        let lines = self.lines.read().unwrap_or_else(PoisonError::into_inner);
        let lines = &lines.admitted;
        let none = lines.len() as u64;
        let each = lines.iter().enumerate().rev();
        let place = each.fold(none, |found, (place, line)| {
            u64::conditional_select(&found, &(place as u64), line.hash.ct_eq(&hash))
        });
        lines.get(usize::try_from(place).ok()?).cloned()
    }

    /// Returns the limits of a token that was admitted, as they stand in the file now, or as they
    /// were known last if its line is damaged; none, if the token was withdrawn.
    pub(crate) fn limits_of(&self, token: &TokenLine) -> Option<TokenLimits> {
        let lines = self.lines.read().unwrap_or_else(PoisonError::into_inner);
        let mut known = lines.admitted.iter().chain(&lines.inside);
        let now = known.find(|line| line.hash == token.hash);
        now.map(|line| line.limits)
    }
}

/// What came of reading the file again.
#[derive(Debug)]
pub struct Reloaded {
    /// How many tokens are admitted now.
    pub tokens: usize,
    /// What is wrong with the file, if anything is.
    pub fault: Option<ServiceError>,
}

/// Tells whether a text is a line of the server's file rather than a token.
pub fn is_hash(text: &str) -> bool {
    text.trim_start().starts_with(SCHEME)
}

fn hash(token: &str) -> Hash {
    blake3::derive_key("primer 2026 access token", token.as_bytes())
}

#[cfg(test)]
mod tests;

//! Access tokens: who may use the server.
//!
//! A token is 256 random bits, so guessing it is hopeless and a plain hash of it can be told to
//! anyone: there is no dictionary to try. The server's file holds such hashes, one a line, each
//! with a name for its owner; empty lines and lines that begin with `#` do not count:
//!
//! ```text
//! # made by `primer token new`
//! blake3:5d1c… the laptop of the archive
//! ```
//!
//! [`new_token`] makes a token, appends its hash, and gives the token out once. Nobody but the
//! file's owner may have any right to it: who can write it admits whom they like. A line that is
//! deleted withdraws its token when the file is read again ([`AccessTokens::reload`]); sessions
//! that are inside go on until they end.
//!
//! Tokens are hashed as they come and compared in constant time with every line, so that neither
//! their bytes nor their number of right characters can be learnt by asking.

use crate::service::{ServiceError, hex, io_error, random};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use subtle::{Choice, ConstantTimeEq};
use zeroize::Zeroizing;

/// What a token begins with, so that one that leaks is recognised.
const PREFIX: &str = "primer_";
/// What a line of the file begins with.
const SCHEME: &str = "blake3:";
/// The longest file.
const MAX_FILE: u64 = 16 << 20;

type Hash = [u8; 32];

/// The tokens that a server admits.
pub struct AccessTokens {
    path: PathBuf,
    hashes: RwLock<Vec<Hash>>,
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
            hashes: RwLock::new(read(path)?),
        })
    }

    /// Reads the file again and tells how many tokens it holds. If it cannot be read, the tokens
    /// that were known before stay.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn reload(&self) -> Result<usize, ServiceError> {
        let hashes = read(&self.path)?;
        let count = hashes.len();
        *self.hashes.write().unwrap_or_else(PoisonError::into_inner) = hashes;
        Ok(count)
    }

    /// Whether a token is one of them.
    pub fn admits(&self, token: Option<&str>) -> bool {
        let hash = hash(token.unwrap_or_default());
        let hashes = self.hashes.read().unwrap_or_else(PoisonError::into_inner);
        let known = hashes
            .iter()
            .fold(Choice::from(0), |known, entry| known | entry.ct_eq(&hash));
        bool::from(known)
    }
}

/// Makes a token and appends its hash, with a name for its owner, to a file, which is made if it is
/// not there. The token itself is nowhere else.
///
/// # Errors
/// [`ServiceError`] naming the file: others have rights to it, or it cannot be written.
pub fn new_token(path: &Path, name: &str) -> Result<Zeroizing<String>, ServiceError> {
    if name.len() > 256 || name.chars().any(char::is_control) {
        let why = "a token's name has at most 256 characters, all of them printable";
        return Err(ServiceError::Options(why.into()));
    }
    let secret = Zeroizing::new(random::<32>()?);
    let token = Zeroizing::new(format!("{PREFIX}{}", *Zeroizing::new(hex(&*secret))));
    let line = format!("{SCHEME}{} {name}", hex(&hash(&token)));
    let failed = || io_error(format!("writing the tokens {}", path.display()));
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(failed())?;
    // What is there is checked first, so that a token is not added to a file that would be refused.
    let text = contents(&mut file, path)?;
    parse(&text).map_err(in_file(path))?;
    let begin = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    // One write, so that two of these do not mix.
    let line = format!("{begin}{}\n", line.trim_end());
    file.write_all(line.as_bytes()).map_err(failed())?;
    file.sync_all().map_err(failed())?;
    Ok(token)
}

/// Whether a text is a line of the server's file rather than a token.
pub fn is_hash(text: &str) -> bool {
    text.trim_start().starts_with(SCHEME)
}

fn hash(token: &str) -> Hash {
    blake3::derive_key("primer 2026 access token", token.as_bytes())
}

fn in_file(path: &Path) -> impl Fn(String) -> ServiceError {
    move |why| ServiceError::Options(format!("{}: {why}", path.display()))
}

fn read(path: &Path) -> Result<Vec<Hash>, ServiceError> {
    let failed = io_error(format!("reading the tokens {}", path.display()));
    let mut file = File::open(path).map_err(failed)?;
    let hashes = parse(&contents(&mut file, path)?).map_err(in_file(path))?;
    if hashes.is_empty() {
        let why = "there is no token in it, so nobody could connect; `primer token new` makes one";
        return Err(in_file(path)(why.into()));
    }
    Ok(hashes)
}

/// The text of a file to which nobody but its owner has any right.
fn contents(file: &mut File, path: &Path) -> Result<String, ServiceError> {
    let failed = || io_error(format!("reading the tokens {}", path.display()));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = file.metadata().map_err(failed())?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let why = format!(
                "others than its owner have rights to this file of access tokens (mode \
                 {mode:03o}); take them away with chmod 600 {}",
                path.display()
            );
            return Err(in_file(path)(why));
        }
    }
    let mut text = String::new();
    let read = file.take(MAX_FILE + 1).read_to_string(&mut text);
    if read.map_err(failed())? as u64 > MAX_FILE {
        return Err(in_file(path)(format!("it is longer than {MAX_FILE} bytes")));
    }
    Ok(text)
}

fn parse(text: &str) -> Result<Vec<Hash>, String> {
    let mut hashes = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // What is there may be a token: it is not repeated.
        let wrong = || {
            format!(
                "line {}: a line is {SCHEME} and 64 hexadecimal digits, then a name, as `primer \
                 token new` writes it; tokens themselves are not kept here",
                number + 1
            )
        };
        let digits = line.split_whitespace().next().unwrap_or_default();
        let digits = digits.strip_prefix(SCHEME).ok_or_else(wrong)?;
        hashes.push(
            *blake3::Hash::from_hex(digits)
                .map_err(|_| wrong())?
                .as_bytes(),
        );
    }
    Ok(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &Path) -> String {
        AccessTokens::read(path).err().unwrap().to_string()
    }

    #[test]
    fn tokens_are_kept_as_hashes_and_withdrawn_by_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        let one = new_token(&path, "the first").unwrap();
        let two = new_token(&path, "").unwrap();
        assert!(one.len() == 71 && one.starts_with(PREFIX) && *one != *two);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains(" the first\n") && !text.contains(&one[PREFIX.len()..]));
        let tokens = AccessTokens::read(&path).unwrap();
        assert!(tokens.admits(Some(&one)) && tokens.admits(Some(&two)));
        let first = text.lines().next().unwrap();
        for wrong in [None, Some(""), Some(&one[..70]), Some(first)] {
            assert!(!tokens.admits(wrong));
        }
        // The second is withdrawn when the file is read again; a third comes without a newline
        // before it.
        std::fs::write(&path, format!("# friends\n\n{first}")).unwrap();
        let three = new_token(&path, "three").unwrap();
        assert!(tokens.admits(Some(&two)));
        assert_eq!(tokens.reload().unwrap(), 2);
        assert!(tokens.admits(Some(&one)) && tokens.admits(Some(&three)));
        assert!(!tokens.admits(Some(&two)));
        // A damaged file changes nothing.
        std::fs::write(&path, "gone").unwrap();
        assert!(tokens.reload().is_err() && tokens.admits(Some(&one)));
    }

    #[test]
    fn useless_files_are_refused_by_line_and_never_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        new_token(&path, "").unwrap();
        let good = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{good}a-plain-old-token-of-before\n")).unwrap();
        let why = refused(&path);
        assert!(
            why.contains("line 2") && !why.contains("plain-old"),
            "{why}"
        );
        assert!(new_token(&path, "").is_err());
        std::fs::write(&path, &good[..good.trim_end().len() - 1]).unwrap();
        assert!(refused(&path).contains("line 1"));
        std::fs::write(&path, "# nothing\n").unwrap();
        assert!(refused(&path).contains("no token"));
        assert!(refused(&dir.path().join("none")).contains("none"));
        assert!(new_token(&path, "two\nlines").is_err());
        assert!(is_hash(&good) && !is_hash("primer_00"));
    }

    #[cfg(unix)]
    #[test]
    fn files_that_others_have_rights_to_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        new_token(&path, "").unwrap();
        let mode = |mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&path, permissions).unwrap();
        };
        assert!(AccessTokens::read(&path).is_ok(), "it is made private");
        for open in [0o640, 0o604, 0o620, 0o602] {
            mode(open);
            let why = refused(&path);
            assert!(why.contains("chmod 600"), "{why}");
            assert!(new_token(&path, "").is_err());
        }
        mode(0o400);
        assert!(AccessTokens::read(&path).is_ok());
    }
}

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
//! file's owner may have any right to it: who can write it admits whom they like.
//!
//! # Reading the file again
//!
//! A server reads the file when it starts, where any fault is an error, and again when it is told
//! to ([`AccessTokens::reload`]). Then there may be tokens to withdraw, and a fault must not keep
//! them: *a token whose line is not in the file is never admitted*, whatever else is wrong.
//!
//! | the file | is admitted from then on |
//! |---|---|
//! | has no fault | every token in it |
//! | has a damaged line, or is not its owner's alone | tokens known before that are still in it |
//! | is empty, missing, too long or cannot be read | none: every client is refused |
//!
//! So a file with a fault adds no token: it may not be its owner's who wrote it. Sessions that are
//! inside go on until they end.
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

    /// Reads the file again. Tokens that are no longer in it are withdrawn, all of them if it
    /// cannot be read; a file with a fault adds none.
    pub fn reload(&self) -> Reloaded {
        let (mut found, fault) = match look(&self.path) {
            Ok(found) => found,
            Err(fault) => (Vec::new(), Some(fault)),
        };
        let mut hashes = self.hashes.write().unwrap_or_else(PoisonError::into_inner);
        if fault.is_some() {
            found.retain(|hash| hashes.contains(hash));
        }
        *hashes = found;
        Reloaded {
            tokens: hashes.len(),
            fault,
        }
    }

    /// Counts the tokens that are admitted.
    pub fn count(&self) -> usize {
        let hashes = self.hashes.read().unwrap_or_else(PoisonError::into_inner);
        hashes.len()
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

/// What came of reading the file again.
#[derive(Debug)]
pub struct Reloaded {
    /// How many tokens are admitted now.
    pub tokens: usize,
    /// What is wrong with the file, if anything is.
    pub fault: Option<ServiceError>,
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
    check_rights(&file, path)?;
    let text = contents(&mut file, path)?;
    if let (_, Some(why)) = parse(&text) {
        return Err(in_file(path)(why));
    }
    let begin = if text.is_empty() || text.ends_with(b"\n") {
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

/// The tokens of a file without a fault.
fn read(path: &Path) -> Result<Vec<Hash>, ServiceError> {
    match look(path)? {
        (hashes, None) => Ok(hashes),
        (_, Some(fault)) => Err(fault),
    }
}

/// The tokens in a file, and what is wrong with it; an error if it cannot be read at all.
fn look(path: &Path) -> Result<(Vec<Hash>, Option<ServiceError>), ServiceError> {
    let failed = io_error(format!("reading the tokens {}", path.display()));
    let mut file = File::open(path).map_err(failed)?;
    let rights = check_rights(&file, path).err();
    let (hashes, damage) = parse(&contents(&mut file, path)?);
    let empty = hashes.is_empty().then(|| {
        "there is no token in it, so every client would be refused; `primer token new` makes one"
            .to_owned()
    });
    let fault = rights.or_else(|| damage.or(empty).map(in_file(path)));
    Ok((hashes, fault))
}

/// Refuses a file to which anybody but its owner has any right.
fn check_rights(file: &File, path: &Path) -> Result<(), ServiceError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let failed = io_error(format!("reading the tokens {}", path.display()));
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let why = format!(
                "others than its owner have rights to this file of access tokens (mode \
                 {mode:03o}); take them away with chmod 600 {}",
                path.display()
            );
            return Err(in_file(path)(why));
        }
    }
    Ok(())
}

/// The bytes of a file that is not too long.
fn contents(file: &mut File, path: &Path) -> Result<Vec<u8>, ServiceError> {
    let failed = io_error(format!("reading the tokens {}", path.display()));
    let mut text = Vec::new();
    let read = file.take(MAX_FILE + 1).read_to_end(&mut text);
    if read.map_err(failed)? as u64 > MAX_FILE {
        return Err(in_file(path)(format!("it is longer than {MAX_FILE} bytes")));
    }
    Ok(text)
}

/// The hashes of all lines that can be read, and what is wrong with the first that cannot.
fn parse(text: &[u8]) -> (Vec<Hash>, Option<String>) {
    let (mut hashes, mut damage) = (Vec::new(), None);
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        match parse_line(line) {
            Some(hash) => hashes.push(hash),
            // What is there may be a token: it is not repeated.
            None => {
                damage.get_or_insert_with(|| {
                    format!(
                        "line {}: a line is {SCHEME} and 64 hexadecimal digits, then a name, as \
                         `primer token new` writes it; tokens themselves are not kept here",
                        number + 1
                    )
                });
            }
        }
    }
    (hashes, damage)
}

fn parse_line(line: &[u8]) -> Option<Hash> {
    // A name may be in any encoding; a hash may not.
    let word = line.split(u8::is_ascii_whitespace).next()?;
    let digits = word.strip_prefix(SCHEME.as_bytes())?;
    Some(*blake3::Hash::from_hex(digits).ok()?.as_bytes())
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
        let reloaded = tokens.reload();
        assert!(reloaded.tokens == 2 && reloaded.fault.is_none());
        assert!(tokens.admits(Some(&one)) && tokens.admits(Some(&three)));
        assert!(!tokens.admits(Some(&two)));
    }

    /// A file that is gone or has no token admits none: the last token can be withdrawn.
    #[test]
    fn the_last_token_can_be_withdrawn() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        let one = new_token(&path, "the only one").unwrap();
        let line = std::fs::read(&path).unwrap();
        let tokens = AccessTokens::read(&path).unwrap();
        let refuses_all = |what: &str, words: &str| {
            let Reloaded {
                tokens: left,
                fault,
            } = tokens.reload();
            let why = fault.map(|fault| fault.to_string()).unwrap_or_default();
            assert!(why.contains(words), "{what}: {why}");
            assert!(left == 0 && tokens.count() == 0, "{what}");
            assert!(!tokens.admits(Some(&one)) && !tokens.admits(None), "{what}");
            // It is admitted again as soon as its line is back.
            std::fs::write(&path, &line).unwrap();
            set_mode(&path, 0o600);
            assert!(tokens.reload().fault.is_none() && tokens.admits(Some(&one)));
        };
        std::fs::write(&path, "").unwrap();
        refuses_all("empty", "no token");
        std::fs::write(&path, "# all have left\n\n").unwrap();
        refuses_all("only comments", "no token");
        std::fs::write(&path, "gone").unwrap();
        refuses_all("only damage", "line 1");
        std::fs::write(&path, vec![b'#'; MAX_FILE as usize + 1]).unwrap();
        refuses_all("too long", "longer than");
        std::fs::remove_file(&path).unwrap();
        refuses_all("missing", "No such file");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let reloaded = tokens.reload();
        assert!(reloaded.tokens == 0 && reloaded.fault.is_some());
        assert!(!tokens.admits(Some(&one)), "a directory");
    }

    /// Whatever else is wrong with the file: what is not in it is withdrawn, and a fault adds none.
    #[test]
    fn a_fault_keeps_no_token_whose_line_is_gone_and_adds_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        let [one, two] = ["one", "two"].map(|name| new_token(&path, name).unwrap());
        let known = std::fs::read(&path).unwrap();
        let [first, _, _] = known.split(|b| *b == b'\n').collect::<Vec<_>>()[..] else {
            panic!("two lines");
        };
        let other = dir.path().join("other");
        let new = new_token(&other, "new").unwrap();
        let added = std::fs::read(&other).unwrap();
        for (rest, mode, words) in [
            (&b"blake3:00 a line cut short"[..], 0o600, "line 3"),
            (b"\xff\xfe", 0o600, "line 3"),
            (b"", 0o620, "chmod 600"),
        ] {
            std::fs::write(&path, &known).unwrap();
            set_mode(&path, 0o600);
            let tokens = AccessTokens::read(&path).unwrap();
            std::fs::write(&path, [first, b"\n", &added, rest].concat()).unwrap();
            set_mode(&path, mode);
            let reloaded = tokens.reload();
            let why = reloaded.fault.unwrap().to_string();
            assert!(why.contains(words), "{why}");
            assert_eq!(reloaded.tokens, 1);
            assert!(tokens.admits(Some(&one)), "{why}");
            assert!(!tokens.admits(Some(&two)), "{why}");
            assert!(!tokens.admits(Some(&new)), "{why}");
        }
    }

    fn set_mode(path: &Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
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
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        new_token(&path, "").unwrap();
        let mode = |mode| set_mode(&path, mode);
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

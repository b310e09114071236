//! The file of tokens: read with care, changed whole or not at all.
//!
//! Who changes the file holds a lock on it, so that two changes do not lose each other, and puts a
//! new one in its place, of the same owner; a server that reads meanwhile finds the one or the
//! other. A line that is not changed stays as it is, byte by byte.

use super::hash;
use super::line::{Hash, SCHEME, TokenLimits, TokenLine};
use primer_service::{ServiceError, hex, io_error, random};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// What a token begins with, so that one that leaks is recognised.
pub(super) const PREFIX: &str = "primer_";
/// The longest file.
pub(super) const MAX_FILE: u64 = 16 << 20;

/// Makes a token and appends its hash, with a name for its owner, to a file, which is made if it is
/// not there. The token itself is nowhere else.
///
/// # Errors
/// [`ServiceError`] naming the file: others have rights to it, or it cannot be written.
pub fn new_token(
    path: &Path,
    name: &str,
    limits: TokenLimits,
) -> Result<Zeroizing<String>, ServiceError> {
    if name.len() > 256 || name.chars().any(char::is_control) {
        let why = "a token's name has at most 256 characters, all of them printable";
        return Err(ServiceError::Options(why.into()));
    }
    let secret = Zeroizing::new(random::<32>()?);
    let token = Zeroizing::new(format!("{PREFIX}{}", *Zeroizing::new(hex(&*secret))));
    let line = TokenLine {
        hash: hash(&token),
        name: name.to_owned(),
        limits,
    };
    let failed = || io_error(format!("writing the tokens {}", path.display()));
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = locked(path, &mut options)?;
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
    // One write, so that who reads meanwhile finds a whole line.
    let line = format!("{begin}{}\n", format!("{} {name}", line.word()).trim_end());
    file.write_all(line.as_bytes()).map_err(failed())?;
    file.sync_all().map_err(failed())?;
    Ok(token)
}

/// Lists the tokens of a file, and says what is wrong with it, if anything is.
///
/// # Errors
/// [`ServiceError`] if it cannot be read.
pub fn list_tokens(path: &Path) -> Result<(Vec<TokenLine>, Option<ServiceError>), ServiceError> {
    look(path)
}

/// Finds the one token of a file that is called so, by its name or by the first digits of its hash.
///
/// # Errors
/// [`ServiceError`] naming the file: no token or several are called so, or it cannot be read.
pub fn find_token(path: &Path, called: &str) -> Result<TokenLine, ServiceError> {
    find(&look(path)?.0, called).map_err(in_file(path))
}

/// Deletes the line of a token, which is called by its name or by the first digits of its hash.
///
/// # Errors
/// [`ServiceError`] naming the file: no token or several are called so, others have rights to it,
/// or it cannot be written.
pub fn revoke_token(path: &Path, called: &str) -> Result<TokenLine, ServiceError> {
    change(path, called, |_| None)
}

/// Gives a token other limits; what `limits` leaves open is taken out of its line.
///
/// # Errors
/// As [`revoke_token`].
pub fn limit_token(
    path: &Path,
    called: &str,
    limits: impl Fn(TokenLimits) -> TokenLimits,
) -> Result<TokenLine, ServiceError> {
    change(path, called, |line| {
        Some(TokenLine {
            limits: limits(line.limits),
            ..line.clone()
        })
    })
}

/// Changes or deletes all lines of one token, and gives the token as it is afterwards, or was.
fn change(
    path: &Path,
    called: &str,
    change: impl Fn(&TokenLine) -> Option<TokenLine>,
) -> Result<TokenLine, ServiceError> {
    let mut file = locked(path, &mut OpenOptions::new())?;
    // A file that others may write is not made to look like the owner's.
    check_rights(&file, path)?;
    let text = contents(&mut file, path)?;
    let found = find(&parse(&text).0, called).map_err(in_file(path))?;
    let mut new = Vec::with_capacity(text.len() + 128);
    let mut told = found.clone();
    for raw in text.split_inclusive(|byte| *byte == b'\n') {
        let line = raw.trim_ascii();
        let parsed = TokenLine::parse(line).filter(|one| one.hash == found.hash);
        let Some(one) = parsed else {
            new.extend_from_slice(raw);
            continue;
        };
        if let Some(one) = change(&one) {
            let name = line.iter().position(u8::is_ascii_whitespace);
            new.extend_from_slice(one.word().as_bytes());
            new.extend_from_slice(&line[name.unwrap_or(line.len())..]);
            new.push(b'\n');
            told = one;
        }
    }
    replace(path, &file, &new)?;
    Ok(told)
}

/// Finds the one token that is called so.
fn find(lines: &[TokenLine], called: &str) -> Result<TokenLine, String> {
    let mut found: Vec<_> = lines.iter().filter(|line| line.is_called(called)).collect();
    found.sort_by_key(|line| line.hash);
    found.dedup_by_key(|line| line.hash);
    match found[..] {
        [one] => Ok(one.clone()),
        [] => Err(format!("no token in it is called {called:?}")),
        _ => {
            let ids: Vec<_> = found.iter().map(|line| line.id()).collect();
            let ids = ids.join(", ");
            Err(format!(
                "several tokens in it are called {called:?}; say which: {ids}"
            ))
        }
    }
}

/// Opens a file for reading and what else is said, and holds its lock until it is closed.
fn locked(path: &Path, options: &mut OpenOptions) -> Result<File, ServiceError> {
    let failed = || io_error(format!("writing the tokens {}", path.display()));
    loop {
        let file = options.read(true).open(path).map_err(failed())?;
        file.lock().map_err(failed())?;
        // Another one may have been put in its place while we waited.
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |data: std::fs::Metadata| (data.dev(), data.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(ours), Ok(there)) => of(ours) == of(there),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Puts a new file in the place of one that is locked, durably.
fn replace(path: &Path, old: &File, text: &[u8]) -> Result<(), ServiceError> {
    let failed = || io_error(format!("writing the tokens {}", path.display()));
    // Where a link leads, so that the link stays one.
    let path = path.canonicalize().map_err(failed())?;
    let mut name = path.clone().into_os_string();
    name.push(format!(".{}.new", hex(&random::<8>()?)));
    let draft = PathBuf::from(name);
    let written = write_draft(&draft, old, text).and_then(|()| std::fs::rename(&draft, &path));
    written
        .inspect_err(|_| drop(std::fs::remove_file(&draft)))
        .map_err(failed())?;
    let dir = path.parent().unwrap_or(Path::new("/"));
    (File::open(dir).and_then(|dir| dir.sync_all())).map_err(failed())
}

fn write_draft(draft: &Path, old: &File, text: &[u8]) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(draft)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let (ours, theirs) = (file.metadata()?, old.metadata()?);
        // The server may run as another user than who manages its tokens.
        if (ours.uid(), ours.gid()) != (theirs.uid(), theirs.gid()) {
            fchown(&file, Some(theirs.uid()), Some(theirs.gid()))?;
        }
        file.set_permissions(theirs.permissions())?;
    }
    file.write_all(text)?;
    file.sync_all()
}

pub(super) fn in_file(path: &Path) -> impl Fn(String) -> ServiceError {
    move |why| ServiceError::Options(format!("{}: {why}", path.display()))
}

/// Reads the tokens of a file without a fault.
pub(super) fn read(path: &Path) -> Result<Vec<TokenLine>, ServiceError> {
    match look(path)? {
        (lines, None) => Ok(lines),
        (_, Some(fault)) => Err(fault),
    }
}

/// Reads the tokens in a file, and what is wrong with it; an error if it cannot be read at all.
fn look(path: &Path) -> Result<(Vec<TokenLine>, Option<ServiceError>), ServiceError> {
    look_closely(path).map(|(lines, fault, _)| (lines, fault))
}

/// What [`look_closely`] finds: tokens, what is wrong with the file, whose lines are damaged.
type Found = (Vec<TokenLine>, Option<ServiceError>, Vec<Hash>);

/// Looks at a file as [`look`] does, and tells whose lines are damaged, where that can be read.
pub(super) fn look_closely(path: &Path) -> Result<Found, ServiceError> {
    let failed = io_error(format!("reading the tokens {}", path.display()));
    let mut file = File::open(path).map_err(failed)?;
    let rights = check_rights(&file, path).err();
    let text = contents(&mut file, path)?;
    let (lines, damage) = parse(&text);
    let empty = lines.is_empty().then(|| {
        "there is no token in it, so every client would be refused; `primer token new` makes one"
            .to_owned()
    });
    let fault = rights.or_else(|| damage.or(empty).map(in_file(path)));
    Ok((lines, fault, damaged(&text)))
}

/// Lists the tokens whose lines are damaged after the hash.
fn damaged(text: &[u8]) -> Vec<Hash> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let damaged = lines.filter(|line| TokenLine::parse(line).is_none());
    damaged.filter_map(TokenLine::hash_in).collect()
}

/// Refuses a file to which others than its owner have any right.
fn check_rights(file: &File, path: &Path) -> Result<(), ServiceError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let failed = io_error(format!("reading the tokens {}", path.display()));
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let why = format!(
                "users other than its owner have access to this token file (mode {mode:03o}); \
                 restrict it with chmod 600 {}",
                path.display()
            );
            return Err(in_file(path)(why));
        }
    }
    Ok(())
}

/// Reads the bytes of a file that is not too long.
fn contents(file: &mut File, path: &Path) -> Result<Vec<u8>, ServiceError> {
    let failed = io_error(format!("reading the tokens {}", path.display()));
    let mut text = Vec::new();
    let read = file.take(MAX_FILE + 1).read_to_end(&mut text);
    if read.map_err(failed)? as u64 > MAX_FILE {
        return Err(in_file(path)(format!("it is longer than {MAX_FILE} bytes")));
    }
    Ok(text)
}

/// Parses the tokens of all lines that can be read, and says what is wrong with the first that
/// cannot.
fn parse(text: &[u8]) -> (Vec<TokenLine>, Option<String>) {
    let (mut lines, mut damage) = (Vec::new(), None);
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        match TokenLine::parse(line) {
            Some(line) => lines.push(line),
            // What is there may be a token: it is not repeated.
            None => {
                damage.get_or_insert_with(|| {
                    format!(
                        "line {}: a line is {SCHEME} and 64 hexadecimal digits, perhaps limits, \
                         then a name, as `primer token new` writes it; tokens themselves are not \
                         kept here",
                        number + 1
                    )
                });
            }
        }
    }
    (lines, damage)
}

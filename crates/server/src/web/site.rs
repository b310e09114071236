//! The files of a page, read once.

use primer_service::{ServiceError, hex, io_error};
use std::collections::BTreeMap;
use std::path::Path;

/// The most files that a site has.
const MOST_FILES: usize = 1_000;
/// The most bytes that it has.
const MOST_BYTES: u64 = 256 << 20;

/// A file of a site, with what it compresses to if that stands beside it as `NAME.gz`.
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    pub(super) gzip: Option<Vec<u8>>,
    pub(super) kind: &'static str,
    /// Tells two contents apart.
    pub(super) tag: String,
}

/// A directory of files, as it was when it was read.
pub(crate) struct Site(BTreeMap<String, File>);

impl Site {
    /// Reads all files below a directory. Hidden ones are left out.
    ///
    /// # Errors
    /// [`ServiceError`] naming what cannot be read, or saying that it is too much or no page.
    pub(crate) fn read(dir: &Path) -> Result<Self, ServiceError> {
        let mut found = BTreeMap::new();
        let mut left = MOST_BYTES;
        read_into(&mut found, dir, "", &mut left)?;
        let mut files = BTreeMap::new();
        let mut compressed = BTreeMap::new();
        for (path, bytes) in found {
            match path.strip_suffix(".gz") {
                Some(plain) => drop(compressed.insert(plain.to_owned(), bytes)),
                None => drop(files.insert(path, bytes)),
            }
        }
        if !files.contains_key("/index.html") {
            let message = format!("{} has no index.html: it is not a page", dir.display());
            return Err(ServiceError::Options(message));
        }
        let files = files.into_iter().map(|(path, bytes)| {
            let file = File {
                gzip: compressed.remove(&path),
                kind: kind(&path),
                tag: format!("\"{}\"", hex(&blake3::hash(&bytes).as_bytes()[..16])),
                bytes,
            };
            (path, file)
        });
        Ok(Self(files.collect()))
    }

    /// Finds a file by the path of a request.
    pub(super) fn find(&self, path: &str) -> Option<&File> {
        match path.strip_suffix('/') {
            Some(dir) => self.0.get(&format!("{dir}/index.html")),
            None => self.0.get(path),
        }
    }
}

fn read_into(
    found: &mut BTreeMap<String, Vec<u8>>,
    dir: &Path,
    prefix: &str,
    left: &mut u64,
) -> Result<(), ServiceError> {
    let reading = |path: &Path| io_error(format!("reading {}", path.display()));
    for entry in std::fs::read_dir(dir).map_err(reading(dir))? {
        let entry = entry.map_err(reading(dir))?;
        let path = entry.path();
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
            continue;
        };
        let name = format!("{prefix}/{name}");
        let facts = std::fs::metadata(&path).map_err(reading(&path))?;
        if facts.is_dir() {
            read_into(found, &path, &name, left)?;
            continue;
        }
        let fits = facts.len() <= *left && found.len() < MOST_FILES;
        if !fits {
            let message = format!(
                "{} is more than a page: the most are {MOST_FILES} files of {MOST_BYTES} bytes \
                 together",
                dir.display()
            );
            return Err(ServiceError::Options(message));
        }
        *left -= facts.len();
        let bytes = std::fs::read(&path).map_err(reading(&path))?;
        found.insert(name, bytes);
    }
    Ok(())
}

/// Returns the content type of a file, by its name.
fn kind(path: &str) -> &'static str {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "txt" | "md" | "ts" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

//! A copy of a hint: in a file, or on the web.

use super::{Fetching, http};
use crate::ClientOptions;
use primer_service::ServiceError;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Fetches what is missing from a copy, as far as it has the right bytes; `told` hears how many
/// there are after each chunk.
pub(super) fn fetch(
    url: &str,
    fetching: &mut Fetching,
    options: &ClientOptions,
    mut told: impl FnMut(u64),
) -> Result<(), ServiceError> {
    if fetching.wanted().is_none() {
        return Ok(());
    }
    let failed = |why: String| ServiceError::Copy {
        url: url.to_owned(),
        why,
    };
    let mut source = open(url, fetching.done(), options).map_err(failed)?;
    while let Some(bytes) = fetching.wanted() {
        let mut chunk = vec![0; bytes];
        let read = source.read_exact(&mut chunk);
        read.map_err(|error| failed(format!("reading it: {error}")))?;
        match fetching.add(&chunk) {
            Err(ServiceError::Hint(error)) => return Err(failed(error.to_string())),
            added => added?,
        }
        told(fetching.done());
    }
    Ok(())
}

/// Opens a copy from a byte on.
fn open(url: &str, from: u64, options: &ClientOptions) -> Result<Box<dyn Read>, String> {
    if url.starts_with("http://") || url.starts_with("https://") {
        return http::get(url, from, options.timeout, &options.hang_up);
    }
    let path = url.strip_prefix("file://").unwrap_or(url);
    let opened = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::Start(from))?;
        Ok(file)
    });
    Ok(Box::new(opened.map_err(|error| error.to_string())?))
}

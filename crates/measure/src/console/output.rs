//! Results, on standard output.
//!
//! `println!` panics when it cannot write. Here a reader that has gone and a disk that is full are
//! errors like others ([`OutputError`]), so that everything under way is cleaned up; `main` tells
//! the two apart.

use anyhow::Result;
use std::fmt::Display;
use std::io::{self, Write};
use thiserror::Error;

/// Results could not be written.
#[derive(Debug, Error)]
#[error("writing to standard output: {0}")]
pub struct OutputError(io::Error);

impl OutputError {
    /// Tells whether the reader has gone, as in `primer … | head -1`.
    pub fn is_closed(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

impl From<io::Error> for OutputError {
    fn from(error: io::Error) -> Self {
        Self(error)
    }
}

/// Writes a text as it is; it has left this process when this returns.
///
/// # Errors
/// [`OutputError`] if it cannot be written.
pub fn text(text: impl Display) -> Result<()> {
    write(&format!("{text}"))
}

/// Writes a line; it has left this process when this returns.
///
/// # Errors
/// As [`text`].
pub fn line(text: impl Display) -> Result<()> {
    write(&format!("{text}\n"))
}

fn write(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    Ok(written.map_err(OutputError)?)
}

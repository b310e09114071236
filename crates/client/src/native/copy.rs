//! A copy of a hint: in a file, or on the web.

use super::http;
use crate::hint::HintCopy;
use crate::{ClientOptions, HangUp};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

/// A copy at an address.
pub(super) struct Copy {
    url: String,
    timeout: Duration,
}

impl Copy {
    /// Returns the copy that options name.
    pub(super) fn of(options: &ClientOptions) -> Option<Self> {
        let url = options.hint_url.clone()?;
        let timeout = options.timeout;
        Some(Self { url, timeout })
    }
}

impl HintCopy for Copy {
    fn place(&self) -> &str {
        &self.url
    }

    fn open(&mut self, from: u64, hang_up: &HangUp) -> Result<Box<dyn Read>, String> {
        let url = &*self.url;
        if url.starts_with("http://") || url.starts_with("https://") {
            return http::get(url, from, self.timeout, hang_up);
        }
        let path = url.strip_prefix("file://").unwrap_or(url);
        let opened = File::open(path).and_then(|mut file| {
            file.seek(SeekFrom::Start(from))?;
            Ok(file)
        });
        Ok(Box::new(opened.map_err(|error| error.to_string())?))
    }
}

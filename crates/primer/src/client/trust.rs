//! Known servers, as SSH keeps them: an address and the fingerprint that it had the first time.
//!
//! A server that is not in the file is refused until somebody says which fingerprint is right; a
//! server whose fingerprint differs from the file is refused until somebody removes the line.

use crate::service::{ServiceError, io_error};
use crate::state::{read_if_there, write_private};
use primer_net::tls::Fingerprint;
use std::fmt::Write;
use std::path::PathBuf;

/// The file of known servers.
pub(crate) struct KnownServers {
    path: PathBuf,
    entries: Vec<(String, Fingerprint)>,
}

impl KnownServers {
    pub(crate) fn read(path: PathBuf) -> Result<Self, ServiceError> {
        let bytes = read_if_there(&path)?.unwrap_or_default();
        let wrong = |line: usize, why: &str| {
            ServiceError::Options(format!("{}, line {line}: {why}", path.display()))
        };
        let text = String::from_utf8(bytes).map_err(|_| wrong(1, "this is not text"))?;
        let mut entries = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let (Some(address), fingerprint) = (words.next(), words.next()) else {
                continue;
            };
            if address.starts_with('#') {
                continue;
            }
            let fingerprint = fingerprint.unwrap_or_default().parse();
            let fingerprint = fingerprint.map_err(|why: String| wrong(number + 1, &why))?;
            entries.push((address.to_owned(), fingerprint));
        }
        Ok(Self { path, entries })
    }

    pub(crate) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// The fingerprint on record for an address.
    pub(crate) fn find(&self, address: &str) -> Option<Fingerprint> {
        let known = self.entries.iter().find(|(a, _)| a == address);
        known.map(|(_, fingerprint)| *fingerprint)
    }

    /// Records a server.
    pub(crate) fn add(
        &mut self,
        address: &str,
        fingerprint: Fingerprint,
    ) -> Result<(), ServiceError> {
        // Read again: another process may have added one meanwhile.
        let mut text = match read_if_there(&self.path)? {
            Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            None => {
                "# Servers that this client trusts: address, SHA-256 of the certificate.\n".into()
            }
        };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        writeln!(text, "{address} {fingerprint}")
            .map_err(|_| io_error("formatting a line")(std::io::ErrorKind::Other.into()))?;
        write_private(&self.path, text.as_bytes())?;
        self.entries.push((address.to_owned(), fingerprint));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_remembered_and_bad_lines_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("known_servers");
        let fingerprint: Fingerprint = "ab".repeat(32).parse().unwrap();
        let mut known = KnownServers::read(path.clone()).unwrap();
        assert_eq!(known.find("a:1"), None);
        known.add("a:1", fingerprint).unwrap();
        let again = KnownServers::read(path.clone()).unwrap();
        assert_eq!(again.find("a:1"), Some(fingerprint));
        assert_eq!(again.find("a:11"), None);
        std::fs::write(&path, "# fine\na:1 0000\n").unwrap();
        let error = KnownServers::read(path).err().unwrap().to_string();
        assert!(error.contains("line 2") && error.contains("64"), "{error}");
    }
}

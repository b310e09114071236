//! Known servers, as SSH keeps them: an address and the fingerprint that it had the first time.
//!
//! A server that is not in the file is refused until its owner says which fingerprint is right; a
//! server whose fingerprint differs from the file is refused until the line is removed.
//!
//! Several processes may add servers at once. A line is appended under a lock of the file, after it
//! was read again: nothing is overwritten, and of two fingerprints for one address the first stays.

use primer_service::state::read_if_there;
use primer_service::{ServiceError, io_error};
use primer_wire::peer::Fingerprint;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;

/// The file of known servers.
pub(super) struct KnownServers {
    path: PathBuf,
    entries: Vec<(String, Fingerprint)>,
}

impl KnownServers {
    pub(super) fn read(path: PathBuf) -> Result<Self, ServiceError> {
        let bytes = read_if_there(&path)?.unwrap_or_default();
        let entries = Self::parse(&path, bytes)?;
        Ok(Self { path, entries })
    }

    fn parse(
        path: &std::path::Path,
        bytes: Vec<u8>,
    ) -> Result<Vec<(String, Fingerprint)>, ServiceError> {
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
        Ok(entries)
    }

    pub(super) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Returns the fingerprint on record for an address.
    pub(super) fn find(&self, address: &str) -> Option<Fingerprint> {
        let known = self.entries.iter().find(|(a, _)| a == address);
        known.map(|(_, fingerprint)| *fingerprint)
    }

    /// Records a server, unless another process has recorded one there meanwhile: then that one
    /// counts.
    ///
    /// # Errors
    /// [`ServiceError::ChangedServer`] if that is another one, and if the system fails.
    pub(super) fn add(
        &mut self,
        address: &str,
        fingerprint: Fingerprint,
    ) -> Result<(), ServiceError> {
        let failed = || io_error(format!("writing {}", self.path.display()));
        let mut options = File::options();
        options.create(true).read(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.path).map_err(failed())?;
        // Held until the file is closed.
        file.lock().map_err(failed())?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed())?;
        let mut line = match bytes.last() {
            None => "# Servers that this client trusts: address, SHA-256 of the certificate.\n",
            Some(b'\n') => "",
            Some(_) => "\n",
        }
        .to_owned();
        self.entries = Self::parse(&self.path, bytes)?;
        match self.find(address) {
            Some(known) if known == fingerprint => return Ok(()),
            Some(known) => {
                return Err(ServiceError::ChangedServer {
                    address: address.to_owned(),
                    known,
                    got: fingerprint,
                    file: self.path.clone(),
                });
            }
            None => {}
        }
        line += &format!("{address} {fingerprint}\n");
        file.write_all(line.as_bytes()).map_err(failed())?;
        file.sync_all().map_err(failed())?;
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
        // Another process trusted another one there, a moment before.
        let mut slow = KnownServers::read(path.clone()).unwrap();
        known.add("b:1", fingerprint).unwrap();
        slow.add("b:1", fingerprint).unwrap();
        let other: Fingerprint = "cd".repeat(32).parse().unwrap();
        let mut slow = KnownServers {
            path: path.clone(),
            entries: Vec::new(),
        };
        let error = slow.add("b:1", other).err().unwrap();
        assert!(matches!(error, ServiceError::ChangedServer { .. }));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("b:1 ").count(), 1, "{text}");
        std::fs::write(&path, "# fine\na:1 0000\n").unwrap();
        let error = KnownServers::read(path).err().unwrap().to_string();
        assert!(error.contains("line 2") && error.contains("64"), "{error}");
    }

    #[test]
    fn nothing_is_lost_when_many_add_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("known_servers");
        let fingerprint: Fingerprint = "ab".repeat(32).parse().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let path = path.clone();
                scope.spawn(move || {
                    let mut known = KnownServers::read(path).unwrap();
                    for server in 0..20 {
                        let address = format!("{thread}:{server}");
                        known.add(&address, fingerprint).unwrap();
                    }
                });
            }
        });
        let known = KnownServers::read(path).unwrap();
        assert_eq!(known.entries.len(), 160);
        let address = |i: usize| format!("{}:{}", i / 20, i % 20);
        assert!((0..160).all(|i| known.find(&address(i)) == Some(fingerprint)));
    }
}

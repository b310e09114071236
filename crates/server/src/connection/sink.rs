//! Where the server's half of a bundle is written.

use primer_store::{Draft, StoreError};
use std::io::{self, Write};

/// A draft whose first failure waits until the offline phase is over, so that the client hears of
/// it.
///
/// In the middle of the protocol there is no message that could say "the disk is full".
pub(super) struct DraftSink {
    draft: Option<Draft>,
    failed: Option<StoreError>,
}

impl DraftSink {
    pub(super) fn new(draft: Draft) -> Self {
        Self {
            draft: Some(draft),
            failed: None,
        }
    }

    pub(super) fn commit(self) -> Result<(), StoreError> {
        match (self.draft, self.failed) {
            (Some(draft), None) => draft.commit(),
            (_, Some(error)) => Err(error),
            (None, None) => unreachable!("a draft goes only when it fails"),
        }
    }
}

impl Write for DraftSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(draft) = &mut self.draft else {
            return Ok(bytes.len());
        };
        match draft.write(bytes) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                let (id, fault) = (draft.meta().id, error.to_string());
                self.failed = Some(match error.kind() {
                    io::ErrorKind::NotConnected => StoreError::NotReady { fault },
                    _ => StoreError::Draft { id, fault },
                });
                self.draft = None;
                Ok(bytes.len())
            }
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

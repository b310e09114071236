//! A bundle that is being written.

use crate::background::Background;
use crate::error::{Result, StoreError};
use crate::files;
use crate::record::Meta;
use crate::seal::{BundleKey, Chunks, HEADER_BYTES, MAGIC, SALT_BYTES};
use crate::store::Shared;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A bundle that is being written: nobody sees it before [`Draft::commit`], and without that
/// nothing of it is left.
///
/// Sealing and writing happen in a thread of its own (`background`). The first write that failed
/// ends it: when that is noticed, by one of the next writes, its file is removed, so that a full
/// disk is not kept full, and further calls report the first failure.
#[must_use = "a draft that is not committed is removed"]
pub struct Draft {
    store: Arc<Shared>,
    meta: Meta,
    path: PathBuf,
    state: State,
}

enum State {
    Open(Box<Background>),
    Failed(String),
    Done,
}

impl Draft {
    /// The file exists and is locked by us: a sweep of another process leaves it alone while this
    /// process lives.
    pub(crate) fn begin(store: Arc<Shared>, meta: Meta, path: PathBuf, file: File) -> Result<Self> {
        let mut draft = Self {
            store,
            meta,
            path,
            state: State::Failed("not begun".into()),
        };
        let mut salt = Zeroizing::new([0; SALT_BYTES]);
        getrandom::fill(&mut *salt).expect("the operating system provides randomness");
        let mut header = Zeroizing::new([0; HEADER_BYTES]);
        header[..MAGIC.len()].copy_from_slice(&MAGIC);
        header[MAGIC.len()..].copy_from_slice(&*salt);
        let mut out = file;
        out.write_all(&*header)
            .map_err(StoreError::file("write", &draft.path))?;
        let key = BundleKey::derive(&draft.store.key, draft.meta.id, &salt);
        draft.state = State::Open(Box::new(Background::new(Chunks::new(out, key))));
        Ok(draft)
    }

    /// What the draft is for.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Makes the bundle durable, then visible. Once this returns, a power cut cannot undo it.
    ///
    /// # Errors
    /// If a write failed, now or before, or the name is taken. Then the draft is gone and the store
    /// is as it was.
    pub fn commit(mut self) -> Result<()> {
        let id = self.meta.id;
        let writer = match std::mem::replace(&mut self.state, State::Done) {
            State::Open(writer) => writer,
            State::Failed(fault) => return Err(StoreError::Draft { id, fault }),
            State::Done => unreachable!("commit consumes the draft"),
        };
        let written = writer.finish().and_then(|(file, bytes)| {
            file.sync_all()?;
            Ok((file, bytes))
        });
        // Dropping `self` removes the file in every case of an error.
        let (file, bytes) = written.map_err(StoreError::file("write", &self.path))?;
        self.store.publish(&self.meta, &self.path, bytes)?;
        drop(file);
        Ok(())
    }

    fn fail(&mut self, error: io::Error) -> io::Error {
        let fault = format!("cannot write {}: {error}", self.path.display());
        let told = io::Error::new(error.kind(), fault.clone());
        self.state = State::Failed(fault);
        let _ = files::remove(&self.path);
        told
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Open(writer) => writer.write(bytes).map_err(|e| self.fail(e)),
            State::Failed(fault) => Err(io::Error::other(fault.clone())),
            State::Done => unreachable!("commit consumes the draft"),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            // What is under way comes to the disk with the commit.
            State::Open(_) | State::Done => Ok(()),
            State::Failed(fault) => Err(io::Error::other(fault.clone())),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a commit the name is no longer there. What stays for other reasons is swept by the
        // next open.
        let _ = files::remove(&self.path);
    }
}

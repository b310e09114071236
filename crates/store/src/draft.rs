//! A bundle that is being written.

use crate::background::Background;
use crate::error::{Result, StoreError};
use crate::files::StoreKey;
use crate::record::Meta;
use crate::seal::{BundleKey, Chunks, HEADER_BYTES, MAGIC, SALT_BYTES};
use std::io::{self, Write};
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Where the sealed bytes of a draft go. A bulk that is dropped unpublished leaves nothing behind.
pub(crate) trait Bulk: Write + Send {
    /// Starts to bring what was written so far to durable storage, if that can be done before the
    /// end: then less is left to wait for.
    fn settle(&self) -> io::Result<()> {
        Ok(())
    }

    /// Makes what was written durable, then the bundle visible, which has `bytes` bytes of
    /// material.
    fn publish(self: Box<Self>, meta: &Meta, bytes: u64) -> Result<()>;
}

/// A bundle that is being written: it is invisible before [`Draft::commit`], and without that
/// nothing of it is left.
///
/// Sealing and writing happen in a thread of their own (`background`). The first write that fails
/// ends the draft: when one of the next writes notices, what was written is removed, so that a full
/// disk is not kept full, and further calls report the first failure.
#[must_use = "a draft that is not committed is removed"]
pub struct Draft {
    meta: Meta,
    /// A file, or the name of an object: for messages.
    place: PathBuf,
    state: State,
}

enum State {
    Open(Box<Background>),
    Failed(String),
    Done,
}

impl Draft {
    /// Begins with a header whose salt is fresh. `other_salt` is kept elsewhere: the key can be
    /// derived only from both.
    pub(crate) fn begin(
        meta: Meta,
        store_key: &StoreKey,
        other_salt: Option<&[u8; SALT_BYTES]>,
        place: PathBuf,
        mut bulk: Box<dyn Bulk>,
    ) -> Result<Self> {
        let mut salt = Zeroizing::new([0; SALT_BYTES]);
        getrandom::fill(&mut *salt).expect("the operating system provides randomness");
        let mut header = Zeroizing::new([0; HEADER_BYTES]);
        header[..MAGIC.len()].copy_from_slice(&MAGIC);
        header[MAGIC.len()..].copy_from_slice(&*salt);
        bulk.write_all(&*header)
            .map_err(StoreError::file("write", &place))?;
        let key = BundleKey::derive_from(store_key, meta.id, &salt, other_salt);
        Ok(Self {
            meta,
            place,
            state: State::Open(Box::new(Background::new(Chunks::new(bulk, key)))),
        })
    }

    /// Returns what the draft is for.
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
        let written = writer.finish();
        let (bulk, bytes) = written.map_err(StoreError::file("write", &self.place))?;
        bulk.publish(&self.meta, bytes)
    }

    fn fail(&mut self, error: io::Error) -> io::Error {
        let fault = format!("cannot write {}: {error}", self.place.display());
        let told = io::Error::new(error.kind(), fault.clone());
        // What was written goes with the writer.
        self.state = State::Failed(fault);
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
            // Data on its way gets to its place with the commit.
            State::Open(_) | State::Done => Ok(()),
            State::Failed(fault) => Err(io::Error::other(fault.clone())),
        }
    }
}

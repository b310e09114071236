//! The server's hint: kept, or fetched before the first bundle is prepared.
//!
//! The card names it, a list of hashes names its chunks, and nothing is kept that does not have its
//! hash; so the bytes may come from the server or from a copy anywhere ([`HintCopy`]). They are
//! fetched in order into a part ([`HintPart`]) of a place for hints ([`HintStore`]). What is
//! there when a fetch is cut, or the program ends, is checked and kept, and the next fetch goes on
//! behind it.
//!
//! Several processes may need it at once: one fetches, the others wait and see how far it is.

mod memory;
mod store;

pub use memory::MemoryHints;
pub use store::{HintCopy, HintPart, HintStore};

use super::link::Link;
use super::{Client, Event, HangUp};
use primer_hint::published::{Identity, Index, Published};
use primer_service::ServiceError;
use primer_service::hints::record::Record;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked how far another process is.
const LOOK: Duration = Duration::from_millis(200);

impl Client {
    /// Returns the hint of the server of a connection: the one that is kept, or fetched now.
    pub(super) fn hint(&mut self, link: &mut Link) -> Result<Arc<Published>, ServiceError> {
        let identity = link.card.hint;
        let kept = self.hint.as_ref();
        if let Some(kept) = kept.filter(|kept| *kept.identity() == identity) {
            return Ok(Arc::clone(kept));
        }
        loop {
            if let Some(found) = open(&mut *self.parts.hints, &identity)? {
                self.hint = Some(Arc::clone(&found));
                return Ok(found);
            }
            match self.parts.hints.part(&identity)? {
                Some(part) => self.fetch(link, part, &identity)?,
                None => {
                    let (done, bytes) = (self.parts.hints.progress(&identity), identity.bytes);
                    (self.observer)(Event::Hint { done, bytes });
                    self.options.hang_up.pause(LOOK)?;
                }
            }
        }
    }

    /// Fetches what is missing.
    fn fetch(
        &mut self,
        link: &mut Link,
        part: Box<dyn HintPart>,
        identity: &Identity,
    ) -> Result<(), ServiceError> {
        let hints = &mut *self.parts.hints;
        if hints.whole(identity)?.is_some() {
            // Another process was faster.
            return part.delete();
        }
        let index = match index(hints, identity)? {
            Some(index) => index,
            None => {
                let index = link.hint_index(identity)?;
                let record = Record {
                    model: link.card.model.clone(),
                    server: Some(self.address.clone()),
                    index,
                };
                hints.keep_record(&record)?;
                record.index
            }
        };
        let mut fetching = Fetching::begin(part, index)?;
        hints.check_room(identity.bytes - fetching.done())?;
        let Self {
            observer,
            work_done,
            options,
            parts,
            ..
        } = self;
        let bytes = identity.bytes;
        let told = |done| Event::Hint { done, bytes };
        observer(told(fetching.done()));
        if let Some(copy) = &mut parts.hint_copy {
            let hang_up = &options.hang_up;
            let copied = fetching.take_from(&mut **copy, hang_up, |done| observer(told(done)));
            link.watched_by(hang_up);
            hang_up.check()?;
            if let Err(error) = copied {
                observer(Event::NoCopy { error: &error });
            }
        }
        let (index, first) = (fetching.index.clone(), fetching.next);
        link.hint_chunks(&index, first, |chunk| {
            fetching.add(chunk)?;
            *work_done += 1;
            observer(told(fetching.done()));
            Ok(())
        })?;
        fetching.part.finish()
    }
}

/// Returns the hashes that are kept, if they are those of a hint.
fn index(hints: &dyn HintStore, identity: &Identity) -> Result<Option<Index>, ServiceError> {
    let index = hints.record(identity)?.map(|record| record.index);
    Ok(index.filter(|index| index.identity() == *identity))
}

/// Opens a hint, if all of it is there. One that is damaged becomes a part again, so that only what
/// is behind the damage is fetched.
fn open(
    hints: &mut dyn HintStore,
    identity: &Identity,
) -> Result<Option<Arc<Published>>, ServiceError> {
    let Some(bytes) = hints.whole(identity)? else {
        return Ok(None);
    };
    let fault = match index(hints, identity)? {
        None => "its hashes are missing".to_owned(),
        Some(index) => {
            let found = Published::in_file(index, bytes);
            let mut chunks = 0..found.index().chunks();
            match chunks.try_for_each(|chunk| found.chunk(chunk).map(drop)) {
                Ok(()) => return Ok(Some(Arc::new(found))),
                Err(error) => error.to_string(),
            }
        }
    };
    let hint = primer_service::hex(&identity.root);
    tracing::warn!(hint, fault, "a kept hint is fetched again");
    hints.reopen(identity)?;
    Ok(None)
}

/// A hint whose first chunks are there.
struct Fetching {
    part: Box<dyn HintPart>,
    index: Index,
    /// The chunk that comes next.
    next: usize,
}

impl Fetching {
    /// Looks which chunks are there already; what is behind them is cut off.
    fn begin(part: Box<dyn HintPart>, index: Index) -> Result<Self, ServiceError> {
        let mut next = 0;
        while next < index.chunks() {
            let place = index.place(next);
            let mut bytes = vec![0; (place.end - place.start) as usize];
            if !part.read(&mut bytes, place.start) || index.check(next, &bytes).is_err() {
                break;
            }
            next += 1;
        }
        let mut fetching = Self { part, index, next };
        fetching.part.truncate(fetching.done())?;
        Ok(fetching)
    }

    /// Returns the bytes that are there.
    fn done(&self) -> u64 {
        match self.next {
            0 => 0,
            next => self.index.place(next - 1).end,
        }
    }

    /// Returns the bytes of the chunk that comes next; none if all are there.
    fn wanted(&self) -> Option<usize> {
        let place = (self.next < self.index.chunks()).then(|| self.index.place(self.next))?;
        Some((place.end - place.start) as usize)
    }

    /// Checks and writes the next chunk.
    fn add(&mut self, bytes: &[u8]) -> Result<(), ServiceError> {
        self.index.check(self.next, bytes)?;
        self.part.write(bytes, self.done())?;
        self.next += 1;
        Ok(())
    }

    /// Fetches what is missing from a copy, as far as it has the right bytes; `told` hears how many
    /// there are after each chunk.
    fn take_from(
        &mut self,
        copy: &mut dyn HintCopy,
        hang_up: &HangUp,
        mut told: impl FnMut(u64),
    ) -> Result<(), ServiceError> {
        if self.wanted().is_none() {
            return Ok(());
        }
        let url = copy.place().to_owned();
        let failed = |why| ServiceError::Copy {
            url: url.clone(),
            why,
        };
        let mut source = copy.open(self.done(), hang_up).map_err(failed)?;
        while let Some(bytes) = self.wanted() {
            let mut chunk = vec![0; bytes];
            let read = source.read_exact(&mut chunk);
            read.map_err(|error| failed(format!("reading it: {error}")))?;
            match self.add(&chunk) {
                Err(ServiceError::Hint(error)) => return Err(failed(error.to_string())),
                added => added?,
            }
            told(self.done());
        }
        Ok(())
    }
}

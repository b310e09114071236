//! The server's hint: kept, or fetched before the first bundle is prepared.
//!
//! The card names it, a list of hashes names its chunks, and nothing is kept that does not have its
//! hash; so the bytes may come from the server or from a copy anywhere (`copy`, and `http` for
//! those of the web). They are fetched in order into a part (`primer_service::hints`). What is
//! there when a fetch is cut, or the program ends, is checked and kept, and the next fetch goes on
//! behind it.
//!
//! Several processes may need it at once: one fetches, the others wait and see how far it is.

mod copy;
mod http;

use super::link::Link;
use super::{Client, Event};
use primer_hint::published::{Identity, Index, Published};
use primer_service::hints::part::{Part, writing};
use primer_service::hints::record::Record;
use primer_service::state::State;
use primer_service::{ServiceError, hex};
use primer_store::check_room;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
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
        let state = State::open(self.options.state.as_deref())?;
        let files = Files::of(&state.dir("client/hints")?, &identity);
        loop {
            if let Some(found) = files.open(&identity)? {
                self.hint = Some(Arc::clone(&found));
                return Ok(found);
            }
            match Part::take(&files.part())? {
                Some(part) => self.fetch(link, &files, part, &identity)?,
                None => {
                    let done = fs::metadata(files.part()).map_or(0, |data| data.len());
                    let bytes = identity.bytes;
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
        files: &Files,
        part: Part,
        identity: &Identity,
    ) -> Result<(), ServiceError> {
        if files.hint().exists() {
            // Another process was faster.
            return part.delete();
        }
        let index = match files.index(identity)? {
            Some(index) => index,
            None => {
                let index = link.hint_index(identity)?;
                let record = Record {
                    model: link.card.model.clone(),
                    server: Some(self.address.clone()),
                    index,
                };
                record.write(&files.record())?;
                record.index
            }
        };
        let mut fetching = Fetching::begin(part, index)?;
        let missing = identity.bytes - fetching.done();
        check_room(files.dir(), missing, "for the hint of a model").map_err(ServiceError::Disk)?;
        let Self {
            observer,
            work_done,
            options,
            ..
        } = self;
        let bytes = identity.bytes;
        let told = |done| Event::Hint { done, bytes };
        observer(told(fetching.done()));
        if let Some(url) = &options.hint_url {
            let copied = copy::fetch(url, &mut fetching, options, |done| observer(told(done)));
            link.watched_by(&options.hang_up);
            options.hang_up.check()?;
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
        fetching.part.finish(&files.hint()).map(drop)
    }
}

/// The files of a hint.
struct Files {
    /// Without an ending.
    base: PathBuf,
}

impl Files {
    fn of(dir: &Path, identity: &Identity) -> Self {
        let base = dir.join(hex(&identity.root));
        Self { base }
    }

    fn dir(&self) -> &Path {
        self.base.parent().unwrap_or(Path::new("."))
    }

    fn hint(&self) -> PathBuf {
        self.base.with_extension("hint")
    }

    fn part(&self) -> PathBuf {
        self.base.with_extension("part")
    }

    fn record(&self) -> PathBuf {
        self.base.with_extension("json")
    }

    /// Returns the hashes that are kept, if they are those of a hint.
    fn index(&self, identity: &Identity) -> Result<Option<Index>, ServiceError> {
        let record = Record::read(&self.record())?;
        let index = record.map(|record| record.index);
        Ok(index.filter(|index| index.identity() == *identity))
    }

    /// Opens the hint, if all of it is there. One that is damaged becomes a part again, so that
    /// only what is behind the damage is fetched.
    fn open(&self, identity: &Identity) -> Result<Option<Arc<Published>>, ServiceError> {
        let path = self.hint();
        if !path.exists() {
            return Ok(None);
        }
        let index = self.index(identity)?;
        let file = File::open(&path).map_err(writing(&path))?;
        let fault = match index {
            None => "its hashes are missing".to_owned(),
            Some(index) => {
                let found = Published::in_file(index, file);
                let mut chunks = 0..found.index().chunks();
                match chunks.try_for_each(|chunk| found.chunk(chunk).map(drop)) {
                    Ok(()) => return Ok(Some(Arc::new(found))),
                    Err(error) => error.to_string(),
                }
            }
        };
        tracing::warn!(file = %path.display(), fault, "a kept hint is fetched again");
        let renamed = fs::rename(&path, self.part());
        renamed.map_err(writing(&self.part()))?;
        Ok(None)
    }
}

/// A hint whose first chunks are there.
struct Fetching {
    part: Part,
    index: Index,
    /// The chunk that comes next.
    next: usize,
}

impl Fetching {
    /// Looks which chunks are there already; what is behind them is cut off.
    fn begin(part: Part, index: Index) -> Result<Self, ServiceError> {
        let mut next = 0;
        while next < index.chunks() {
            let place = index.place(next);
            let mut bytes = vec![0; (place.end - place.start) as usize];
            let read = part.file().read_exact_at(&mut bytes, place.start);
            if read.is_err() || index.check(next, &bytes).is_err() {
                break;
            }
            next += 1;
        }
        let fetching = Self { part, index, next };
        let length = fetching.done();
        let cut = fetching.part.file().set_len(length);
        cut.map_err(writing(fetching.part.path()))?;
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
        let written = self.part.file().write_all_at(bytes, self.done());
        written.map_err(|cause| ServiceError::Io {
            what: format!(
                "writing {}, which takes {} bytes",
                self.part.path().display(),
                self.index.identity().bytes
            ),
            cause,
        })?;
        self.next += 1;
        Ok(())
    }
}

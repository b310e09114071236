//! A server's hint: found in its directory, or built there.
//!
//! Building takes a minute for BERT-base and streams: some values at a time are computed, one on
//! each thread, and written in order. What is written has the name of a part until it is whole, and
//! the record that says so is written last.

use primer_engine::hints::Build;
use primer_hint::contents::Contents;
use primer_hint::multipliers::{Multipliers, file_bytes};
use primer_hint::published::Published;
use primer_hint::server::{Hint, HintSecret, Multiplier};
use primer_hint::writing::{HintWriter, MultiplierWriter};
use primer_model::quantise::IntModel;
use primer_service::hints::MAX_HINT;
use primer_service::hints::part::{self, Part, writing};
use primer_service::hints::record::Record;
use primer_service::{ServiceError, hex};
use primer_store::fleet::Keys;
use primer_store::{check_room, load_key};
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// Multipliers that are kept in memory; what is beyond is read from the file for every batch.
const MULTIPLIER_MEMORY: usize = 2 << 30;
/// How often it is looked whether another process has built the hint.
const LOOK: Duration = Duration::from_millis(100);

/// Returns what hides a server's weights in hints: the secret of a directory, made on the first
/// call, or the one that replicas with the same store derive from its key.
///
/// # Errors
/// [`ServiceError`] naming the file if it cannot be read or made, or others may read it.
pub fn secret(dir: &Path, shared: Option<&Keys>) -> Result<HintSecret, ServiceError> {
    let key = match shared {
        Some(keys) => keys.derive("primer 2026 hint secret of replicas"),
        None => load_key(&dir.join("hint.key"), true).map_err(ServiceError::Disk)?,
    };
    Ok(HintSecret::new(*key))
}

/// A hint, and what its server multiplies with.
pub struct ServerHint {
    /// What clients get.
    pub published: Arc<Published>,
    /// What the server keeps.
    pub multipliers: Arc<Multipliers>,
    /// Whether it was built just now.
    pub built: bool,
    /// Where the hint is.
    pub file: PathBuf,
}

impl ServerHint {
    /// Finds the hint of a model in a directory, or builds it there; `progress` is told how many
    /// outputs of how many are done. `called` is the model's name in lists.
    ///
    /// # Errors
    /// [`ServiceError`] naming the file or the limit at fault; nothing is left behind.
    pub fn find_or_build(
        dir: &Path,
        (called, model): (&str, &IntModel),
        secret: &HintSecret,
        threads: usize,
        progress: impl Fn(usize, usize),
    ) -> Result<Self, ServiceError> {
        let build = Build::new(model, secret)?;
        let bytes = build.contents().bytes();
        if bytes > MAX_HINT {
            return Err(ServiceError::Options(format!(
                "the hint of this model would have {bytes} bytes, the limit is {MAX_HINT}"
            )));
        }
        std::fs::create_dir_all(dir).map_err(writing(dir))?;
        let files = Files::of(dir, &build);
        loop {
            if let Some(found) = files.open(build.contents())? {
                return Ok(found);
            }
            let Some(part) = Part::take(&files.part("hint"))? else {
                std::thread::sleep(LOOK);
                continue;
            };
            let started = Instant::now();
            files.build(&build, called, part, threads, &progress)?;
            let seconds = started.elapsed().as_secs_f64();
            tracing::info!(file = %files.hint().display(), bytes, seconds, "built the hint");
            let found = files.open(build.contents())?;
            let found = found.ok_or_else(|| {
                let what = format!("{} was changed a moment ago", files.hint().display());
                ServiceError::Options(what)
            })?;
            let built = true;
            return Ok(Self { built, ..found });
        }
    }
}

/// The files of a hint.
struct Files {
    /// Without an ending.
    base: PathBuf,
    name: primer_hint::public::Name,
}

impl Files {
    fn of(dir: &Path, build: &Build<'_>) -> Self {
        let name = *build.name();
        let base = dir.join(hex(&name));
        Self { base, name }
    }

    fn hint(&self) -> PathBuf {
        self.base.with_extension("hint")
    }

    fn digits(&self) -> PathBuf {
        self.base.with_extension("digits")
    }

    fn record(&self) -> PathBuf {
        self.base.with_extension("json")
    }

    fn part(&self, of: &str) -> PathBuf {
        self.base.with_extension(format!("{of}.part"))
    }

    /// Opens what is there, if it is whole; says so if it is there and is not.
    fn open(&self, contents: &Contents) -> Result<Option<ServerHint>, ServiceError> {
        let there = [self.hint(), self.digits(), self.record()];
        if !there.iter().all(|path| path.exists()) {
            return Ok(None);
        }
        let fault = match self.read(contents) {
            Ok(found) => return Ok(Some(found)),
            Err(fault) => fault,
        };
        let file = self.hint();
        tracing::warn!(file = %file.display(), fault, "a hint is damaged and is built again");
        Ok(None)
    }

    /// Reads all of it, and compares it with its hashes.
    fn read(&self, contents: &Contents) -> Result<ServerHint, String> {
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let record = Record::read(&self.record()).map_err(|error| told(&error))?;
        let record = record.ok_or("its record cannot be read")?;
        let identity = record.index.identity();
        if identity.name != self.name || identity.bytes != contents.bytes() {
            return Err("its record is that of another hint".into());
        }
        let file = File::open(self.hint()).map_err(|error| told(&error))?;
        if file
            .metadata()
            .is_ok_and(|data| data.len() != identity.bytes)
        {
            return Err("its length has changed".into());
        }
        let published = Published::in_file(record.index, file);
        for chunk in 0..published.index().chunks() {
            published.chunk(chunk).map_err(|error| told(&error))?;
        }
        let digits = File::open(self.digits()).map_err(|error| told(&error))?;
        let multipliers = Multipliers::open(digits, &identity, contents, MULTIPLIER_MEMORY);
        Ok(ServerHint {
            published: Arc::new(published),
            multipliers: Arc::new(multipliers.map_err(|error| told(&error))?),
            built: false,
            file: self.hint(),
        })
    }

    /// Builds all of it. If that fails, nothing stays.
    fn build(
        &self,
        build: &Build<'_>,
        called: &str,
        part: Part,
        threads: usize,
        progress: &dyn Fn(usize, usize),
    ) -> Result<(), ServiceError> {
        let done = self.write(build, called, &part, threads, progress);
        if done.is_err() {
            let _ = part::remove(&self.part("digits"));
            let _ = part.delete();
        }
        done
    }

    fn write(
        &self,
        build: &Build<'_>,
        called: &str,
        part: &Part,
        threads: usize,
        progress: &dyn Fn(usize, usize),
    ) -> Result<(), ServiceError> {
        let contents = build.contents();
        let needed = [contents.bytes(), file_bytes(contents)];
        // Files that are replaced do not count: they go when the new ones are whole.
        let dir = part.path().parent().unwrap_or(Path::new("."));
        check_room(dir, needed[0] + needed[1], "for the hint of a model")
            .map_err(ServiceError::Disk)?;
        let fails = |path: &Path, needed: u64| {
            let what = format!("writing {}, which takes {needed} bytes", path.display());
            move |cause: io::Error| ServiceError::Io { what, cause }
        };
        let (hint_path, digits_path) = (part.path(), self.part("digits"));
        let mut options = File::options();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let digits = options.open(&digits_path).map_err(writing(&digits_path))?;
        part.file().set_len(0).map_err(writing(hint_path))?;
        let mut hint = HintWriter::new(build.name(), part.file());
        let multipliers = MultiplierWriter::new(&digits);
        let mut multipliers = multipliers.map_err(fails(&digits_path, needed[1]))?;
        let entries = contents.entries();
        let all = entries.iter().map(|entry| entry.outputs).sum();
        let mut outputs = 0;
        in_order(build, threads, |index, multiplier, made| {
            hint.add(&made).map_err(fails(hint_path, needed[0]))?;
            let added = multipliers.add(&multiplier);
            added.map_err(fails(&digits_path, needed[1]))?;
            outputs += entries[index].outputs;
            progress(outputs, all);
            Ok(())
        })?;
        let (index, _) = hint.finish().map_err(fails(hint_path, needed[0]))?;
        let ended = multipliers.finish(&index.identity());
        ended.map_err(fails(&digits_path, needed[1]))?;
        part::remove(&self.record())?;
        // It is for everyone: a web server may serve it from here.
        part.file()
            .set_permissions(Permissions::from_mode(0o644))
            .map_err(writing(hint_path))?;
        part::finish(&digits_path, &digits, &self.digits())?;
        part::finish(hint_path, part.file(), &self.hint())?;
        let record = Record {
            model: called.to_owned(),
            server: None,
            index,
        };
        record.write(&self.record())
    }
}

/// Makes all values of a hint, one on each thread at a time, and has them taken in their order.
fn in_order(
    build: &Build<'_>,
    threads: usize,
    mut take: impl FnMut(usize, Multiplier, Hint) -> Result<(), ServiceError>,
) -> Result<(), ServiceError> {
    let count = build.contents().entries().len();
    let threads = threads.clamp(1, count.max(1));
    std::thread::scope(|scope| {
        let workers = (0..threads).map(|first| {
            // A worker waits until what it has made is taken: so memory is bounded.
            let (made, line) = sync_channel(0);
            scope.spawn(move || {
                let mut mine = (first..count).step_by(threads);
                while mine
                    .next()
                    .is_some_and(|index| made.send(build.entry(index)).is_ok())
                {}
            });
            line
        });
        let lines: Vec<_> = workers.collect();
        for index in 0..count {
            let Ok(made) = lines[index % threads].recv() else {
                break; // It panicked, and so does the scope.
            };
            let (multiplier, hint, _) = made?;
            take(index, multiplier, hint)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests;

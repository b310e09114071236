//! The bulk of a shared store: sealed objects, each written once, read once, deleted.

use super::core::Runtime;
use crate::error::{Result, StoreError};
use futures_util::TryStreamExt;
use object_store::aws::AmazonS3Builder;
use object_store::buffered::BufWriter;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{
    ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig,
};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;

/// The most that one request reads: a bundle of a small model takes one request, one of a large
/// model several, which follow each other ahead of the reader.
const WINDOW: u64 = 4 << 20;
/// What is uploaded at once.
const PART: usize = 8 << 20;
/// How long one request may take, with its repetitions.
const LIMIT: Duration = Duration::from_secs(20);

/// The place for blobs.
#[derive(Clone)]
pub(super) struct Blobs {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
    url: String,
    /// Where it is, if that is a directory.
    pub(super) directory: Option<PathBuf>,
    /// When a write to test the place (`probe`) last succeeded.
    pub(super) worked: Arc<Mutex<Option<Instant>>>,
}

/// What a request came to.
type Outcome<T> = object_store::Result<T>;

pub(super) fn fault(error: impl std::fmt::Display) -> StoreError {
    StoreError::Shared {
        part: "blobs",
        fault: error.to_string(),
    }
}

/// Makes an error for what is read and written as a stream: its kind says that the store is out of
/// reach.
fn io_fault(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, error.to_string())
}

impl Blobs {
    /// Opens the place that a URL names; for S3 the usual variables of the environment apply.
    pub(super) fn open(url: &str, runtime: &Arc<Runtime>) -> Result<Self> {
        let options = |fault: String| StoreError::Options {
            fault: format!("--blobs {url}: {fault}"),
        };
        let mut directory = None;
        let store: Arc<dyn ObjectStore> = if let Some(rest) = url.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            let retry = RetryConfig {
                max_retries: 3,
                retry_timeout: Duration::from_secs(8),
                ..RetryConfig::default()
            };
            let client = ClientOptions::new()
                .with_connect_timeout(Duration::from_secs(3))
                .with_timeout(Duration::from_secs(15))
                .with_allow_http(std::env::var("AWS_ALLOW_HTTP").is_ok_and(|v| v == "true"));
            let s3 = AmazonS3Builder::from_env()
                .with_bucket_name(bucket)
                .with_client_options(client)
                .with_retry(retry)
                .build()
                .map_err(|e| options(e.to_string()))?;
            Arc::new(PrefixStore::new(s3, prefix.trim_end_matches('/')))
        } else if let Some(path) = url.strip_prefix("file://").filter(|p| p.starts_with('/')) {
            crate::files::make_private_dir(path.as_ref())?;
            directory = Some(PathBuf::from(path));
            let files =
                LocalFileSystem::new_with_prefix(path).map_err(|e| options(e.to_string()))?;
            Arc::new(files.with_fsync(true))
        } else {
            return Err(options(
                "expected s3://BUCKET/PREFIX or file:///DIRECTORY".into(),
            ));
        };
        Ok(Self {
            store,
            runtime: Arc::clone(runtime),
            url: url.to_owned(),
            directory,
            worked: Arc::default(),
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        self.runtime
            .within(LIMIT, work)
            .ok_or_else(|| fault(format!("no answer within {} s", LIMIT.as_secs())))
    }

    /// Writes a small object.
    pub(super) async fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let payload = PutPayload::from(bytes.to_vec());
        let done = self.store.put(&Path::from(name), payload).await;
        done.map(drop).map_err(fault)
    }

    /// Deletes an object; it may be gone already.
    pub(super) async fn delete(&self, name: &str) -> Result<()> {
        match self.store.delete(&Path::from(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(fault(error)),
        }
    }

    /// Lists the names of all objects in a directory.
    pub(super) async fn list(&self, directory: &str) -> Result<Vec<String>> {
        let prefix = Path::from(directory);
        let all = self.store.list(Some(&prefix));
        let names = all.map_ok(|meta| meta.location.to_string()).try_collect();
        names.await.map_err(fault)
    }

    /// Deletes an object as [`Self::delete`] does, for callers outside a request.
    pub(super) fn delete_now(&self, name: &str) -> Result<()> {
        self.wait(self.delete(name))?
    }

    /// Lists objects as [`Self::list`] does, for callers outside a request.
    pub(super) fn list_now(&self, directory: &str) -> Result<Vec<String>> {
        self.wait(self.list(directory))?
    }

    /// Tells whether an object is there.
    pub(super) fn has(&self, name: &str) -> Result<bool> {
        match self.wait(self.store.head(&Path::from(name)))? {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(fault(error)),
        }
    }

    /// Begins to read an object, which also tells its length; none if there is no such object.
    pub(super) fn read(&self, name: &str) -> Result<Option<Reader>> {
        let path = Path::from(name);
        let first = async {
            let options = GetOptions::new().with_range(Some(GetRange::Bounded(0..WINDOW)));
            let got = self.store.get_opts(&path, options).await?;
            let size = got.meta.size;
            Outcome::Ok((size, got.bytes().await?))
        };
        match self.wait(first)? {
            Ok((size, window)) => Ok(Some(Reader {
                asked: window.len() as u64,
                blobs: self.clone(),
                path,
                size,
                window,
                ahead: None,
            })),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(fault(error)),
        }
    }

    /// Begins to write an object; it is invisible before it is finished.
    pub(super) fn write(&self, name: &str) -> Writer {
        let store = Arc::clone(&self.store);
        Writer {
            blobs: self.clone(),
            upload: Some(BufWriter::with_capacity(store, Path::from(name), PART)),
        }
    }
}

/// Reads an object in windows, the next one ahead of its reader.
pub(super) struct Reader {
    blobs: Blobs,
    path: Path,
    size: u64,
    /// Bytes that were asked for so far.
    asked: u64,
    window: bytes::Bytes,
    ahead: Option<JoinHandle<Outcome<bytes::Bytes>>>,
}

impl Reader {
    /// Returns the number of bytes of the whole object.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Asks for the next window, if there is one.
    fn ask(&mut self) {
        if self.asked >= self.size || self.ahead.is_some() {
            return;
        }
        let range = self.asked..self.size.min(self.asked + WINDOW);
        self.asked = range.end;
        let (store, path) = (Arc::clone(&self.blobs.store), self.path.clone());
        let work = async move { store.get_range(&path, range).await };
        self.ahead = Some(self.blobs.runtime.handle().spawn(work));
    }
}

impl Read for Reader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.ask();
        if self.window.is_empty()
            && let Some(ahead) = self.ahead.take()
        {
            let window = self.blobs.wait(ahead).map_err(io_fault)?;
            self.window = window.map_err(io_fault)?.map_err(io_fault)?;
            self.ask();
        }
        let now = out.len().min(self.window.len());
        out[..now].copy_from_slice(&self.window.split_to(now));
        Ok(now)
    }
}

/// Writes an object: at once if it is small, in parts if it is not.
pub(super) struct Writer {
    blobs: Blobs,
    upload: Option<BufWriter>,
}

impl Writer {
    /// Makes the object, whole.
    pub(super) fn finish(mut self) -> Result<()> {
        let Some(mut upload) = self.upload.take() else {
            return Err(fault("the upload failed before"));
        };
        self.blobs.wait(upload.shutdown())?.map_err(fault)
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(upload) = &mut self.upload else {
            return Err(io_fault("the upload failed before"));
        };
        let piece = bytes::Bytes::copy_from_slice(bytes);
        let done = self.blobs.runtime.within(LIMIT, upload.put(piece));
        let done = done.ok_or_else(|| io_fault("no answer"));
        match done.and_then(|done| done.map_err(io_fault)) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                self.upload = None;
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Parts of an unfinished upload; what stays is swept by the bucket's own rule.
        if let Some(mut upload) = self.upload.take() {
            let _ = self.blobs.runtime.within(LIMIT, upload.abort());
        }
    }
}

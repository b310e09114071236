//! What a client needs of the system that it runs on.

use super::dial::Dial;
use super::hint::{HintCopy, HintStore, MemoryHints};
use super::keep::{Keep, MemoryKeep};
use primer_store::{BundleStore, MemoryStore};
use std::sync::Arc;

/// The parts of a client that depend on the system: [`Client::connect`](super::Client::connect)
/// takes those of a system with sockets and files, a page in a browser brings its own to
/// [`Client::connect_with`](super::Client::connect_with). The time is asked for in
/// [`primer_wire::clock`], random bytes come from the crate `getrandom`, and threads are used if
/// there are any.
pub struct Parts {
    /// Opens connections.
    pub dial: Box<dyn Dial>,
    /// Keeps what is small.
    pub keep: Box<dyn Keep>,
    /// Keeps bundles, each given out once.
    pub bundles: Arc<dyn BundleStore>,
    /// Keeps hints.
    pub hints: Box<dyn HintStore>,
    /// A copy of the model's hint that is nearer than the server's, if there is one.
    pub hint_copy: Option<Box<dyn HintCopy>>,
}

impl Parts {
    /// Makes parts that keep everything in memory, at most `limit` bytes of bundles.
    pub fn in_memory(dial: impl Dial + 'static, limit: u64) -> Self {
        Self {
            dial: Box::new(dial),
            keep: Box::new(MemoryKeep::default()),
            bundles: Arc::new(MemoryStore::new(limit)),
            hints: Box::new(MemoryHints::default()),
            hint_copy: None,
        }
    }
}

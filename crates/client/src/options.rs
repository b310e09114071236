//! How a client behaves, and what it tells of while its caller waits.

use super::HangUp;
#[cfg(feature = "native")]
use primer_net::tls::Identity;
use primer_service::message::Refusal;
use primer_service::{BundleId, ServiceError};
use primer_wire::Meter;
#[cfg(feature = "native")]
use primer_wire::peer::Fingerprint;
#[cfg(feature = "native")]
use std::path::PathBuf;
use std::time::Duration;
use zeroize::Zeroizing;

/// How a client behaves, and who it is to its server. Clones are for other clients of the same
/// owner; they are hung up together.
///
/// What only [`Client::connect`](super::Client::connect) reads is there with feature `native`:
/// other [`Parts`](super::Parts) were told where they were made.
#[derive(Clone)]
pub struct ClientOptions {
    /// Where servers, pseudonyms and bundles are kept; by XDG if not given.
    #[cfg(feature = "native")]
    pub state: Option<PathBuf>,
    /// Where bundles are prepared, if replicas of the server do that at another address.
    pub prepare_at: Option<String>,
    /// Where a copy of the model's hint is: `http://…`, `https://…` or a file. It is compared with
    /// what the server says, which is asked if the copy is of no use.
    #[cfg(feature = "native")]
    pub hint_url: Option<String>,
    /// The fingerprint of a server that is not known yet.
    #[cfg(feature = "native")]
    pub trust: Option<Fingerprint>,
    /// The access token, if the server asks for one.
    pub token: Option<Zeroizing<String>>,
    /// The certificate and key to show, if the server asks for one.
    #[cfg(feature = "native")]
    pub identity: Option<Identity>,
    /// The longest pause of the server.
    #[cfg(feature = "native")]
    pub timeout: Duration,
    /// Threads that prepare; all cores if not given.
    pub threads: Option<usize>,
    /// Attempts in all if the connection breaks in the middle of work, each on a new connection and
    /// with a fresh bundle.
    pub attempts: u32,
    /// How long a server is tried again that says *later*, cannot be reached, or whose connections
    /// are dropped before it answers, as a balancer does; if not given, half a minute if it says so
    /// itself, and not at all otherwise.
    pub wait: Option<Duration>,
    /// Unspent bundles are deleted after this time.
    pub expiry: Duration,
    /// Ends what the client does from another thread.
    pub hang_up: HangUp,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            #[cfg(feature = "native")]
            state: None,
            prepare_at: None,
            #[cfg(feature = "native")]
            hint_url: None,
            #[cfg(feature = "native")]
            trust: None,
            token: None,
            #[cfg(feature = "native")]
            identity: None,
            #[cfg(feature = "native")]
            timeout: Duration::from_secs(120),
            threads: None,
            attempts: 3,
            wait: None,
            expiry: Duration::from_secs(29 * 24 * 3600),
            hang_up: HangUp::default(),
        }
    }
}

/// What happens while a caller waits.
#[non_exhaustive]
pub enum Event<'a> {
    /// An offline phase begins; the meter will count to about `expected` bytes more.
    Offline {
        /// The padded length.
        tokens: usize,
        /// How many bundles are prepared together.
        bundles: usize,
        /// Counts what passes.
        meter: &'a Meter,
        /// Bytes of both directions.
        expected: u64,
    },
    /// It has ended, and the bundles are stored.
    Prepared {
        /// The padded length.
        tokens: usize,
        /// How many were prepared together.
        bundles: usize,
        /// How long it took.
        seconds: f64,
    },
    /// The model's hint is fetched, by this process or by another one with the same state; it is
    /// there when all bytes are.
    Hint {
        /// Bytes that are there.
        done: u64,
        /// Bytes of all of it.
        bytes: u64,
    },
    /// A copy of the hint cannot be used; what is missing is fetched from the server.
    NoCopy {
        /// Why not.
        error: &'a ServiceError,
    },
    /// The connection broke; there is another attempt.
    Retry {
        /// What happened.
        error: &'a ServiceError,
        /// Which attempt comes now.
        attempt: u32,
    },
    /// The server is full, stopping or not there; it is asked again.
    Waiting {
        /// What it said, or what happened.
        error: &'a ServiceError,
        /// How long until then.
        pause: Duration,
    },
    /// A stored bundle is of no use to the server and was deleted.
    Discarded {
        /// Which.
        id: BundleId,
        /// What the server says.
        refusal: &'a Refusal,
    },
}

pub(super) type Observer = Box<dyn FnMut(Event<'_>) + Send>;

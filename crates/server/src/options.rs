//! How a server behaves.

use super::tokens::AccessTokens;
use primer_engine::Reveal;
use primer_net::tls::{Clients, Identity};
use primer_service::ServiceError;
use primer_service::message::ServerRole;
use primer_store::Allowances;
use primer_store::fleet::Keys;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What a server serves, to whom, and within which limits.
pub struct ServerOptions {
    /// The model's directory; the embedded model if there is none.
    pub model: Option<PathBuf>,
    /// Scales and integer weights that `inspect --save-prepared` wrote.
    pub prepared: Option<PathBuf>,
    /// Text whose activation ranges set the scales.
    pub calibration: Option<PathBuf>,
    /// Where to listen; port 0 lets the system choose.
    pub listen: String,
    /// Where health and metrics are told, if anywhere.
    pub metrics: Option<String>,
    /// What browsers are served, if anything.
    pub web: Option<WebOptions>,
    /// Where identity and bundles are kept; by XDG if not given.
    pub state: Option<PathBuf>,
    /// Where the model's hint is kept or built; in the state if not given.
    pub hints: Option<PathBuf>,
    /// A store that this server shares with replicas; a directory of the state if not given.
    pub store: Option<SharedStore>,
    /// What this server is called in logs, metrics and the journal of a shared store.
    pub replica: Option<String>,
    /// What it does for clients.
    pub roles: Vec<ServerRole>,
    /// The certificate and its key; made and kept in the state if not given.
    pub identity: Option<Identity>,
    /// Who may connect, by certificate.
    pub clients: Clients,
    /// Who may connect, by access token; everyone if not given. The keeper of a clone can have the
    /// file read again.
    pub access: Option<Arc<AccessTokens>>,
    /// What clients learn.
    pub reveal: Reveal,
    /// Threads that prepare, divided among the sessions; all cores if not given.
    pub threads: Option<usize>,
    /// Bounds of everything.
    pub limits: Limits,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            model: None,
            prepared: None,
            calibration: None,
            listen: "127.0.0.1:7447".into(),
            metrics: None,
            web: None,
            state: None,
            hints: None,
            store: None,
            replica: None,
            roles: ServerRole::ALL.to_vec(),
            identity: None,
            clients: Clients::Anyone,
            access: None,
            reveal: Reveal::Outputs,
            threads: None,
            limits: Limits::default(),
        }
    }
}

/// What takes a while when a server starts for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starting {
    /// The model is calibrated; inputs are counted.
    Calibrating,
    /// The model's hint is built; outputs are counted.
    Hint,
}

impl Starting {
    /// Returns what is done, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Calibrating => "calibrating",
            Self::Hint => "building the hint",
        }
    }
}

/// A page with a client in it, and the port that it is served on.
pub struct WebOptions {
    /// The directory of the page.
    pub dir: PathBuf,
    /// Where to listen; port 0 lets the system choose.
    pub listen: String,
    /// Origins of pages elsewhere that may connect, `https://…`.
    pub origins: Vec<String>,
    /// Whether browsers know who signed the server's certificate; plain HTTP if not.
    pub secure: bool,
}

/// Where a store is that replicas of a server share.
pub struct SharedStore {
    /// The database: `postgres://…`.
    pub database: String,
    /// Certificates of authorities that may vouch for it, as PEM; the system's if not given.
    pub authority: Option<PathBuf>,
    /// The place for blobs: `s3://…` or `file:///…`.
    pub blobs: String,
    /// What seals bundles, the same on all replicas.
    pub keys: Keys,
}

/// Bounds of everything that a client can make the server do.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Sessions at once.
    pub sessions: usize,
    /// Tokens of one input.
    pub tokens: usize,
    /// Bytes of unspent bundles for one client.
    pub stored_per_client: u64,
    /// Bytes of unspent bundles altogether.
    pub stored: u64,
    /// Bundles prepared and answers of one client, where its access token does not say otherwise.
    pub allowances: Allowances,
    /// Lengths whose programs are kept in memory.
    pub lengths: usize,
    /// Unspent bundles are deleted after this time.
    pub expiry: Duration,
    /// From the connection to the greeting.
    pub handshake: Duration,
    /// From the last bundle prepared or spent, or hint fetched, to the next, and the longest pause
    /// within one.
    pub idle: Duration,
    /// A whole session.
    pub session: Duration,
    /// What a stop waits for inferences.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 16,
            tokens: 512,
            stored_per_client: 64 << 30,
            stored: 512 << 30,
            allowances: Allowances::default(),
            lengths: 4,
            expiry: Duration::from_secs(30 * 24 * 3600),
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            session: Duration::from_secs(4 * 3600),
            drain: Duration::from_secs(60),
        }
    }
}

impl ServerOptions {
    pub(crate) fn check(&self) -> Result<(), ServiceError> {
        let wrong = |message: &str| Err(ServiceError::Options(message.into()));
        if self.limits.sessions == 0 || self.limits.sessions > 4096 {
            return wrong("a server has between 1 and 4096 sessions");
        }
        if self.roles.is_empty() {
            return wrong("a server prepares, infers, or does both");
        }
        if self.web.is_some() && !matches!(self.clients, Clients::Anyone) {
            return wrong(
                "browsers show no certificate of theirs, so a server that asks for one serves no \
                 page",
            );
        }
        // A replica with a certificate of its own making would be another server to clients.
        if self.store.is_some() && self.identity.is_none() {
            return Err(ServiceError::NoIdentity);
        }
        Ok(())
    }
}

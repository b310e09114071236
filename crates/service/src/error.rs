//! What can go wrong between a client and a server. No variant carries a text, a share, a key or a
//! token.

use super::BundleId;
use super::message::Refusal;
use primer_engine::ProtocolError;
use primer_hint::error::HintError;
use primer_store::{Exhausted, StoreError};
use primer_text::TextError;
use primer_wire::NetError;
use primer_wire::peer::Fingerprint;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// Why the service failed, in one sentence that has its causes in it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The connection failed or the peer said something that it must not.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The private protocol failed.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The peer refused and said why.
    #[error("the server refused: {0}")]
    Refused(#[from] Refusal),
    /// A text cannot be tokenised.
    #[error(transparent)]
    Text(#[from] TextError),
    /// There is no model to serve.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// The store of prepared material failed.
    #[error("the store of prepared bundles: {0}")]
    Store(StoreError),
    /// A key cannot be read, or a disk has too little room.
    #[error(transparent)]
    Disk(StoreError),
    /// A hint is damaged, or cannot be made.
    #[error(transparent)]
    Hint(#[from] HintError),
    /// A copy of the hint could not be used.
    #[error("fetching the hint from {url}: {why}")]
    Copy {
        /// Where the copy is.
        url: String,
        /// Why not.
        why: String,
    },
    /// The address cannot be reached.
    #[error("cannot connect to {address}: {cause}")]
    Connect {
        /// As it was given.
        address: String,
        /// What the system says.
        cause: io::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {}", in_use(cause))]
    Listen {
        /// What it is for.
        port: Port,
        /// As it was given.
        address: String,
        /// What the system says.
        cause: io::Error,
    },
    /// The connection broke, and further attempts did too.
    #[error("the connection to {address} broke on attempt {attempts}: {cause}")]
    Broken {
        /// The address.
        address: String,
        /// How often it was tried.
        attempts: u32,
        /// How it broke the last time.
        cause: Box<ServiceError>,
    },
    /// The connection ended before the server answered, and before anything was lost by it: a
    /// balancer takes connections and drops them while the server behind it is away.
    #[error("{address} ended the connection before it answered: {cause}{}", waited_for(*waited))]
    Away {
        /// The address.
        address: String,
        /// How the connection ended.
        cause: Box<NetError>,
        /// How long it was waited for; none while it is.
        waited: Option<Duration>,
    },
    /// Some of the bundles that were asked for are prepared, and then it failed.
    #[error("{kept} of {wanted} bundles are prepared and kept, the others are not: {cause}")]
    Incomplete {
        /// How many there are.
        kept: usize,
        /// How many were asked for.
        wanted: usize,
        /// Why there are no more.
        cause: Box<ServiceError>,
    },
    /// A server that was never seen, and no fingerprint to check it against.
    #[error(
        "{address} is not known yet; its certificate has the fingerprint {got}: compare it with \
         what the server printed when it started"
    )]
    UnknownServer {
        /// The address.
        address: String,
        /// What it presented.
        got: Fingerprint,
    },
    /// The server presents another certificate than before.
    #[error(
        "THE CERTIFICATE OF {address} HAS CHANGED: {known} is on record in {}, but the server \
         presents {got}; someone may be listening in. If the server's operator confirms the new \
         fingerprint, delete the line from that file and trust the new one",
        file.display()
    )]
    ChangedServer {
        /// The address.
        address: String,
        /// The fingerprint on record.
        known: Fingerprint,
        /// The fingerprint presented.
        got: Fingerprint,
        /// Where the record is.
        file: PathBuf,
    },
    /// A server that is not known presents another certificate than the user said.
    #[error(
        "{address} presents a certificate with the fingerprint {got}, not {given} as was \
         expected; compare both with what the server printed when it started: one of them is \
         mistyped, or another machine answers. Nothing was recorded"
    )]
    OtherFingerprint {
        /// The address.
        address: String,
        /// What the user gave.
        given: Fingerprint,
        /// What it presented.
        got: Fingerprint,
    },
    /// A known server presents the certificate on record, and the user gave another fingerprint.
    #[error(
        "the fingerprint {given} was expected, but {address} presents the certificate on record, \
         {got}: it is known and has not changed, so no fingerprint need be given"
    )]
    NeedlessFingerprint {
        /// The address.
        address: String,
        /// What the user gave.
        given: Fingerprint,
        /// What is on record, and was presented.
        got: Fingerprint,
    },
    /// The server asks for a certificate, and ended the connection when it saw none or this one.
    #[error(
        "{address} asks clients for a certificate and {} ({cause})",
        if *shown {
            "ended the connection when it saw this one; ask its operator which ones it accepts"
        } else {
            "none was given"
        }
    )]
    ClientCertificate {
        /// The address.
        address: String,
        /// Whether one was shown.
        shown: bool,
        /// How the connection ended.
        cause: NetError,
    },
    /// The peer sent something that is well formed and makes no sense.
    #[error("the peer sent {what}")]
    Nonsense {
        /// What it sent.
        what: String,
    },
    /// The server serves another kind of model.
    #[error("the server's model {model} has {has}, but this needs {needs}")]
    Head {
        /// The model's name.
        model: String,
        /// What it has, and its class.
        has: String,
        /// What is needed.
        needs: &'static str,
    },
    /// A bundle cannot be used.
    #[error("bundle {id} cannot be used: {why}")]
    Bundle {
        /// Which.
        id: BundleId,
        /// Why.
        why: &'static str,
    },
    /// The server does not stand by a bundle that it has just prepared.
    #[error("the server prepared a bundle and refused it a moment later: {refusal}")]
    Fickle {
        /// What it said.
        refusal: Refusal,
    },
    /// Bundles that were prepared for an answer went elsewhere.
    #[error(
        "{bundles} bundles were prepared for this answer, and other processes with the same state \
         directory took them"
    )]
    Elsewhere {
        /// How many.
        bundles: u32,
    },
    /// The program is told to stop.
    #[error("stopped while {0}")]
    HungUp(&'static str),
    /// A replica has no certificate that the others have too.
    #[error("replicas that share a store need the same certificate, and none was given")]
    NoIdentity,
    /// There is no place to keep state in.
    #[error("there is no home directory to keep state in, and no other place was given")]
    NoState,
    /// An option makes no sense.
    #[error("{0}")]
    Options(String),
    /// A file or the system failed.
    #[error("{what}: {cause}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system says.
        cause: io::Error,
    },
}

/// What a port is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// Clients.
    Clients,
    /// Clients in browsers, and their page.
    Browsers,
    /// Health and metrics.
    Metrics,
}

/// Names what was being done when the system failed.
pub fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> ServiceError {
    let what = what.into();
    |cause| ServiceError::Io { what, cause }
}

/// Says why a port could not be opened.
fn in_use(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::AddrInUse => {
            "another program listens there already; stop it or choose another port".into()
        }
        _ => cause.to_string(),
    }
}

/// Says what was done about a server that is away.
fn waited_for(waited: Option<Duration>) -> String {
    match waited {
        None => String::new(),
        Some(Duration::ZERO) => "; if this is a load balancer, the server behind it is down".into(),
        Some(waited) => format!("; retried for {} s", waited.as_secs_f64()),
    }
}

impl ServiceError {
    /// Tells whether the peer violated the protocol.
    pub fn is_cheating(&self) -> bool {
        matches!(self, Self::Protocol(error) if error.is_cheating())
    }

    /// Tells whether another attempt on a new connection may succeed: the server cannot be reached,
    /// went away, or says *later*.
    pub fn is_broken_connection(&self) -> bool {
        match self {
            Self::Net(error) => broken(error),
            Self::Protocol(error) => error.channel().is_some_and(broken),
            Self::Refused(refusal) => refusal.is_temporary(),
            Self::Connect { .. } | Self::Away { .. } | Self::Broken { .. } => true,
            Self::Incomplete { cause, .. } => cause.is_broken_connection(),
            _ => false,
        }
    }

    /// Returns the limit that a client has reached, if that is why it was refused.
    pub fn limit(&self) -> Option<&Exhausted> {
        match self {
            Self::Refused(Refusal::Limit(limit)) => Some(limit),
            Self::Incomplete { cause, .. } => cause.limit(),
            _ => None,
        }
    }

    /// Says that nothing was lost if the connection broke.
    pub fn before_answer(self, address: &str) -> Self {
        match self {
            Self::Net(cause) if broken(&cause) => Self::Away {
                address: address.to_owned(),
                cause: Box::new(cause),
                waited: None,
            },
            other => other,
        }
    }

    /// Names the address and what was tried, as the last word on it.
    pub fn at(self, address: &str, attempts: u32, wait: Duration) -> Self {
        match self {
            Self::Net(_) | Self::Protocol(_) if self.is_broken_connection() => Self::Broken {
                address: address.to_owned(),
                attempts,
                cause: Box::new(self),
            },
            Self::Away { address, cause, .. } => Self::Away {
                address,
                cause,
                waited: Some(wait),
            },
            other => other,
        }
    }

    /// Says how many bundles are kept, if there are any and the caller did not end it.
    pub fn having_kept(self, kept: usize, wanted: usize) -> Self {
        match self {
            Self::HungUp(_) => self,
            _ if kept == 0 => self,
            _ => Self::Incomplete {
                kept,
                wanted,
                cause: Box::new(self),
            },
        }
    }
}

fn broken(error: &NetError) -> bool {
    use NetError::{Broken, Io, PeerGone, Timeout};
    matches!(
        error,
        PeerGone { .. } | Timeout { .. } | Io { .. } | Broken { .. }
    )
}

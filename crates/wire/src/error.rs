//! What can go wrong on a channel, said with the numbers that matter.

use crate::kind::Kind;
use crate::peer::Fingerprint;
use primer_ring::pack::PackError;
use std::io;
use std::time::Duration;
use thiserror::Error;

/// The direction of a transfer, seen from this party.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From here to the peer.
    Send,
    /// From the peer to here.
    Receive,
}

impl std::fmt::Display for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Send => "send",
            Self::Receive => "receive",
        })
    }
}

/// Why a channel operation failed. No variant carries payload bytes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NetError {
    /// The peer closed the connection, crashed or became unreachable.
    #[error("the peer disappeared during a {direction}")]
    PeerGone {
        /// What this party was doing.
        direction: Direction,
    },
    /// Nothing moved for as long as the time-out allows.
    #[error("no progress on a {direction} for {} ms", after.as_millis())]
    Timeout {
        /// What this party was doing.
        direction: Direction,
        /// The time-out in force.
        after: Duration,
    },
    /// The peer announced a frame beyond the limit of the expected message.
    #[error("the peer announced {announced} bytes of {kind}, the limit is {limit}")]
    TooLong {
        /// The expected message.
        kind: Kind,
        /// Bytes announced.
        announced: u64,
        /// Bytes allowed by the receiver.
        limit: u64,
    },
    /// The length of the expected message is known, and the peer announced another.
    #[error("the peer announced {announced} bytes of {kind}, expected exactly {expected}")]
    WrongLength {
        /// The expected message.
        kind: Kind,
        /// Bytes announced.
        announced: u64,
        /// Bytes that the protocol prescribes here.
        expected: u64,
    },
    /// The peer sent another message than the protocol prescribes here.
    #[error("expected {expected}, the peer sent a message of kind {got}")]
    WrongKind {
        /// The expected message.
        expected: Kind,
        /// The code of the kind received.
        got: u8,
    },
    /// A frame was left before all of its announced bytes had passed: our own mistake.
    #[error("{kind}: {missing} announced bytes were never passed to the {direction}")]
    Unfinished {
        /// The abandoned frame.
        kind: Kind,
        /// Bytes outstanding.
        missing: u64,
        /// Its direction.
        direction: Direction,
    },
    /// More bytes were asked of a frame than it has left: our own mistake.
    #[error("{kind}: {asked} bytes asked for a {direction}, {left} are left in the frame")]
    Overrun {
        /// The frame.
        kind: Kind,
        /// Bytes asked for.
        asked: u64,
        /// Bytes left in the frame.
        left: u64,
        /// Its direction.
        direction: Direction,
    },
    /// An earlier failure left this direction of the channel in the middle of a frame.
    #[error("this channel failed before, it can no longer {direction}")]
    Broken {
        /// The direction that failed.
        direction: Direction,
    },
    /// The payload is not a value of the expected type.
    #[error("the payload of {kind} cannot be decoded: {reason}")]
    Malformed {
        /// The message.
        kind: Kind,
        /// What the decoder says.
        reason: String,
    },
    /// Packed residues were refused.
    #[error("{kind}: {source}")]
    Residues {
        /// The message.
        kind: Kind,
        /// What is wrong with them.
        source: PackError,
    },
    /// The server's certificate is not the pinned one.
    #[error("the server's certificate has fingerprint {got}, {expected} is trusted")]
    Fingerprint {
        /// The pinned fingerprint.
        expected: Fingerprint,
        /// The fingerprint of the certificate presented.
        got: Fingerprint,
    },
    /// No certificate is trusted yet, and this one was presented.
    #[error("the server is not known; its certificate has fingerprint {got}")]
    UnknownServer {
        /// The fingerprint of the certificate presented.
        got: Fingerprint,
    },
    /// The layer that encrypts refused: a handshake, a certificate or a record.
    #[error("TLS: {0}")]
    Tls(String),
    /// Any other failure of the operating system.
    #[error("{direction}: {source}")]
    Io {
        /// What this party was doing.
        direction: Direction,
        /// The system's error.
        source: io::Error,
    },
}

/// The result of a channel operation.
pub type Result<T> = std::result::Result<T, NetError>;

impl NetError {
    /// Sorts an error of a transport into the cases that a caller can act on.
    pub fn from_io(source: io::Error, direction: Direction, timeout: Option<Duration>) -> Self {
        use io::ErrorKind as K;
        match source.kind() {
            K::UnexpectedEof
            | K::BrokenPipe
            | K::ConnectionReset
            | K::ConnectionAborted
            | K::NotConnected => Self::PeerGone { direction },
            K::TimedOut | K::WouldBlock => Self::Timeout {
                direction,
                after: timeout.unwrap_or_default(),
            },
            K::InvalidData => Self::Tls(source.to_string()),
            _ => Self::Io { direction, source },
        }
    }
}

impl From<NetError> for io::Error {
    fn from(error: NetError) -> Self {
        let kind = match error {
            NetError::PeerGone { .. } => io::ErrorKind::UnexpectedEof,
            NetError::Timeout { .. } => io::ErrorKind::TimedOut,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

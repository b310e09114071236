//! Why a gateway does not start, and what it answers when a question fails.

use hyper::StatusCode;
use primer::ServiceError;
use primer::service::message::Refusal;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// Why a gateway does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The server cannot be used.
    #[error(transparent)]
    Server(#[from] ServiceError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {cause}")]
    Listen {
        /// The address as given.
        address: SocketAddr,
        /// The system's error.
        cause: io::Error,
    },
    /// Texts would travel in the clear.
    #[error(
        "{address} can be reached from other machines, and texts travel to the gateway in the \
         clear: listen on 127.0.0.1, or say --expose and give --gateway-token-file"
    )]
    Exposed {
        /// The address as given.
        address: SocketAddr,
    },
    /// A length that the server does not offer.
    #[error("the server takes at most {limit} tokens; no stock can be kept for {asked}")]
    Length {
        /// Asked for.
        asked: usize,
        /// The largest on offer.
        limit: usize,
    },
    /// The system refused something.
    #[error("starting the HTTP server: {0}")]
    System(io::Error),
}

/// The answer in place of a result.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) why: String,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        let why = why.into();
        Self { status, why }
    }

    /// Makes the answer to a request that makes no sense.
    pub(crate) fn bad(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, why)
    }

    /// Makes the answer for when the gateway cannot answer now.
    pub(crate) fn unavailable(why: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, why)
    }
}

/// Texts and tasks are the caller's fault; everything else is between gateway and server, where a
/// later attempt may succeed.
impl From<&ServiceError> for Failure {
    fn from(error: &ServiceError) -> Self {
        let status = match error {
            ServiceError::Text(_) | ServiceError::Head { .. } => StatusCode::BAD_REQUEST,
            ServiceError::Refused(Refusal::Tokens { .. }) => StatusCode::BAD_REQUEST,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

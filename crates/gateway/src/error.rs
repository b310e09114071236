//! Why a gateway does not start, and what it answers when a question fails.

use hyper::StatusCode;
use primer::ServiceError;
use primer::service::message::Refusal;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

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
    /// Seconds after which the same request may succeed, where it is known.
    pub(crate) after: Option<u64>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        let (why, after) = (why.into(), None);
        Self { status, why, after }
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

/// Texts and tasks are the caller's fault. A limit of the server lasts until its day ends, or until
/// its operator raises it. Everything else is between gateway and server, where a later attempt may
/// succeed.
impl From<&ServiceError> for Failure {
    fn from(error: &ServiceError) -> Self {
        let limit = error.limit();
        let status = match error {
            _ if limit.is_some() => StatusCode::TOO_MANY_REQUESTS,
            ServiceError::Text(_) | ServiceError::Head { .. } => StatusCode::BAD_REQUEST,
            ServiceError::Refused(Refusal::Tokens { .. }) => StatusCode::BAD_REQUEST,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self {
            after: limit.map(|limit| limit.ends_in.map_or(HOUR, |end| end.clamp(1, DAY))),
            ..Self::new(status, error.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer::service::message::{Counted, Exhausted};

    #[test]
    fn a_limit_says_when_it_ends() {
        let failure = |ends_in| {
            let limit = Exhausted {
                what: Counted::Answers,
                limit: 5,
                had: 5,
                asked: 1,
                ends_in,
            };
            let refused = ServiceError::Refused(Refusal::Limit(limit));
            let incomplete = ServiceError::Incomplete {
                kept: 1,
                wanted: 2,
                cause: Box::new(refused),
            };
            let failure = Failure::from(&incomplete);
            assert_eq!(failure.status, StatusCode::TOO_MANY_REQUESTS);
            assert!(failure.why.contains("5 answers"), "{}", failure.why);
            failure.after
        };
        assert_eq!(failure(Some(7 * HOUR)), Some(7 * HOUR));
        assert_eq!(failure(None), Some(HOUR));
        // Whatever a server says.
        assert_eq!(failure(Some(0)), Some(1));
        assert_eq!(failure(Some(u64::MAX)), Some(DAY));
        let full = Failure::from(&ServiceError::Refused(Refusal::Full));
        assert_eq!(
            (full.status, full.after),
            (StatusCode::SERVICE_UNAVAILABLE, None)
        );
    }
}

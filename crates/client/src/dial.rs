//! How a client reaches its server.
//!
//! The private protocol asks for a transport that only both ends can read, to a server that is the
//! one the client trusts. What that takes depends on the system: sockets and a pinned certificate
//! (`native`), or a WebSocket of a page whose origin the browser has checked.

use super::HangUp;
use super::hangup::ShutDown;
use primer_service::ServiceError;
use primer_wire::Channel;
use std::sync::Arc;

/// A connection to the trusted server.
pub struct Dialled {
    /// What passes over it.
    pub channel: Channel,
    /// What a hang-up breaks, as [`HangUp::connected`] returns it.
    pub line: Arc<dyn ShutDown>,
}

/// Opens connections.
pub trait Dial: Send {
    /// Connects to a server and checks that it is the trusted one. It gives itself up to
    /// [`HangUp::connected`] before it waits for anything that may take long.
    ///
    /// # Errors
    /// [`ServiceError::Connect`] if there is no connection, [`ServiceError::Away`] if it ends
    /// before the server has answered, [`ServiceError::HungUp`] after a hang-up: a client tries
    /// again after some of them. Whatever else keeps the server from being trusted is final.
    fn dial(&mut self, address: &str, hang_up: &HangUp) -> Result<Dialled, ServiceError>;

    /// Hears that the server dialled last has answered: it may be remembered now.
    ///
    /// # Errors
    /// If it cannot be remembered.
    fn greeted(&mut self, _address: &str) -> Result<(), ServiceError> {
        Ok(())
    }

    /// Says how an error is to be understood with which the greeting of the server dialled last
    /// ended: why it ended the connection may be known here.
    fn explained(&mut self, _address: &str, error: ServiceError) -> ServiceError {
        error
    }
}

//! The way in for connections that do not come over the server's port.

use super::gate::{Line, Place};
use super::{Shared, connection};
use primer_wire::{Channel, NetError, Options};
use std::sync::Arc;

/// Brings connections to a running server; clones bring them to the same one.
///
/// Whatever gives a [`Channel`] will do, such as the WebSocket of a page, or memory. A connection
/// that comes this way counts like one of the port: the same places, time limits, access tokens and
/// metrics. What it is encrypted with is for who brings it to see to.
#[derive(Clone)]
pub struct Door(pub(super) Arc<Shared>);

impl Door {
    /// Returns how channels of this server behave: how long they wait.
    pub fn channel_options(&self) -> Options {
        self.0.channel_options()
    }

    /// Serves a connection on this thread until it ends. `line` is what cuts it, `peer` what the
    /// log calls it, and `open` shakes hands, which counts against its time. Tells whether it was
    /// let in: a server that stops or is flooded lets none in.
    pub fn serve(
        &self,
        line: impl Line + 'static,
        peer: &str,
        open: impl FnOnce() -> Result<Channel, NetError>,
    ) -> bool {
        let place = arrive(&self.0, Some(line));
        if let Some(place) = &place {
            connection::serve(&self.0, place, peer, open);
        }
        place.is_some()
    }
}

/// Takes in a connection that has something to cut it by, or counts it as rejected.
pub(super) fn arrive(shared: &Shared, line: Option<impl Line + 'static>) -> Option<Place> {
    shared.metrics.connections.add(1);
    let place = line.and_then(|line| shared.gate.arrive(line));
    if place.is_none() {
        shared.metrics.rejected.add(1);
    }
    place
}

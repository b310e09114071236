//! The way in for connections that do not come over the server's port.

use super::gate::{ConnectionControl, ConnectionSlot};
use super::{Shared, connection};
use primer_wire::{Channel, NetError, Options};
use std::sync::Arc;

/// Brings connections to a running server; clones bring them to the same one.
///
/// Whatever gives a [`Channel`] will do, such as the WebSocket of a page, or memory. A connection
/// that comes this way counts like one of the port: the same slots, time limits, access tokens and
/// metrics. What it is encrypted with is for who brings it to see to.
#[derive(Clone)]
pub struct Door(pub(super) Arc<Shared>);

impl Door {
    /// Returns how channels of this server behave: how long they wait.
    pub fn channel_options(&self) -> Options {
        self.0.channel_options()
    }

    /// Serves a connection on this thread until it ends. `control` is what cuts it, `peer` what the
    /// log calls it, and `open` shakes hands, which counts against its time. Tells whether it was
    /// let in: a server that stops or is flooded lets none in.
    pub fn serve(
        &self,
        control: impl ConnectionControl + 'static,
        peer: &str,
        open: impl FnOnce() -> Result<Channel, NetError>,
    ) -> bool {
        let slot = arrive(&self.0, Some(control));
        if let Some(slot) = &slot {
            connection::serve(&self.0, slot, peer, open);
        }
        slot.is_some()
    }
}

/// Takes in a connection that has something to cut it by, or counts it as rejected.
pub(super) fn arrive(
    shared: &Shared,
    control: Option<impl ConnectionControl + 'static>,
) -> Option<ConnectionSlot> {
    shared.metrics.connections.add(1);
    let slot = control.and_then(|control| shared.gate.arrive(control));
    if slot.is_none() {
        shared.metrics.rejected.add(1);
    }
    slot
}

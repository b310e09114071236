//! One connection's slot: where it says what it does, and hears whether it was cut.

use super::Gate;
use super::register::{Cut, Progress, Register, Stage};
use primer_service::message::Refusal;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A connection's slot in the register, given back when it is dropped.
pub(crate) struct ConnectionSlot {
    pub(super) gate: Arc<Gate>,
    pub(super) number: u64,
}

impl ConnectionSlot {
    /// Returns the connection's number, for the log.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Turns an arrival into a session.
    pub(crate) fn admit(&self) -> Result<(), Refusal> {
        let mut register = self.gate.lock();
        if register.stopping {
            return Err(Refusal::Stopping);
        }
        if register.sessions() >= self.gate.slots {
            let least = register.least_session(self.gate.timeouts.grace);
            let least = least.ok_or(Refusal::Busy(self.gate.slots as u32))?;
            register.cut(least, Cut::Displaced);
        }
        if let Some(connection) = register.connections.get_mut(&self.number) {
            connection.last_active = Instant::now();
            connection.end = Some(connection.last_active + self.gate.timeouts.session);
        }
        self.enter(&mut register, Stage::Idle);
        Ok(())
    }

    /// Notes how far an arrival has come.
    pub(crate) fn progress(&self, progress: Progress) {
        if let Some(connection) = self.gate.lock().connections.get_mut(&self.number) {
            connection.progress = progress;
        }
    }

    /// Gives an arrival longer than a handshake takes: it is sent something large.
    pub(crate) fn allow(&self, time: Duration) {
        if let Some(connection) = self.gate.lock().connections.get_mut(&self.number) {
            connection.deadline = Instant::now() + time;
        }
        self.gate.changed.notify_all();
    }

    /// Notes that a session has done work, and may be idle again.
    pub(crate) fn worked(&self) {
        if let Some(connection) = self.gate.lock().connections.get_mut(&self.number) {
            connection.last_active = Instant::now();
        }
    }

    /// Says what the connection does next. A server that stops takes on nothing new.
    pub(crate) fn stage(&self, stage: Stage) -> Result<(), Refusal> {
        let mut register = self.gate.lock();
        if register.stopping {
            return Err(Refusal::Stopping);
        }
        self.enter(&mut register, stage);
        Ok(())
    }

    fn enter(&self, register: &mut Register, stage: Stage) {
        let timeouts = &self.gate.timeouts;
        if let Some(connection) = register.connections.get_mut(&self.number) {
            connection.stage = stage;
            connection.deadline = match stage {
                Stage::Arriving => Instant::now() + timeouts.handshake,
                Stage::Idle => connection.last_active + timeouts.idle,
                Stage::Preparing | Stage::Inferring => Instant::now() + timeouts.session,
            };
        }
        self.gate.changed.notify_all();
    }

    /// Returns why this connection was cut, if it was.
    pub(crate) fn cut(&self) -> Option<Cut> {
        self.gate.lock().connections.get(&self.number)?.cut
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.gate.lock().connections.remove(&self.number);
        self.gate.changed.notify_all();
    }
}

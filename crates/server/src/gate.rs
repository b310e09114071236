//! A register of all connections: how many are open, for how long, and how they are ended.
//!
//! A connection *arrives*, and becomes a *session* once it has shown who it is. Places are bounded
//! at both stages, and so is time, in total and not only between two bytes: a peer that sends one
//! byte a minute is cut as surely as one that sends nothing. Cutting means shutting the socket down
//! from a watching thread; its own thread then fails at once, wherever in the
//! protocol it is.
//!
//! **Floods of arrivals.** When all slots for arrivals are taken, one makes room for the newcomer:
//! one of the address that has the most of them; of those, one that has come least far (who said
//! nothing goes before who began to speak, and that one before who has shaken hands); of those, the
//! oldest. A flood of silent connections cannot push out a client far away, whose handshake takes
//! several hundred milliseconds: it has spoken at once. And an address that sends many that do
//! speak pushes out its own.
//!
//! **Sessions that hold a slot.** A session may stay as long as it works. The time that it may
//! stay without is counted from the last bundle that it prepared or spent; asking for lists does
//! not renew it. When all slots are taken, a session that has not worked for [`GRACE`] gives its
//! slot to a newcomer, again one of the address that has the most, and of those the one that has
//! rested longest. Its client loses nothing but the connection.

mod origin;
mod register;
mod slot;

pub use register::ConnectionControl;
pub(crate) use register::{Cut, Progress, Stage};
pub(crate) use slot::ConnectionSlot;

use origin::Origin;
use register::{Connection, Register};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections that may be arriving at once.
pub(crate) const ARRIVALS: usize = 64;
/// Connections that were cut and whose threads have not noticed yet.
const LEAVING: usize = 64;
/// A session that has been idle for this long may lose its slot to a newcomer.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// From the first byte to the greeting.
    pub(crate) handshake: Duration,
    /// From the last work to the next.
    pub(crate) idle: Duration,
    /// From the last work until a newcomer may have the slot.
    pub(crate) grace: Duration,
    /// A whole session.
    pub(crate) session: Duration,
}

/// The register of all connections.
pub(crate) struct Gate {
    register: Mutex<Register>,
    changed: Condvar,
    timeouts: Timeouts,
    slots: usize,
}

impl Gate {
    pub(crate) fn new(slots: usize, timeouts: Timeouts) -> Arc<Self> {
        Arc::new(Self {
            register: Mutex::default(),
            changed: Condvar::new(),
            timeouts,
            slots,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a new connection; `None` if the server stops or is flooded beyond its bounds.
    pub(crate) fn arrive(
        self: &Arc<Self>,
        control: impl ConnectionControl + 'static,
    ) -> Option<ConnectionSlot> {
        self.arrive_from(Origin::of(control.peer()), control)
    }

    fn arrive_from(
        self: &Arc<Self>,
        origin: Origin,
        control: impl ConnectionControl + 'static,
    ) -> Option<ConnectionSlot> {
        let mut register = self.lock();
        if register.stopping || register.connections.len() >= self.slots + ARRIVALS + LEAVING {
            return None;
        }
        if register.arriving().count() >= ARRIVALS
            && let Some(least) = register.least_arrival()
        {
            register.cut(least, Cut::Evicted);
        }
        let number = register.next;
        register.next += 1;
        let now = Instant::now();
        let connection = Connection {
            control: Box::new(control),
            origin,
            stage: Stage::Arriving,
            progress: Progress::Silent,
            last_active: now,
            deadline: now + self.timeouts.handshake,
            end: None,
            cut: None,
        };
        register.connections.insert(number, connection);
        drop(register);
        self.changed.notify_all();
        Some(ConnectionSlot {
            gate: Arc::clone(self),
            number,
        })
    }

    /// Watches deadlines until [`Self::close`].
    pub(crate) fn watch(&self) {
        let mut register = self.lock();
        while !register.closed {
            let now = Instant::now();
            let mut next = now + Duration::from_secs(60);
            for connection in register.connections.values_mut() {
                if connection.cut.is_some() {
                    continue;
                }
                if connection.limit() <= now {
                    connection.cut(Cut::Late(connection.stage));
                } else {
                    next = next.min(connection.limit());
                }
            }
            let (woken, _) = self
                .changed
                .wait_timeout(register, next - now)
                .unwrap_or_else(PoisonError::into_inner);
            register = woken;
        }
    }

    /// Stops new connections and new requests; only online phases go on.
    pub(crate) fn shut_down(&self) {
        let mut register = self.lock();
        register.stopping = true;
        for connection in register.connections.values_mut() {
            if connection.stage != Stage::Inferring {
                connection.cut(Cut::Stopping);
            }
        }
        drop(register);
        self.changed.notify_all();
    }

    /// Tells whether the server is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        self.lock().stopping
    }

    /// Counts the open sessions.
    pub(crate) fn sessions(&self) -> usize {
        self.lock().sessions()
    }

    /// Waits a while, or until the server stops; tells whether it does.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let register = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(register, time, |r| !r.stopping);
        waited.unwrap_or_else(PoisonError::into_inner).0.stopping
    }

    /// Waits until all connections have ended, cutting those that are left when the time is over;
    /// then the watching thread ends. Tells how many were cut.
    pub(crate) fn close(&self, time: Duration) -> usize {
        let wait = |register, time| {
            let empty = |r: &mut Register| !r.connections.is_empty();
            let waited = self.changed.wait_timeout_while(register, time, empty);
            waited.unwrap_or_else(PoisonError::into_inner).0
        };
        let mut register = wait(self.lock(), time);
        let left = register.connections.len();
        for connection in register.connections.values_mut() {
            connection.cut(Cut::Stopping);
        }
        let mut register = wait(register, Duration::from_secs(5));
        register.closed = true;
        drop(register);
        self.changed.notify_all();
        left
    }
}

#[cfg(test)]
mod tests;

//! Who is in, for how long, and how everybody is asked to leave.
//!
//! A connection *arrives*, and becomes a *session* once it has shown who it is. Places are bounded
//! at both stages, and so is time, in total and not only between two bytes: a peer that sends one
//! byte a minute is cut as surely as one that sends nothing. Cutting means shutting the socket down
//! from a watching thread; whoever reads or writes on it then fails at once, wherever in the
//! protocol it is.
//!
//! **Floods of arrivals.** When all places for arrivals are taken, one makes room for the newcomer:
//! one of the address that has the most of them; of those, one that has come least far (who said
//! nothing goes before who began to speak, and that one before who has shaken hands); of those, the
//! oldest. So many silent connections cannot push out a client far away, whose handshake takes
//! several hundred milliseconds: it has spoken at once. And an address that sends many that do
//! speak pushes out its own.
//!
//! **Sessions that hold a place.** A session may stay as long as it works. The time that it may
//! stay without is counted from the last bundle that it prepared or spent; asking for lists does
//! not renew it. When all places are taken, a session that has not worked for [`GRACE`] gives its
//! place to a newcomer, again one of the address that has the most, and of those the one that has
//! rested longest. Its client loses nothing but the connection.

mod source;

use crate::service::message::Refusal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use source::{Crowd, Source};
use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections that may be arriving at once.
pub(crate) const ARRIVALS: usize = 64;
/// Connections that were cut and whose threads have not noticed yet.
const LEAVING: usize = 64;
/// A session that has rested so long may lose its place to a newcomer.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// From the first byte to the greeting.
    pub(crate) handshake: Duration,
    /// From the last work to the next.
    pub(crate) idle: Duration,
    /// From the last work until a newcomer may have the place.
    pub(crate) grace: Duration,
    /// A whole session.
    pub(crate) session: Duration,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Shaking hands and greeting.
    Arriving,
    /// Waiting for a request.
    Idle,
    /// In an offline phase, or another request that may be cut short.
    Preparing,
    /// In an online phase: a stop waits for it.
    Inferring,
}

/// How far an arrival has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Progress {
    /// It said nothing.
    Silent,
    /// It said something.
    Speaking,
    /// It has shaken hands: what it says is encrypted, and it has done some work for that.
    Secured,
}

/// Why a connection was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It took too long.
    Late(Stage),
    /// It made room for a newer arrival.
    Evicted,
    /// It did nothing, and gave its place to another.
    Displaced,
    /// The server stops.
    Stopping,
}

struct Connection {
    socket: TcpStream,
    source: Source,
    stage: Stage,
    progress: Progress,
    /// When it was admitted, or did its last work.
    rested: Instant,
    deadline: Instant,
    /// The end of the session, whatever it does.
    end: Option<Instant>,
    cut: Option<Cut>,
}

impl Connection {
    fn limit(&self) -> Instant {
        self.end.map_or(self.deadline, |end| end.min(self.deadline))
    }

    /// Whether something has arrived that its thread has not come to yet: on a busy machine that
    /// takes longer than the way.
    fn has_spoken(&self) -> bool {
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    fn cut(&mut self, why: Cut) {
        if self.cut.is_none() {
            self.cut = Some(why);
            // Fails if the peer was faster; then there is nothing to cut.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }
}

#[derive(Default)]
struct Register {
    connections: BTreeMap<u64, Connection>,
    next: u64,
    stopping: bool,
    /// Nobody is left and nobody will come: the watching thread ends.
    closed: bool,
}

impl Register {
    /// Who is in and stays.
    fn inside(&self) -> impl Iterator<Item = (&u64, &Connection)> {
        let inside = |c: &Connection| c.stage != Stage::Arriving && c.cut.is_none();
        self.connections.iter().filter(move |(_, c)| inside(c))
    }

    fn sessions(&self) -> usize {
        self.inside().count()
    }

    /// Who arrives.
    fn arriving(&self) -> impl Iterator<Item = (&u64, &Connection)> {
        let arriving = |c: &Connection| c.stage == Stage::Arriving && c.cut.is_none();
        self.connections.iter().filter(move |(_, c)| arriving(c))
    }

    /// The arrival that makes room.
    fn least_arrival(&mut self) -> Option<u64> {
        let crowd = Crowd::of(self.arriving().map(|(_, c)| c.source));
        let order = |(number, c): &(&u64, &Connection)| {
            (
                std::cmp::Reverse(crowd.size(c.source)),
                c.progress,
                **number,
            )
        };
        loop {
            let (&number, least) = self.arriving().min_by_key(order)?;
            if least.progress > Progress::Silent || !least.has_spoken() {
                return Some(number);
            }
            let least = self.connections.get_mut(&number)?;
            least.progress = Progress::Speaking;
        }
    }

    /// The session that gives its place, if one has rested long enough.
    fn least_session(&self, grace: Duration) -> Option<u64> {
        let crowd = Crowd::of(self.inside().map(|(_, c)| c.source));
        let resting = |c: &Connection| c.stage == Stage::Idle && c.rested.elapsed() >= grace;
        let order =
            |(_, c): &(&u64, &Connection)| (std::cmp::Reverse(crowd.size(c.source)), c.rested);
        let resting = self.inside().filter(|(_, c)| resting(c));
        resting.min_by_key(order).map(|(number, _)| *number)
    }

    fn cut(&mut self, number: u64, why: Cut) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.cut(why);
        }
    }
}

/// The register of all connections.
pub(crate) struct Gate {
    register: Mutex<Register>,
    changed: Condvar,
    patience: Patience,
    places: usize,
}

impl Gate {
    pub(crate) fn new(places: usize, patience: Patience) -> Arc<Self> {
        Arc::new(Self {
            register: Mutex::default(),
            changed: Condvar::new(),
            patience,
            places,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a new connection; `None` if the server stops or is flooded beyond its bounds.
    pub(crate) fn arrive(self: &Arc<Self>, socket: &TcpStream) -> Option<Place> {
        self.arrive_from(Source::of(socket), socket)
    }

    fn arrive_from(self: &Arc<Self>, source: Source, socket: &TcpStream) -> Option<Place> {
        let socket = socket.try_clone().ok()?;
        let mut register = self.lock();
        if register.stopping || register.connections.len() >= self.places + ARRIVALS + LEAVING {
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
            socket,
            source,
            stage: Stage::Arriving,
            progress: Progress::Silent,
            rested: now,
            deadline: now + self.patience.handshake,
            end: None,
            cut: None,
        };
        register.connections.insert(number, connection);
        drop(register);
        self.changed.notify_all();
        Some(Place {
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

    /// No new connections, no new requests; only online phases go on.
    pub(crate) fn stop(&self) {
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

    /// Whether the server stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.lock().stopping
    }

    /// Sessions inside.
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

    /// Waits until everybody has left, cutting whoever is still there when the time is over; then
    /// the watching thread ends. Tells how many were cut.
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

/// A connection's place in the register, given back when it is dropped.
pub(crate) struct Place {
    gate: Arc<Gate>,
    number: u64,
}

impl Place {
    /// The connection's number, for the log.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// From an arrival to a session.
    pub(crate) fn admit(&self) -> Result<(), Refusal> {
        let mut register = self.gate.lock();
        if register.stopping {
            return Err(Refusal::Stopping);
        }
        if register.sessions() >= self.gate.places {
            let least = register.least_session(self.gate.patience.grace);
            let least = least.ok_or(Refusal::Busy(self.gate.places as u32))?;
            register.cut(least, Cut::Displaced);
        }
        if let Some(connection) = register.connections.get_mut(&self.number) {
            connection.rested = Instant::now();
            connection.end = Some(connection.rested + self.gate.patience.session);
        }
        self.enter(&mut register, Stage::Idle);
        Ok(())
    }

    /// An arrival has come so far.
    pub(crate) fn progress(&self, progress: Progress) {
        if let Some(connection) = self.gate.lock().connections.get_mut(&self.number) {
            connection.progress = progress;
        }
    }

    /// A session has done what it is there for, and may rest again.
    pub(crate) fn worked(&self) {
        if let Some(connection) = self.gate.lock().connections.get_mut(&self.number) {
            connection.rested = Instant::now();
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
        let patience = &self.gate.patience;
        if let Some(connection) = register.connections.get_mut(&self.number) {
            connection.stage = stage;
            connection.deadline = match stage {
                Stage::Arriving => Instant::now() + patience.handshake,
                Stage::Idle => connection.rested + patience.idle,
                Stage::Preparing | Stage::Inferring => Instant::now() + patience.session,
            };
        }
        self.gate.changed.notify_all();
    }

    /// Why this connection was cut, if it was.
    pub(crate) fn cut(&self) -> Option<Cut> {
        self.gate.lock().connections.get(&self.number)?.cut
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gate.lock().connections.remove(&self.number);
        self.gate.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;

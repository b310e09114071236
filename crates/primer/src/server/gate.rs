//! Who is in, for how long, and how everybody is asked to leave.
//!
//! A connection *arrives*, and becomes a *session* once it has shown who it is. Places are bounded
//! at both stages, and so is time, in total and not only between two bytes: a peer that sends one
//! byte a minute is cut as surely as one that sends nothing. Cutting means shutting the socket down
//! from a watching thread; whoever reads or writes on it then fails at once, wherever in the
//! protocol it is.
//!
//! A flood of silent connections must not keep others out: when all places for arrivals are taken,
//! the oldest arrival makes room. A real client is through in milliseconds and is never the oldest.

use crate::service::message::Refusal;
use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections that may be arriving at once.
pub(crate) const ARRIVALS: usize = 64;
/// Connections that were cut and whose threads have not noticed yet.
const LEAVING: usize = 64;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// From the first byte to the greeting.
    pub(crate) handshake: Duration,
    /// From one request to the next.
    pub(crate) idle: Duration,
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

/// Why a connection was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It took too long.
    Late(Stage),
    /// It made room for a newer arrival.
    Evicted,
    /// The server stops.
    Stopping,
}

struct Connection {
    socket: TcpStream,
    stage: Stage,
    deadline: Instant,
    /// The end of the session, whatever it does.
    end: Option<Instant>,
    cut: Option<Cut>,
}

impl Connection {
    fn limit(&self) -> Instant {
        self.end.map_or(self.deadline, |end| end.min(self.deadline))
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
    fn sessions(&self) -> usize {
        let inside = |c: &&Connection| c.stage != Stage::Arriving;
        self.connections.values().filter(inside).count()
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
        let socket = socket.try_clone().ok()?;
        let mut register = self.lock();
        if register.stopping || register.connections.len() >= self.places + ARRIVALS + LEAVING {
            return None;
        }
        let arriving = |c: &&mut Connection| c.stage == Stage::Arriving && c.cut.is_none();
        if register.connections.values_mut().filter(arriving).count() >= ARRIVALS
            && let Some(oldest) = register.connections.values_mut().find(arriving)
        {
            oldest.cut(Cut::Evicted);
        }
        let number = register.next;
        register.next += 1;
        let connection = Connection {
            socket,
            stage: Stage::Arriving,
            deadline: Instant::now() + self.patience.handshake,
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
            return Err(Refusal::Busy(self.gate.places as u32));
        }
        self.enter(&mut register, Stage::Idle);
        if let Some(connection) = register.connections.get_mut(&self.number) {
            connection.end = Some(Instant::now() + self.gate.patience.session);
        }
        Ok(())
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
            connection.deadline = Instant::now()
                + match stage {
                    Stage::Arriving => patience.handshake,
                    Stage::Idle => patience.idle,
                    Stage::Preparing | Stage::Inferring => patience.session,
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
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    fn patience(millis: u64) -> Patience {
        Patience {
            handshake: Duration::from_millis(millis),
            idle: Duration::from_millis(millis),
            session: Duration::from_millis(3 * millis),
        }
    }

    fn connection(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    /// Blocks until the socket is cut; tells how long that took.
    fn until_cut(mut socket: TcpStream) -> Duration {
        let start = Instant::now();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "cut, not timed out");
        start.elapsed()
    }

    #[test]
    fn late_connections_are_cut_however_busy_they_look() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gate = Gate::new(2, patience(200));
        let watching = Arc::clone(&gate);
        let watcher = std::thread::spawn(move || watching.watch());
        let (_client, server) = connection(&listener);
        let place = gate.arrive(&server).unwrap();
        assert!(until_cut(server) >= Duration::from_millis(150));
        assert_eq!(place.cut(), Some(Cut::Late(Stage::Arriving)));
        drop(place);
        // A session that keeps asking for more is cut by its total.
        let (_client, server) = connection(&listener);
        let place = gate.arrive(&server).unwrap();
        place.admit().unwrap();
        let busy = std::thread::spawn(move || until_cut(server));
        while !busy.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
            let _ = place.stage(Stage::Idle);
        }
        assert!(busy.join().unwrap() >= Duration::from_millis(500));
        drop(place);
        gate.stop();
        assert_eq!(gate.close(Duration::from_secs(5)), 0);
        watcher.join().unwrap();
    }

    #[test]
    fn places_are_bounded_and_the_oldest_arrival_makes_room() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gate = Gate::new(1, patience(60_000));
        let pairs: Vec<_> = (0..ARRIVALS + 1).map(|_| connection(&listener)).collect();
        let places: Vec<_> = pairs.iter().map(|(_, s)| gate.arrive(s).unwrap()).collect();
        assert_eq!(places[0].cut(), Some(Cut::Evicted));
        assert_eq!(places[1].cut(), None);
        places[2].admit().unwrap();
        assert_eq!(places[3].admit(), Err(Refusal::Busy(1)));
        gate.stop();
        assert_eq!(places[2].cut(), Some(Cut::Stopping));
        assert_eq!(places[3].admit(), Err(Refusal::Stopping));
        assert!(gate.arrive(&pairs[0].1).is_none());
    }

    #[test]
    fn a_stop_waits_for_inferences_only() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gate = Gate::new(2, patience(60_000));
        let (a, b) = (connection(&listener), connection(&listener));
        let (online, offline) = (gate.arrive(&a.1).unwrap(), gate.arrive(&b.1).unwrap());
        online.admit().unwrap();
        offline.admit().unwrap();
        online.stage(Stage::Inferring).unwrap();
        offline.stage(Stage::Preparing).unwrap();
        gate.stop();
        assert_eq!((online.cut(), offline.cut()), (None, Some(Cut::Stopping)));
        drop(offline);
        let closing = std::thread::spawn(move || gate.close(Duration::from_secs(20)));
        std::thread::sleep(Duration::from_millis(50));
        drop(online);
        assert_eq!(closing.join().unwrap(), 0);
    }
}

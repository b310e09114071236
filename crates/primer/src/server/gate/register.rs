//! Every connection: what it is doing, how far it has come, and which of them makes room.

use super::source::{Crowd, Source};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

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

pub(super) struct Connection {
    pub(super) socket: TcpStream,
    pub(super) source: Source,
    pub(super) stage: Stage,
    pub(super) progress: Progress,
    /// When it was admitted, or did its last work.
    pub(super) rested: Instant,
    pub(super) deadline: Instant,
    /// The end of the session, whatever it does.
    pub(super) end: Option<Instant>,
    pub(super) cut: Option<Cut>,
}

impl Connection {
    pub(super) fn limit(&self) -> Instant {
        self.end.map_or(self.deadline, |end| end.min(self.deadline))
    }

    /// Whether something has arrived that its thread has not come to yet: on a busy machine that
    /// takes longer than the way.
    pub(super) fn has_spoken(&self) -> bool {
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    pub(super) fn cut(&mut self, why: Cut) {
        if self.cut.is_none() {
            self.cut = Some(why);
            // Fails if the peer was faster; then there is nothing to cut.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }
}

#[derive(Default)]
pub(super) struct Register {
    pub(super) connections: BTreeMap<u64, Connection>,
    pub(super) next: u64,
    pub(super) stopping: bool,
    /// Nobody is left and nobody will come: the watching thread ends.
    pub(super) closed: bool,
}

impl Register {
    /// Who is in and stays.
    pub(super) fn inside(&self) -> impl Iterator<Item = (&u64, &Connection)> {
        let inside = |c: &Connection| c.stage != Stage::Arriving && c.cut.is_none();
        self.connections.iter().filter(move |(_, c)| inside(c))
    }

    pub(super) fn sessions(&self) -> usize {
        self.inside().count()
    }

    /// Who arrives.
    pub(super) fn arriving(&self) -> impl Iterator<Item = (&u64, &Connection)> {
        let arriving = |c: &Connection| c.stage == Stage::Arriving && c.cut.is_none();
        self.connections.iter().filter(move |(_, c)| arriving(c))
    }

    /// The arrival that makes room.
    pub(super) fn least_arrival(&mut self) -> Option<u64> {
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
    pub(super) fn least_session(&self, grace: Duration) -> Option<u64> {
        let crowd = Crowd::of(self.inside().map(|(_, c)| c.source));
        let resting = |c: &Connection| c.stage == Stage::Idle && c.rested.elapsed() >= grace;
        let order =
            |(_, c): &(&u64, &Connection)| (std::cmp::Reverse(crowd.size(c.source)), c.rested);
        let resting = self.inside().filter(|(_, c)| resting(c));
        resting.min_by_key(order).map(|(number, _)| *number)
    }

    pub(super) fn cut(&mut self, number: u64, why: Cut) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.cut(why);
        }
    }
}

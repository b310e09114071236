//! Every connection: what it is doing, how far it has come, and which of them makes room.

use super::origin::{Crowd, Origin};
use std::collections::BTreeMap;
use std::net::IpAddr;
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
    /// It did nothing, and gave its slot to another.
    Displaced,
    /// The server stops.
    Stopping,
}

/// What a server holds of a connection, to end it while its thread waits for it.
pub trait ConnectionControl: Send {
    /// Returns the peer's address, unless it is gone already.
    fn peer(&self) -> Option<IpAddr>;

    /// Tells whether something has arrived that its thread has not come to yet.
    fn has_input(&self) -> bool;

    /// Ends both directions, so that reads and writes fail from now on.
    fn shut_down(&self);
}

pub(super) struct Connection {
    pub(super) control: Box<dyn ConnectionControl>,
    pub(super) origin: Origin,
    pub(super) stage: Stage,
    pub(super) progress: Progress,
    /// When it was admitted, or did its last work.
    pub(super) last_active: Instant,
    pub(super) deadline: Instant,
    /// The end of the session, even if it is at work.
    pub(super) end: Option<Instant>,
    pub(super) cut: Option<Cut>,
}

impl Connection {
    pub(super) fn limit(&self) -> Instant {
        self.end.map_or(self.deadline, |end| end.min(self.deadline))
    }

    pub(super) fn cut(&mut self, why: Cut) {
        if self.cut.is_none() {
            self.cut = Some(why);
            self.control.shut_down();
        }
    }
}

#[derive(Default)]
pub(super) struct Register {
    pub(super) connections: BTreeMap<u64, Connection>,
    pub(super) next: u64,
    pub(super) stopping: bool,
    /// No connection is left and none will come: the watching thread ends.
    pub(super) closed: bool,
}

impl Register {
    /// Returns the admitted connections that have not been cut.
    pub(super) fn inside(&self) -> impl Iterator<Item = (&u64, &Connection)> {
        let inside = |c: &Connection| c.stage != Stage::Arriving && c.cut.is_none();
        self.connections.iter().filter(move |(_, c)| inside(c))
    }

    pub(super) fn sessions(&self) -> usize {
        self.inside().count()
    }

    /// Returns the connections that were not admitted yet and have not been cut.
    pub(super) fn arriving(&self) -> impl Iterator<Item = (&u64, &Connection)> {
        let arriving = |c: &Connection| c.stage == Stage::Arriving && c.cut.is_none();
        self.connections.iter().filter(move |(_, c)| arriving(c))
    }

    /// Returns the arrival that makes room.
    pub(super) fn least_arrival(&mut self) -> Option<u64> {
        let crowd = Crowd::of(self.arriving().map(|(_, c)| c.origin));
        let order = |(number, c): &(&u64, &Connection)| {
            (
                std::cmp::Reverse(crowd.size(c.origin)),
                c.progress,
                **number,
            )
        };
        loop {
            let (&number, least) = self.arriving().min_by_key(order)?;
            // On a busy machine its thread may take longer to come to what has arrived than that
            // was on its way.
            if least.progress > Progress::Silent || !least.control.has_input() {
                return Some(number);
            }
            let least = self.connections.get_mut(&number)?;
            least.progress = Progress::Speaking;
        }
    }

    /// Returns the session that gives its slot, if one has been idle long enough.
    pub(super) fn least_session(&self, grace: Duration) -> Option<u64> {
        let crowd = Crowd::of(self.inside().map(|(_, c)| c.origin));
        let resting = |c: &Connection| c.stage == Stage::Idle && c.last_active.elapsed() >= grace;
        let order =
            |(_, c): &(&u64, &Connection)| (std::cmp::Reverse(crowd.size(c.origin)), c.last_active);
        let resting = self.inside().filter(|(_, c)| resting(c));
        resting.min_by_key(order).map(|(number, _)| *number)
    }

    pub(super) fn cut(&mut self, number: u64, why: Cut) {
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.cut(why);
        }
    }
}

//! The connections, and which of them makes room when all places are taken.
//!
//! A connection *works* while a request of it is being answered, and *rests* otherwise. Only one
//! that rests makes room: the one that has rested longest. One that was answered a moment ago may
//! still be sending the answer, and the request of one that came a moment ago may have arrived
//! without being read yet, so they count as resting only after [`FLUSH`] and [`ARRIVAL`].

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The time in which an answer is on its way.
const FLUSH: Duration = Duration::from_secs(1);
/// The time in which a request is read.
const ARRIVAL: Duration = Duration::from_millis(100);
/// How often a connection that waits for a place checks whether another rests by now.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) struct ConnectionLimit {
    limit: usize,
    inside: Mutex<Inside>,
    left: Notify,
}

#[derive(Default)]
struct Inside {
    next: u64,
    guests: HashMap<u64, Guest>,
}

struct Guest {
    /// Since when it may be asked to leave; none while it works.
    idle_since: Option<Instant>,
    leave: Arc<Notify>,
}

/// Lets one connection in; another may take its place when this is dropped.
pub(crate) struct Permit {
    connections: Arc<ConnectionLimit>,
    number: u64,
    leave: Arc<Notify>,
}

impl ConnectionLimit {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            inside: Mutex::default(),
            left: Notify::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place, which is there at once unless all connections work or have just come.
    pub(crate) async fn enter(self: &Arc<Self>) -> Permit {
        loop {
            if let Some(permit) = self.try_enter() {
                return permit;
            }
            let _ = tokio::time::timeout(LOOK, self.left.notified()).await;
        }
    }

    fn try_enter(self: &Arc<Self>) -> Option<Permit> {
        let now = Instant::now();
        let mut inside = self.lock();
        if inside.guests.len() >= self.limit {
            let resting = inside.guests.iter().filter_map(|(number, guest)| {
                let since = guest.idle_since.filter(|since| *since <= now)?;
                Some((since, *number))
            });
            let (_, longest) = resting.min()?;
            let guest = inside.guests.remove(&longest)?;
            guest.leave.notify_one();
        }
        let number = inside.next;
        inside.next += 1;
        let leave = Arc::new(Notify::new());
        let guest = Guest {
            idle_since: Some(now + ARRIVAL),
            leave: Arc::clone(&leave),
        };
        inside.guests.insert(number, guest);
        Some(Permit {
            connections: Arc::clone(self),
            number,
            leave,
        })
    }
}

impl Permit {
    /// Returns when the connection has to make room.
    pub(crate) async fn asked_to_leave(&self) {
        self.leave.notified().await;
    }

    /// Marks one of its requests as being answered, until the result is dropped.
    pub(crate) fn busy(self: &Arc<Self>) -> BusyGuard {
        self.set_idle_since(None);
        BusyGuard(Arc::clone(self))
    }

    fn set_idle_since(&self, since: Option<Instant>) {
        if let Some(guest) = self.connections.lock().guests.get_mut(&self.number) {
            guest.idle_since = since;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.connections.lock().guests.remove(&self.number);
        self.connections.left.notify_one();
    }
}

/// Keeps a connection from being asked to leave.
pub(crate) struct BusyGuard(Arc<Permit>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.set_idle_since(Some(Instant::now() + FLUSH));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rest_makes_room_and_work_does_not() {
        let connections = ConnectionLimit::new(2);
        let first = Arc::new(connections.try_enter().unwrap());
        let second = Arc::new(connections.try_enter().unwrap());
        let work = first.busy();
        assert!(
            connections.try_enter().is_none(),
            "the second has just come"
        );
        second.set_idle_since(Some(Instant::now()));
        let third = Arc::new(connections.try_enter().expect("the second makes room"));
        assert!(!connections.lock().guests.contains_key(&second.number));
        // A place that was lost is not given back twice.
        drop(second);
        assert_eq!(connections.lock().guests.len(), 2);
        let other = third.busy();
        assert!(connections.try_enter().is_none(), "both work");
        // Answered a moment ago: the answer may be on its way.
        drop(work);
        assert!(connections.try_enter().is_none());
        first.set_idle_since(Some(Instant::now()));
        assert!(connections.try_enter().is_some());
        drop((first, other));
    }
}

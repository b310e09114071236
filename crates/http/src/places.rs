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

pub(crate) struct Places {
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
    rests: Option<Instant>,
    leave: Arc<Notify>,
}

/// A connection's place; it is free again when this is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    leave: Arc<Notify>,
}

impl Places {
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
    pub(crate) async fn enter(self: &Arc<Self>) -> Place {
        loop {
            if let Some(place) = self.try_enter() {
                return place;
            }
            let _ = tokio::time::timeout(LOOK, self.left.notified()).await;
        }
    }

    fn try_enter(self: &Arc<Self>) -> Option<Place> {
        let now = Instant::now();
        let mut inside = self.lock();
        if inside.guests.len() >= self.limit {
            let resting = inside.guests.iter().filter_map(|(number, guest)| {
                let since = guest.rests.filter(|since| *since <= now)?;
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
            rests: Some(now + ARRIVAL),
            leave: Arc::clone(&leave),
        };
        inside.guests.insert(number, guest);
        Some(Place {
            places: Arc::clone(self),
            number,
            leave,
        })
    }
}

impl Place {
    /// Returns when the connection has to make room.
    pub(crate) async fn asked_to_leave(&self) {
        self.leave.notified().await;
    }

    /// Marks one of its requests as being answered, until the result is dropped.
    pub(crate) fn work(self: &Arc<Self>) -> Work {
        self.rest_from(None);
        Work(Arc::clone(self))
    }

    fn rest_from(&self, since: Option<Instant>) {
        if let Some(guest) = self.places.lock().guests.get_mut(&self.number) {
            guest.rests = since;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().guests.remove(&self.number);
        self.places.left.notify_one();
    }
}

/// Keeps a connection from being asked to leave.
pub(crate) struct Work(Arc<Place>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.rest_from(Some(Instant::now() + FLUSH));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rest_makes_room_and_work_does_not() {
        let places = Places::new(2);
        let first = Arc::new(places.try_enter().unwrap());
        let second = Arc::new(places.try_enter().unwrap());
        let work = first.work();
        assert!(places.try_enter().is_none(), "the second has just come");
        second.rest_from(Some(Instant::now()));
        let third = Arc::new(places.try_enter().expect("the second makes room"));
        assert!(!places.lock().guests.contains_key(&second.number));
        // A place that was lost is not given back twice.
        drop(second);
        assert_eq!(places.lock().guests.len(), 2);
        let other = third.work();
        assert!(places.try_enter().is_none(), "both work");
        // Answered a moment ago: the answer may be on its way.
        drop(work);
        assert!(places.try_enter().is_none());
        first.rest_from(Some(Instant::now()));
        assert!(places.try_enter().is_some());
        drop((first, other));
    }
}

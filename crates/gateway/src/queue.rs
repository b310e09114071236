//! A bounded queue between the HTTP stack, which must not wait, and threads that do.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a thread gets.
pub(crate) enum Next<T> {
    /// Something to do.
    Item(T),
    /// Nothing came within the time to wait.
    Nothing,
    /// The queue is closed and empty.
    Closed,
}

/// First come, first served.
pub(crate) struct Queue<T> {
    room: usize,
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new(room: usize) -> Self {
        let state = State {
            items: VecDeque::new(),
            closed: false,
        };
        Self {
            room,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many may wait.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Returns how many wait.
    pub(crate) fn len(&self) -> usize {
        self.state().items.len()
    }

    /// Adds all of some items, or none: `false` if there is no room or the queue is closed.
    pub(crate) fn put(&self, items: Vec<T>) -> bool {
        let mut state = self.state();
        if state.closed || state.items.len() + items.len() > self.room {
            return false;
        }
        state.items.extend(items);
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Takes the oldest item, waiting at most `patience` for it.
    pub(crate) fn take(&self, patience: Duration) -> Next<T> {
        let idle = |state: &mut State<T>| state.items.is_empty() && !state.closed;
        let waited = self
            .changed
            .wait_timeout_while(self.state(), patience, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.items.pop_front() {
            Some(item) => Next::Item(item),
            None if state.closed => Next::Closed,
            None => Next::Nothing,
        }
    }

    /// Closes the queue: nothing more comes in, and what is there is still taken.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);

    fn next(queue: &Queue<u8>) -> Option<u8> {
        match queue.take(SOON) {
            Next::Item(item) => Some(item),
            _ => None,
        }
    }

    #[test]
    fn it_holds_so_many_and_keeps_their_order() {
        let queue = Queue::new(3);
        assert!(queue.put(vec![1, 2]));
        assert!(!queue.put(vec![3, 4]), "all or none");
        assert!(queue.put(vec![5]));
        assert_eq!(queue.len(), 3);
        let taken: Vec<u8> = std::iter::from_fn(|| next(&queue)).collect();
        assert_eq!(taken, [1, 2, 5]);
        assert!(matches!(queue.take(SOON), Next::Nothing));
    }

    #[test]
    fn a_closed_queue_is_emptied_first() {
        let queue = Queue::new(3);
        assert!(queue.put(vec![7]));
        queue.close();
        assert!(!queue.put(vec![8]));
        assert_eq!(next(&queue), Some(7));
        assert!(matches!(queue.take(Duration::MAX), Next::Closed));
    }

    #[test]
    fn who_waits_is_woken() {
        let queue = Queue::new(1);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| matches!(queue.take(Duration::MAX), Next::Item(9)));
            std::thread::sleep(SOON);
            assert!(queue.put(vec![9]));
            assert!(waiting.join().unwrap());
        });
    }
}

//! What is going on, for the thread that keeps the stock and for callers that ask for the status.
//!
//! Threads that answer report when they begin and end; the thread that keeps the stock waits for
//! such changes. They are numbered, so that it misses none that happens between a look and the wait
//! after it.

use primer::ServiceError;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is going on.
#[derive(Default)]
pub(crate) struct Activity {
    state: Mutex<Now>,
    changed: Condvar,
}

struct Now {
    /// How often something changed.
    changes: u64,
    asking: usize,
    last: Instant,
    /// Why the server could not be reached the last time, if so.
    trouble: Option<String>,
    stopping: bool,
}

impl Default for Now {
    fn default() -> Self {
        Self {
            changes: 0,
            asking: 0,
            last: Instant::now(),
            trouble: None,
            stopping: false,
        }
    }
}

impl Activity {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, how: impl FnOnce(&mut Now)) {
        let mut now = self.now();
        how(&mut now);
        now.changes += 1;
        drop(now);
        self.changed.notify_all();
    }

    /// Notes that a question is being asked from now on.
    pub(crate) fn begins(&self) {
        self.change(|now| now.asking += 1);
    }

    /// Notes that a question has its answer, or failed.
    pub(crate) fn ends(&self) {
        self.change(|now| {
            now.asking -= 1;
            now.last = Instant::now();
        });
    }

    /// Notes that the gateway is about to end.
    pub(crate) fn shut_down(&self) {
        self.change(|now| now.stopping = true);
    }

    /// Returns the number of questions being asked at this moment.
    pub(crate) fn asking(&self) -> usize {
        self.now().asking
    }

    /// Returns how long no question has been asked; zero while one is being asked.
    pub(crate) fn quiet(&self) -> Duration {
        let now = self.now();
        match now.asking {
            0 => now.last.elapsed(),
            _ => Duration::ZERO,
        }
    }

    /// Returns how often something has changed so far.
    pub(crate) fn changes(&self) -> u64 {
        self.now().changes
    }

    /// Waits until there are more changes than `seen`, at most `patience`.
    pub(crate) fn wait(&self, seen: u64, patience: Duration) {
        self.wait_while(patience, |now| now.changes == seen);
    }

    /// Waits `patience`, or until the server is within reach if it was `lost`, or out of reach if
    /// it was not ([`Self::reached`]), or the gateway stops.
    pub(crate) fn pause(&self, lost: bool, patience: Duration) {
        self.wait_while(patience, |now| now.trouble.is_some() == lost);
    }

    fn wait_while(&self, patience: Duration, same: impl Fn(&Now) -> bool) {
        let same = |now: &mut Now| !now.stopping && same(now);
        let waited = self.changed.wait_timeout_while(self.now(), patience, same);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Tells whether the gateway is about to end.
    pub(crate) fn stopping(&self) -> bool {
        self.now().stopping
    }

    /// Returns why the server cannot be reached, if it cannot.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.now().trouble.clone()
    }

    /// Notes that the server was reached, or not. Tells whether it is considered lost from now on.
    pub(crate) fn reached(&self, error: Option<&ServiceError>) -> bool {
        let lost = error.filter(|error| error.is_broken_connection());
        match (error, lost) {
            (_, Some(lost)) => self.change(|now| now.trouble = Some(lost.to_string())),
            (None, None) => self.change(|now| now.trouble = None),
            // Something else went wrong: it says nothing about the server's reach.
            (Some(_), None) => return self.trouble().is_some(),
        }
        lost.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn unreachable() -> ServiceError {
        ServiceError::Connect {
            address: "somewhere".into(),
            cause: std::io::ErrorKind::ConnectionRefused.into(),
        }
    }

    #[test]
    fn a_change_before_the_wait_is_not_missed() {
        let activity = Activity::default();
        let seen = activity.changes();
        activity.begins();
        let started = Instant::now();
        activity.wait(seen, LONG);
        assert!(started.elapsed() < LONG);
        assert_eq!((activity.asking(), activity.quiet()), (1, Duration::ZERO));
        activity.ends();
        assert_eq!(activity.asking(), 0);
    }

    #[test]
    fn a_pause_ends_when_the_server_is_found_again() {
        let activity = Activity::default();
        let lost = activity.reached(Some(&unreachable()));
        assert!(activity.trouble().unwrap().contains("somewhere"));
        let started = Instant::now();
        std::thread::scope(|scope| {
            // However late it begins: what counts is what it had seen.
            scope.spawn(|| activity.pause(lost, LONG));
            // Neither a question nor another failure is a reason to try again sooner.
            activity.begins();
            activity.reached(Some(&unreachable()));
            activity.reached(None);
        });
        assert!(started.elapsed() < LONG);
        assert!(activity.trouble().is_none());
        activity.shut_down();
        activity.pause(false, LONG);
        assert!(started.elapsed() < LONG && activity.stopping());
    }
}

//! Waiting for an event that can be looked for but does not report itself.

use std::time::{Duration, Instant};

/// How long an event may take. A machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(180);
/// How often is looked.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until something holds.
///
/// # Panics
/// If it does not within three minutes.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(
            Instant::now() < end,
            "{what} did not happen in {PATIENCE:?}"
        );
        std::thread::sleep(PAUSE);
    }
}

/// Checks that something holds for all of a time, for what must *not* happen.
///
/// # Panics
/// As soon as it does not hold.
pub fn always(what: &str, time: Duration, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        assert!(holds(), "not always: {what}");
        std::thread::sleep(PAUSE);
    }
}

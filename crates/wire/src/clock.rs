//! The one place that asks for the time.
//!
//! Everything that a client runs, from here to the protocol, takes the time from [`now`] and the
//! date from [`unix_now`]. On an operating system these are its clocks. `wasm32-unknown-unknown`
//! has none, and those of `std::time` panic there: the program that embeds the client sets a
//! `Source`, such as `performance.now()`, `Date.now()` and `Atomics.wait`. Until it does, time
//! stands still: nothing is measured, and only the transport's own waits time out.
//!
//! Threads are the other thing that such a target lacks. A client has work done by
//! `primer_ring::threads`, which does it on the thread at hand where there is no other. [`pair`]
//! and the pipes in memory ([`pipe`]) join two threads, and are of no use without them.
//!
//! [`pair`]: crate::pair
//! [`pipe`]: crate::pipe

use std::time::Duration;

#[cfg(target_family = "wasm")]
pub use system::{Source, set_source, sleep};
pub use system::{now, unix_now};

#[cfg(not(target_family = "wasm"))]
mod system {
    use rustix::time::{ClockId, clock_gettime};
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    /// Returns the seconds since 1970 by the system's clock.
    pub fn unix_now() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    }

    /// Returns the time on a clock that all processes of this machine share and that never goes
    /// back.
    pub fn now() -> Duration {
        read(ClockId::Monotonic)
    }

    pub(super) fn thread_time() -> Duration {
        read(ClockId::ThreadCPUTime)
    }

    fn read(clock: ClockId) -> Duration {
        let time = clock_gettime(clock);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

#[cfg(target_family = "wasm")]
mod system {
    use std::sync::OnceLock;
    use std::time::Duration;

    static SOURCE: OnceLock<Source> = OnceLock::new();

    /// The clocks of a program that embeds a client.
    #[derive(Debug, Clone, Copy)]
    pub struct Source {
        /// Returns the time on a clock that never goes back.
        pub now: fn() -> Duration,
        /// Returns the seconds since 1970.
        pub unix_now: fn() -> u64,
        /// Waits for some time, on the thread at hand.
        pub sleep: fn(Duration),
    }

    /// Sets what is asked for the time, once.
    pub fn set_source(source: Source) {
        let _ = SOURCE.set(source);
    }

    /// Returns the time on the clock that was set, or zero.
    pub fn now() -> Duration {
        SOURCE.get().map_or(Duration::ZERO, |source| (source.now)())
    }

    /// Returns the seconds since 1970 by the clock that was set, or zero.
    pub fn unix_now() -> u64 {
        SOURCE.get().map_or(0, |source| (source.unix_now)())
    }

    /// Waits on this thread, which may have no other to be woken by.
    pub fn sleep(time: Duration) {
        if let Some(source) = SOURCE.get() {
            (source.sleep)(time);
        }
    }

    /// Returns the time: there is one thread.
    pub(super) fn thread_time() -> Duration {
        now()
    }
}

/// Measures processor time of this thread, to the nanosecond: what the scheduler reports is only
/// brought up to date at its ticks, milliseconds apart.
///
/// Two parties in one process on a busy machine share its cores with each other and with everything
/// else. The processor time of each party's thread is what the work costs, however busy the machine
/// is.
pub struct ThreadClock {
    start: Duration,
}

impl ThreadClock {
    /// Starts to measure the calling thread.
    pub fn start() -> Self {
        Self {
            start: system::thread_time(),
        }
    }

    /// Returns the time since the start, on the same thread.
    pub fn elapsed(&self) -> Duration {
        system::thread_time().saturating_sub(self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn the_clock_follows_work_and_not_sleep() {
        let clock = ThreadClock::start();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(60) {
            std::hint::black_box(Instant::now());
        }
        let worked = clock.elapsed();
        assert!(worked > Duration::from_millis(5), "{worked:?}");
        std::thread::sleep(Duration::from_millis(200));
        let slept = clock.elapsed() - worked;
        assert!(slept < Duration::from_millis(100), "{slept:?}");
    }

    /// Sees work of a few microseconds.
    #[test]
    fn the_clock_has_no_ticks() {
        let clock = ThreadClock::start();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            seen.insert(clock.elapsed());
        }
        assert!(seen.len() > 100, "{} different times", seen.len());
    }
}

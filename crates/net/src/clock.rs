//! A clock for measurements: the processor time of one thread.
//!
//! Two parties in one process on a busy machine share its cores with each other and with everything
//! else. The processor time of each party's thread is what the work costs, whoever else is running.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Measures processor time of this thread, to the nanosecond: what the scheduler reports is only
/// brought up to date at its ticks, milliseconds apart.
pub struct ThreadClock {
    start: Duration,
}

impl ThreadClock {
    /// Starts to measure the calling thread.
    pub fn start() -> Self {
        Self {
            start: thread_time(),
        }
    }

    /// Time since the start, on the same thread.
    pub fn elapsed(&self) -> Duration {
        thread_time().saturating_sub(self.start)
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
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

    /// Work of a few microseconds is seen.
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

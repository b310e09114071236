//! A clock for measurements: the processor time of one thread.
//!
//! Two parties in one process on a busy machine share its cores with each other and with everything
//! else. The processor time of each party's thread is what the work costs, whoever else is running.

use std::time::{Duration, Instant};

/// Measures processor time of this thread where the system reports it, else wall-clock time, which
/// is never less.
pub struct ThreadClock {
    processor: Option<Duration>,
    wall: Instant,
}

impl ThreadClock {
    /// Starts to measure the calling thread.
    pub fn start() -> Self {
        Self {
            processor: thread_time(),
            wall: Instant::now(),
        }
    }

    /// Time since the start, on the same thread.
    pub fn elapsed(&self) -> Duration {
        match (self.processor, thread_time()) {
            (Some(start), Some(now)) => now.saturating_sub(start),
            _ => self.wall.elapsed(),
        }
    }
}

/// Linux: nanoseconds on a processor, the first number of the thread's `schedstat`.
fn thread_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_follows_work_and_not_sleep() {
        let clock = ThreadClock::start();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(60) {
            std::hint::black_box(Instant::now());
        }
        let worked = clock.elapsed();
        assert!(worked > Duration::from_millis(5), "{worked:?}");
        if thread_time().is_some() {
            std::thread::sleep(Duration::from_millis(200));
            let slept = clock.elapsed() - worked;
            assert!(slept < Duration::from_millis(100), "{slept:?}");
        }
    }
}

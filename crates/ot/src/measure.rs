//! Measuring: transfers per second of processor time, both parties added up.

use crate::base::BaseOt;
use crate::bits::Bits;
use crate::cot::{CotReceiver, CotSender, Delta};
use crate::error::Result;
use primer_net::run_pair;
use primer_ring::prg::Prg;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What [`measure`] found.
#[derive(Debug, Clone, Copy)]
pub struct Measurement {
    /// Millions of correlated transfers per second of processor time, sender and receiver together.
    pub ot_m_per_s: f64,
    /// Bytes per transfer, both directions, framing included, set-up not.
    pub bytes_per_ot: f64,
    /// Seconds of wall-clock time of the set-up (ML-KEM base transfers).
    pub setup_s: f64,
}

/// Extends by `n` transfers over memory, `runs` times, and reports the best run.
///
/// # Errors
/// [`crate::OtError`] if a party fails, which over memory it does not.
pub fn measure(n: usize, runs: usize) -> Result<Measurement> {
    let start = Instant::now();
    let (sender, receiver) = run_pair(
        |channel| {
            let rng = &mut Prg::from_os();
            let mut cot = CotSender::setup(channel, BaseOt::MlKem, Delta::random(rng), rng)?;
            let setup = start.elapsed();
            let mut best = Duration::MAX;
            for _ in 0..runs {
                let clock = Clock::start();
                cot.extend(channel, n, |_, rows| {
                    black_box(rows);
                })?;
                best = best.min(clock.elapsed());
            }
            Ok((best, setup))
        },
        |channel| {
            let rng = &mut Prg::from_os();
            let mut cot = CotReceiver::setup(channel, BaseOt::MlKem, rng)?;
            let choices = Bits::random(n, rng);
            let before = channel.meter().report();
            let mut best = Duration::MAX;
            for _ in 0..runs {
                let clock = Clock::start();
                cot.extend(channel, &choices, |_, rows| {
                    black_box(rows);
                })?;
                channel.flush()?;
                best = best.min(clock.elapsed());
            }
            let traffic = channel.meter().report().since(&before).total();
            Ok::<_, crate::OtError>((best, traffic.bytes()))
        },
    )?;
    let ((sending, setup), (receiving, bytes)) = (sender, receiver);
    Ok(Measurement {
        ot_m_per_s: n as f64 / (sending + receiving).as_secs_f64() / 1e6,
        bytes_per_ot: bytes as f64 / (n * runs) as f64,
        setup_s: setup.as_secs_f64(),
    })
}

/// Processor time of this thread where the system tells it, else wall-clock time, which is never less.
struct Clock {
    processor: Option<Duration>,
    wall: Instant,
}

impl Clock {
    fn start() -> Self {
        Self {
            processor: thread_time(),
            wall: Instant::now(),
        }
    }

    fn elapsed(&self) -> Duration {
        match (self.processor, thread_time()) {
            (Some(start), Some(now)) => now - start,
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
    fn the_clock_follows_work() {
        let clock = Clock::start();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(60) {
            black_box(Prg::from_os());
        }
        let elapsed = clock.elapsed();
        assert!(elapsed > Duration::from_millis(5), "{elapsed:?}");
    }

    #[test]
    fn measures_sixteen_bytes_per_transfer() {
        let found = measure(1 << 18, 2).unwrap();
        assert!((16.0..16.001).contains(&found.bytes_per_ot));
        assert!(found.ot_m_per_s > 0.0 && found.setup_s > 0.0);
    }
}

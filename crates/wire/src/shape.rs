//! The shape of a link, simulated inside the program: a delay and a bandwidth per direction.
//!
//! Each party shapes what it sends. On a memory channel the pipe itself is the delay line
//! (see `pipe.rs`); in front of a socket `primer_net` puts such a pipe.

use std::time::Duration;

/// The shape of one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkShape {
    /// Time from the last byte sent to the last byte received: half the round-trip time.
    pub delay: Duration,
    /// Bytes per second, if capped.
    pub bandwidth: Option<u64>,
}

impl LinkShape {
    /// As fast as the machine goes.
    pub const NONE: Self = Self {
        delay: Duration::ZERO,
        bandwidth: None,
    };

    /// Returns the shape of each direction for a round-trip time and a bandwidth.
    pub const fn new(round_trip: Duration, bandwidth: u64) -> Self {
        Self {
            delay: Duration::from_nanos(round_trip.as_nanos() as u64 / 2),
            bandwidth: Some(bandwidth),
        }
    }

    /// Tells whether nothing is shaped.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// Returns how long the link is busy with `bytes` bytes.
    pub(crate) fn time_to_send(&self, bytes: usize) -> Duration {
        self.bandwidth.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64)
        })
    }

    /// Returns how many bytes are on their way when the link is busy.
    pub(crate) fn bytes_under_way(&self) -> usize {
        /// What an uncapped link with a delay may have on its way.
        const UNCAPPED: usize = 16 << 20;
        if self.delay.is_zero() {
            return 0;
        }
        self.bandwidth.map_or(UNCAPPED, |rate| {
            (rate as f64 * self.delay.as_secs_f64()).ceil() as usize
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_link_has_its_bandwidth_and_its_delay() {
        let far = LinkShape::new(Duration::from_millis(40), 12_500_000);
        assert_eq!(far.delay, Duration::from_millis(20));
        assert_eq!(far.time_to_send(12_500_000), Duration::from_secs(1));
        let paper = LinkShape::new(Duration::from_micros(2300), 100_000_000);
        assert_eq!(paper.delay, Duration::from_micros(1150));
        assert_eq!(paper.time_to_send(100_000), Duration::from_millis(1));
        assert_eq!(paper.bytes_under_way(), 115_000);
        assert_eq!(LinkShape::NONE.bytes_under_way(), 0);
    }
}

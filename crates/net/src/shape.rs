//! Link shaping inside the program: a delay and a bandwidth per direction, without root privileges.
//!
//! Each party shapes what it sends. On a memory channel the pipe itself is the delay line
//! (see `pipe.rs`); on TCP and TLS the bytes go through a shaped pipe first, and a thread of this
//! party passes them to the socket as they "arrive".

use crate::pipe::{PipeReader, PipeWriter, pipe};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;
use std::thread::JoinHandle;
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

    /// The shape of each direction for a round-trip time and a bandwidth.
    pub const fn new(round_trip: Duration, bandwidth: u64) -> Self {
        Self {
            delay: Duration::from_nanos(round_trip.as_nanos() as u64 / 2),
            bandwidth: Some(bandwidth),
        }
    }

    /// Whether nothing is shaped.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// How long the link is busy with so many bytes.
    pub(crate) fn time_to_send(&self, bytes: usize) -> Duration {
        self.bandwidth.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64)
        })
    }

    /// Bytes that are on their way when the link is busy.
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

/// The links that measurements are made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// Not shaped.
    #[default]
    Loopback,
    /// The paper's local network: 2.3 ms round trip, 100 MB/s.
    Paper,
    /// A wide-area network: 40 ms round trip, 25 MB/s.
    Wan,
    /// A household far away: 40 ms round trip, 100 Mbit/s.
    Far,
}

impl Link {
    /// All links, from the fastest to the slowest.
    pub const ALL: [Self; 4] = [Self::Loopback, Self::Paper, Self::Wan, Self::Far];

    /// The shape of each direction.
    pub const fn shape(self) -> LinkShape {
        match self {
            Self::Loopback => LinkShape::NONE,
            Self::Paper => LinkShape::new(Duration::from_micros(2300), 100_000_000),
            Self::Wan => LinkShape::new(Duration::from_millis(40), 25_000_000),
            Self::Far => LinkShape::new(Duration::from_millis(40), 12_500_000),
        }
    }

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Paper => "paper",
            Self::Wan => "wan",
            Self::Far => "far",
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Link {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|link| link.name() == text);
        let known = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| format!("unknown link `{text}`, known: {}", known()))
    }
}

/// A writer in front of a socket that delays and throttles what passes.
pub(crate) struct ShapedWriter {
    line: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl ShapedWriter {
    pub(crate) fn new(
        inner: Box<dyn Write + Send>,
        capacity: usize,
        shape: LinkShape,
        timeout: Option<Duration>,
    ) -> Self {
        let (line, arrivals) = pipe(capacity, shape, timeout);
        let thread = std::thread::Builder::new()
            .name("link".into())
            .spawn(move || deliver(arrivals, inner))
            .expect("the system can start a thread");
        Self {
            line: Some(line),
            thread: Some(thread),
        }
    }
}

/// Passes bytes on as they arrive, until the line ends or the socket fails.
fn deliver(mut arrivals: PipeReader, mut inner: Box<dyn Write + Send>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let result = Read::read(&mut arrivals, &mut buffer).and_then(|n| {
            inner.write_all(&buffer[..n])?;
            if n == 0 || arrivals.is_idle() {
                inner.flush()?;
            }
            Ok(n)
        });
        match result {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => return arrivals.fail(error.kind()),
        }
    }
}

impl Write for ShapedWriter {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.line.as_mut().expect("open until dropped").write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        // The delivering thread flushes whenever it has caught up.
        Ok(())
    }
}

impl Drop for ShapedWriter {
    fn drop(&mut self) {
        // What is on its way still arrives: the line ends first, then the thread.
        self.line = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles() {
        assert_eq!("wan".parse::<Link>().unwrap(), Link::Wan);
        for link in Link::ALL {
            assert_eq!(link.name().parse::<Link>().unwrap(), link);
        }
        let unknown = "moon".parse::<Link>().unwrap_err();
        assert!(
            unknown.contains("moon") && unknown.contains("wan, far"),
            "{unknown}"
        );
        let far = Link::Far.shape();
        assert_eq!(far.delay, Duration::from_millis(20));
        assert_eq!(far.time_to_send(12_500_000), Duration::from_secs(1));
        let paper = Link::Paper.shape();
        assert_eq!(paper.delay, Duration::from_micros(1150));
        assert_eq!(paper.time_to_send(100_000), Duration::from_millis(1));
        assert_eq!(paper.bytes_under_way(), 115_000);
        assert_eq!(Link::Loopback.shape().bytes_under_way(), 0);
        assert_eq!(serde_json::to_string(&Link::Paper).unwrap(), "\"paper\"");
    }
}

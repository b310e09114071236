//! Links shaped inside the program: a delay and a bandwidth per direction, without root privileges.
//!
//! Each party shapes what it sends. The bytes go through a pipe first, which delays them, and a
//! thread of this party passes them to the socket as they "arrive".

use primer_wire::peer::Agreed;
use primer_wire::pipe::{PipeReader, PipeWriter, pipe};
use primer_wire::{LinkShape, Options, Recorder, Transport};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;
use std::thread::JoinHandle;
use std::time::Duration;

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

    /// Returns the shape of each direction.
    pub const fn shape(self) -> LinkShape {
        match self {
            Self::Loopback => LinkShape::NONE,
            Self::Paper => LinkShape::new(Duration::from_micros(2300), 100_000_000),
            Self::Wan => LinkShape::new(Duration::from_millis(40), 25_000_000),
            Self::Far => LinkShape::new(Duration::from_millis(40), 12_500_000),
        }
    }

    /// Returns the name on the command line.
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

/// A connection behind a slower link.
pub(crate) struct Shaped<T> {
    inner: T,
    capacity: usize,
    shape: LinkShape,
}

impl<T: Transport> Shaped<T> {
    pub(crate) fn new(inner: T, options: &Options) -> Self {
        Self {
            inner,
            capacity: options.capacity,
            shape: options.shape,
        }
    }
}

impl<T: Transport> Transport for Shaped<T> {
    type Sender = ShapedWriter;
    type Receiver = T::Receiver;

    fn timeout(&self) -> Option<Duration> {
        self.inner.timeout()
    }

    fn recorder(&self) -> Recorder {
        self.inner.recorder()
    }

    fn agreed(&self) -> Option<Agreed> {
        self.inner.agreed()
    }

    fn split(self) -> (ShapedWriter, T::Receiver) {
        let timeout = self.timeout();
        let (output, input) = self.inner.split();
        let output = ShapedWriter::new(Box::new(output), self.capacity, self.shape, timeout);
        (output, input)
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
        let far = LinkShape::new(Duration::from_millis(40), 12_500_000);
        assert_eq!(Link::Far.shape(), far);
        let paper = LinkShape::new(Duration::from_micros(2300), 100_000_000);
        assert_eq!(Link::Paper.shape(), paper);
        assert!(Link::Loopback.shape().is_none());
        assert_eq!(serde_json::to_string(&Link::Paper).unwrap(), "\"paper\"");
    }
}

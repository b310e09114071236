//! What the servers of this process log.

use std::io::{self, Write};
use std::sync::{Mutex, Once, PoisonError};
use tracing_subscriber::fmt::MakeWriter;

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The log of this process: of all its tests, where one process runs several, so that a test looks
/// for words that it alone causes.
#[derive(Debug, Clone, Copy)]
pub struct Log(());

impl Log {
    /// Begins to write down what is logged, and panics of threads that nothing waits for.
    pub fn start() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let lines = tracing_subscriber::fmt().with_ansi(false);
            lines.with_writer(Lines).init();
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                let _ = writeln!(Lines, "{panic}");
                usual(panic);
            }));
        });
        Self(())
    }

    /// Returns what was logged so far.
    pub fn text(self) -> String {
        let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&lines).into_owned()
    }

    /// Tells whether something was logged.
    pub fn has(self, words: &str) -> bool {
        self.text().contains(words)
    }
}

struct Lines;

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        lines.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

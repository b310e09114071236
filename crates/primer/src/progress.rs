//! Progress of long work: a bar on a terminal, plain lines elsewhere, always on standard error.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use primer_net::Meter;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a plain line is printed, in percent.
const PLAIN_STEP: u64 = 10;

/// Shows how far some work is.
pub struct Progress {
    bar: ProgressBar,
    plain: Option<Mutex<Plain>>,
}

struct Plain {
    label: String,
    next_percent: u64,
}

impl Progress {
    /// Starts showing work of `total` units.
    pub fn start(label: &str, total: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::hidden());
        bar.set_message(label.to_owned());
        let plain = if std::io::stderr().is_terminal() {
            let style = "{msg} [{bar:30}] {pos}/{len} {elapsed} (left {eta})";
            let style = ProgressStyle::with_template(style).expect("the template is well formed");
            bar.set_style(style.progress_chars("=> "));
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
            None
        } else {
            let plain = Plain {
                label: label.to_owned(),
                next_percent: PLAIN_STEP,
            };
            Some(Mutex::new(plain))
        };
        Self { bar, plain }
    }

    /// One more unit is done.
    pub fn tick(&self) {
        self.bar.inc(1);
        let Some(plain) = &self.plain else { return };
        let (done, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let mut plain = plain.lock().expect("printing a line does not panic");
        if total > 0 && done * 100 >= plain.next_percent * total {
            eprintln!("{}: {done} of {total}", plain.label);
            while plain.next_percent <= done * 100 / total {
                plain.next_percent += PLAIN_STEP;
            }
        }
    }

    /// So many units are done in all.
    pub fn set(&self, done: u64) {
        while self.bar.position() < done.min(self.bar.length().unwrap_or(0)) {
            self.tick();
        }
    }

    /// All done; the bar disappears.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// Shows how far a transfer of a known number of bytes is, in percent, until it is dropped.
pub struct Transfer {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Transfer {
    /// Watches a meter until `expected` more bytes have passed.
    pub fn watch(label: &str, meter: Meter, expected: u64) -> Self {
        let progress = Progress::start(label, 100);
        let before = meter.report().total().bytes();
        let (stop, stopped) = channel();
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout)
            {
                let passed = meter.report().total().bytes() - before;
                progress.set(100 * passed / expected.max(1));
            }
            progress.finish();
        });
        Self {
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

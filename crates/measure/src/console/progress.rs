//! Progress of long work: a bar on a terminal, plain lines elsewhere, always on standard error.

use crate::{note, notes};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use primer::Meter;
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a plain line is printed, in percent.
const PLAIN_STEP: u64 = 10;

/// Shows how far some work is.
struct Progress {
    bar: ProgressBar,
    plain: Option<Mutex<Plain>>,
}

struct Plain {
    label: String,
    next_percent: u64,
}

impl Progress {
    /// Starts showing work of `total` units.
    fn start(label: &str, total: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::hidden());
        bar.set_message(label.to_owned());
        let plain = if std::io::stderr().is_terminal() && !notes::is_quiet() {
            // As wide as the terminal: a line that wraps is drawn anew below itself.
            let style = "{msg} [{wide_bar}] {pos}/{len} {elapsed} (left {eta})";
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

    /// Counts one more unit as done.
    fn tick(&self) {
        self.bar.inc(1);
        let Some(plain) = &self.plain else { return };
        let (done, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let mut plain = plain.lock().expect("printing a line does not panic");
        if total > 0 && done * 100 >= plain.next_percent * total {
            note!("{}: {done} of {total}", plain.label);
            while plain.next_percent <= done * 100 / total {
                plain.next_percent += PLAIN_STEP;
            }
        }
    }

    /// Sets how many units are done in all.
    fn set(&self, done: u64) {
        while self.bar.position() < done.min(self.bar.length().unwrap_or(0)) {
            self.tick();
        }
    }
}

/// The bar disappears, however the work ends.
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Shows one piece of long work after the other, as it is told how far they are.
#[derive(Default)]
pub struct Stages(Mutex<Option<(&'static str, Progress)>>);

impl Stages {
    /// Tells how many of all units of some work are done.
    pub fn tell(&self, what: &'static str, done: usize, total: usize) {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_none_or(|(label, _)| *label != what) {
            *current = Some((what, Progress::start(what, total)));
        }
        if let Some((_, progress)) = &*current {
            progress.set(done as u64);
        }
        if done == total {
            *current = None;
        }
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
        // Without a thread nothing is shown, and the transfer goes on.
        let thread = std::thread::Builder::new().spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout)
            {
                let passed = meter.report().total().bytes() - before;
                progress.set(100 * passed / expected.max(1));
            }
        });
        Self {
            stop: Some(stop),
            thread: thread.ok(),
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

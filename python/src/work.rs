//! Blocking work under an interpreter that lives on.
//!
//! Python hears a signal (Ctrl-C) only when its main thread asks for it, and its other threads run
//! only while the interpreter's lock is released. So the work goes to a thread of its own, which
//! never touches Python, and the caller waits for it in short pieces: without the lock while
//! waiting, with it in between, to ask for signals and to report how far the work is.
//!
//! If a signal comes, or reporting fails, the work is told to give up. It has a few seconds to do
//! so; then the caller goes on without it.

use crate::errors;
use pyo3::prelude::*;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the lock is released at a time: the time that Ctrl-C may take to be heard.
const PIECE: Duration = Duration::from_millis(50);

/// The time left to work that was told to give up.
const GRACE: Duration = Duration::from_secs(5);

/// Does `work` on a thread called `name` and returns its result. Calls `between` now and then with
/// the interpreter's lock, and `give_up` if the caller is interrupted.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
    mut between: impl FnMut() -> PyResult<()>,
    give_up: impl FnOnce(),
) -> PyResult<T> {
    let (done, result) = sync_channel(1);
    // One thread waits; the mutex only says so to the compiler.
    let result = Mutex::new(result);
    let thread = std::thread::Builder::new().name(format!("primer-{name}"));
    // If the caller no longer waits, the result is dropped.
    let started = thread.spawn(move || drop(done.send(work())));
    started.map_err(|error| errors::other(py, &format!("no thread could be started: {error}")))?;
    loop {
        let waited = wait(py, &result);
        let heard = match waited {
            Some(_) => between(),
            None => py.check_signals().and_then(|()| between()),
        };
        match (waited, heard) {
            // A callback that fails at the very end is not hidden either.
            (Some(Ok(value)), Ok(())) => return Ok(value),
            (Some(Ok(_)), Err(error)) => return Err(error),
            (Some(Err(())), _) => {
                let why = "the operation panicked; this is a bug in primer";
                return Err(errors::other(py, why));
            }
            (None, Ok(())) => {}
            (None, Err(interrupt)) => {
                give_up();
                let since = Instant::now();
                while since.elapsed() < GRACE && wait(py, &result).is_none() {
                    // A second interrupt ends the wait.
                    py.check_signals()?;
                }
                return Err(interrupt);
            }
        }
    }
}

/// Waits for the result for a piece of time, without the lock: a value, or that there will be none.
fn wait<T: Send>(py: Python<'_>, result: &Mutex<Receiver<T>>) -> Option<Result<T, ()>> {
    let waited = py.detach(|| {
        let result = result.lock().unwrap_or_else(PoisonError::into_inner);
        result.recv_timeout(PIECE)
    });
    match waited {
        Ok(value) => Some(Ok(value)),
        Err(RecvTimeoutError::Disconnected) => Some(Err(())),
        Err(RecvTimeoutError::Timeout) => None,
    }
}

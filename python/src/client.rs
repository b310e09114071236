//! The client as a Python object.
//!
//! Calls from several Python threads are served one after the other: a client has one connection,
//! and a protocol is under way on it. An interrupt ends the call that it hits by hanging up
//! ([`primer::HangUp`]), and no other: a call that still waits for its turn is not begun. The
//! client connects again with the next call. Only what was under way is lost: bundles being
//! prepared, or the bundle of an inference, which is spent.

use crate::watch::Watch;
use crate::{errors, facts, work};
use primer::client::tags::Aggregate;
use primer::{AnswerOptions, ClientOptions, HangUp, ServiceError, Zeroizing};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A client of one server.
#[pyclass(module = "primer._primer", frozen)]
pub(crate) struct Client {
    /// Empty when it is closed.
    slot: Arc<Mutex<Option<primer::Client>>>,
    hang_up: HangUp,
    watch: Watch,
    /// Called with bytes done and expected.
    progress: Option<Py<PyAny>>,
    /// Called with sentences for the log.
    log: Py<PyAny>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where one call is, so that an interrupt hits it and no other.
#[derive(Default)]
enum Stage {
    #[default]
    Waiting,
    Working,
    Over,
}

/// Why a call failed.
enum Failure {
    Service(ServiceError),
    Closed,
    Panicked,
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (server, *, fingerprint, token, state, hint_url, timeout, threads, attempts,
                        wait, progress, log))]
    fn connect(
        py: Python<'_>,
        server: String,
        fingerprint: Option<&str>,
        token: Option<String>,
        state: Option<PathBuf>,
        hint_url: Option<String>,
        timeout: f64,
        threads: Option<usize>,
        attempts: u32,
        wait: Option<f64>,
        progress: Option<Py<PyAny>>,
        log: Py<PyAny>,
    ) -> PyResult<Self> {
        let trust = fingerprint.map(str::parse).transpose();
        let timeout = Duration::try_from_secs_f64(timeout).ok();
        let wait = wait.map(Duration::try_from_secs_f64).transpose();
        let (hang_up, watch) = (HangUp::default(), Watch::default());
        let options = ClientOptions {
            state,
            hint_url,
            trust: trust.map_err(|why: String| errors::option(py, &why))?,
            token: token.map(Zeroizing::new),
            timeout: timeout
                .filter(|timeout| !timeout.is_zero())
                .ok_or_else(|| errors::option(py, "a timeout is a number of seconds above 0"))?,
            threads,
            attempts,
            wait: wait
                .map_err(|_| errors::option(py, "a wait is a number of seconds from 0 on"))?,
            hang_up: hang_up.clone(),
            ..ClientOptions::default()
        };
        let seen = watch.clone();
        let connect = move || {
            primer::Client::connect_observed(&server, options, move |event| seen.note(&event))
        };
        let told = || tell(py, &watch, progress.as_ref(), &log);
        let connected = work::run(py, "connect", connect, told, || hang_up.hang_up())?;
        let client = connected.map_err(|error| errors::raise(py, &error))?;
        Ok(Self {
            slot: Arc::new(Mutex::new(Some(client))),
            hang_up,
            watch,
            progress,
            log,
        })
    }

    /// Returns what the server offers.
    fn card<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let card = self.call(py, "card", |client| Ok(client.card().clone()))?;
        facts::card(py, &card)
    }

    /// Returns the labels of a text, or of a pair.
    #[pyo3(signature = (text, text_pair = None))]
    fn classify<'py>(
        &self,
        py: Python<'py>,
        text: String,
        text_pair: Option<String>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (text, text_pair) = (Zeroizing::new(text), text_pair.map(Zeroizing::new));
        let found = self.call(py, "classify", move |client| match text_pair {
            None => client.classify(&text),
            Some(second) => client.classify_pair(&text, &second),
        })?;
        facts::classification(py, &found)
    }

    /// Returns the piece of a context that answers a question.
    #[pyo3(signature = (question, context, *, stride, null_threshold))]
    fn answer<'py>(
        &self,
        py: Python<'py>,
        question: String,
        context: String,
        stride: usize,
        null_threshold: f64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (question, context) = (Zeroizing::new(question), Zeroizing::new(context));
        if null_threshold.is_nan() {
            return Err(errors::option(py, "null_threshold is not a number"));
        }
        let options = AnswerOptions {
            stride,
            null_threshold,
        };
        let found = self.call(py, "answer", move |client| {
            client.answer_with(&question, &context, options)
        })?;
        facts::extract(py, &found)
    }

    /// Returns the labels of a text's tokens; neighbours of one kind together if they are
    /// `grouped`.
    #[pyo3(signature = (text, *, grouped))]
    fn tag<'py>(
        &self,
        py: Python<'py>,
        text: String,
        grouped: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let text = Zeroizing::new(text);
        let aggregate = match grouped {
            true => Aggregate::Simple,
            false => Aggregate::None,
        };
        let found = self.call(py, "tag", move |client| client.tag(&text, aggregate))?;
        facts::tagging(py, &found)
    }

    /// Returns a text as a vector.
    fn embed<'py>(&self, py: Python<'py>, text: String) -> PyResult<Bound<'py, PyDict>> {
        let text = Zeroizing::new(text);
        let found = self.call(py, "embed", move |client| client.embed(&text))?;
        facts::embedding(py, &found)
    }

    /// Prepares bundles ahead; returns their names.
    fn prepare(&self, py: Python<'_>, tokens: usize, count: usize) -> PyResult<Vec<String>> {
        let made = self.call(py, "prepare", move |client| client.prepare(tokens, count))?;
        Ok(made.iter().map(ToString::to_string).collect())
    }

    /// Returns the number of unspent bundles by padded length.
    fn bundles(&self, py: Python<'_>) -> PyResult<BTreeMap<usize, usize>> {
        self.call(py, "bundles", |client| client.prepared())
    }

    /// Leaves in good order; closing again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let slot = Arc::clone(&self.slot);
        let leave = move || {
            if let Some(client) = lock(&slot).take() {
                client.close();
            }
        };
        work::run(py, "close", leave, || Ok(()), || self.hang_up.hang_up())
    }
}

impl Client {
    /// Makes the client do something on a thread of its own.
    fn call<T: Send + 'static>(
        &self,
        py: Python<'_>,
        name: &str,
        job: impl FnOnce(&mut primer::Client) -> Result<T, ServiceError> + Send + 'static,
    ) -> PyResult<T> {
        let stage = Arc::new(Mutex::new(Stage::default()));
        let (slot, line) = (Arc::clone(&self.slot), self.hang_up.clone());
        let (mine, watch) = (Arc::clone(&stage), self.watch.clone());
        let at_work = move || {
            let mut slot = lock(&slot);
            let client = slot.as_mut().ok_or(Failure::Closed)?;
            // An earlier call may have been hung up on; this one begins before it can be.
            line.pick_up();
            watch.forget();
            match &mut *lock(&mine) {
                // The caller no longer waits for it.
                Stage::Over => return Err(Failure::Closed),
                stage => *stage = Stage::Working,
            }
            let done = catch_unwind(AssertUnwindSafe(|| job(client)));
            *lock(&mine) = Stage::Over;
            match done {
                Ok(result) => result.map_err(Failure::Service),
                Err(_) => {
                    // The state of the client is unknown.
                    *slot = None;
                    Err(Failure::Panicked)
                }
            }
        };
        let give_up = || {
            let mut stage = lock(&stage);
            if matches!(*stage, Stage::Working) {
                self.hang_up.hang_up();
            }
            *stage = Stage::Over;
        };
        let told = || tell(py, &self.watch, self.progress.as_ref(), &self.log);
        let done = work::run(py, name, at_work, told, give_up)?;
        done.map_err(|failure| match failure {
            Failure::Service(error) => errors::raise(py, &error),
            Failure::Closed => errors::closed(py, "client"),
            Failure::Panicked => errors::other(
                py,
                "the client panicked and is closed; this is a bug in primer",
            ),
        })
    }
}

/// Reports what has happened since the last report.
fn tell(
    py: Python<'_>,
    watch: &Watch,
    progress: Option<&Py<PyAny>>,
    log: &Py<PyAny>,
) -> PyResult<()> {
    let (steps, notes) = watch.take();
    for note in notes {
        log.call1(py, (note,))?;
    }
    if let Some(progress) = progress {
        for step in steps {
            progress.call1(py, step)?;
        }
    }
    Ok(())
}

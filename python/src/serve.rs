//! A server on threads of this process, for tests and notebooks.

use crate::{errors, facts, work};
use primer::server::{AccessTokens, Limits};
use primer::service::message::Card;
use primer::{Reveal, ServerOptions, ServiceError, ShutdownHandle};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A server that runs until it is stopped, or forgotten.
#[pyclass(module = "primer._primer", frozen)]
pub(crate) struct Server {
    /// Where it listens.
    #[pyo3(get)]
    address: String,
    /// What clients have to trust.
    #[pyo3(get)]
    fingerprint: String,
    card: Card,
    handle: ShutdownHandle,
    running: Mutex<Option<JoinHandle<Result<(), ServiceError>>>>,
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (*, model, prepared, calibration, listen, state, access_tokens, scheme,
                        reveal_scores, threads, max_tokens, sessions))]
    fn start(
        py: Python<'_>,
        model: Option<PathBuf>,
        prepared: Option<PathBuf>,
        calibration: Option<PathBuf>,
        listen: String,
        state: PathBuf,
        access_tokens: Option<PathBuf>,
        scheme: &str,
        reveal_scores: bool,
        threads: Option<usize>,
        max_tokens: Option<usize>,
        sessions: usize,
    ) -> PyResult<Self> {
        let limits = Limits::default();
        if scheme != primer::SCHEME_NAME {
            let why = format!(
                "there is no scheme `{scheme}`, only {}",
                primer::SCHEME_NAME
            );
            return Err(errors::option(py, &why));
        }
        let mut options = ServerOptions {
            model,
            prepared,
            calibration,
            listen,
            state: Some(state),
            reveal: match reveal_scores {
                true => Reveal::Outputs,
                false => Reveal::Label,
            },
            threads,
            limits: Limits {
                sessions,
                tokens: max_tokens.unwrap_or(limits.tokens),
                ..limits
            },
            ..ServerOptions::default()
        };
        // Loading and calibrating cannot be ended early; if the caller gives up, the thread still
        // finishes, and the port is free again when it is done.
        let bind = move || {
            options.access = access_tokens
                .map(|file| AccessTokens::read(&file).map(Arc::new))
                .transpose()?;
            primer::Server::bind(options)
        };
        let bound = work::run(py, "bind", bind, || Ok(()), || ())?;
        let server = bound.map_err(|error| errors::raise(py, &error))?;
        let address = server.address().to_string();
        let (fingerprint, card) = (server.fingerprint().to_string(), server.card().clone());
        let handle = server.shutdown_handle();
        let thread = std::thread::Builder::new().name("primer-server".into());
        let running = thread
            .spawn(move || server.run())
            .map_err(|error| errors::other(py, &format!("no thread could be started: {error}")))?;
        Ok(Self {
            address,
            fingerprint,
            card,
            handle,
            running: Mutex::new(Some(running)),
        })
    }

    /// Returns what it offers.
    fn card<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        facts::card(py, &self.card)
    }

    /// Accepts no more requests, and waits for inferences under way; stopping again does nothing.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let handle = self.handle.clone();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = running.take() else {
            return Ok(());
        };
        let stop = move || {
            handle.shut_down();
            running.join()
        };
        match work::run(py, "stop", stop, || Ok(()), || ())? {
            Ok(ended) => ended.map_err(|error| errors::raise(py, &error)),
            Err(_) => Err(errors::other(
                py,
                "the server panicked; this is a bug in primer",
            )),
        }
    }
}

/// Stops a server that can no longer be reached through its object.
impl Drop for Server {
    fn drop(&mut self) {
        self.handle.shut_down();
    }
}

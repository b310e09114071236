//! Servers of this process: what `primer serve` runs, without the program around it.

use crate::hint::{hints, share_secret};
use crate::http::Metrics;
use primer::{Client, ClientOptions, Fingerprint, ServerOptions, ShutdownHandle};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// A server that serves until it is stopped or dropped.
pub struct Server {
    /// Where it listens.
    pub address: String,
    /// What its clients trust.
    pub fingerprint: Fingerprint,
    /// Its health and metrics.
    pub metrics: Metrics,
    /// Where it serves browsers, if it does.
    pub web: Option<String>,
    /// Its state directory.
    pub state: PathBuf,
    stop: ShutdownHandle,
    running: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server of the embedded model.
    pub fn start(state: &Path) -> Self {
        Self::start_with(state, |_| ())
    }

    /// Starts a server with other options than the usual ones.
    pub fn start_with(state: &Path, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let mut options = ServerOptions {
            listen: "127.0.0.1:0".into(),
            metrics: Some("127.0.0.1:0".into()),
            state: Some(state.to_owned()),
            hints: share_secret(state).then(hints),
            ..ServerOptions::default()
        };
        change(&mut options);
        let server = primer::Server::bind(options).unwrap();
        let metrics = server.metrics_address().unwrap();
        Self {
            address: server.address().to_string(),
            fingerprint: server.fingerprint(),
            metrics: Metrics {
                address: metrics.to_string(),
            },
            web: server.web_url(),
            state: state.to_owned(),
            stop: server.shutdown_handle(),
            running: Some(std::thread::spawn(move || server.run().unwrap())),
        }
    }

    /// Returns the options of a client that trusts it.
    pub fn options(&self, state: &Path) -> ClientOptions {
        ClientOptions {
            state: Some(state.to_owned()),
            trust: Some(self.fingerprint),
            ..ClientOptions::default()
        }
    }

    /// Connects a client.
    pub fn client(&self, state: &Path) -> Client {
        Client::connect(&self.address, self.options(state)).unwrap()
    }

    /// Returns what stops it from another thread.
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.stop.clone()
    }

    /// Stops it in good order.
    pub fn stop(mut self) {
        self.end().unwrap();
    }

    fn end(&mut self) -> std::thread::Result<()> {
        self.stop.shut_down();
        self.running.take().map_or(Ok(()), JoinHandle::join)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

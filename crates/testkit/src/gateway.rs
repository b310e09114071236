//! Gateways of this process: what `primer gateway` runs, without the program around it.

use crate::http::get;
use crate::server::Server;
use primer::{Client, ClientOptions};
use primer_gateway::{Access, Options, ShutdownHandle};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A gateway that answers until it is stopped or dropped.
pub struct Gateway {
    /// Where it listens.
    pub address: String,
    stop: ShutdownHandle,
    running: Option<JoinHandle<()>>,
}

impl Gateway {
    /// Starts a gateway to a server; `change` has the options of the gateway and of its clients.
    pub fn start(
        server: &Server,
        state: &Path,
        change: impl FnOnce(&mut Options, &mut ClientOptions),
    ) -> Self {
        let mut options = Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            access: Access::default(),
            stock: 4,
            lengths: Vec::new(),
            workers: 2,
            queue: 64,
            drain: Duration::from_secs(60),
        };
        let mut usual = server.options(state);
        change(&mut options, &mut usual);
        let address = server.address.clone();
        let connect = Arc::new(move |hang_up| {
            let options = ClientOptions {
                hang_up,
                ..usual.clone()
            };
            Client::connect(&address, options)
        });
        let gateway = primer_gateway::Gateway::bind(options, connect).unwrap();
        Self {
            address: gateway.address().to_string(),
            stop: gateway.shutdown_handle(),
            running: Some(std::thread::spawn(move || gateway.run().unwrap())),
        }
    }

    /// Returns what stops it from another thread.
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.stop.clone()
    }

    /// Stops it in good order, or waits until it is, if it was told before.
    pub fn stop(mut self) {
        self.end().unwrap();
    }

    fn end(&mut self) -> std::thread::Result<()> {
        self.stop.shut_down();
        self.running.take().map_or(Ok(()), JoinHandle::join)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Counts the prepared bundles of a length.
pub fn stock(address: &str, tokens: u64) -> u64 {
    let told = get(address, "/status").json();
    let levels = told["stock"].as_array().unwrap().iter();
    let level = levels.clone().find(|level| level["tokens"] == tokens);
    level.map_or(0, |level| level["have"].as_u64().unwrap())
}

/// Counts the questions that are asked at this moment.
pub fn asking(address: &str) -> u64 {
    get(address, "/status").json()["asking"].as_u64().unwrap()
}

//! A client on a system with sockets and files: TCP and TLS with certificates that are remembered,
//! bundles and hints on a disk.
//!
//! `tls` opens connections and `trust` remembers servers, `files` keeps what is small and `hints`
//! what is large, `copy` reads hints from elsewhere (`http` from the web).

mod copy;
pub(crate) mod files;
mod hints;
mod http;
mod tls;
mod trust;

use crate::link::store_error;
use crate::{Client, ClientOptions, Event, HintCopy, Parts};
use copy::Copy;
use files::Files;
use hints::HintFiles;
use primer_service::ServiceError;
use primer_service::state::State;
use primer_store::Store;
use std::sync::Arc;
use tls::TlsDial;
use trust::KnownServers;

impl Client {
    /// Connects to a server, checks its identity, and learns what it offers.
    ///
    /// # Errors
    /// [`ServiceError`]: the server cannot be reached, is not trusted, or refuses.
    pub fn connect(address: &str, options: ClientOptions) -> Result<Self, ServiceError> {
        Self::connect_observed(address, options, |_| ())
    }

    /// Connects as [`Self::connect`], and has something called while the caller waits, from now on.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_observed(
        address: &str,
        options: ClientOptions,
        observer: impl FnMut(Event<'_>) + Send + 'static,
    ) -> Result<Self, ServiceError> {
        let parts = parts(&options)?;
        Self::connect_with(address, options, parts, observer)
    }
}

/// Opens what options name.
fn parts(options: &ClientOptions) -> Result<Parts, ServiceError> {
    let state = State::open(options.state.as_deref())?;
    let dir = state.dir("client")?;
    let known = KnownServers::read(dir.join("known_servers"))?;
    let store = Store::open(dir.join("store")).map_err(store_error)?;
    let copy = Copy::of(options).map(|copy| Box::new(copy) as Box<dyn HintCopy>);
    Ok(Parts {
        dial: Box::new(TlsDial::new(known, options)),
        hints: Box::new(HintFiles::new(state.dir("client/hints")?)),
        keep: Box::new(Files::new(state)),
        bundles: Arc::new(store),
        hint_copy: copy,
    })
}

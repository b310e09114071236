//! The server: many clients at once, each on a thread of its own, all within limits.
//!
//! `listener` accepts connections, and [`Door`] lets others in; `gate` keeps a register of them and
//! cuts those that take too long; `connection` speaks with one client; `offer` says what is served,
//! `models` has the weights for each length, and the hint that clients prepare with is found or
//! built at the start ([`hints`]); the store keeps prepared bundles within bounds; `promises` keeps
//! sessions of one account that ask at once within its limit; `store_monitor` looks at the store
//! from time to time; `metrics` counts and `responder` tells; `web` serves browsers. A thread
//! blocks on one connection at a time: the protocol streams in bulk and has few turns, so there is
//! nothing to interleave.

#![forbid(unsafe_code)]

mod connection;
mod door;
mod gate;
pub mod hints;
pub mod identity;
mod listener;
mod metrics;
mod models;
mod offer;
mod options;
mod process;
mod promises;
mod responder;
pub mod source;
mod store_monitor;
mod tokens;
mod web;

pub use door::Door;
pub use gate::ConnectionControl;
pub use options::{Limits, ServerOptions, SharedStore, Starting, WebOptions};
pub use tokens::{
    AccessTokens, Reloaded, TokenLimits, TokenLine, find_token, is_hash, limit_token, list_tokens,
    new_token, revoke_token,
};

use crate::hints::{ServerHint, secret};
use crate::source::Model;
use gate::{Gate, Timeouts};
use listener::{accept, listen};
use metrics::{Levels, Metrics};
use models::Models;
use primer_engine::Reveal;
use primer_hint::published::Published;
use primer_net::tls::TlsServer;
use primer_service::message::{Card, ServerRole};
use primer_service::state::State;
use primer_service::{Port, ServiceError, io_error};
use primer_store::fleet::FleetOptions;
use primer_store::{Bounds, BundleStore, Store, unix_now};
use primer_wire::peer::Fingerprint;
use primer_wire::{LinkShape, Options};
use promises::Promises;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use store_monitor::StoreMonitor;
use tokio::sync::watch;
use web::{Site, Web};

/// What all connections share.
struct Shared {
    limits: Limits,
    card: Card,
    tokenizer: Vec<u8>,
    /// What clients prepare with.
    hint: Arc<Published>,
    models: Models,
    store: Store,
    store_monitor: StoreMonitor,
    bounds: Bounds,
    roles: Vec<ServerRole>,
    /// Answers that clients were told to spend their halves for.
    promises: Promises,
    tls: TlsServer,
    access: Option<Arc<AccessTokens>>,
    /// Threads that prepare, for all sessions together.
    threads: usize,
    gate: Arc<Gate>,
    metrics: Metrics,
    address: SocketAddr,
    /// What browsers are served.
    web: Option<Web>,
}

impl Shared {
    fn channel_options(&self) -> Options {
        Options {
            timeout: Some(self.limits.idle),
            shape: LinkShape::NONE,
            ..Options::default()
        }
    }

    fn levels(&self) -> Levels {
        Levels {
            sessions: self.gate.sessions() as u64,
            store: self.store_monitor.status(),
            tokens: self.access.as_ref().map(|access| access.count()),
            store_rolled_back: self.store.is_rolled_back(),
        }
    }

    /// Tells whether clients should be sent here, and in which state or why not. The model is
    /// there: without it nothing listens.
    fn ready(&self) -> Result<String, String> {
        if self
            .access
            .as_ref()
            .is_some_and(|access| access.count() == 0)
        {
            return Err("no access token is admitted: every client is refused".into());
        }
        self.store_monitor.usable()?;
        match self.store_monitor.short_of_room() {
            None => Ok("ready".into()),
            // Clients that have bundles are served as before.
            Some(why) if self.roles.contains(&ServerRole::Infer) => Ok(format!("ready, but {why}")),
            Some(why) => Err(why),
        }
    }
}

/// A server that listens and waits to be [run](Self::run).
///
/// ```no_run
/// use primer_server::{Server, ServerOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::bind(ServerOptions {
///     model: Some("my-model".into()),
///     listen: "0.0.0.0:7447".into(),
///     ..ServerOptions::default()
/// })?;
/// println!("clients need to know {}", server.fingerprint());
/// server.run()?;
/// # Ok(())
/// # }
/// ```
pub struct Server {
    listener: TcpListener,
    metrics: Option<TcpListener>,
    web: Option<TcpListener>,
    fingerprint: Fingerprint,
    shared: Arc<Shared>,
}

/// Asks a running server to stop; clones ask the same one.
#[derive(Clone)]
pub struct ShutdownHandle(Arc<Shared>);

impl ShutdownHandle {
    /// Stops new connections and new requests; inferences under way are finished, unspent bundles
    /// stay.
    pub fn shut_down(&self) {
        self.0.gate.shut_down();
        listener::wake(self.0.address);
        if let Some(web) = &self.0.web {
            listener::wake(web.address);
        }
    }
}

impl Server {
    /// Opens the port, then loads the model, the identity and the store.
    ///
    /// # Errors
    /// [`ServiceError`] naming the address, file, option or limit at fault.
    pub fn bind(options: ServerOptions) -> Result<Self, ServiceError> {
        Self::bind_with_progress(options, |_, _, _| ())
    }

    /// Binds as [`Self::bind`] does, and reports progress of what can take a while.
    ///
    /// # Errors
    /// As [`Self::bind`].
    pub fn bind_with_progress(
        options: ServerOptions,
        progress: impl Fn(Starting, usize, usize),
    ) -> Result<Self, ServiceError> {
        options.check()?;
        let listener = listen(&options.listen, Port::Clients)?;
        let metrics = options.metrics.as_deref();
        let metrics = metrics.map(|at| listen(at, Port::Metrics)).transpose()?;
        let address = address_of(&listener, &options.listen)?;
        let page = options
            .web
            .as_ref()
            .map(|web| Site::read(&web.dir))
            .transpose()?;
        let web = (options.web.as_ref()).map(|web| listen(&web.listen, Port::Browsers));
        let web = web.transpose()?;
        let state = State::open(options.state.as_deref())?;
        let dir = state.dir("server")?;
        let identity = match options.identity {
            Some(identity) => identity,
            None => identity::kept(&dir)?,
        };
        let tls = TlsServer::for_clients(&identity, &options.clients)?;
        let browsers = match (options.web, page, &web) {
            (Some(options), Some(site), Some(listener)) => Some(Web {
                site,
                tls: (options.secure.then(|| TlsServer::new(&identity))).transpose()?,
                origins: options.origins,
                address: address_of(listener, &options.listen)?,
            }),
            _ => None,
        };
        let replica = options.replica.unwrap_or_else(|| address.to_string());
        let keys = options.store.as_ref().map(|store| &store.keys);
        let secret = secret(&dir, keys)?;
        let store = open_store(&dir, options.store, &replica)?;
        let model = Model::load(options.model.as_deref())?;
        let integers = model.prepare(
            options.prepared.as_deref(),
            options.calibration.as_deref(),
            |done, total| progress(Starting::Calibrating, done, total),
        )?;
        let hints = options.hints;
        let hints = hints.map_or_else(|| state.dir("server/hints"), Ok)?;
        let served = (&*model.short_name(), &integers);
        let threads = primer_ring::threads::or_cores(options.threads);
        let told = |done, total| progress(Starting::Hint, done, total);
        let hint = ServerHint::find_or_build(&hints, served, &secret, threads, told)?;
        let tokenizer = model.tokenizer.encode();
        let limits = options.limits;
        let card = Card {
            generation: offer::generation(identity.key_pem(), integers.source()),
            reveal: options.reveal,
            ..offer::card(&model, hint.published.identity(), &limits, &tokenizer)?
        };
        if card.reveal == Reveal::Label && !card.head.shows_labels() {
            let message = "only a model with labels, one of which is right for a text or for each \
                           token, can reveal labels alone";
            return Err(ServiceError::Options(message.into()));
        }
        let models = Models::new(
            Arc::new(integers),
            Arc::clone(&hint.multipliers),
            options.reveal,
            limits.lengths,
        );
        // Fails now rather than at the first client if the plan cannot be compiled.
        let first = models.program(card.buckets[0] as usize)?;
        let card = Card {
            answer_bits: models.answer_bits(&card.buckets, first.flag_bits())?,
            ..card
        };
        let timeouts = Timeouts {
            handshake: limits.handshake,
            idle: limits.idle,
            grace: gate::GRACE,
            session: limits.session,
        };
        let roles: Vec<String> = options.roles.iter().map(ToString::to_string).collect();
        let counted = Metrics::default();
        counted.introduce(&replica, &roles.join(","));
        Ok(Self {
            listener,
            metrics,
            web,
            fingerprint: identity.fingerprint(),
            shared: Arc::new(Shared {
                bounds: Bounds {
                    per_peer: limits.stored_per_client,
                    total: limits.stored,
                },
                roles: options.roles,
                gate: Gate::new(limits.sessions, timeouts),
                limits,
                card,
                tokenizer,
                hint: hint.published,
                models,
                store_monitor: StoreMonitor::new(&store),
                store,
                promises: Promises::default(),
                tls,
                access: options.access,
                threads: primer_ring::threads::or_cores(options.threads),
                metrics: counted,
                address,
                web: browsers,
            }),
        })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Returns the address of health and metrics, if there is one.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref()?.local_addr().ok()
    }

    /// Returns what browsers are told to open, if there is a page for them.
    pub fn web_url(&self) -> Option<String> {
        self.shared.web.as_ref().map(Web::url)
    }

    /// Returns what clients have to trust.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns what it offers.
    pub fn card(&self) -> &Card {
        &self.shared.card
    }

    /// Returns a way in for connections that do not come over its port. They are served while the
    /// server runs.
    pub fn door(&self) -> Door {
        Door(Arc::clone(&self.shared))
    }

    /// Returns a handle that stops it from another thread.
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        ShutdownHandle(Arc::clone(&self.shared))
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    /// If the system cannot start its threads.
    pub fn run(self) -> Result<(), ServiceError> {
        let Self {
            listener,
            metrics,
            web,
            shared,
            ..
        } = &self;
        let done = watch::Sender::new(false);
        std::thread::scope(|scope| {
            let result = start(scope, shared, (metrics.as_ref(), web.as_ref()), &done).map(|()| {
                accept(listener, shared, listener::serve);
                tracing::info!("shutting down after the inferences under way");
            });
            shared.gate.shut_down();
            let cut = shared.gate.close(shared.limits.drain);
            shared.store.leave();
            tracing::info!(cut, "stopped");
            done.send_replace(true);
            result
        })
    }
}

/// Starts the threads beside the connections.
fn start<'s>(
    scope: &'s std::thread::Scope<'s, '_>,
    shared: &'s Arc<Shared>,
    (metrics, web): (Option<&TcpListener>, Option<&TcpListener>),
    done: &watch::Sender<bool>,
) -> Result<(), ServiceError> {
    let start = |name: &str, work: Box<dyn FnOnce() + Send + 's>| {
        let thread = std::thread::Builder::new().name(name.into());
        let started = thread.spawn_scoped(scope, work);
        started.map(drop).map_err(io_error("starting a thread"))
    };
    start("watch", Box::new(|| shared.gate.watch()))?;
    start("sweep", Box::new(|| sweep(shared)))?;
    start(
        "store-monitor",
        Box::new(|| shared.store_monitor.keep(&shared.store, &shared.gate)),
    )?;
    if let Some(listener) = web {
        let listener = listener.try_clone();
        let listener = listener.map_err(io_error("opening the port for browsers"))?;
        let work = move || accept(&listener, shared, web::serve);
        start("browsers", Box::new(work))?;
    }
    if let Some(listener) = metrics {
        let listener = listener
            .try_clone()
            .map_err(io_error("opening the metrics"))?;
        let done = done.subscribe();
        let work = move || {
            if let Err(error) = responder::respond(listener, shared, done) {
                tracing::error!(%error, "health and metrics cannot be served");
            }
        };
        start("metrics", Box::new(work))?;
    }
    Ok(())
}

fn address_of(listener: &TcpListener, asked: &str) -> Result<SocketAddr, ServiceError> {
    let address = listener.local_addr();
    address.map_err(io_error(format!("asking for the port of {asked}")))
}

/// Opens the store that is shared, or the one of this server alone.
fn open_store(
    dir: &std::path::Path,
    shared: Option<SharedStore>,
    replica: &str,
) -> Result<Store, ServiceError> {
    let store = match shared {
        None => Store::open(dir.join("store")),
        Some(shared) => Store::connect(FleetOptions {
            database: shared.database,
            authority: shared.authority,
            blobs: shared.blobs,
            keys: shared.keys,
            name: replica.to_owned(),
            witness: Some(dir.join("epoch")),
        }),
    };
    store.map_err(ServiceError::Store)
}

/// Deletes expired bundles, now and every ten minutes.
fn sweep(shared: &Shared) {
    loop {
        match shared.store.delete_expired(unix_now()) {
            Ok(removed) if removed.bundles > 0 => {
                let (bundles, bytes) = (removed.bundles, removed.bytes);
                tracing::info!(bundles, bytes, "deleted expired bundles");
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "expired bundles cannot be deleted"),
        }
        if shared.gate.sleep(Duration::from_secs(600)) {
            return;
        }
    }
}

//! A gateway: plain HTTP on the machine of the text's owner, the private protocol from there on.
//!
//! Programs that speak Hugging Face's inference JSON, and people who only have a browser, cannot
//! run the client's half themselves. The gateway does it for them. It runs *beside* them, as a
//! sidecar: what reaches it by HTTP is the text itself, so it listens on loopback, and elsewhere
//! only when it is told to and given a token. What leaves it for the server is masked.
//!
//! ```text
//! browser, curl, service ──HTTP, the text──▶ gateway ──TLS, masked values──▶ primer serve
//!                                            keeps a stock of prepared bundles
//! ```
//!
//! Three kinds of threads share the work:
//!
//! * one runs the HTTP stack ([`primer_http`], hyper on tokio) and never computes;
//! * some *answer*: each has a [`Client`] of its own and takes questions from a
//!   bounded queue (`worker_pool`);
//! * one keeps the *stock*: it prepares bundles in batches whenever there are fewer than wanted
//!   (`stock`, `keeper`), so that a question costs the online phase only.
//!
//! They share what is going on by `activity`. `hint` logs the fetch of what bundles are prepared
//! with.
//!
//! `huggingface` reads requests and writes answers, `guard` decides who may ask, `page` is
//! what people see.
#![forbid(unsafe_code)]

mod activity;
mod body;
mod error;
mod guard;
mod hint;
mod huggingface;
mod keeper;
mod metrics;
mod page;
mod queue;
mod routes;
mod stock;
mod worker_pool;

pub use error::GatewayError;
pub use guard::Access;

use keeper::StockKeeper;
use primer::service::message::Card;
use primer::{Client, HangUp, ServiceError};
use primer_http::{Limits, Port};
use routes::Routes;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use stock::Stock;
use tokio::sync::watch;
use worker_pool::WorkerPool;

/// Reads any bytes as the body of a request to a model with such a card, for fuzzing. Returns how
/// many questions it asks.
#[doc(hidden)]
pub fn decode_any(bytes: &[u8], card: &Card) -> Option<usize> {
    let (_, questions) = huggingface::Request::read(bytes, card).ok()?;
    Some(questions.len())
}

/// Makes a client, whose calls the [`HangUp`] is to end. Every thread that talks to the server has
/// its own.
pub type Connect = Arc<dyn Fn(HangUp) -> Result<Client, ServiceError> + Send + Sync>;

/// How a gateway behaves.
pub struct Options {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Who may ask.
    pub access: Access,
    /// Bundles that are kept prepared for each length; none if zero.
    pub stock: usize,
    /// Lengths to begin with. Others join when a question needs them.
    pub lengths: Vec<usize>,
    /// Questions that are answered at the same time, each on a connection of its own.
    pub workers: usize,
    /// Questions that may wait.
    pub queue: usize,
    /// How long a stop waits for answers under way.
    pub drain: Duration,
}

/// A gateway that listens.
pub struct Gateway {
    listener: TcpListener,
    address: SocketAddr,
    routes: Arc<Routes>,
    keeper: StockKeeper,
    drain: Duration,
    stop: ShutdownHandle,
}

impl Gateway {
    /// Connects to the server, to learn what it offers, and opens the port.
    ///
    /// # Errors
    /// [`GatewayError`]: the server refuses or cannot be reached, the address cannot be listened
    /// on, or the options make no sense.
    pub fn bind(options: Options, connect: Connect) -> Result<Self, GatewayError> {
        options.access.check(&options.listen)?;
        let listen = |cause| GatewayError::Listen {
            address: options.listen,
            cause,
        };
        let listener = TcpListener::bind(options.listen).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let hang_up = HangUp::default();
        let first = connect(hang_up.clone())?;
        let card = first.card().clone();
        let lengths = lengths(&card, &options.lengths)?;
        let stock = Arc::new(Stock::new(options.stock, &lengths));
        let places = (options.workers.max(1), options.queue.max(1));
        let workers = WorkerPool::open(&connect, places, &card, &stock);
        let activity = Arc::clone(workers.activity());
        let keeper = StockKeeper::start(connect, (first, hang_up), Arc::clone(&stock), activity);
        Ok(Self {
            listener,
            address,
            routes: Arc::new(Routes::new(card, options.access, workers, stock, address)),
            keeper,
            drain: options.drain,
            stop: ShutdownHandle::new(),
        })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns what the server offers.
    pub fn card(&self) -> &Card {
        self.routes.card()
    }

    /// Returns a handle that stops it from another thread.
    pub fn shutdown_handle(&self) -> ShutdownHandle {
        self.stop.clone()
    }

    /// Answers until it is stopped, then finishes what is under way.
    ///
    /// # Errors
    /// If the system cannot give what an HTTP server needs.
    pub fn run(self) -> Result<(), GatewayError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(GatewayError::System)?;
        let stopped = self.stop.0.subscribe();
        let drained = runtime.block_on(serve(self.listener, &self.routes, stopped, self.drain));
        // Questions of connections that are still open are given up with them.
        drop(runtime);
        self.routes.close(matches!(drained, Ok(true)));
        self.keeper.close();
        drained.map(|_| ()).map_err(GatewayError::System)
    }
}

/// Answers until told to stop, then waits for what is under way. Tells whether all of it was
/// answered.
async fn serve(
    listener: TcpListener,
    routes: &Arc<Routes>,
    stopped: watch::Receiver<bool>,
    drain: Duration,
) -> std::io::Result<bool> {
    let port = Port::open(listener, Limits::default())?;
    let for_answers = Arc::clone(routes);
    let answer = move |request| {
        let routes = Arc::clone(&for_answers);
        async move { routes.answer(request).await }
    };
    port.answer(stopped, answer).await;
    routes.shut_down();
    let drained = port.drain(drain).await;
    if !drained {
        tracing::warn!("stopped before all answers were given");
    }
    Ok(drained)
}

/// Returns the padded lengths of which a stock is kept.
fn lengths(card: &Card, asked: &[usize]) -> Result<Vec<usize>, GatewayError> {
    /// Enough for a sentence.
    const USUAL: usize = 32;
    let usual = [USUAL.min(card.max_tokens())];
    let asked = if asked.is_empty() { &usual } else { asked };
    let bucket = |&tokens: &usize| {
        card.bucket(tokens).ok_or(GatewayError::Length {
            asked: tokens,
            limit: card.max_tokens(),
        })
    };
    asked.iter().map(bucket).collect()
}

/// Stops a gateway.
#[derive(Clone)]
pub struct ShutdownHandle(Arc<watch::Sender<bool>>);

impl ShutdownHandle {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Accepts nothing new from now on, and ends when what is under way is done.
    pub fn shut_down(&self) {
        self.0.send_replace(true);
    }
}

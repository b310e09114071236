//! The port that tells health and metrics: `/healthz`, `/readyz` and `/metrics`.
//!
//! *Healthy* is a process that need not be started again: it answers. *Ready* is one that clients
//! should be sent to: its model is loaded, its store can be used, it admits some token if
//! tokens are asked for, and it is not stopping.
//!
//! Nothing here waits for anything but a lock that is held for a moment: what the store says was
//! found out before (`store_monitor`). A probe or a scraper is answered in milliseconds, however
//! slow the database is and however many connections are open. It belongs on a private address.

use super::Shared;
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use primer_http::{Limits, Page, Port, page};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// What a probe or a scraper needs, and not more.
const LIMITS: Limits = Limits {
    connections: 128,
    head: Duration::from_secs(10),
    head_bytes: 8 << 10,
    life: Some(Duration::from_secs(60)),
};
/// What a scrape under way is given when the server ends.
const DRAIN: Duration = Duration::from_secs(1);

/// Answers on a port until it is told that all is done.
pub(crate) fn respond(
    listener: TcpListener,
    shared: &Arc<Shared>,
    done: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()?;
    let shared = Arc::clone(shared);
    let answer = move |request: Request<Incoming>| {
        std::future::ready(answer(&shared, request.method(), request.uri().path()))
    };
    runtime.block_on(async {
        let port = Port::open(listener, LIMITS)?;
        port.answer(done, answer).await;
        port.drain(DRAIN).await;
        Ok(())
    })
}

fn answer(shared: &Shared, method: &Method, path: &str) -> Page {
    const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
    // The HTTP stack leaves the body out for HEAD.
    if !matches!(*method, Method::GET | Method::HEAD) {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET");
    }
    match path {
        "/healthz" | "/readyz" if shared.gate.is_stopping() => plain(UNAVAILABLE, "stopping"),
        "/healthz" => plain(StatusCode::OK, "ok"),
        "/readyz" => match shared.ready() {
            Ok(ready) => plain(StatusCode::OK, &ready),
            Err(why) => plain(UNAVAILABLE, &why),
        },
        "/metrics" => {
            let text = shared.metrics.text(&shared.levels());
            page(text, "text/plain; version=0.0.4")
        }
        _ => plain(StatusCode::NOT_FOUND, "no such page"),
    }
}

fn plain(status: StatusCode, line: &str) -> Page {
    let mut page = page(format!("{line}\n"), "text/plain");
    *page.status_mut() = status;
    page
}

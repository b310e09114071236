//! The port that tells health and metrics: `/healthz`, `/readyz` and `/metrics`.
//!
//! *Healthy* is a process that need not be started again: it answers. *Ready* is one that clients
//! should be sent to: its model is loaded, its store can be used, and it is not stopping.
//!
//! It speaks just enough HTTP/1.1 for a probe and a scraper: one request a connection, two seconds
//! each, one at a time. It belongs on a private address.

use super::gate::Gate;
use super::metrics::{Levels, Metrics};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest request head.
const MAX_HEAD: usize = 4096;
/// The time that one request may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers on a port until the gate is closed.
pub(crate) fn respond(
    listener: &TcpListener,
    gate: &Arc<Gate>,
    metrics: &Metrics,
    levels: impl Fn() -> Levels,
    ready: impl Fn() -> Result<(), String>,
    done: impl Fn() -> bool,
) {
    // Polling keeps the thread free to end; a scraper does not mind a tenth of a second.
    let _ = listener.set_nonblocking(true);
    while !done() {
        match listener.accept() {
            Ok((socket, _)) => {
                let _ = answer(socket, gate, metrics, &levels, &ready);
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn answer(
    mut socket: TcpStream,
    gate: &Gate,
    metrics: &Metrics,
    levels: impl Fn() -> Levels,
    ready: impl Fn() -> Result<(), String>,
) -> std::io::Result<()> {
    socket.set_nonblocking(false)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let end = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut buffer = [0; 512];
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > MAX_HEAD {
            return Ok(());
        }
        socket.set_read_timeout(Some(left))?;
        let n = socket.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        head.extend_from_slice(&buffer[..n]);
    }
    let mut words = head.split(|b| *b == b' ');
    let (method, path) = (words.next(), words.next().unwrap_or_default());
    let (status, kind, body) = match (method, path) {
        (Some(b"GET"), b"/healthz" | b"/readyz") if gate.is_stopping() => (
            "503 Service Unavailable",
            "text/plain",
            "stopping\n".to_owned(),
        ),
        (Some(b"GET"), b"/healthz") => ("200 OK", "text/plain", "ok\n".to_owned()),
        (Some(b"GET"), b"/readyz") => match ready() {
            Ok(()) => ("200 OK", "text/plain", "ready\n".to_owned()),
            Err(why) => ("503 Service Unavailable", "text/plain", format!("{why}\n")),
        },
        (Some(b"GET"), b"/metrics") => (
            "200 OK",
            "text/plain; version=0.0.4",
            metrics.text(&levels()),
        ),
        (Some(b"GET"), _) => ("404 Not Found", "text/plain", "no such page\n".to_owned()),
        _ => (
            "405 Method Not Allowed",
            "text/plain",
            "only GET\n".to_owned(),
        ),
    };
    let length = body.len();
    write!(
        socket,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

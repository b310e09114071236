//! Counters, and a port that tells them: `/healthz` and, in Prometheus' text format, `/metrics`.
//!
//! The responder speaks just enough HTTP/1.1 for a probe and a scraper: one request a connection, two seconds each,
//! one at a time. It belongs on a private address.

use super::gate::Gate;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A number that only grows, or a level.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the server counts. Nothing here tells one client from another.
#[derive(Default)]
pub(crate) struct Metrics {
    pub(crate) connections: Count,
    pub(crate) turned_away: Count,
    pub(crate) refused: Count,
    pub(crate) cut: Count,
    pub(crate) failed: Count,
    pub(crate) prepared: Count,
    pub(crate) inferred: Count,
    pub(crate) offline_ms: Count,
    pub(crate) online_ms: Count,
    pub(crate) received: Count,
    pub(crate) sent: Count,
}

/// Levels that are asked for when somebody looks.
pub(crate) struct Levels {
    pub(crate) sessions: u64,
    pub(crate) bundles: u64,
    pub(crate) stored_bytes: u64,
}

impl Metrics {
    fn text(&self, levels: &Levels) -> String {
        let counters: [(&str, &str, f64); 11] = [
            (
                "connections_total",
                "Connections accepted",
                self.connections.get() as f64,
            ),
            (
                "connections_turned_away_total",
                "Connections closed unheard, for want of places",
                self.turned_away.get() as f64,
            ),
            (
                "requests_refused_total",
                "Greetings and requests refused with a reason",
                self.refused.get() as f64,
            ),
            (
                "connections_cut_total",
                "Connections cut for their time or for a newer one",
                self.cut.get() as f64,
            ),
            (
                "connections_failed_total",
                "Connections that ended with an error",
                self.failed.get() as f64,
            ),
            (
                "bundles_prepared_total",
                "Offline phases completed",
                self.prepared.get() as f64,
            ),
            (
                "inferences_total",
                "Online phases completed",
                self.inferred.get() as f64,
            ),
            (
                "offline_seconds_total",
                "Time in completed offline phases",
                self.offline_ms.get() as f64 / 1e3,
            ),
            (
                "online_seconds_total",
                "Time in completed online phases",
                self.online_ms.get() as f64 / 1e3,
            ),
            (
                "received_bytes_total",
                "Bytes of frames received",
                self.received.get() as f64,
            ),
            (
                "sent_bytes_total",
                "Bytes of frames sent",
                self.sent.get() as f64,
            ),
        ];
        let gauges = [
            ("sessions", "Sessions inside", levels.sessions),
            (
                "bundles_stored",
                "Unspent bundles in the store",
                levels.bundles,
            ),
            (
                "stored_bytes",
                "Bytes of unspent bundles",
                levels.stored_bytes,
            ),
        ];
        let mut text = String::new();
        let mut entry = |name: &str, help: &str, kind: &str, value: f64| {
            let _ = write!(
                text,
                "# HELP primer_{name} {help}.\n# TYPE primer_{name} {kind}\nprimer_{name} {value}\n"
            );
        };
        for (name, help, value) in counters {
            entry(name, help, "counter", value);
        }
        for (name, help, value) in gauges {
            entry(name, help, "gauge", value as f64);
        }
        text
    }
}

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
    done: impl Fn() -> bool,
) {
    // Polling keeps the thread free to end; a scraper does not mind a tenth of a second.
    let _ = listener.set_nonblocking(true);
    while !done() {
        match listener.accept() {
            Ok((socket, _)) => {
                let _ = answer(socket, gate, metrics, &levels);
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
        (Some(b"GET"), b"/healthz") if gate.is_stopping() => (
            "503 Service Unavailable",
            "text/plain",
            "stopping\n".to_owned(),
        ),
        (Some(b"GET"), b"/healthz") => ("200 OK", "text/plain", "ok\n".to_owned()),
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
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_prometheus() {
        let metrics = Metrics::default();
        metrics.inferred.add(3);
        metrics.online_ms.add(1500);
        let levels = Levels {
            sessions: 2,
            bundles: 5,
            stored_bytes: 70,
        };
        let text = metrics.text(&levels);
        for line in [
            "# TYPE primer_inferences_total counter",
            "primer_inferences_total 3",
            "primer_online_seconds_total 1.5",
            "# TYPE primer_sessions gauge",
            "primer_sessions 2",
            "primer_stored_bytes 70",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }
}

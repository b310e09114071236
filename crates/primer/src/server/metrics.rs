//! Counters, and a port that tells them: `/healthz` and, in Prometheus' text format, `/metrics`.
//!
//! `prometheus-client` keeps the numbers and writes the page. The responder speaks just enough
//! HTTP/1.1 for a probe and a scraper: one request a connection, two seconds each, one at a time.
//! It belongs on a private address.

use super::gate::Gate;
use prometheus_client::encoding::{EncodeGaugeValue, EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{Atomic, Counter};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// A number that only grows.
///
/// The crate's own counter is told as OpenMetrics has it: `_total` ends the name of the value, but
/// not the name that its type and help are given for. In the older text format, which more scrapers
/// read, both names are the same, so this one is written as it is called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Count<N = u64>(Counter<N, AtomicU64>);

impl<N> Count<N>
where
    AtomicU64: Atomic<N>,
{
    pub(crate) fn add(&self, n: N) {
        self.0.inc_by(n);
    }
}

impl<N: EncodeGaugeValue> EncodeMetric for Count<N>
where
    AtomicU64: Atomic<N>,
{
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        // Of all kinds only a gauge is written without a suffix.
        encoder.encode_gauge(&self.0.get())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}

type Level = Gauge<u64, AtomicU64>;

/// Defines [`Metrics`]: fields, each with its name on the page and what is said of it there.
macro_rules! metrics {
    ($($field:ident: $kind:ty = $name:literal, $help:literal;)*) => {
        /// What the server counts. Nothing here tells one client from another.
        pub(crate) struct Metrics {
            $(pub(crate) $field: $kind,)*
            registry: Registry,
        }

        impl Default for Metrics {
            fn default() -> Self {
                $(let $field = <$kind>::default();)*
                let mut registry = Registry::with_prefix("primer");
                $(registry.register($name, $help, $field.clone());)*
                Self { $($field,)* registry }
            }
        }
    };
}

metrics! {
    connections: Count = "connections_total", "Connections accepted";
    turned_away: Count = "connections_turned_away_total",
        "Connections closed unheard, for want of places";
    refused: Count = "requests_refused_total", "Greetings and requests refused with a reason";
    cut: Count = "connections_cut_total", "Connections cut for their time or for a newer one";
    failed: Count = "connections_failed_total", "Connections that ended with an error";
    prepared: Count = "bundles_prepared_total", "Offline phases completed";
    inferred: Count = "inferences_total", "Online phases completed";
    offline_seconds: Count<f64> = "offline_seconds_total", "Time in completed offline phases";
    online_seconds: Count<f64> = "online_seconds_total", "Time in completed online phases";
    received: Count = "received_bytes_total", "Bytes of frames received";
    sent: Count = "sent_bytes_total", "Bytes of frames sent";
    sessions: Level = "sessions", "Sessions inside";
    bundles: Level = "bundles_stored", "Unspent bundles in the store";
    stored_bytes: Level = "stored_bytes", "Bytes of unspent bundles";
}

/// Levels that are asked for when somebody looks.
pub(crate) struct Levels {
    pub(crate) sessions: u64,
    pub(crate) bundles: u64,
    pub(crate) stored_bytes: u64,
}

impl Metrics {
    /// The page.
    fn text(&self, levels: &Levels) -> String {
        self.sessions.set(levels.sessions);
        self.bundles.set(levels.bundles);
        self.stored_bytes.set(levels.stored_bytes);
        let mut page = String::new();
        text::encode_registry(&mut page, &self.registry).expect("writing to memory");
        page
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
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: Levels = Levels {
        sessions: 2,
        bundles: 5,
        stored_bytes: 70,
    };

    #[test]
    fn the_text_is_prometheus() {
        let metrics = Metrics::default();
        metrics.inferred.add(3);
        metrics.online_seconds.add(1.5);
        let text = metrics.text(&LEVELS);
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

    /// Operators' rules and dashboards rest on names.
    #[test]
    fn help_type_and_value_have_one_name() {
        let page = Metrics::default().text(&LEVELS);
        let lines: Vec<&str> = page.lines().collect();
        let mut names = Vec::new();
        for entry in lines.chunks(3) {
            let [help, kind, value] = entry else {
                panic!("three lines each: {entry:?}")
            };
            let (name, _) = value.split_once(' ').unwrap();
            let of_name = |line: &str, word| line.starts_with(&format!("# {word} {name} "));
            assert!(of_name(help, "HELP") && help.ends_with('.'), "{help}");
            assert!(of_name(kind, "TYPE"), "{kind}");
            assert_eq!(
                kind.ends_with("counter"),
                name.ends_with("_total"),
                "{kind}"
            );
            names.push(name.strip_prefix("primer_").unwrap());
        }
        let expected = "connections_total connections_turned_away_total requests_refused_total \
                        connections_cut_total connections_failed_total bundles_prepared_total \
                        inferences_total offline_seconds_total online_seconds_total \
                        received_bytes_total sent_bytes_total sessions bundles_stored stored_bytes";
        assert_eq!(names.join(" "), expected);
    }
}

//! What the server counts, and the page of it in Prometheus' text format.
//!
//! `prometheus-client` keeps the numbers and writes the page. Counters say how often something
//! happened; histograms how long each completed phase took and how many bytes it moved, by phase:
//! *handshake* is from the connection to the card, *offline* one preparation (of several bundles,
//! if they are prepared together), *online* one inference. Refusals are counted by their reason.
//! What is counted for access tokens has the names that the operator gave them; clients without
//! tokens are not told apart. Limits rest on counts that last, in the store; these here begin at
//! zero when the server starts.

mod known;

use super::process::Process;
use super::store_monitor::StoreStatus;
use known::Known;
use primer_service::message::Refusal;
use primer_wire::Traffic;
use prometheus_client::encoding::{EncodeGaugeValue, EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::counter::{Atomic, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::atomic::AtomicU64;

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

impl Count<f64> {
    /// Raises it to a number that is counted elsewhere.
    pub(crate) fn raise_to(&self, n: f64) {
        self.0.inc_by((n - self.0.get()).max(0.0));
    }
}

impl<N> TypedMetric for Count<N> {
    const TYPE: MetricType = MetricType::Counter;
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

pub(crate) type Level = Gauge<u64, AtomicU64>;

/// Labels of a metric: their names and values.
type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Counters by one label.
pub(crate) type Counts = Family<Labels<1>, Count>;

/// Counters by the name of an access token.
pub(crate) type ByToken = Family<[(&'static str, String); 1], Count>;

/// Adds to what is counted for a token, if there is one.
fn add(counts: &ByToken, token: Option<&str>, number: u64) {
    if let Some(token) = token {
        let labels = [("token", token.to_owned())];
        counts.get_or_create(&labels).add(number);
    }
}

/// A part of a session that ends with a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Handshake,
    Offline,
    Online,
}

impl Phase {
    const ALL: [Self; 3] = [Self::Handshake, Self::Offline, Self::Online];

    fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Offline => "offline",
            Self::Online => "online",
        }
    }
}

/// How long phases took: 1 ms to half an hour.
#[derive(Debug, Clone)]
pub(crate) struct Seconds(Family<Labels<1>, Histogram, fn() -> Histogram>);

/// How many bytes they moved: 1 kB to 256 GB.
#[derive(Debug, Clone)]
pub(crate) struct Bytes(Family<Labels<2>, Histogram, fn() -> Histogram>);

const DIRECTIONS: [&str; 2] = ["received", "sent"];

impl Default for Seconds {
    fn default() -> Self {
        let buckets = || Histogram::new(exponential_buckets(0.001, 2.0, 22));
        let seconds = Self(Family::new_with_constructor(buckets));
        for phase in Phase::ALL {
            seconds.of(phase);
        }
        seconds
    }
}

impl Default for Bytes {
    fn default() -> Self {
        let buckets = || Histogram::new(exponential_buckets(1e3, 4.0, 15));
        let bytes = Self(Family::new_with_constructor(buckets));
        for phase in Phase::ALL {
            for direction in DIRECTIONS {
                bytes.of(phase, direction);
            }
        }
        bytes
    }
}

impl Seconds {
    fn of(&self, phase: Phase) -> Histogram {
        self.0.get_or_create_owned(&[("phase", phase.name())])
    }
}

impl Bytes {
    fn of(&self, phase: Phase, direction: &'static str) -> Histogram {
        let labels = [("phase", phase.name()), ("direction", direction)];
        self.0.get_or_create_owned(&labels)
    }
}

/// Families that are made with their labels encode as what they are made of.
macro_rules! encodes_as_its_family {
    ($kind:ty) => {
        impl EncodeMetric for $kind {
            fn encode(&self, encoder: MetricEncoder<'_>) -> fmt::Result {
                self.0.encode(encoder)
            }

            fn metric_type(&self) -> MetricType {
                self.0.metric_type()
            }
        }
    };
}

encodes_as_its_family!(Seconds);
encodes_as_its_family!(Bytes);

/// Defines [`Metrics`]: fields, each with its name on the page and what is said of it there.
macro_rules! metrics {
    ($($field:ident: $kind:ty = $name:literal, $help:literal;)*) => {
        /// What the server counts.
        pub(crate) struct Metrics {
            $(pub(crate) $field: $kind,)*
            registry: Registry,
            process: Process,
            /// What has names of its own.
            process_registry: Registry,
        }

        impl Default for Metrics {
            fn default() -> Self {
                $(let $field = <$kind>::default();)*
                let mut registry = Registry::with_prefix("primer");
                $(registry.register($name, $help, $field.clone());)*
                let mut process_registry = Registry::default();
                let process = Process::register(&mut process_registry);
                Self { $($field,)* registry, process, process_registry }
            }
        }
    };
}

metrics! {
    connections: Count = "connections_total", "Connections accepted";
    rejected: Count = "connections_turned_away_total",
        "Connections rejected because the server was full";
    refusals: Counts = "requests_refused_total", "Refused handshakes and requests, by reason";
    cut: Count = "connections_cut_total",
        "Connections closed on a time limit or to make room for another";
    failed: Count = "connections_failed_total", "Connections that failed with an error";
    cheating: Count = "clients_cheating_total",
        "Sessions ended because the client violated the protocol";
    token_prepared: ByToken = "token_prepared_total",
        "Bundles whose preparation was started, by access token";
    token_answers: ByToken = "token_answers_total",
        "Bundles spent on an answer, by access token";
    token_limited: ByToken = "token_limited_total",
        "Requests refused because a quota was exhausted, by access token";
    token_cheating: ByToken = "token_cheating_total",
        "Sessions ended by a protocol violation, by access token";
    prepared: Count = "bundles_prepared_total", "Bundles prepared";
    inferred: Count = "inferences_total", "Completed inferences";
    offline_seconds: Count<f64> = "offline_seconds_total",
        "Seconds spent in completed offline phases";
    online_seconds: Count<f64> = "online_seconds_total", "Seconds spent in completed online phases";
    phase_seconds: Seconds = "phase_duration_seconds", "Duration of completed phases in seconds";
    phase_bytes: Bytes = "phase_bytes", "Bytes transferred in completed phases";
    hint_bytes: Count = "hint_bytes_total", "Bytes sent of the hint and its hashes";
    received: Count = "received_bytes_total", "Bytes received, without TLS overhead";
    sent: Count = "sent_bytes_total", "Bytes sent, without TLS overhead";
    sessions: Level = "sessions", "Open sessions";
    bundles: Level = "bundles_stored", "Unspent bundles in the store";
    stored_bytes: Level = "stored_bytes", "Bytes of unspent bundles in the store";
    store_ready: Level = "store_ready", "1 if bundles can be stored and spent, else 0";
    store_rolled_back: Level = "store_rolled_back",
        "1 if the shared store was rolled back and is refused until renewed, else 0";
    store_seen: Gauge<f64, AtomicU64> = "store_seen_seconds",
        "Seconds since the store's bundles and bytes were last counted";
    store_free: Known = "store_free_bytes",
        "Free bytes on the volume of the store, if known";
    tokens: Known = "access_tokens", "Valid access tokens, if tokens are required";
    replica: Family<[(&'static str, String); 2], Level> = "replica_info",
        "Name and roles of this replica; always 1";
}

/// Levels that are read when the page is asked for.
pub(crate) struct Levels {
    pub(crate) sessions: u64,
    pub(crate) store: StoreStatus,
    /// Access tokens admitted, if they are asked for.
    pub(crate) tokens: Option<usize>,
    /// Whether the shared store is refused until it is renewed.
    pub(crate) store_rolled_back: bool,
}

impl Metrics {
    /// Writes the page.
    pub(super) fn text(&self, levels: &Levels) -> String {
        self.sessions.set(levels.sessions);
        let StoreStatus {
            usable,
            free,
            held,
            age,
        } = levels.store;
        self.bundles.set(held.bundles);
        self.stored_bytes.set(held.bytes);
        self.store_seen.set(age.as_secs_f64());
        self.store_ready.set(u64::from(usable));
        self.store_free.set(free);
        self.tokens.set(levels.tokens.map(|tokens| tokens as u64));
        self.store_rolled_back
            .set(u64::from(levels.store_rolled_back));
        self.process.refresh();
        let mut page = String::new();
        for registry in [&self.registry, &self.process_registry] {
            text::encode_registry(&mut page, registry).expect("writing to memory");
        }
        page
    }

    /// Sets the name and the roles of this replica.
    pub(crate) fn introduce(&self, replica: &str, roles: &str) {
        let labels = [("replica", replica.to_owned()), ("roles", roles.to_owned())];
        self.replica.get_or_create(&labels).set(1);
    }

    /// Counts a completed phase.
    pub(crate) fn completed(&self, phase: Phase, seconds: f64, traffic: &Traffic) {
        self.phase_seconds.of(phase).observe(seconds);
        for (direction, bytes) in DIRECTIONS
            .into_iter()
            .zip([traffic.bytes_received, traffic.bytes_sent])
        {
            self.phase_bytes.of(phase, direction).observe(bytes as f64);
        }
    }

    /// Counts the bundles of a preparation that begins.
    pub(crate) fn begun(&self, token: Option<&str>, bundles: usize) {
        add(&self.token_prepared, token, bundles as u64);
    }

    /// Counts a bundle that was spent.
    pub(crate) fn spent(&self, token: Option<&str>) {
        add(&self.token_answers, token, 1);
    }

    /// Counts a client that violated the protocol.
    pub(crate) fn caught(&self, token: Option<&str>) {
        self.cheating.add(1);
        add(&self.token_cheating, token, 1);
    }

    /// Counts a refused greeting or request.
    pub(crate) fn refused(&self, refusal: &Refusal, token: Option<&str>) {
        if matches!(refusal, Refusal::Limit(_)) {
            add(&self.token_limited, token, 1);
        }
        self.refusals
            .get_or_create(&[("reason", refusal.reason())])
            .add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_store::StoredAmount;
    use std::collections::BTreeMap;
    use std::time::Duration;

    const LEVELS: Levels = Levels {
        sessions: 2,
        store: StoreStatus {
            usable: true,
            free: Some(9_000),
            held: StoredAmount {
                bundles: 5,
                bytes: 70,
            },
            age: Duration::from_millis(1500),
        },
        tokens: Some(3),
        store_rolled_back: false,
    };

    #[test]
    fn the_text_is_prometheus() {
        let metrics = Metrics::default();
        metrics.inferred.add(3);
        metrics.online_seconds.add(1.5);
        metrics.refused(&Refusal::Token, None);
        metrics.begun(Some("the \"archive\""), 4);
        metrics.begun(None, 1);
        metrics.spent(Some("b"));
        metrics.caught(Some("b"));
        let limit = primer_store::Exhausted {
            what: primer_store::Counted::Answers,
            limit: 1,
            had: 1,
            asked: 1,
            ends_in: None,
        };
        metrics.refused(&Refusal::Limit(limit), Some("b"));
        let traffic = Traffic {
            bytes_sent: 2_000,
            bytes_received: 900,
            ..Traffic::default()
        };
        metrics.completed(Phase::Online, 0.3, &traffic);
        metrics.introduce("west-1", "prepare,infer");
        let text = metrics.text(&LEVELS);
        for line in [
            "primer_store_ready 1",
            "primer_store_rolled_back 0",
            "primer_store_seen_seconds 1.5",
            "primer_store_free_bytes 9000",
            "primer_access_tokens 3",
            "primer_replica_info{replica=\"west-1\",roles=\"prepare,infer\"} 1",
            "# TYPE primer_inferences_total counter",
            "primer_inferences_total 3",
            "primer_online_seconds_total 1.5",
            "# TYPE primer_sessions gauge",
            "primer_sessions 2",
            "primer_stored_bytes 70",
            "# TYPE primer_requests_refused_total counter",
            "primer_requests_refused_total{reason=\"token\"} 1",
            "primer_requests_refused_total{reason=\"limit\"} 1",
            "primer_token_prepared_total{token=\"the \\\"archive\\\"\"} 4",
            "primer_token_answers_total{token=\"b\"} 1",
            "primer_token_limited_total{token=\"b\"} 1",
            "primer_token_cheating_total{token=\"b\"} 1",
            "primer_clients_cheating_total 1",
            "# TYPE primer_phase_duration_seconds histogram",
            "primer_phase_duration_seconds_sum{phase=\"online\"} 0.3",
            "primer_phase_duration_seconds_bucket{le=\"0.256\",phase=\"online\"} 0",
            "primer_phase_duration_seconds_bucket{le=\"0.512\",phase=\"online\"} 1",
            "primer_phase_duration_seconds_count{phase=\"offline\"} 0",
            "primer_phase_bytes_sum{phase=\"online\",direction=\"sent\"} 2000.0",
            "primer_phase_bytes_count{phase=\"online\",direction=\"received\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        // What is not known is not told: zero would be a lie.
        let mut unknown = LEVELS;
        unknown.store.free = None;
        unknown.tokens = None;
        let text = metrics.text(&unknown);
        assert!(
            !text.contains("free_bytes") && !text.contains("access_tokens"),
            "{text}"
        );
    }

    /// Checks all names: operators' rules and dashboards rest on them.
    #[test]
    fn help_type_and_values_have_one_name() {
        let metrics = Metrics::default();
        metrics.refused(&Refusal::Full, None);
        metrics.begun(Some("one"), 1);
        metrics.spent(Some("one"));
        metrics.caught(Some("one"));
        add(&metrics.token_limited, Some("one"), 1);
        metrics.introduce("one", "infer");
        let page = metrics.text(&LEVELS);
        let mut kinds = BTreeMap::new();
        let mut names = Vec::new();
        for line in page.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                assert!(help.ends_with('.'), "{help}");
                names.push(help.split(' ').next().unwrap());
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert_eq!(names.last(), Some(&name));
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                kinds.insert(name, kind);
            } else {
                let value = line.split([' ', '{']).next().unwrap();
                let name = names.last().unwrap();
                let suffix = value.strip_prefix(name).unwrap();
                let suffixes: &[&str] = match kinds[name] {
                    "histogram" => &["_sum", "_count", "_bucket"],
                    _ => &[""],
                };
                assert!(suffixes.contains(&suffix), "{line}");
            }
        }
        let expected = "connections_total connections_turned_away_total requests_refused_total \
                        connections_cut_total connections_failed_total clients_cheating_total \
                        token_prepared_total token_answers_total token_limited_total \
                        token_cheating_total bundles_prepared_total inferences_total \
                        offline_seconds_total \
                        online_seconds_total phase_duration_seconds phase_bytes hint_bytes_total \
                        received_bytes_total sent_bytes_total sessions bundles_stored stored_bytes \
                        store_ready store_rolled_back store_seen_seconds store_free_bytes \
                        access_tokens replica_info build_info";
        let (own, process): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|name| name.starts_with("primer_"));
        let own: Vec<_> = own
            .iter()
            .map(|n| n.strip_prefix("primer_").unwrap())
            .collect();
        assert_eq!(own.join(" "), expected);
        assert_eq!(
            process.join(" "),
            "process_start_time_seconds process_cpu_seconds_total process_resident_memory_bytes \
             process_threads process_open_fds process_max_fds"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_is_this_one() {
        let page = Metrics::default().text(&LEVELS);
        let value = |name: &str| -> f64 {
            let found = page
                .lines()
                .find_map(|l| l.strip_prefix(&format!("{name} ")));
            found.unwrap().parse().unwrap()
        };
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_cpu_seconds_total") > 0.0);
        assert!(value("process_threads") >= 1.0);
        assert!((3.0..value("process_max_fds")).contains(&value("process_open_fds")));
        assert!(value("process_start_time_seconds") > 1.7e9);
        assert!(page.contains(concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"")));
    }
}

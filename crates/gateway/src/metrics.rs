//! What the gateway counts, in the text format of OpenMetrics.

use crate::worker_pool::Answered;
use hyper::StatusCode;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The content type of the page of numbers.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Status {
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Length {
    tokens: u64,
}

/// The numbers.
pub(crate) struct Metrics {
    requests: Family<Status, Counter>,
    answers: Counter,
    unprepared: Counter,
    out_of_range: Counter,
    online: Histogram,
    online_bytes: Counter,
    offline_bytes: Counter,
    waiting: Gauge,
    asking: Gauge,
    stock: Family<Length, Gauge>,
    registry: Registry,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("primer_gateway");
        let requests = Family::default();
        let (answers, unprepared, out_of_range) = Default::default();
        let online = Histogram::new(exponential_buckets(0.005, 2.0, 14));
        let (online_bytes, offline_bytes) = Default::default();
        let (waiting, asking) = (Gauge::default(), Gauge::default());
        let stock = Family::default();
        let r = &mut registry;
        r.register(
            "requests",
            "HTTP requests by status",
            Family::clone(&requests),
        );
        r.register("answers", "Questions answered", Counter::clone(&answers));
        r.register(
            "answers_unprepared",
            "Answers whose offline phase had to run first",
            Counter::clone(&unprepared),
        );
        r.register(
            "answers_out_of_range",
            "Answers whose values came near the end of a calibrated range",
            Counter::clone(&out_of_range),
        );
        r.register(
            "online_seconds",
            "Duration of online phases",
            Histogram::clone(&online),
        );
        r.register(
            "online_bytes",
            "Bytes of online phases",
            Counter::clone(&online_bytes),
        );
        r.register(
            "offline_bytes",
            "Bytes of offline phases that a question waited for",
            Counter::clone(&offline_bytes),
        );
        r.register("waiting", "Questions waiting", Gauge::clone(&waiting));
        r.register("asking", "Questions under way", Gauge::clone(&asking));
        r.register(
            "stock",
            "Prepared bundles by padded length",
            Family::clone(&stock),
        );
        Self {
            requests,
            answers,
            unprepared,
            out_of_range,
            online,
            online_bytes,
            offline_bytes,
            waiting,
            asking,
            stock,
            registry,
        }
    }

    pub(crate) fn request(&self, status: StatusCode) {
        let status = status.as_u16();
        self.requests.get_or_create(&Status { status }).inc();
    }

    pub(crate) fn answered(&self, answered: &Answered) {
        let cost = answered.found.cost();
        self.answers.inc();
        self.unprepared.inc_by(u64::from(!cost.prepared_ahead));
        let out = answered.found.in_range() == Some(false);
        self.out_of_range.inc_by(u64::from(out));
        self.online.observe(cost.online_s);
        self.online_bytes.inc_by(cost.bytes.online());
        self.offline_bytes.inc_by(cost.bytes.offline());
    }

    /// Returns how many questions were answered.
    pub(crate) fn answers(&self) -> u64 {
        self.answers.get()
    }

    /// Writes the page: with the questions that wait and those under way, and bundles by padded
    /// length.
    pub(crate) fn text(
        &self,
        (waiting, asking): (usize, usize),
        stock: &[(usize, usize)],
    ) -> String {
        self.waiting.set(waiting as i64);
        self.asking.set(asking as i64);
        for (tokens, have) in stock {
            let length = Length {
                tokens: *tokens as u64,
            };
            self.stock.get_or_create(&length).set(*have as i64);
        }
        let mut page = String::new();
        text::encode(&mut page, &self.registry).expect("writing to memory");
        page
    }
}

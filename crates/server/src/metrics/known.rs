//! A level that is on the page only while it is known: zero would be a lie.

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A number, or nothing; clones are the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known(Arc<Mutex<Option<u64>>>);

impl Known {
    pub(crate) fn set(&self, value: Option<u64>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }

    fn get(&self) -> Option<u64> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EncodeMetric for Known {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        match self.get() {
            Some(value) => encoder.encode_gauge(&value),
            None => Ok(()),
        }
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        self.get().is_none()
    }
}

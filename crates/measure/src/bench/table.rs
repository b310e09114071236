//! What a measurement found, as `--json` prints it.

use crate::provenance::Provenance;
use primer::PhaseBytes;
use primer_net::Link;
use primer_plan::graph::PaperStep;
use serde::{Deserialize, Serialize};

/// What `--json` prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Table {
    /// The model.
    pub model: String,
    /// Its layers.
    pub layers: usize,
    /// The layers that were run.
    pub layers_measured: usize,
    /// Tokens of the input.
    pub tokens: usize,
    /// The link.
    pub link: Link,
    /// Threads that compute for each party.
    pub threads_per_party: usize,
    /// Whether each party had a core of its own.
    pub pinned: bool,
    /// Inferences that were run of each scheme; seconds are those of the middle one.
    #[serde(default = "one")]
    pub runs: usize,
    /// One entry for each scheme.
    pub results: Vec<Row>,
    /// Where and how this was measured.
    #[serde(flatten)]
    pub provenance: Provenance,
}

const fn one() -> usize {
    1
}

/// One scheme.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub scheme: String,
    /// Whether a part was left out and its cost taken from the rest.
    pub extrapolated: bool,
    /// What was run instead, if it was not the model itself or its first layers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_on: Option<String>,
    /// Bundles that were prepared together; seconds and bytes are those of one of them.
    #[serde(default = "one")]
    pub bundles: usize,
    /// Seconds of the offline phase.
    pub offline_s: f64,
    /// Seconds of the online phase.
    pub online_s: f64,
    /// Seconds of the float reference on one thread.
    pub plaintext_s: f64,
    /// Bytes of one inference.
    pub bytes: PhaseBytes,
    /// Bytes of the handshake and the keys, once for a session.
    pub setup_bytes: u64,
    /// Seconds of the handshake and the keys, once for a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_s: Option<f64>,
    /// Seconds until the server had read and encoded its model, once for all sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_s: Option<f64>,
    /// Bytes of the model's hint, once for a client and model; not in `bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint_bytes: Option<u64>,
    /// Seconds until the server had made the hint, once for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint_build_s: Option<f64>,
    /// Round trips online.
    pub rounds_online: u64,
    /// Bytes of a bundle that the client keeps between the phases.
    #[serde(default)]
    pub client_stored_bytes: u64,
    /// Bytes of a bundle that the server keeps between the phases.
    #[serde(default)]
    pub server_stored_bytes: u64,
    /// The most memory that the client held.
    pub peak_rss_client: u64,
    /// The most memory that the server held.
    pub peak_rss_server: u64,
    /// AND gates.
    pub and_gates: u64,
    /// Against the float reference, of the layers that were run.
    pub max_abs_logit_error: f64,
    /// Whether the client was told that values stayed in their ranges; not given where clients
    /// are not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_range: Option<bool>,
    /// Seconds by the paper's steps.
    pub steps: Vec<StepRow>,
}

/// One step of the paper's table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StepRow {
    /// Its name.
    pub step: PaperStep,
    /// Seconds offline.
    pub offline_s: f64,
    /// Seconds online.
    pub online_s: f64,
}

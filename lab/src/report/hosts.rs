//! One inference between two hosts, as `lab/scripts/two-hosts --bench --json` prints it: over
//! sockets of two network namespaces, and beside it the same by `primer bench`, which shapes its
//! link itself.

use primer::PhaseBytes;
use primer_measure::provenance::Provenance;
use primer_net::Link;
use serde::Deserialize;

/// A model that was asked over several links.
#[derive(Debug, Clone, Deserialize)]
pub struct Hosts {
    /// The model's name.
    pub model: String,
    /// The scheme.
    pub scheme: String,
    /// How often each link was measured; the middle one counts.
    pub runs: usize,
    /// What each link gave.
    pub links: Vec<OverLink>,
    /// Where and how this was measured.
    #[serde(flatten)]
    pub provenance: Provenance,
}

/// One link.
#[derive(Debug, Clone, Deserialize)]
pub struct OverLink {
    /// What it was to be.
    pub link: Link,
    /// What it was.
    pub probed: Probed,
    /// Tokens of the input.
    pub tokens: usize,
    /// Seconds of preparing one bundle, the session's keys included.
    pub offline_s: f64,
    /// Seconds from the question to the label.
    pub online_s: f64,
    /// Bytes as the program counts them, above TLS.
    pub bytes: PhaseBytes,
    /// Bytes as the network interface counts them, headers included.
    pub interface_bytes: PhaseBytes,
    /// The same by `primer bench`.
    pub bench: Benched,
}

/// What a probe found over the same path.
#[derive(Debug, Clone, Deserialize)]
pub struct Probed {
    /// A byte there and back, in seconds.
    pub round_trip_s: f64,
    /// What a long message reaches.
    pub bytes_per_second: f64,
}

/// What `primer bench` counted.
#[derive(Debug, Clone, Deserialize)]
pub struct Benched {
    /// Seconds of the offline phase.
    pub offline_s: f64,
    /// Seconds of the online phase.
    pub online_s: f64,
    /// Bytes, without keys.
    pub bytes: PhaseBytes,
}

//! What is measured, by name.

use primer_protocol::Scheme;
use std::str::FromStr;

/// A way of inferring privately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrant {
    /// One of the protocol's schemes.
    Scheme(Scheme),
}

impl Entrant {
    /// Its name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheme(scheme) => scheme.name(),
        }
    }
}

impl FromStr for Entrant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        name.parse::<Scheme>()
            .map(Self::Scheme)
            .map_err(|error| error.to_string())
    }
}

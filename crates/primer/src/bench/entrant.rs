//! What is measured, by name.

use primer_protocol::Scheme;
use std::str::FromStr;

/// A way of inferring privately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrant {
    /// One of the protocol's schemes.
    Scheme(Scheme),
    /// The whole model as a garbled circuit (GCFormer).
    Gc,
    /// Homomorphic encryption alone (THE-X).
    Fhe,
}

impl Entrant {
    /// Its name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheme(scheme) => scheme.name(),
            Self::Gc => "gc",
            Self::Fhe => "fhe",
        }
    }

    /// Whether it is run on a small shape in the place of the model.
    pub const fn is_comparator(self) -> bool {
        matches!(self, Self::Gc | Self::Fhe)
    }
}

impl FromStr for Entrant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if let Some(comparator) = [Self::Gc, Self::Fhe].into_iter().find(|e| e.name() == name) {
            return Ok(comparator);
        }
        let scheme = name.parse::<Scheme>().map(Self::Scheme);
        scheme.map_err(|error| format!("{error}; comparators are gc and fhe"))
    }
}

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
    /// Those that are no scheme of the protocol.
    pub const COMPARATORS: [Self; 2] = [Self::Fhe, Self::Gc];

    /// All of them, in the order of every table and picture. Names on the command line are found
    /// here too, so what can be measured is also shown.
    pub fn all() -> impl Iterator<Item = Self> {
        let schemes = Scheme::ALL.into_iter().map(Self::Scheme);
        Self::COMPARATORS.into_iter().chain(schemes)
    }

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

    /// Another one that computes on the same integers online, so that its accuracy is this one's.
    pub const fn computes_like(self) -> Option<Self> {
        match self {
            // They differ in how matrices lie in ciphertexts.
            Self::Scheme(Scheme::F) => Some(Self::Scheme(Scheme::Fp)),
            _ => None,
        }
    }
}

impl FromStr for Entrant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::all().find(|e| e.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(Self::name).collect();
            format!(
                "there is no scheme `{name}`; schemes and comparators are {}",
                names.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_its_entrant() {
        for entrant in Entrant::all() {
            assert_eq!(entrant.name().parse(), Ok(entrant));
            let is_comparator = Entrant::COMPARATORS.contains(&entrant);
            assert_eq!(entrant.is_comparator(), is_comparator);
        }
        let error = "other".parse::<Entrant>().unwrap_err();
        assert!(error.contains("gc") && error.contains("fp"), "{error}");
    }
}

//! What is measured, by name.

use super::{fhe, gc};
use crate::paper::{BASE, F, FP, FPC};
use primer_measure::bench::{LEAN, Whole};
use primer_measure::{Lean, bench};
use std::str::FromStr;

/// The schemes: the paper's cascade, and the one of the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Primer-base.
    Base,
    /// Primer-F.
    F,
    /// Primer-FP.
    Fp,
    /// Primer-FPC.
    Fpc,
    /// The scheme of the product.
    Lean,
}

impl Scheme {
    /// All schemes, in the order of every table and picture.
    pub const ALL: [Self; 5] = [Self::Base, Self::F, Self::Fp, Self::Fpc, Self::Lean];

    /// Returns the name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::F => "f",
            Self::Fp => "fp",
            Self::Fpc => "fpc",
            Self::Lean => "lean",
        }
    }

    /// Returns what is known of it.
    pub fn scheme(self) -> &'static dyn primer_measure::Scheme {
        match self {
            Self::Base => &BASE,
            Self::F => &F,
            Self::Fp => &FP,
            Self::Fpc => &FPC,
            Self::Lean => &Lean,
        }
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scheme| scheme.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no scheme `{name}`; the schemes are {names}")
        })
    }
}

/// A way of inferring privately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrant {
    /// A scheme.
    Scheme(Scheme),
    /// The whole model as a garbled circuit (GCFormer).
    Gc,
    /// Homomorphic encryption alone (THE-X).
    Fhe,
}

impl Entrant {
    /// Those that are no scheme of the protocol.
    pub const COMPARATORS: [Self; 2] = [Self::Fhe, Self::Gc];

    /// Lists all of them, in the order of every table and picture. Names on the command line are
    /// found here too, so what can be measured is also shown.
    pub fn all() -> impl Iterator<Item = Self> {
        let schemes = Scheme::ALL.into_iter().map(Self::Scheme);
        Self::COMPARATORS.into_iter().chain(schemes)
    }

    /// Returns its name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scheme(scheme) => scheme.name(),
            Self::Gc => "gc",
            Self::Fhe => "fhe",
        }
    }

    /// Tells whether it is run on a small shape in the place of the model.
    pub const fn is_comparator(self) -> bool {
        matches!(self, Self::Gc | Self::Fhe)
    }

    /// Returns another one that computes on the same integers online, so that its accuracy is this
    /// one's.
    pub const fn computes_like(self) -> Option<Self> {
        match self {
            // They differ in how matrices lie in ciphertexts.
            Self::Scheme(Scheme::F) => Some(Self::Scheme(Scheme::Fp)),
            _ => None,
        }
    }
}

impl Entrant {
    /// Returns what measures it.
    pub fn measured(self) -> &'static dyn bench::Entrant {
        static PAPER: [Whole; 4] = [Whole(&BASE), Whole(&F), Whole(&FP), Whole(&FPC)];
        let [base, f, fp, fpc] = &PAPER;
        match self {
            Self::Scheme(Scheme::Base) => base,
            Self::Scheme(Scheme::F) => f,
            Self::Scheme(Scheme::Fp) => fp,
            Self::Scheme(Scheme::Fpc) => fpc,
            Self::Scheme(Scheme::Lean) => &LEAN,
            Self::Gc => &gc::Gc,
            Self::Fhe => &fhe::Fhe,
        }
    }

    /// Finds what measures the entrant of a name.
    pub fn find(name: &str) -> Option<&'static dyn bench::Entrant> {
        name.parse().ok().map(Self::measured)
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
            assert_eq!(
                Entrant::find(entrant.name()).unwrap().name(),
                entrant.name()
            );
            if let Entrant::Scheme(scheme) = entrant {
                assert_eq!(scheme.scheme().name(), scheme.name());
            }
            let is_comparator = Entrant::COMPARATORS.contains(&entrant);
            assert_eq!(entrant.is_comparator(), is_comparator);
        }
        let error = "other".parse::<Entrant>().unwrap_err();
        assert!(error.contains("gc") && error.contains("fp"), "{error}");
    }
}

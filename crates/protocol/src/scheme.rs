//! Schemes: ways of compiling the plan.
//!
//! All schemes compute the same values. They differ in how matrices lie in ciphertexts, in when the
//! homomorphic work and the stops are prepared, and in what a product of two secrets is made of:
//!
//! | scheme | packing | prepared | products of secrets |
//! |---|---|---|---|
//! | `base` | features-first | online, just before use | the paper's: on ciphertexts, online |
//! | `f` | features-first | offline | opened against masks: nothing homomorphic online |
//! | `fp` | tokens-first | offline | opened |

use primer_he::packing::layout::Packing;
use serde::{Deserialize, Serialize};

/// A scheme of the paper's cascade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scheme {
    /// Primer-base: everything online, features-first.
    Base,
    /// Primer-F: HGS and FHGS, features-first.
    F,
    /// Primer-FP: HGS and FHGS, tokens-first.
    Fp,
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Self; 3] = [Self::Base, Self::F, Self::Fp];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::F => "f",
            Self::Fp => "fp",
        }
    }

    pub(crate) const fn packing(self) -> Packing {
        match self {
            Self::Base | Self::F => Packing::FeaturesFirst,
            Self::Fp => Packing::TokensFirst,
        }
    }

    /// When the two parties prepare a step.
    pub const fn prepared(self) -> Prepared {
        match self {
            Self::Base => Prepared::Online,
            Self::F | Self::Fp => Prepared::Offline,
        }
    }

    /// How products of two secrets are computed.
    pub const fn products(self) -> Products {
        match self {
            Self::Base => Products::Encrypted,
            Self::F | Self::Fp => Products::Opened,
        }
    }
}

impl std::str::FromStr for Scheme {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scheme| scheme.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no scheme `{name}`; the schemes are {names}")
        })
    }
}

/// When steps are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepared {
    /// All of them ahead of the input.
    Offline,
    /// Each just before it is used.
    Online,
}

/// How a product of two secrets is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Products {
    /// The paper's form: the server multiplies its shares with the client's encrypted ones, online.
    Encrypted,
    /// Ours: shares are opened against masks whose products were prepared.
    Opened,
}

/// What the client learns at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reveal {
    /// The outputs of the plan: logits, spans or the encoder's values.
    Outputs,
    /// Of a classification, the position of the largest logit and nothing else.
    Label,
}

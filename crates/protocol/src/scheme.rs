//! Schemes: ways of compiling the plan.
//!
//! All schemes compute the same values up to rounding. They differ in how matrices lie in ciphertexts, in when the
//! homomorphic work and the stops are prepared, in what a product of two secrets is made of, and in whether scores
//! have queries and keys or are merged, which is a matter of the plan:
//!
//! | scheme | packing | prepared | products of secrets | scores |
//! |---|---|---|---|---|
//! | `base` | features-first | online, just before use | the paper's: on ciphertexts, online | separate |
//! | `f` | features-first | offline | opened against masks: nothing homomorphic online | separate |
//! | `fp` | tokens-first | offline | opened | separate |
//! | `fpc` | tokens-first | offline | opened | merged |

use primer_he::packing::layout::Packing;
use primer_plan::graph::Attention;
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
    /// Primer-FPC: HGS, FHGS and CHGS, tokens-first.
    Fpc,
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Self; 4] = [Self::Base, Self::F, Self::Fp, Self::Fpc];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::F => "f",
            Self::Fp => "fp",
            Self::Fpc => "fpc",
        }
    }

    pub(crate) const fn packing(self) -> Packing {
        match self {
            Self::Base | Self::F => Packing::FeaturesFirst,
            Self::Fp | Self::Fpc => Packing::TokensFirst,
        }
    }

    /// When the two parties prepare a step.
    pub const fn prepared(self) -> Prepared {
        match self {
            Self::Base => Prepared::Online,
            Self::F | Self::Fp | Self::Fpc => Prepared::Offline,
        }
    }

    /// How the plans that it compiles compute scores.
    pub const fn attention(self) -> Attention {
        match self {
            Self::Base | Self::F | Self::Fp => Attention::Separate,
            Self::Fpc => Attention::Merged,
        }
    }

    /// How products of two secrets are computed.
    pub const fn products(self) -> Products {
        match self {
            Self::Base => Products::Encrypted,
            Self::F | Self::Fp | Self::Fpc => Products::Opened,
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

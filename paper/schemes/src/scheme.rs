//! Schemes: recipes by which a plan is compiled.
//!
//! All schemes compute the same values up to rounding. A [`Recipe`] says everything in which they
//! differ: how matrices lie in ciphertexts, when steps are prepared, what a product of two secrets
//! is made of, and what the plan must look like.
//!
//! | scheme | packing | prepared | products of secrets | scores |
//! |---|---|---|---|---|
//! | `base` | features-first | online | on ciphertexts, online | separate |
//! | `f` | features-first | offline | opened: nothing homomorphic online | separate |
//! | `fp` | tokens-first | offline | opened | separate |
//! | `fpc` | tokens-first | offline | opened | merged |
//!
//! In all of them the server garbles functions, and values are requantised by transfers.

use primer_ot::Variant;
use primer_paper_he::params::FINGERPRINT_BYTES;
use primer_paper_he::product::Method;
use primer_paper_plan::Form;
use primer_plan::graph::StopFunction;
use primer_stops::{StopKind, Transfers};
use serde::{Deserialize, Serialize};

/// The transfers that stops stand on. They are not checked: clients follow the protocol.
pub const TRANSFERS: Transfers = Transfers {
    to_client: Variant::IKNP,
    to_server: Variant::IKNP,
};

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

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::F => "f",
            Self::Fp => "fp",
            Self::Fpc => "fpc",
        }
    }

    /// Returns what it is made of.
    pub const fn recipe(self) -> Recipe {
        const FP: Recipe = Recipe {
            form: Form::Separate,
            when: When::Offline,
            packing: Packing::TokensFirst,
            products: Products::Opened,
        };
        const F: Recipe = Recipe {
            packing: Packing::FeaturesFirst,
            ..FP
        };
        match self {
            Self::Base => Recipe {
                when: When::Online,
                products: Products::Encrypted,
                ..F
            },
            Self::F => F,
            Self::Fp => FP,
            Self::Fpc => Recipe {
                form: Form::Merged,
                ..FP
            },
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

/// Everything in which schemes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// How the plans that it compiles compute scores.
    pub form: Form,
    /// When steps are prepared.
    pub when: When,
    /// How matrices lie in ciphertexts, with parameters of its own.
    pub packing: Packing,
    /// How products of two secrets are computed.
    pub products: Products,
}

/// Returns the kind of stop that computes a function. A label is shown to the client, so the
/// server garbles it too.
pub(crate) const fn stop_kind(function: StopFunction) -> StopKind {
    match function {
        StopFunction::Requantise => StopKind::Transfers,
        // In no plan of a scheme of the paper.
        StopFunction::Power => StopKind::Lookups,
        StopFunction::Activation
        | StopFunction::Softmax
        | StopFunction::InverseRoot
        | StopFunction::Tanh
        | StopFunction::Summary
        | StopFunction::CoarseMaximum
        | StopFunction::Reciprocal => StopKind::Garbling,
    }
}

impl Recipe {
    /// Says everything in which this recipe differs from others, one word for each choice, and by
    /// which means stops are computed: the fingerprint of a program stands for it.
    pub(crate) fn describe(&self) -> String {
        // Without a rest: a field that is added must be told too.
        let Self {
            form,
            when,
            packing,
            products,
        } = self;
        let when = match when {
            When::Offline => "offline",
            When::Online => "online",
        };
        let products = match products {
            Products::Encrypted => "encrypted",
            Products::Opened => "opened",
        };
        let Transfers {
            to_client,
            to_server,
        } = TRANSFERS;
        let choices = [
            ("scores", form.name().to_owned()),
            ("prepared", when.to_owned()),
            ("linear", packing.name().to_owned()),
            ("secrets", packing.name().to_owned()),
            ("products", products.to_owned()),
            ("requantise", StopKind::Transfers.name().to_owned()),
            ("products begin", "settled".to_owned()),
            ("products end", "shared".to_owned()),
            ("functions", StopKind::Garbling.name().to_owned()),
            ("to client", to_client.to_string()),
            ("to server", to_server.to_string()),
        ];
        let functions = StopFunction::ALL.map(|function| {
            let stop_kind = stop_kind(function).name();
            (function.name(), format!("{stop_kind}, -"))
        });
        let words = choices.into_iter().chain(functions);
        let words = words.map(|(what, how)| format!("{what}: {how}\n"));
        words.collect()
    }

    /// Stands for the parameter sets that its packing comes with.
    pub(crate) fn parameters(&self) -> [u8; FINGERPRINT_BYTES] {
        *self.packing.method(1).params().fingerprint()
    }
}

/// How matrices lie in ciphertexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// One token's features fill a ciphertext: the paper's starting point.
    FeaturesFirst,
    /// One feature of all tokens, then the next: the paper's packing.
    TokensFirst,
}

impl Packing {
    /// Returns its name.
    const fn name(self) -> &'static str {
        match self {
            Self::FeaturesFirst => "features-first",
            Self::TokensFirst => "tokens-first",
        }
    }

    /// Returns the method, with its parameters, for a model of some width.
    pub fn method(self, width: usize) -> Method {
        match self {
            Self::FeaturesFirst => Method::features_first(width),
            Self::TokensFirst => Method::tokens_first(),
        }
    }
}

/// When steps are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that each change of a recipe changes what is said of it.
    #[test]
    fn recipes_that_differ_are_told_apart() {
        let fp = Scheme::Fp.recipe();
        let mut all: Vec<Recipe> = Scheme::ALL.map(Scheme::recipe).into();
        all.extend([
            Recipe {
                when: When::Online,
                ..fp
            },
            Recipe {
                products: Products::Encrypted,
                ..fp
            },
        ]);
        let said: std::collections::HashSet<String> = all.iter().map(Recipe::describe).collect();
        assert_eq!(said.len(), all.len());
    }
}

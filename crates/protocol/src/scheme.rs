//! Schemes: recipes by which a plan is compiled.
//!
//! All schemes compute the same values up to rounding. A [`Recipe`] says everything in which they
//! differ: how matrices lie in ciphertexts, when steps are prepared, what a product of two secrets
//! is made of and how it ends, by which means each kind of stop is computed, and what the plan must
//! look like.
//!
//! | scheme | packing | prepared | products of secrets | scores | garbled by |
//! |---|---|---|---|---|---|
//! | `base` | features-first | online | on ciphertexts, online | separate | server |
//! | `f` | features-first | offline | opened: nothing homomorphic online | separate | server |
//! | `fp` | tokens-first | offline | opened | separate | server |
//! | `fpc` | tokens-first | offline | opened | merged | server |
//! | `lean` | hints; slots | offline | opened, split, requantised at once | looked up | client |
//!
//! A new scheme is a variant with its recipe, here. What it needs that does not exist yet is a
//! packing behind `primer_he::product` or a means in `primer_stops`.

use crate::program::MAX_MATRIX;
use primer_he::params::FINGERPRINT_BYTES;
use primer_he::product::Method;
use primer_ot::Variant;
use primer_plan::graph::{Form, StopFunction};
use primer_plan::shape::MAX_POSITIONS;
use primer_stops::{Means, Transfers};
use serde::{Deserialize, Serialize};

/// Bundles that are prepared together, and their tokens: what bounds the memory of both parties.
const MOST_BUNDLES: usize = 32;
/// Tokens of all bundles that are prepared together.
pub const TOKENS_TOGETHER: usize = 256;

/// A scheme: the paper's cascade, and what goes past it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scheme {
    /// Primer-base: everything online, features-first.
    Base,
    /// Primer-F: HGS and FHGS, features-first.
    F,
    /// Primer-FP: HGS and FHGS, tokens-first.
    Fp,
    /// Primer-FPC: HGS, FHGS and CHGS, tokens-first.
    Fpc,
    /// Past the paper: weights by hints, products of two secrets without rotations, functions of
    /// short indices looked up. The default.
    #[default]
    Lean,
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Self; 5] = [Self::Base, Self::F, Self::Fp, Self::Fpc, Self::Lean];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::F => "f",
            Self::Fp => "fp",
            Self::Fpc => "fpc",
            Self::Lean => "lean",
        }
    }

    /// Tells whether a client needs the model's hint.
    pub const fn needs_hint(self) -> bool {
        matches!(self.recipe().linear, Linear::Hints)
    }

    /// What it is made of.
    pub const fn recipe(self) -> Recipe {
        const FP: Recipe = Recipe {
            form: Form::Separate,
            when: When::Offline,
            linear: Linear::Encrypted(Packing::TokensFirst),
            secrets: Packing::TokensFirst,
            products: Products::Opened,
            requantise: Means::Transfers,
            requantise_rows: Means::Transfers,
            products_begin: Beginning::Settled,
            products_end: Ending::Shared,
            functions: Means::Garbling,
            transfers: Transfers {
                to_client: Variant::IKNP,
                to_server: Variant::IKNP,
            },
        };
        const F: Recipe = Recipe {
            linear: Linear::Encrypted(Packing::FeaturesFirst),
            secrets: Packing::FeaturesFirst,
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
            Self::Lean => Recipe {
                form: Form::LookedUp,
                linear: Linear::Hints,
                secrets: Packing::Split,
                requantise_rows: Means::Lift,
                products_begin: Beginning::Awaited,
                products_end: Ending::InStops,
                functions: Means::ClientGarbling,
                transfers: Transfers {
                    to_client: Variant::SOFT_4.checked(),
                    to_server: Variant::SOFT_4,
                },
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
    /// How products with the server's weights are computed.
    pub linear: Linear,
    /// How products of two secrets are packed.
    pub secrets: Packing,
    /// How products of two secrets are computed.
    pub products: Products,
    /// By which means values are requantised.
    pub requantise: Means,
    /// By which means values are requantised of which products by rows (squares, rows times
    /// factors) are all that reads them.
    pub requantise_rows: Means,
    /// When products of two secrets begin.
    pub products_begin: Beginning,
    /// How products of two secrets end.
    pub products_end: Ending,
    /// By which means functions are computed that are more than a look-up. A label is shown to the
    /// client, so the server garbles it in any case.
    pub functions: Means,
    /// Which transfers stops stand on.
    pub transfers: Transfers,
}

impl Recipe {
    /// By which means a stop's function is computed.
    pub const fn means(&self, function: StopFunction) -> Means {
        match function {
            StopFunction::Requantise => self.requantise,
            StopFunction::Power => Means::Lookups,
            StopFunction::Activation => match self.form {
                Form::LookedUp => Means::Lookups,
                Form::Separate | Form::Merged => self.functions,
            },
            StopFunction::Softmax
            | StopFunction::InverseRoot
            | StopFunction::Tanh
            | StopFunction::Summary
            | StopFunction::CoarseMaximum
            | StopFunction::Reciprocal => self.functions,
        }
    }

    /// Returns the means by which a stop takes the parties' shares of a product of two secrets as
    /// they are, in the product's own round trip; none if the client shares the product anew, and
    /// the stop reads it like any other value.
    pub const fn after_products(&self, function: StopFunction) -> Option<Means> {
        match (self.products_end, function) {
            (Ending::InStops, StopFunction::Requantise) => Some(Means::LateTransfers),
            (Ending::InStops, StopFunction::InverseRoot) => Some(Means::LateClientGarbling),
            _ => None,
        }
    }

    /// Tells whether values that only products by rows read are lifted: then the client's share of
    /// a linear step must be known before the exchanges of a segment, and products must end in
    /// shares.
    pub(crate) const fn lifts(&self) -> bool {
        matches!(
            (
                self.requantise_rows,
                self.linear,
                self.secrets,
                self.products
            ),
            (Means::Lift, Linear::Hints, Packing::Split, Products::Opened)
        )
    }

    /// Says everything in which this recipe differs from others, one word for each choice: the
    /// fingerprint of a program stands for it.
    pub(crate) fn describe(&self) -> String {
        // Without a rest: a field that is added must be told too.
        let Self {
            form,
            when,
            linear,
            secrets,
            products,
            requantise,
            requantise_rows,
            products_begin,
            products_end,
            functions,
            transfers:
                Transfers {
                    to_client,
                    to_server,
                },
        } = self;
        let when = match when {
            When::Offline => "offline",
            When::Online => "online",
        };
        let products = match products {
            Products::Encrypted => "encrypted",
            Products::Opened => "opened",
        };
        let beginning = match products_begin {
            Beginning::Settled => "settled",
            Beginning::Awaited => "awaited",
        };
        let ending = match products_end {
            Ending::Shared => "shared",
            Ending::InStops => "in stops",
        };
        let requantised = match requantise == requantise_rows {
            true => requantise.name().to_owned(),
            false => format!("{}, rows {}", requantise.name(), requantise_rows.name()),
        };
        let choices = [
            ("scores", form.name().to_owned()),
            ("prepared", when.to_owned()),
            ("linear", linear.describe()),
            ("secrets", secrets.describe()),
            ("products", products.to_owned()),
            ("requantise", requantised),
            ("products begin", beginning.to_owned()),
            ("products end", ending.to_owned()),
            ("functions", functions.name().to_owned()),
            ("to client", to_client.to_string()),
            ("to server", to_server.to_string()),
        ];
        let functions = StopFunction::ALL.map(|function| {
            let (means, late) = (self.means(function), self.after_products(function));
            let late = late.map_or("-", Means::name);
            (function.name(), format!("{}, {late}", means.name()))
        });
        let words = choices.into_iter().chain(functions);
        let words = words.map(|(what, how)| format!("{what}: {how}\n"));
        words.collect()
    }

    /// How many bundles are prepared in one go, at most.
    pub const fn most_bundles(&self) -> usize {
        match (self.when, self.linear, self.secrets) {
            (When::Offline, Linear::Hints, Packing::Split) => MOST_BUNDLES,
            _ => 1,
        }
    }

    /// Returns how many bundles of a padded length are best prepared in one go when `wanted` are:
    /// as many as fill [`TOKENS_TOGETHER`], which is what one message about a value serves. Of a
    /// very large vocabulary fewer: the masks of all their one-hot rows, with columns for `one_hot`
    /// words and types and for any number of positions, are computed together.
    pub fn batch(&self, (tokens, one_hot): (usize, usize), wanted: usize) -> usize {
        let rows = TOKENS_TOGETHER.min(MAX_MATRIX as usize / (one_hot + MAX_POSITIONS));
        let together = (rows / tokens.max(1)).min(self.most_bundles());
        wanted.min(together).max(1)
    }

    /// Stands for the parameter sets that its packings come with.
    pub(crate) fn parameters(&self) -> [u8; FINGERPRINT_BYTES] {
        let of = |packing: Packing| {
            let method = packing.method(1);
            *method.params().fingerprint()
        };
        let secrets = of(self.secrets);
        let linear = match self.linear {
            Linear::Encrypted(packing) => of(packing),
            Linear::Hints => primer_hint::params::fingerprint(),
        };
        if linear == secrets {
            return linear;
        }
        let both = blake3::hash(&[linear, secrets].concat());
        let (first, _) = both.as_bytes().split_at(FINGERPRINT_BYTES);
        first.try_into().expect("a hash is longer than that")
    }
}

/// How products with the server's weights are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linear {
    /// Encrypted masks go up and encrypted products come down; parameters come with the packing.
    Encrypted(Packing),
    /// Masks are linear in a secret of which one message goes up, and nothing comes down.
    Hints,
}

impl Linear {
    fn describe(self) -> String {
        match self {
            Self::Encrypted(packing) => packing.describe(),
            Self::Hints => "hints".to_owned(),
        }
    }
}

/// How matrices lie in ciphertexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// One token's features fill a ciphertext: the paper's starting point.
    FeaturesFirst,
    /// One feature of all tokens, then the next: the paper's packing.
    TokensFirst,
    /// All tokens of some features in slots, without rotations, and of several bundles if they are
    /// prepared together: each party keeps a half of an answer.
    Split,
}

impl Packing {
    /// Its name.
    fn describe(self) -> String {
        match self {
            Self::FeaturesFirst => "features-first".to_owned(),
            Self::TokensFirst => "tokens-first".to_owned(),
            Self::Split => "split".to_owned(),
        }
    }

    /// The method, with its parameters, for a model of some width.
    pub fn method(self, width: usize) -> Method {
        match self {
            Self::FeaturesFirst => Method::features_first(width),
            Self::TokensFirst => Method::tokens_first(),
            Self::Split => Method::split(),
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

/// When a product of two secrets begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// When the server has its shares of both factors.
    Settled,
    /// If the product is shared anew: when it has them but for what the client will answer.
    Awaited,
}

/// How a product of two secrets ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The client shares it anew.
    Shared,
    /// If a stop that can take late shares is all that reads it, both parties give it theirs.
    InStops,
}

/// What the client learns at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reveal {
    /// The outputs of the plan: logits, spans or the encoder's values.
    Outputs,
    /// Of a classification, the position of the largest logit and nothing else; of a
    /// classification of tokens, that of each token.
    Label,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is changed in a recipe changes what is said of it.
    #[test]
    fn recipes_that_differ_are_told_apart() {
        let lean = Scheme::Lean.recipe();
        let transfers = lean.transfers;
        let mut all: Vec<Recipe> = Scheme::ALL.map(Scheme::recipe).into();
        all.extend([
            Recipe {
                form: Form::Separate,
                ..lean
            },
            Recipe {
                when: When::Online,
                ..lean
            },
            Recipe {
                linear: Linear::Encrypted(Packing::TokensFirst),
                ..lean
            },
            Recipe {
                secrets: Packing::TokensFirst,
                ..lean
            },
            Recipe {
                products: Products::Encrypted,
                ..lean
            },
            Recipe {
                requantise: Means::Garbling,
                ..lean
            },
            Recipe {
                requantise_rows: Means::Transfers,
                ..lean
            },
            Recipe {
                products_begin: Beginning::Settled,
                ..lean
            },
            Recipe {
                products_end: Ending::Shared,
                ..lean
            },
            Recipe {
                functions: Means::Garbling,
                ..lean
            },
            Recipe {
                functions: Means::LateClientGarbling,
                ..lean
            },
            Recipe {
                transfers: Transfers {
                    to_client: Variant::SOFT_4,
                    ..transfers
                },
                ..lean
            },
            Recipe {
                transfers: Transfers {
                    to_server: Variant::SOFT_2,
                    ..transfers
                },
                ..lean
            },
        ]);
        let said: std::collections::HashSet<String> = all.iter().map(Recipe::describe).collect();
        assert_eq!(said.len(), all.len());
    }
}

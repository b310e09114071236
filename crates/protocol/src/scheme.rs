//! Schemes: ways of compiling the plan.
//!
//! All schemes compute the same steps with the same protocols. They differ in how matrices lie in
//! ciphertexts and in when the homomorphic work and the stops are prepared:
//!
//! | scheme | packing | prepared |
//! |---|---|---|
//! | `base` | features-first | online, just before use |
//! | `f` | features-first | offline |
//! | `fp` | tokens-first | offline |

use primer_he::packing::layout::{Chunks, Layout, Packing, Shape};
use primer_he::params::Params;
use primer_plan::graph::Graph;
use primer_plan::plan::Plan;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use crate::error::{ProtocolError, Result};

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

    const fn packing(self) -> Packing {
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
}

/// When steps are prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepared {
    /// All of them ahead of the input.
    Offline,
    /// Each just before it is used.
    Online,
}

/// Elements of the largest matrix: room for 512 tokens over a vocabulary of 130,000.
const MAX_MATRIX: u64 = 1 << 26;
/// Elements of all values together: room for BERT-large with 512 tokens, three times over.
const MAX_VALUES: u64 = 1 << 31;

/// A valid plan may still be far too large: nothing is allocated for such a one.
fn check_sizes(graph: &Graph) -> Result<()> {
    let check = |what: &str, elements: u64, limit: u64| {
        if elements <= limit {
            return Ok(());
        }
        Err(ProtocolError::TooLarge {
            what: what.to_owned(),
            elements,
            limit,
        })
    };
    let one_hot = graph.tokens as u64 * (graph.shape.vocab + graph.shape.types) as u64;
    check("the masked input", one_hot, MAX_MATRIX)?;
    let mut total = one_hot;
    for value in &graph.values {
        let elements = value.rows as u64 * value.cols as u64;
        check(&value.name, elements, MAX_MATRIX)?;
        total += elements;
    }
    check("all values together", total, MAX_VALUES)
}

/// A plan compiled for a scheme: the same on both sides.
#[derive(Clone)]
pub struct Program {
    plan: Arc<Plan>,
    scheme: Scheme,
    params: Arc<Params>,
}

/// How a client's mask is encrypted: which matrix of it, in which layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// One row per token.
    Rows,
    /// The first token only.
    First,
    /// One row per token, heads as blocks, for products with `outputs` columns a head.
    Heads {
        /// Columns of a head's product.
        outputs: usize,
    },
    /// Rows are features of a head, columns are heads and tokens: the transposed value matrix.
    Transposed,
    /// One value per token, repeated over all features.
    Repeated,
}

impl Program {
    /// Compiles a plan.
    ///
    /// # Errors
    /// [`ProtocolError::TooLarge`] if its values would take more memory than any party should
    /// give to a plan that it was sent.
    pub fn new(plan: Plan, scheme: Scheme) -> Result<Self> {
        check_sizes(plan.graph())?;
        Ok(Self {
            plan: Arc::new(plan),
            scheme,
            params: Params::products(),
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The scheme.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The homomorphic parameters.
    pub const fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// The layout of matrices with a number of rows.
    pub(crate) fn layout(&self, rows: usize) -> Result<Layout> {
        Ok(match self.scheme.packing() {
            Packing::TokensFirst => Layout::tokens_first(&self.params, rows)?,
            Packing::FeaturesFirst => {
                Layout::features_first(&self.params, rows, self.plan.graph().shape.hidden)?
            }
        })
    }

    /// The layout and the chunks of a mask with `cols` columns, encrypted in a form.
    pub(crate) fn packing(&self, form: Form, cols: usize) -> Result<(Layout, Chunks)> {
        let shape = &self.plan.graph().shape;
        let tokens = self.plan.graph().tokens;
        let (heads, width) = (shape.heads, shape.head_size());
        Ok(match form {
            Form::Rows => {
                let layout = self.layout(tokens)?;
                (layout, Chunks::even(&layout, cols))
            }
            Form::First => {
                let layout = self.layout(1)?;
                (layout, Chunks::even(&layout, cols))
            }
            Form::Heads { outputs } => {
                let layout = self.layout(tokens)?;
                let blocks = Shape::blocks(heads, cols / heads, outputs);
                (layout, blocks.input_chunks(&layout))
            }
            Form::Transposed => {
                let layout = self.layout(width)?;
                (
                    layout,
                    Shape::blocks(heads, tokens, tokens).input_chunks(&layout),
                )
            }
            Form::Repeated => {
                let layout = self.layout(tokens)?;
                (layout, Chunks::even(&layout, 1))
            }
        })
    }

    /// Every rotation that the program needs a key for.
    pub(crate) fn rotations(&self) -> Result<Vec<i32>> {
        let graph = self.plan.graph();
        let mut rotations = Vec::new();
        for rows in [graph.tokens, 1, graph.shape.head_size()] {
            rotations.extend(self.layout(rows)?.rotations());
        }
        rotations.sort_unstable();
        rotations.dedup();
        Ok(rotations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_model::synthetic::bert_shape;

    #[test]
    fn plans_beyond_all_measure_are_refused() {
        let large = bert_shape(24, 1024, 16);
        assert!(check_sizes(&Graph::bert(&large, 512)).is_ok());
        let mut shape = large.clone();
        shape.vocab = 1 << 20;
        let error = check_sizes(&Graph::bert(&shape, 512)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the masked input has 536871936 elements, the limit is 67108864"
        );
        let mut shape = large;
        (shape.layers, shape.heads) = (96, 128);
        let error = check_sizes(&Graph::bert(&shape, 512)).unwrap_err();
        assert!(
            error.to_string().starts_with("all values together"),
            "{error}"
        );
    }
}

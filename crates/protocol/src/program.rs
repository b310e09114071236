//! A plan compiled for a scheme: the same on both sides.
//!
//! Compiling decides for every step what it is to the protocols ([`Work`]), how matrices lie in
//! ciphertexts, and cuts the steps into *segments*: the embedding, each layer, the head. A segment is the
//! unit of the offline phase and of memory. Every message that follows, its kind and its length, is
//! determined here; the [fingerprint](Program::fingerprint) stands for all of it.

use crate::error::{ProtocolError, Result};
use crate::homomorphic::Exchange;
use crate::scheme::{Reveal, Scheme};
use crate::work::{Compiler, Work};
use primer_he::packing::layout::{Chunks, Layout, Packing, Shape};
use primer_he::params::Params;
use primer_plan::graph::{Graph, Op, Step};
use primer_plan::plan::Plan;
use std::ops::Range;
use std::sync::Arc;

/// The version of everything that travels or is stored.
pub const VERSION: u16 = 3;

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
    for step in &graph.steps {
        if let Op::MergedScores { weight, output, .. } = step.op {
            let elements = graph.tokens as u64 * graph.weight(weight).cols as u64;
            check(&graph.value(output).name, elements, MAX_MATRIX)?;
            total += elements;
        }
    }
    check("all values together", total, MAX_VALUES)
}

/// A plan compiled for a scheme.
#[derive(Clone)]
pub struct Program(Arc<Compiled>);

struct Compiled {
    plan: Plan,
    scheme: Scheme,
    reveal: Reveal,
    params: Arc<Params>,
    works: Vec<Work>,
    segments: Vec<Range<usize>>,
    settled: Vec<bool>,
    fingerprint: [u8; 32],
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
    /// give to a plan that it was sent; [`ProtocolError::Attention`] if its scores are not the
    /// scheme's; [`ProtocolError::NoLabel`] if there is no label to reveal;
    /// [`ProtocolError::Stop`] if it has a stop that cannot be built.
    pub fn new(plan: Plan, scheme: Scheme, reveal: Reveal) -> Result<Self> {
        check_sizes(plan.graph())?;
        let (needed, found) = (scheme.attention(), plan.graph().attention);
        if needed != found {
            return Err(ProtocolError::Attention {
                scheme: scheme.name(),
                needed: needed.name(),
                found: found.name(),
            });
        }
        let works = Compiler::new(&plan, reveal).works()?;
        let params = Params::products();
        let segments = segments(&plan.graph().steps);
        let settled = settled(&plan.graph().steps, &works, &segments);
        let fingerprint = fingerprint(&plan, scheme, reveal, &params);
        Ok(Self(Arc::new(Compiled {
            plan,
            scheme,
            reveal,
            params,
            works,
            segments,
            settled,
            fingerprint,
        })))
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.0.plan
    }

    /// The scheme.
    pub fn scheme(&self) -> Scheme {
        self.0.scheme
    }

    /// What the client learns.
    pub fn reveal(&self) -> Reveal {
        self.0.reveal
    }

    /// The homomorphic parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.0.params
    }

    /// Stands for the version, the parameters, the scheme, what is revealed and the plan: two parties
    /// with the same one will understand each other.
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.0.fingerprint
    }

    /// What a step is to the protocols.
    pub(crate) fn work(&self, index: usize) -> &Work {
        &self.0.works[index]
    }

    /// The steps of the plan.
    pub(crate) fn step(&self, index: usize) -> &Step {
        &self.plan().graph().steps[index]
    }

    /// Runs of steps that are prepared together.
    pub(crate) fn segments(&self) -> &[Range<usize>] {
        &self.0.segments
    }

    /// Whether requantisations that were asked for must be answered right after this step: those that need nothing of
    /// each other (queries, keys and values) share a round trip.
    pub(crate) fn settled_after(&self, index: usize) -> bool {
        self.0.settled[index]
    }

    /// The exchanges of some steps, each with its step.
    pub(crate) fn exchanges(&self, steps: Range<usize>) -> Result<Vec<(usize, Exchange)>> {
        let mut all = Vec::new();
        for index in steps {
            let exchanges = self.work(index).exchanges(self, self.step(index))?;
            all.extend(exchanges.into_iter().map(|exchange| (index, exchange)));
        }
        Ok(all)
    }

    /// The layout of matrices with a number of rows.
    pub(crate) fn layout(&self, rows: usize) -> Result<Layout> {
        Ok(match self.scheme().packing() {
            Packing::TokensFirst => Layout::tokens_first(self.params(), rows)?,
            Packing::FeaturesFirst => {
                Layout::features_first(self.params(), rows, self.plan().graph().shape.hidden)?
            }
        })
    }

    /// The layout and the chunks of a mask with `cols` columns, encrypted in a form.
    pub(crate) fn packing(&self, form: Form, cols: usize) -> Result<(Layout, Chunks)> {
        let shape = &self.plan().graph().shape;
        let tokens = self.plan().graph().tokens;
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
        let graph = self.plan().graph();
        let mut rotations = Vec::new();
        for rows in [graph.tokens, 1, graph.shape.head_size()] {
            rotations.extend(self.layout(rows)?.rotations());
        }
        rotations.sort_unstable();
        rotations.dedup();
        Ok(rotations)
    }
}

/// After which steps no requantisation may be under way: the next one says something else to the other party, or reads what is
/// under way, or is another segment's.
fn settled(steps: &[Step], works: &[Work], segments: &[Range<usize>]) -> Vec<bool> {
    let mut under_way = Vec::new();
    let mut settled = Vec::with_capacity(steps.len());
    for (index, (step, work)) in steps.iter().zip(works).enumerate() {
        let silent = matches!(work, Work::Linear(_) | Work::Requantise(_));
        let reads = step.inputs().iter().any(|id| under_way.contains(id));
        let first = segments.iter().any(|segment| segment.start == index);
        let settle = !silent || reads || first;
        if settle {
            under_way.clear();
        }
        if matches!(work, Work::Requantise(_)) {
            under_way.push(step.output());
        }
        if index > 0 {
            settled.push(settle);
        }
    }
    settled.push(true);
    settled
}

/// Runs of steps of one layer, and what is before and after the layers.
fn segments(steps: &[Step]) -> Vec<Range<usize>> {
    let mut segments: Vec<Range<usize>> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        match segments.last_mut() {
            Some(last) if steps[last.start].layer == step.layer => last.end = index + 1,
            _ => segments.push(index..index + 1),
        }
    }
    segments
}

fn fingerprint(plan: &Plan, scheme: Scheme, reveal: Reveal, params: &Params) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"primer program");
    hasher.update(&VERSION.to_le_bytes());
    hasher.update(params.fingerprint());
    hasher.update(scheme.name().as_bytes());
    hasher.update(&[match reveal {
        Reveal::Outputs => 0,
        Reveal::Label => 1,
    }]);
    hasher.update(&plan.encode());
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_model::synthetic::bert_shape;
    use primer_plan::graph::Attention;

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
        (shape.layers, shape.hidden) = (1, 4096);
        assert!(check_sizes(&Graph::bert(&shape, 512)).is_ok());
        let merged = Graph::with_attention(&shape, Attention::Merged, 512);
        let error = check_sizes(&merged).unwrap_err();
        assert_eq!(
            error.to_string(),
            "layer0.scores has 268435456 elements, the limit is 67108864"
        );
    }
}

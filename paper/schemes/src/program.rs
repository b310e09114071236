//! A plan compiled for a scheme: the same on both sides.
//!
//! Compiling decides for every step what it is to the protocols ([`CompiledStep`]) and which
//! homomorphic exchanges prepare it, and cuts the steps into *segments*. A segment is the unit of
//! the offline phase and of memory: the embedding, each layer, the head; or each step alone where
//! steps are prepared just before they are used. Every message that follows, its kind and its
//! length, is determined here; the [fingerprint](Program::fingerprint) stands for all of it.

use crate::compiled::{CompiledStep, Compiler, StoredMatrices};
use crate::error::{ProtocolError, Result};
use crate::exchanges::Exchanges;
use crate::scheme::{Recipe, Scheme, When};
use primer_engine::Reveal;
use primer_model::quantise::IntModel;
use primer_paper_he::product::{KeyNeeds, lifetime};
use primer_plan::graph::{Graph, Op, Step, ValueId};
use primer_plan::plan::Plan;
use primer_stops::TwoPartyStop;
use primer_wire::meter::Phase;
use primer_wire::{Channel, VERSION};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Elements of the largest matrix: room for 512 tokens over a vocabulary of 130,000.
const MAX_MATRIX: u64 = 1 << 26;
/// Elements of all values together: room for BERT-large with 512 tokens, three times over.
const MAX_VALUES: u64 = 1 << 31;

/// Checks sizes: a valid plan may still be far too large, and nothing is allocated for such a one.
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
    let one_hot = graph.tokens as u64 * graph.one_hot() as u64;
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

/// A plan compiled for a scheme. Cheap to clone.
#[derive(Clone)]
pub struct Program {
    inner: Arc<Inner>,
}

struct Inner {
    plan: Plan,
    scheme: Scheme,
    reveal: Reveal,
    compiled: Vec<CompiledStep>,
    exchanges: Exchanges,
    segments: Vec<Range<usize>>,
    settled: Vec<bool>,
    last_uses: Vec<usize>,
    needs: KeyNeeds,
    fingerprint: [u8; 32],
}

impl Program {
    /// Compiles the plan of a model for a scheme and a padded number of tokens.
    ///
    /// # Errors
    /// [`ProtocolError::Plan`] if the model does not take that many tokens, and as
    /// [`Self::received`].
    pub fn of(model: &IntModel, scheme: Scheme, tokens: usize, reveal: Reveal) -> Result<Self> {
        Self::received(model.plan(tokens)?, scheme, reveal)
    }

    /// Compiles a plan that came from elsewhere: from the server, or out of a store.
    ///
    /// # Errors
    /// [`ProtocolError::TooLarge`] if its values would take more memory than any party should
    /// give to a plan that it was sent; [`ProtocolError::Form`] if its scores are not the
    /// scheme's; [`ProtocolError::NoLabel`] if there is no label to reveal;
    /// [`ProtocolError::Stops`] if it has a stop that cannot be built; [`ProtocolError::He`] if it
    /// does not fit the homomorphic parameters.
    pub fn received(plan: Plan, scheme: Scheme, reveal: Reveal) -> Result<Self> {
        check_sizes(plan.graph())?;
        let form = scheme.recipe().form;
        if !plan.is_by(&form) {
            return Err(ProtocolError::Form {
                scheme: scheme.name(),
                needed: form.name(),
            });
        }
        let compiled = Compiler::new(&plan, scheme, reveal).steps()?;
        let recipe = scheme.recipe();
        let exchanges = Exchanges::new(&plan, &recipe, &compiled)?;
        let needs: KeyNeeds = exchanges.products().collect();
        let segments = segments(&plan.graph().steps, recipe.when);
        let inner = Inner {
            settled: settled(&plan.graph().steps, &compiled, &segments),
            last_uses: plan.graph().last_uses(),
            fingerprint: fingerprint(&plan, &recipe, reveal, &needs, &compiled),
            plan,
            scheme,
            reveal,
            compiled,
            exchanges,
            segments,
            needs,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Returns what the bundles keep of a step, besides what its stop needs.
    pub(crate) fn kept(&self, index: usize) -> StoredMatrices {
        self.compiled(index)
            .kept(self.plan().graph(), self.step(index))
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.inner.plan
    }

    /// Returns the scheme.
    pub fn scheme(&self) -> Scheme {
        self.inner.scheme
    }

    /// Returns what the client learns.
    pub fn reveal(&self) -> Reveal {
        self.inner.reveal
    }

    /// Returns the keys that its products need, with their parameters.
    pub fn key_needs(&self) -> &KeyNeeds {
        &self.inner.needs
    }

    /// Counts the inferences of one client that are within a statistical distance of `2^-40` of
    /// something that does not depend on the weights: answers are flooded.
    pub fn inferences(&self) -> f64 {
        lifetime(self.inner.exchanges.products(), 1)
    }

    /// Stands for the version, the parameters, the recipe, what is revealed, the plan, and
    /// every stop with its counts: two parties with the same one will understand each other.
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.inner.fingerprint
    }

    /// Returns what a step is to the protocols.
    pub(crate) fn compiled(&self, index: usize) -> &CompiledStep {
        &self.inner.compiled[index]
    }

    /// Returns the exchanges that prepare a bundle.
    pub(crate) fn exchanges(&self) -> &Exchanges {
        &self.inner.exchanges
    }

    /// Counts what passes from now on as the preparation of a step.
    pub(crate) fn preparing(&self, channel: &Channel, index: usize) -> Phase {
        let phase = match self.scheme().recipe().when {
            When::Offline => "offline",
            When::Online => "online",
        };
        channel.phase(&format!("{phase}/{}", self.step(index).paper.name()))
    }

    /// Returns a step of the plan.
    pub(crate) fn step(&self, index: usize) -> &Step {
        &self.plan().graph().steps[index]
    }

    /// Returns the runs of steps that are prepared together.
    pub(crate) fn segments(&self) -> &[Range<usize>] {
        &self.inner.segments
    }

    /// Returns for every value the last step that reads it.
    pub(crate) fn last_uses(&self) -> &[usize] {
        &self.inner.last_uses
    }

    /// Tells whether what was asked for must be answered right after this step: stops and products
    /// that need nothing of each other (queries, keys and values) share a round trip.
    pub(crate) fn settled_after(&self, index: usize) -> bool {
        self.inner.settled[index]
    }
}

/// Returns after which steps nothing may be under way: the next one reads what is, or is another
/// segment's.
fn settled(steps: &[Step], compiled: &[CompiledStep], segments: &[Range<usize>]) -> Vec<bool> {
    let mut under_way: HashSet<ValueId> = HashSet::new();
    let mut settled = Vec::with_capacity(steps.len());
    for (index, (step, work)) in steps.iter().zip(compiled).enumerate() {
        let first = segments.iter().any(|segment| segment.start == index);
        let settle = first || step.inputs().iter().any(|id| under_way.contains(id));
        if settle {
            under_way.clear();
        }
        under_way.extend(work.asks_for(step));
        if index > 0 {
            settled.push(settle);
        }
    }
    settled.push(true);
    settled
}

/// Cuts steps into those that are prepared together: of one layer, before and after the layers; or
/// each alone.
fn segments(steps: &[Step], when: When) -> Vec<Range<usize>> {
    let mut segments: Vec<Range<usize>> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let joins =
            |last: &Range<usize>| when == When::Offline && steps[last.start].layer == step.layer;
        match segments.last_mut() {
            Some(last) if joins(last) => last.end = index + 1,
            _ => segments.push(index..index + 1),
        }
    }
    segments
}

fn fingerprint(
    plan: &Plan,
    recipe: &Recipe,
    reveal: Reveal,
    needs: &KeyNeeds,
    compiled: &[CompiledStep],
) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("primer program v2");
    let mut absorb = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    absorb(&VERSION.to_le_bytes());
    for parameters in needs.fingerprints() {
        absorb(parameters);
    }
    absorb(recipe.describe().as_bytes());
    absorb(&[match reveal {
        Reveal::Outputs => 0,
        Reveal::Label => 1,
    }]);
    absorb(&plan.encode());
    for (index, work) in compiled.iter().enumerate() {
        if let CompiledStep::Stop(work) = work {
            absorb(stop_line(index, &*work.stop).as_bytes());
        }
    }
    *hasher.finalize().as_bytes()
}

/// Writes down what both parties must agree on about a stop.
fn stop_line(index: usize, stop: &dyn TwoPartyStop) -> String {
    let name = stop.name();
    let counts = [stop.elements(), stop.outputs(), stop.flags()];
    let (bytes, stored) = (stop.bytes(), stop.stored());
    let bytes = [
        bytes.offline_up,
        bytes.offline_down,
        bytes.online_up,
        bytes.online_down,
        stored.client,
        stored.server,
    ];
    format!("{index} {name}: {counts:?} {bytes:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_model::synthetic::bert_shape;
    use primer_paper_plan::Form;

    #[test]
    fn plans_beyond_all_measure_are_refused() {
        let large = bert_shape(24, 1024, 16);
        assert!(check_sizes(&Form::Separate.graph(&large, 512)).is_ok());
        let mut shape = large.clone();
        shape.vocab = 1 << 20;
        let error = check_sizes(&Form::Separate.graph(&shape, 512)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the masked input has 536871936 elements, the limit is 67108864"
        );
        let mut shape = large;
        (shape.layers, shape.heads) = (96, 128);
        let error = check_sizes(&Form::Separate.graph(&shape, 512)).unwrap_err();
        assert!(
            error.to_string().starts_with("all values together"),
            "{error}"
        );
        (shape.layers, shape.hidden) = (1, 4096);
        assert!(check_sizes(&Form::Separate.graph(&shape, 512)).is_ok());
        let merged = Form::Merged.graph(&shape, 512);
        let error = check_sizes(&merged).unwrap_err();
        assert_eq!(
            error.to_string(),
            "layer0.scores has 268435456 elements, the limit is 67108864"
        );
    }
}

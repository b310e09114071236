//! A compiled plan: the same on both sides.
//!
//! Compiling decides for every step what it is to the protocols ([`CompiledStep`]) and which
//! homomorphic exchanges prepare it, and cuts the steps into *segments*. A segment is the unit of
//! the offline phase and of memory: the embedding, each layer, the head. Every message that
//! follows, its kind and its length, is determined here; the [fingerprint](Program::fingerprint)
//! stands for all of it.

use crate::batch::{Exchanges, MOST_BUNDLES};
use crate::bits::Sizes;
use crate::compiled::{CompiledStep, Compiler, StoredMatrices};
use crate::error::{ProtocolError, Result};
use crate::exchange::Owner;
use crate::hints::Hints;
use crate::reveal::Reveal;
use crate::stop_kinds::{self, TRANSFERS};
use primer_hint::error::HintError;
use primer_hint::published::Identity;
use primer_plan::design::LookedUp;
use primer_plan::function::Function;
use primer_plan::graph::{Graph, Op, Step, ValueId};
use primer_plan::plan::Plan;
use primer_plan::weights::ModelWeights;
use primer_rlwe::product::{KeyNeeds, Product};
use primer_stops::{Comparison, TwoPartyStop};
use primer_wire::meter::Phase;
use primer_wire::{Channel, VERSION};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The name of this way of computing, in interfaces and where it is measured beside others.
pub const SCHEME_NAME: &str = "lean";

/// Elements of the largest matrix: room for 512 tokens over a vocabulary of 130,000.
pub(crate) const MAX_MATRIX: u64 = 1 << 26;
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
    check("all values together", total, MAX_VALUES)
}

/// A compiled plan. Cheap to clone.
#[derive(Clone)]
pub struct Program {
    inner: Arc<Inner>,
    hint: Option<Identity>,
    fingerprint: [u8; 32],
}

struct Inner {
    plan: Plan,
    reveal: Reveal,
    compiled: Vec<CompiledStep>,
    /// Of one bundle.
    exchanges: Arc<Exchanges>,
    hints: Hints,
    segments: Vec<Range<usize>>,
    settled: Vec<bool>,
    last_uses: Vec<usize>,
    needs: KeyNeeds,
}

impl Program {
    /// Compiles the plan of a model for a padded number of tokens.
    ///
    /// # Errors
    /// [`ProtocolError::Plan`] if the model does not take that many tokens, and as
    /// [`Self::received`].
    pub fn of(model: &impl ModelWeights, tokens: usize, reveal: Reveal) -> Result<Self> {
        let plan = Plan::new(model.shape(), tokens, model.scales().clone())?;
        Self::received(plan, reveal)
    }

    /// Compiles a plan that came from elsewhere: from the server, or out of a store.
    ///
    /// # Errors
    /// [`ProtocolError::TooLarge`] if its values would take more memory than any party should
    /// give to a plan that it was sent; [`ProtocolError::OtherGraph`] if it was made by another
    /// design than the product's; [`ProtocolError::NoLabel`] if there is no label to reveal;
    /// [`ProtocolError::Stops`] if it has a stop that cannot be built; [`ProtocolError::He`] if it
    /// does not fit the homomorphic parameters.
    pub fn received(plan: Plan, reveal: Reveal) -> Result<Self> {
        check_sizes(plan.graph())?;
        if !plan.is_by(&LookedUp) {
            return Err(ProtocolError::OtherGraph);
        }
        let compiled = Compiler::new(&plan, reveal).steps()?;
        let exchanges = Exchanges::new(&plan, &compiled, 1)?;
        let needs: KeyNeeds = exchanges.products().collect();
        let segments = segments(&plan.graph().steps);
        let fingerprint = fingerprint(&plan, reveal, &needs, &compiled);
        let inner = Inner {
            settled: settled(&plan.graph().steps, &compiled, &segments),
            last_uses: plan.graph().last_uses(),
            hints: Hints::of(plan.graph()),
            plan,
            reveal,
            compiled,
            exchanges: Arc::new(exchanges),
            segments,
            needs,
        };
        Ok(Self {
            inner: Arc::new(inner),
            hint: None,
            fingerprint,
        })
    }

    /// Binds the program to a hint: bundles that are made with one hint are of no use with another.
    ///
    /// # Errors
    /// [`ProtocolError::Hint`] if the hint is not as long as that of this model.
    pub fn with_hint(&self, hint: &Identity) -> Result<Self> {
        if hint.bytes != self.hint_bytes() {
            let what = "the model's hint";
            return Err(HintError::Other { what }.into());
        }
        let mut hasher = blake3::Hasher::new_derive_key("primer program with a hint v1");
        hasher.update(&self.fingerprint);
        hasher.update(&hint.root);
        Ok(Self {
            inner: Arc::clone(&self.inner),
            hint: Some(*hint),
            fingerprint: *hasher.finalize().as_bytes(),
        })
    }

    /// Returns the hint that it is bound to.
    pub fn hint(&self) -> Option<&Identity> {
        self.hint.as_ref()
    }

    /// Returns the bytes of the model's hint, which a client fetches once.
    pub fn hint_bytes(&self) -> u64 {
        self.hints().contents().bytes()
    }

    /// Returns the values that have hints.
    pub(crate) fn hints(&self) -> &Hints {
        &self.inner.hints
    }

    /// Returns the entry among the hints of a value whose mask comes from a secret.
    pub(crate) fn hinted(&self, owner: Owner) -> Option<usize> {
        self.hints().entry(owner)
    }

    /// Returns the sizes of the input, which is sent as bits.
    pub(crate) fn bits(&self) -> Sizes {
        Sizes::of(self.plan().graph())
    }

    /// Returns what is one in a one-hot row.
    pub(crate) fn one(&self) -> u64 {
        let plan = self.plan();
        let carried = plan.graph().steps.iter().find_map(|step| match step.op {
            Op::Embed { table, output, .. } => Some(plan.one_hot_bits(table, output)),
            _ => None,
        });
        1 << carried.unwrap_or(0)
    }

    /// Returns what the bundles keep of a step, besides what its stop needs.
    pub(crate) fn kept(&self, index: usize) -> StoredMatrices {
        let masked = |id| self.hinted(Some(id)).is_some();
        self.compiled(index)
            .kept(self.plan(), self.step(index), masked)
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.inner.plan
    }

    /// Returns what the client learns.
    pub fn reveal(&self) -> Reveal {
        self.inner.reveal
    }

    /// Returns the keys that its products need, with their parameters.
    pub fn key_needs(&self) -> &KeyNeeds {
        &self.inner.needs
    }

    /// Bounds the probability that an inference has a wrong share, which neither party notices:
    /// products of two secrets whose answers are split. Programs beyond
    /// [`primer_rlwe::product::ODDS`] are refused.
    pub fn odds(&self) -> f64 {
        let products = self.inner.exchanges.products();
        products.map(Product::odds).sum()
    }

    /// Counts the range flags of an inference: one for each element of the stops that have them. If
    /// there are none, the client is not told whether values stayed in their ranges.
    pub fn flags(&self) -> usize {
        let stops = self.inner.compiled.iter().filter_map(CompiledStep::stop);
        stops.map(|compiled| compiled.stop.flags()).sum()
    }

    /// Returns how flags are compared at the end, if there are any.
    pub(crate) fn comparison(&self) -> Option<Comparison> {
        (self.flags() > 0).then(|| Comparison::over(TRANSFERS))
    }

    /// Stands for the version, the parameters, the kinds of stop, what is revealed, the plan, every
    /// stop with its counts, and the hint that it is bound to: two parties with the same one will
    /// understand each other.
    pub fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// Returns what a step is to the protocols.
    pub(crate) fn compiled(&self, index: usize) -> &CompiledStep {
        &self.inner.compiled[index]
    }

    /// Returns the exchanges that prepare one bundle.
    pub(crate) fn exchanges(&self) -> &Arc<Exchanges> {
        &self.inner.exchanges
    }

    /// Fails unless a number of bundles can be prepared together.
    pub(crate) fn check_bundles(&self, bundles: usize) -> Result<()> {
        if !(1..=MOST_BUNDLES).contains(&bundles) {
            let most = MOST_BUNDLES;
            return Err(ProtocolError::Bundles { bundles, most });
        }
        // The masks of all their inputs are computed together.
        let graph = self.plan().graph();
        let rows = (bundles * graph.tokens) as u64;
        let elements = rows.saturating_mul(graph.one_hot() as u64);
        if bundles > 1 && elements > MAX_MATRIX {
            return Err(ProtocolError::TooLarge {
                what: format!("the masked input of {bundles} bundles"),
                elements,
                limit: MAX_MATRIX,
            });
        }
        Ok(())
    }

    /// Returns those that prepare some bundles together.
    ///
    /// # Errors
    /// [`ProtocolError::Bundles`] if that number is not prepared together, and
    /// [`ProtocolError::He`] if they do not fit the parameters.
    pub(crate) fn exchanges_for(&self, bundles: usize) -> Result<Arc<Exchanges>> {
        if bundles == 1 {
            return Ok(Arc::clone(&self.inner.exchanges));
        }
        self.check_bundles(bundles)?;
        let made = Exchanges::new(self.plan(), &self.inner.compiled, bundles)?;
        Ok(Arc::new(made))
    }

    /// Counts what passes from now on as the preparation of a step.
    pub(crate) fn preparing(&self, channel: &Channel, index: usize) -> Phase {
        channel.phase(&format!("offline/{}", self.step(index).paper.name()))
    }

    /// Returns a step of the plan.
    pub(crate) fn step(&self, index: usize) -> &Step {
        &self.plan().graph().steps[index]
    }

    /// Tells whether look-ups ask which tokens count.
    pub(crate) fn counts_tokens(&self) -> bool {
        let functions = self.plan().scales().functions.iter().flatten();
        let placed = |function: &Function| match function {
            Function::Powers(powers) => powers.classes.iter().any(|class| !class.measured),
            _ => false,
        };
        functions.into_iter().any(placed)
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
/// segment's. A product may read what is [provisional](primer_stops::Stop::is_provisional).
fn settled(steps: &[Step], compiled: &[CompiledStep], segments: &[Range<usize>]) -> Vec<bool> {
    // Of each value whether it is provisional.
    let mut under_way: HashMap<ValueId, bool> = HashMap::new();
    let mut settled = Vec::with_capacity(steps.len());
    for (index, (step, compiled)) in steps.iter().zip(compiled).enumerate() {
        let early = compiled.takes_provisional();
        let inputs = step.inputs();
        let mut read = inputs.iter().filter_map(|id| under_way.get(id));
        let first = segments.iter().any(|segment| segment.start == index);
        let settle = first || read.any(|provisional| !(early && *provisional));
        if settle {
            under_way.clear();
        }
        let asked = compiled.asks_for(step);
        under_way.extend(asked.map(|id| (id, compiled.is_provisional())));
        if index > 0 {
            settled.push(settle);
        }
    }
    settled.push(true);
    settled
}

/// Cuts steps into those that are prepared together: of one layer, before and after the layers.
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

fn fingerprint(
    plan: &Plan,
    reveal: Reveal,
    needs: &KeyNeeds,
    compiled: &[CompiledStep],
) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("primer program v3");
    let mut absorb = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    absorb(&VERSION.to_le_bytes());
    absorb(&primer_hint::params::fingerprint());
    for parameters in needs.fingerprints() {
        absorb(parameters);
    }
    absorb(stop_kinds::describe().as_bytes());
    absorb(&[match reveal {
        Reveal::Outputs => 0,
        Reveal::Label => 1,
    }]);
    absorb(&plan.encode());
    for (index, compiled) in compiled.iter().enumerate() {
        if let Some(compiled) = compiled.stop() {
            absorb(stop_line(index, &*compiled.stop).as_bytes());
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

    #[test]
    fn plans_beyond_all_measure_are_refused() {
        let large = bert_shape(24, 1024, 16);
        assert!(check_sizes(&Graph::new(&large, 512)).is_ok());
        let mut shape = large.clone();
        shape.vocab = 1 << 20;
        let error = check_sizes(&Graph::new(&shape, 512)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the masked input has 537134080 elements, the limit is 67108864"
        );
        let mut shape = large;
        (shape.layers, shape.heads) = (96, 128);
        let error = check_sizes(&Graph::new(&shape, 512)).unwrap_err();
        assert!(
            error.to_string().starts_with("all values together"),
            "{error}"
        );
        (shape.layers, shape.hidden) = (1, 4096);
        assert!(check_sizes(&Graph::new(&shape, 512)).is_ok());
    }
}

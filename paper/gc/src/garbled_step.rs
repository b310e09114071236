//! A plan compiled: for every step its circuits, how often each is used, and what the garbler
//! gives.
//!
//! Counting, garbling and evaluating all go by this. Counting multiplies; nothing here grows with
//! the number of instances.

use crate::chain::{Chain, Links};
use crate::compile::compile;
use crate::error::Result;
use crate::given::Given;
use crate::spec::Spec;
use primer_garble::circuit::Circuit;
use primer_plan::graph::{Graph, ValueId};
use primer_plan::plan::Plan;
use std::sync::Arc;

/// Circuits built so far: equal descriptions share one.
#[derive(Default)]
pub(crate) struct Circuits {
    built: Vec<(Spec, Arc<Circuit>)>,
}

impl Circuits {
    /// Returns the circuit of a description.
    pub(crate) fn get(&mut self, spec: Spec) -> Result<Arc<Circuit>> {
        if let Some((_, circuit)) = self.built.iter().find(|(known, _)| *known == spec) {
            return Ok(Arc::clone(circuit));
        }
        let circuit = Arc::new(spec.build()?);
        self.built.push((spec, Arc::clone(&circuit)));
        Ok(circuit)
    }
}

/// A circuit and how often it runs.
pub(crate) struct Use<'a> {
    pub(crate) circuit: &'a Circuit,
    pub(crate) instances: usize,
    /// How often each instance runs it.
    pub(crate) links: usize,
}

impl<'a> Use<'a> {
    pub(crate) fn once(circuit: &'a Circuit, instances: usize) -> Self {
        Self {
            circuit,
            instances,
            links: 1,
        }
    }
}

/// The look-up of embeddings.
pub(crate) struct Embed {
    pub(crate) tokens: usize,
    pub(crate) cols: usize,
    /// Entries of words and of types.
    pub(crate) entries: [usize; 2],
    pub(crate) one_hot: [Arc<Circuit>; 2],
    pub(crate) select: [Links; 2],
    pub(crate) read: Arc<Circuit>,
    pub(crate) bits: usize,
    pub(crate) given: [Given; 2],
}

/// The dense term of a linear step.
pub(crate) struct Dense {
    pub(crate) input: ValueId,
    /// The negative sum of a row.
    pub(crate) sum: Arc<Circuit>,
    pub(crate) weights: Given,
}

/// The diagonal term of a linear step.
pub(crate) struct Diagonal {
    pub(crate) input: ValueId,
    pub(crate) sum: Arc<Circuit>,
    /// The products with the means, subtracted from the negative sum of the dense term.
    pub(crate) means: Chain,
    pub(crate) given: [Given; 3],
}

/// A product with weights.
pub(crate) struct Linear {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) dense: Option<Dense>,
    pub(crate) diagonal: Option<Diagonal>,
    pub(crate) constants: Given,
    pub(crate) chain: Chain,
    pub(crate) bits: usize,
}

/// Which products of two secrets.
#[derive(Clone, Copy)]
pub(crate) enum Factors {
    Scores {
        query: ValueId,
        key: ValueId,
    },
    Mix {
        probabilities: ValueId,
        value: ValueId,
    },
    Squares {
        input: ValueId,
    },
}

/// Sums of products of two secrets.
pub(crate) struct Secret {
    pub(crate) factors: Factors,
    pub(crate) instances: usize,
    pub(crate) cols: usize,
    /// Negative sums over the factors, with how many there are.
    pub(crate) sums: [(Arc<Circuit>, usize); 2],
    pub(crate) chain: Chain,
    pub(crate) bits: usize,
}

/// What a step is.
pub(crate) enum GarbledStep {
    Embed(Box<Embed>),
    Linear(Box<Linear>),
    Secret(Box<Secret>),
    Scale {
        input: ValueId,
        factor: ValueId,
        circuit: Arc<Circuit>,
        bits: usize,
    },
    /// A function, on rows of `row` elements.
    Function {
        input: ValueId,
        circuit: Arc<Circuit>,
        row: usize,
        /// Whether the row's padding goes in too.
        masked: bool,
        bits: usize,
    },
    /// Nothing: the bits that are wanted were read already.
    Requantise(ValueId),
}

impl GarbledStep {
    /// Lists the circuits of the step.
    pub(crate) fn uses<'a>(&'a self, graph: &Graph, output: ValueId) -> Vec<Use<'a>> {
        let value = graph.value(output);
        let size = value.rows * value.cols;
        match self {
            Self::Embed(e) => {
                let mut uses = vec![Use::once(&e.read, size)];
                uses.extend(e.one_hot.iter().map(|c| Use::once(c, e.tokens)));
                uses.extend(e.select.iter().flat_map(|s| s.uses(size)));
                uses
            }
            Self::Linear(l) => {
                let mut uses = l.chain.uses(size);
                uses.extend(l.dense.iter().map(|d| Use::once(&d.sum, l.rows)));
                if let Some(d) = &l.diagonal {
                    uses.push(Use::once(&d.sum, l.rows));
                    uses.extend(d.means.uses(l.rows));
                }
                uses
            }
            Self::Secret(s) => {
                let mut uses = s.chain.uses(s.instances);
                uses.extend(s.sums.iter().map(|(c, n)| Use::once(c, *n)));
                uses
            }
            Self::Scale { circuit, .. } => vec![Use::once(circuit, size)],
            Self::Function { circuit, row, .. } => vec![Use::once(circuit, size / row)],
            Self::Requantise(_) => Vec::new(),
        }
    }

    /// Lists what the garbler gives for the step.
    pub(crate) fn given(&self) -> Vec<Given> {
        match self {
            Self::Embed(e) => e.given.to_vec(),
            Self::Linear(l) => {
                let mut given = vec![l.constants];
                given.extend(l.dense.iter().map(|d| d.weights));
                given.extend(l.diagonal.iter().flat_map(|d| d.given));
                given
            }
            Self::Secret(_) | Self::Scale { .. } | Self::Function { .. } | Self::Requantise(_) => {
                Vec::new()
            }
        }
    }
}

/// A plan with the work of every step.
pub(crate) struct Program {
    plan: Plan,
    work: Vec<GarbledStep>,
}

impl Program {
    /// Compiles a plan.
    pub(crate) fn new(plan: &Plan) -> Result<Self> {
        Ok(Self {
            plan: plan.clone(),
            work: compile(plan)?,
        })
    }

    /// Returns the plan.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the work of a step.
    pub(crate) fn work(&self, index: usize) -> &GarbledStep {
        &self.work[index]
    }
}

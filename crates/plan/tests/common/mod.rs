//! A small BERT with plausible ranges.
#![allow(dead_code, unreachable_pub)] // Every test file uses a part.

pub mod roles;

use primer_plan::assign::{self, AssignError, Columns, Observation, WeightRange, assign_by};
use primer_plan::design::{Design, LookedUp};
use primer_plan::function::Activation;
use primer_plan::graph::{Graph, ValueId};
use primer_plan::plan::{Plan, PlanError};
use primer_plan::scales::Scales;
use primer_plan::shape::{Family, Head, Shape};

pub fn shape() -> Shape {
    Shape {
        family: Family::Bert,
        layers: 2,
        hidden: 64,
        embedding: 64,
        heads: 4,
        ffn: 256,
        vocab: 100,
        positions: 32,
        types: 2,
        activation: Activation::GeluErf,
        epsilon: 1e-12,
        head: Head::classify(vec!["no".into(), "yes".into()]),
    }
}

/// What a calibration would have seen; tests change it.
pub struct Calibration {
    pub design: &'static dyn Design,
    pub graph: Graph,
    pub values: Vec<Observation>,
    pub columns: Columns,
    pub weights: Vec<WeightRange>,
}

impl Calibration {
    pub fn plausible(shape: &Shape) -> Self {
        Self::by(&LookedUp, shape)
    }

    /// Makes the same for the graph of another design.
    pub fn by(design: &'static dyn Design, shape: &Shape) -> Self {
        let graph = Graph::by(design, shape, 1);
        let values = graph
            .values
            .iter()
            .map(|value| match value.name.rsplit('.').next() {
                // Squares of 64 features of size 2, and what a root makes of them.
                Some("squares") => range(50.0, 256.0),
                Some("root") => range(0.4, 1.2),
                _ => range(-4.0, 5.0),
            })
            .collect();
        let weights = graph.weights.iter().map(|_| WeightRange {
            max_abs: 0.8,
            mean_max_abs: 0.02,
            column: 2.0,
            norm: 0.0,
        });
        Self {
            design,
            values,
            columns: Columns::new(),
            weights: weights.collect(),
            graph,
        }
    }

    pub fn id(&self, name: &str) -> ValueId {
        self.graph
            .value_ids()
            .find(|id| self.graph.value(*id).name == name)
            .unwrap_or_else(|| panic!("no value {name}"))
    }

    pub fn set(&mut self, name: &str, seen: Observation) {
        let id = self.id(name);
        self.values[id.index()] = seen;
    }

    pub fn assign(&self) -> Result<Scales, AssignError> {
        let mut seen = assign::Observations::of(self.values.clone());
        seen.columns.clone_from(&self.columns);
        assign_by(self.design, &self.graph, &seen, &self.weights)
    }

    /// Joins scales to a plan over eight tokens.
    pub fn with(&self, scales: Scales) -> Result<Plan, PlanError> {
        Plan::by(self.design, &self.graph.shape, 8, scales)
    }

    pub fn plan(&self) -> Plan {
        self.with(self.assign().unwrap()).unwrap()
    }
}

pub fn range(min: f64, max: f64) -> Observation {
    Observation {
        min,
        max,
        min_row_max: max / 2.0,
    }
}

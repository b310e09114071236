//! Counts of what a graph costs: multiplications, elements, stops.

use crate::graph::{Graph, Op, PaperStep, Step, StopFunction, WeightKind};
use serde::Serialize;
use std::collections::BTreeMap;

/// Counts of one step of the paper's table, or of a whole inference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Multiplications by weights (the embedding counts as the dense product that hides it).
    pub weight_products: u64,
    /// Multiplications of two secret values.
    pub secret_products: u64,
    /// Elements that pass through each kind of stop.
    pub stop_elements: BTreeMap<StopFunction, u64>,
    /// Stops, each an interaction.
    pub stops: u64,
}

impl Counts {
    fn add(&mut self, graph: &Graph, step: &Step) {
        let out = graph.value(step.output());
        let size = (out.rows * out.cols) as u64;
        match &step.op {
            Op::Embed { table, .. } => {
                self.weight_products += size * graph.weight(*table).rows as u64;
            }
            Op::Linear { terms, .. } => {
                for term in terms {
                    let weight = graph.weight(term.weight);
                    self.weight_products += match weight.kind {
                        WeightKind::Diagonal => 2 * size,
                        WeightKind::Dense | WeightKind::Bias => size * weight.rows as u64,
                    };
                }
            }
            Op::Scores { .. } => {
                self.secret_products += size * graph.shape.head_size() as u64;
            }
            Op::MergedScores { input, weight, .. } => {
                let (rows, weight) = (graph.value(*input).rows, graph.weight(*weight));
                self.weight_products += (rows * weight.rows * weight.cols) as u64;
                self.secret_products += size * weight.rows as u64;
            }
            Op::Mix { .. } => self.secret_products += size * graph.tokens as u64,
            Op::SquareSum { input, .. } | Op::Pool { input, .. } => {
                let input = graph.value(*input);
                self.secret_products += (input.rows * input.cols) as u64;
            }
            Op::ScaleRows { .. } => self.secret_products += size,
            Op::Exponents { .. } | Op::RowSum { .. } | Op::Kept { .. } => {}
            Op::Stop { function, .. } => {
                *self.stop_elements.entry(*function).or_default() += size;
                self.stops += 1;
            }
        }
    }
}

impl Graph {
    /// Counts a whole inference.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for step in &self.steps {
            counts.add(self, step);
        }
        counts
    }

    /// Counts each step of the paper's table.
    pub fn counts_by_step(&self) -> BTreeMap<PaperStep, Counts> {
        let mut by_step: BTreeMap<PaperStep, Counts> = BTreeMap::new();
        for step in &self.steps {
            by_step.entry(step.paper).or_default().add(self, step);
        }
        by_step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::Activation;
    use crate::shape::{Family, Head, Shape};

    fn bert_base() -> Shape {
        Shape {
            family: Family::Bert,
            layers: 12,
            hidden: 768,
            embedding: 768,
            heads: 12,
            ffn: 3072,
            vocab: 30_522,
            positions: 512,
            types: 2,
            activation: Activation::GeluErf,
            epsilon: 1e-12,
            head: Head::classify(vec!["a".into(), "b".into()]),
        }
    }

    #[test]
    fn bert_base_has_the_elements_of_the_design() {
        let counts = Graph::new(&bert_base(), 30).counts();
        let elements = |f| counts.stop_elements[&f];
        let scores = 12 * 10_800;
        for function in [StopFunction::CoarseMaximum, StopFunction::Power] {
            assert_eq!(elements(function), scores);
        }
        assert_eq!(elements(StopFunction::Reciprocal), 12 * 360);
        assert_eq!(elements(StopFunction::Activation), 12 * 92_160);
        // Per layer: Q, K, V, attention, probabilities, and twice two for the LayerNorms; the
        // embedding's LayerNorm once; the logits.
        assert_eq!(
            elements(StopFunction::Requantise),
            12 * (69_120 + 5 * 23_040) + scores + 2 * 23_040 + 2
        );
        assert_eq!(elements(StopFunction::InverseRoot), 25 * 30);
        assert_eq!(elements(StopFunction::Tanh), 768);
        // Words, types and positions.
        let embedding = 30 * 768 * (30_524 + 512);
        let dense = 30 * 768 * (4 * 768 + 2 * 3072) * 12 + embedding + 768 * 768 + 768 * 2;
        let residual = 2 * 2 * 30 * 768 * 12;
        assert_eq!(counts.weight_products, dense + residual);
        let attention = 2 * 12 * 30 * 30 * 64 * 12;
        let norms = 2 * 30 * 768 * 25;
        assert_eq!(counts.secret_products, attention + norms + scores);
    }

    #[test]
    fn steps_add_up() {
        let graph = Graph::new(&bert_base(), 7);
        let total = graph.counts();
        let parts = graph.counts_by_step();
        assert_eq!(parts.len(), PaperStep::ALL.len());
        assert_eq!(parts.values().map(|c| c.stops).sum::<u64>(), total.stops);
        assert_eq!(
            parts.values().map(|c| c.weight_products).sum::<u64>(),
            total.weight_products
        );
    }
}

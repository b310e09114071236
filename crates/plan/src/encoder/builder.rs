//! A graph under construction: the pieces that encoders are made of.

use crate::graph::{
    Graph, Op, PaperStep, Step, StopFunction, Term, Value, ValueId, Weight, WeightId, WeightKind,
};
use crate::role::{LinearMap, ValueRole};
use crate::shape::Shape;

/// A graph that is being made.
#[derive(Debug)]
pub struct Builder {
    /// What there is of it.
    pub(super) graph: Graph,
    /// Where the steps that are added next belong in the paper's table.
    pub(super) paper: PaperStep,
    /// The layer that they are in, if they are in one.
    pub(super) layer: Option<usize>,
}

impl Builder {
    /// Starts a graph without steps.
    pub(super) fn new(shape: &Shape, tokens: usize) -> Self {
        let graph = Graph {
            shape: shape.clone(),
            tokens,
            values: Vec::new(),
            weights: Vec::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
        };
        Self {
            graph,
            paper: PaperStep::Embed,
            layer: None,
        }
    }

    /// Returns the shape of the model.
    pub const fn shape(&self) -> &Shape {
        &self.graph.shape
    }

    fn name(&self, name: &str) -> String {
        match self.layer {
            Some(layer) => format!("layer{layer}.{name}"),
            None => name.to_owned(),
        }
    }

    /// Adds a value.
    pub fn value(&mut self, name: &str, role: ValueRole, rows: usize, cols: usize) -> ValueId {
        self.graph.values.push(Value {
            name: self.name(name),
            role,
            rows,
            cols,
        });
        ValueId(self.graph.values.len() - 1)
    }

    /// Adds a weight of the map `map`.
    pub fn weight(
        &mut self,
        map: LinearMap,
        kind: WeightKind,
        rows: usize,
        cols: usize,
    ) -> WeightId {
        self.graph.weights.push(Weight {
            name: self.name(&map.weight_name(kind)),
            layer: self.layer,
            map,
            kind,
            rows,
            cols,
        });
        WeightId(self.graph.weights.len() - 1)
    }

    /// Adds a step.
    pub fn push(&mut self, op: Op) {
        self.graph.steps.push(Step {
            paper: self.paper,
            layer: self.layer,
            op,
        });
    }

    /// Returns the rows of a value.
    pub fn rows(&self, id: ValueId) -> usize {
        self.graph.value(id).rows
    }

    /// Returns the columns of a value.
    pub fn cols(&self, id: ValueId) -> usize {
        self.graph.value(id).cols
    }

    /// Adds the step `input · W + bias`, with the residual connection if there is one.
    pub(super) fn linear(
        &mut self,
        map: LinearMap,
        role: ValueRole,
        input: ValueId,
        (rows, cols): (usize, usize),
        residual: Option<ValueId>,
    ) -> ValueId {
        let weight = self.weight(map, WeightKind::Dense, self.cols(input), cols);
        let mut terms = vec![Term { input, weight }];
        if let Some(skipped) = residual {
            let weight = self.weight(map, WeightKind::Diagonal, 1, cols);
            terms.push(Term {
                input: skipped,
                weight,
            });
        }
        let bias = self.weight(map, WeightKind::Bias, 1, cols);
        let output = self.value(&format!("{}.sum", map.name()), role, rows, cols);
        self.push(Op::Linear {
            terms,
            bias,
            output,
        });
        output
    }

    /// Adds a stop.
    pub fn stop(
        &mut self,
        name: &str,
        role: ValueRole,
        function: StopFunction,
        input: ValueId,
    ) -> ValueId {
        let output = self.value(name, role, self.rows(input), self.cols(input));
        self.push(Op::Stop {
            function,
            input,
            output,
        });
        output
    }

    /// Adds a stop without a function, which leaves the value what it is.
    pub fn requantise(&mut self, name: &str, input: ValueId) -> ValueId {
        let role = self.graph.value(input).role;
        self.stop(name, role, StopFunction::Requantise, input)
    }

    /// Adds LayerNorm without gain and shift, of an accumulator that is already centred.
    pub(super) fn norm(&mut self, name: &str, sum: ValueId) -> ValueId {
        let (rows, cols) = (self.rows(sum), self.cols(sum));
        let centred = self.requantise(&format!("{name}.centred"), sum);
        let squares = self.value(&format!("{name}.squares"), ValueRole::SquareSum, rows, 1);
        self.push(Op::SquareSum {
            input: centred,
            output: squares,
        });
        let root = format!("{name}.root");
        let root = self.stop(
            &root,
            ValueRole::InverseRoot,
            StopFunction::InverseRoot,
            squares,
        );
        let scaled = self.value(&format!("{name}.scaled"), ValueRole::Hidden, rows, cols);
        self.push(Op::ScaleRows {
            input: centred,
            factor: root,
            output: scaled,
        });
        self.requantise(name, scaled)
    }

    /// Adds a projection of the layer's input, requantised.
    pub fn projection(&mut self, map: LinearMap, role: ValueRole, x: ValueId) -> ValueId {
        self.paper = PaperStep::Qkv;
        let size = (self.graph.tokens, self.graph.shape.hidden);
        let sum = self.linear(map, role, x, size, None);
        self.requantise(map.name(), sum)
    }

    /// Adds the value of the scores, which the next step makes.
    pub fn scores(&mut self) -> ValueId {
        self.paper = PaperStep::Qk;
        let (n, heads) = (self.graph.tokens, self.graph.shape.heads);
        self.value("scores", ValueRole::Scores, heads * n, n)
    }

    /// Adds the scores and the values, from queries and keys.
    pub fn projected_scores(&mut self, x: ValueId) -> (ValueId, ValueId) {
        let query = self.projection(LinearMap::Query, ValueRole::Query, x);
        let key = self.projection(LinearMap::Key, ValueRole::Key, x);
        let value = self.projection(LinearMap::Value, ValueRole::Value, x);
        let output = self.scores();
        self.push(Op::Scores { query, key, output });
        (output, value)
    }
}

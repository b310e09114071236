//! The steps of an encoder and the values between them: structure without numbers.
//!
//! A [`Graph`] holds the order of operations in an encoder, which [`crate::encoder`] alone knows.
//! It is built from a [`Shape`] and a number of tokens ([`crate::encoder`]), and all of these walk
//! it: the float reference, the fixed-point reference, both parties of the protocol, the cost
//! estimate and the printer.
//!
//! Values alternate between two kinds. An *accumulator* is the exact result of a linear step at
//! a fine scale; a *fixed* value is an accumulator after a stop (a requantisation or a non-linear
//! function) has brought it back to few bits. Linear steps read fixed values only.

use crate::role::{LinearMap, ValueRole, WeightKey};
use crate::shape::Shape;
use serde::{Deserialize, Serialize};

pub use crate::step::{Op, PaperStep, Step, StopFunction, Term};

/// A value's place in [`Graph::values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ValueId(pub(crate) usize);

impl ValueId {
    /// Returns the index into [`Graph::values`].
    pub const fn index(self) -> usize {
        self.0
    }
}

/// A weight's place in [`Graph::weights`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WeightId(pub(crate) usize);

impl WeightId {
    /// Returns the index into [`Graph::weights`].
    pub const fn index(self) -> usize {
        self.0
    }
}

/// A matrix that exists between two steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// Its name, for people and for error messages.
    pub name: String,
    /// What it is.
    pub role: ValueRole,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
}

/// How a weight is laid out and what it may be folded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WeightKind {
    /// A full matrix.
    Dense,
    /// `x ↦ g⊙x - ⟨h, x⟩`: a gain for every column, and a mean that is subtracted from all
    /// of them (one row each).
    Diagonal,
    /// Added to an accumulator at its own scale.
    Bias,
}

/// A matrix that the server holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weight {
    /// Its name, for people and for error messages.
    pub name: String,
    /// The layer, counted from 0, if it is in one.
    pub layer: Option<usize>,
    /// The linear map that it belongs to.
    pub map: LinearMap,
    /// Its form.
    pub kind: WeightKind,
    /// Rows (inputs).
    pub rows: usize,
    /// Columns (outputs).
    pub cols: usize,
}

impl Weight {
    /// Returns what distinguishes it from all other weights of its model.
    pub const fn key(&self) -> WeightKey {
        WeightKey {
            layer: self.layer,
            map: self.map,
            kind: self.kind,
        }
    }
}

/// The first LayerNorm of a graph whose embedded rows have signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed {
    /// The roots, which get signs of their own.
    pub factor: ValueId,
    /// The scaled rows, from which all signs are removed.
    pub output: ValueId,
}

/// The steps of one inference over a number of tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// The model's shape.
    pub shape: Shape,
    /// Tokens of the padded input.
    pub tokens: usize,
    /// Every intermediate value.
    pub values: Vec<Value>,
    /// Every weight.
    pub weights: Vec<Weight>,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// The values that the client learns at the end.
    pub outputs: Vec<ValueId>,
}

impl Graph {
    /// Returns a value by its identifier.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0]
    }

    /// Returns a weight by its identifier.
    pub fn weight(&self, id: WeightId) -> &Weight {
        &self.weights[id.0]
    }

    /// Returns the identifiers of all weights in order.
    pub fn weight_ids(&self) -> impl Iterator<Item = WeightId> + use<> {
        (0..self.weights.len()).map(WeightId)
    }

    /// Returns the identifiers of all values in order.
    pub fn value_ids(&self) -> impl Iterator<Item = ValueId> + use<> {
        (0..self.values.len()).map(ValueId)
    }

    /// Returns the step that makes `value`.
    ///
    /// # Panics
    /// If the value belongs to another graph.
    pub fn maker(&self, value: ValueId) -> &Step {
        let made = self.steps.iter().find(|step| step.output() == value);
        made.expect("every value is made by a step")
    }

    /// Returns the steps that read `value`, in order.
    pub fn readers(&self, value: ValueId) -> impl Iterator<Item = &Step> {
        let steps = self.steps.iter();
        steps.filter(move |step| step.inputs().contains(&value))
    }

    /// Returns the accumulator that a stop turned into the value `fixed`.
    ///
    /// # Panics
    /// If the value is not fixed.
    pub fn accumulator_of(&self, fixed: ValueId) -> ValueId {
        match self.maker(fixed).op {
            Op::Stop { input, .. } => input,
            _ => panic!("{} is an accumulator itself", self.value(fixed).name),
        }
    }

    /// Tells whether `sum` is revealed once it is requantised.
    pub fn is_revealed(&self, sum: ValueId) -> bool {
        let revealed = |step: &Step| match step.op {
            Op::Stop {
                function: StopFunction::Requantise,
                output,
                ..
            } => self.outputs.contains(&output),
            _ => false,
        };
        self.readers(sum).any(revealed)
    }

    /// Returns the number of features whose squares the value `squares` adds up.
    ///
    /// # Panics
    /// If the value is not a sum of squares.
    pub fn squared_width(&self, squares: ValueId) -> usize {
        match self.maker(squares).op {
            Op::SquareSum { input, .. } => self.value(input).cols,
            _ => panic!("{} is no sum of squares", self.value(squares).name),
        }
    }

    /// Tells whether positions are rows of the embedding table, so that a one-hot row stands for a
    /// whole embedding. Otherwise they are a weight of their own.
    pub fn positions_are_rows(&self) -> bool {
        let own =
            |step: &Step| matches!(step.op, Op::Embed { positions, .. } if positions.is_some());
        !self.steps.iter().any(own)
    }

    /// Returns the number of columns of the private one-hot rows: those of words, token types and,
    /// where they are rows of the table, positions.
    pub fn one_hot(&self) -> usize {
        match self.positions_are_rows() {
            true => self.shape.one_hot() + self.shape.positions,
            false => self.shape.one_hot(),
        }
    }

    /// Returns where the signs of embedded rows are removed, or `None` if rows have no signs.
    ///
    /// Where one-hot rows stand for whole embeddings, the embedding leaves `σ·x` for every row `x`,
    /// with a sign `σ` that the client knows. It does not change LayerNorm's squares. Its roots get
    /// random signs `π` that the client draws, and the product of both is a public sign for each
    /// row of `σ·x·π·root`.
    pub fn signed(&self) -> Option<Signed> {
        if !self.positions_are_rows() {
            return None;
        }
        // Nothing but the first LayerNorm scales rows before the first layer.
        self.steps.iter().find_map(|step| match step.op {
            Op::ScaleRows { factor, output, .. } => Some(Signed { factor, output }),
            _ => None,
        })
    }

    /// Returns for every value the index of the last step that reads it, after which it can be
    /// dropped.
    pub fn last_uses(&self) -> Vec<usize> {
        let mut last = vec![0; self.values.len()];
        for (i, step) in self.steps.iter().enumerate() {
            for input in step.inputs() {
                last[input.0] = i;
            }
        }
        for output in &self.outputs {
            last[output.0] = self.steps.len();
        }
        last
    }
}

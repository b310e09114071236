//! A whole inference on encrypted vectors: the graph's steps in the packing of [`crate::packing`].
//!
//! The client's one-hot rows (word and type) go in, logits come out. How the steps become levels:
//!
//! * **Linear maps** take one. The scale and shift of their result on the way into a polynomial are
//!   carried by their weights, so that polynomials see numbers in `[-1, 1]` at no cost.
//! * **LayerNorm**: squares, a sum over features by rotations, the polynomial of the reciprocal
//!   root, one product.
//! * **Scores**: for every distance `δ` between query and key, keys are shifted by `δ` tokens (one
//!   level) and multiplied with the queries; the sum over a head's features is by rotations, as the
//!   head is the fastest index of a feature. There is one vector for each `δ`.
//! * **Softmax**: squarings, the masked sum, the reciprocal's polynomial, whose coefficients are
//!   each head's own. The division waits until values have been mixed: that saves a level, as both
//!   run side by side.
//! * **Padding** is private: the client sends its mask encrypted.

use crate::arithmetic::{Arithmetic, Location};
use crate::chebyshev::Chebyshev;
use crate::evaluation::evaluate;
use crate::packing::{Packed, capacity, fold, linear, lowered, shift_tokens};
use crate::polynomials::{Polynomials, Softmax, class};
use crate::scales::{Into, root_gain, scales, slope, start_gain};
use primer_model::fold::{FloatWeight, FloatWeights};
use primer_plan::graph::{Graph, Op, StopFunction, Term, ValueId, WeightId};
use primer_plan::role::ValueRole;
use primer_plan::shape::{Head, Shape};

/// What the client sends: vectors at the top level.
pub struct Inputs<V> {
    /// One-hot rows, words and types.
    pub rows: Packed<V>,
    /// 1 at real tokens, for all features, and 0 at padded ones.
    pub mask: V,
}

/// Widths as packed: powers of two.
pub struct Widths {
    /// Tokens.
    pub tokens: usize,
    /// Heads, and features of a head.
    pub heads: usize,
    /// Features of a head.
    pub head: usize,
}

impl Widths {
    /// Returns the widths of a shape over a number of tokens.
    pub fn of(shape: &Shape, tokens: usize) -> Self {
        Self {
            tokens: tokens.next_power_of_two(),
            heads: shape.heads.next_power_of_two(),
            head: shape.head_size().next_power_of_two(),
        }
    }

    /// Returns where a feature of queries, keys and values lies: heads side by side become the
    /// fastest index.
    fn attention(&self, shape: &Shape, j: usize) -> Option<usize> {
        let (head, feature) = (j % self.heads, j / self.heads);
        (head < shape.heads && feature < shape.head_size())
            .then(|| head * shape.head_size() + feature)
    }
}

/// Returns the width of the client's one-hot rows.
pub fn input_width(shape: &Shape) -> usize {
    (shape.vocab + shape.types).next_power_of_two()
}

enum Held<V> {
    Matrix(Packed<V>),
    Scores(Vec<V>),
    /// Exponentials for every distance, and the reciprocal of their sum.
    Softmax(Vec<V>, V),
}

/// The model that is walked; a count needs no weights.
pub struct PackedWalk<'a, A: Arithmetic> {
    arithmetic: &'a mut A,
    graph: &'a Graph,
    weights: Option<&'a FloatWeights>,
    polynomials: &'a Polynomials,
    widths: Widths,
    /// For each value, how it goes into its polynomial, in the first token and in the others.
    into: Vec<[Into; 2]>,
    values: Vec<Option<Held<A::Value>>>,
}

impl<'a, A: Arithmetic> PackedWalk<'a, A> {
    /// Begins a walk over a classifier's graph.
    ///
    /// # Panics
    /// If the tokens are not a power of two, the model is not a classifier, or its width does not
    /// fit one vector.
    pub fn new(
        arithmetic: &'a mut A,
        graph: &'a Graph,
        weights: Option<&'a FloatWeights>,
        polynomials: &'a Polynomials,
    ) -> Self {
        let widths = Widths::of(&graph.shape, graph.tokens);
        assert!(graph.tokens == widths.tokens && matches!(graph.shape.head, Head::Classify { .. }));
        let width = graph.shape.hidden.next_power_of_two();
        assert!(
            width.max(widths.heads * widths.head) <= capacity(arithmetic.slots(), graph.tokens)
        );
        let into = scales(graph, polynomials);
        Self {
            arithmetic,
            values: graph.values.iter().map(|_| None).collect(),
            graph,
            weights,
            polynomials,
            widths,
            into,
        }
    }

    /// Runs all of it and returns the logits, label `j` in the slot of feature `j` and the first
    /// token.
    pub fn run(mut self, inputs: &Inputs<A::Value>) -> A::Value {
        let last = self.graph.last_uses();
        let graph = self.graph;
        for (index, step) in graph.steps.iter().enumerate() {
            self.arithmetic.enter(Location {
                step: step.paper,
                in_layer: step.layer.is_some(),
            });
            let value = self.step(&step.op, inputs);
            self.values[step.output().index()] = Some(value);
            for read in step.inputs() {
                if last[read.index()] == index {
                    self.values[read.index()] = None;
                }
            }
        }
        match self.values[graph.outputs[0].index()].take() {
            Some(Held::Matrix(mut logits)) => logits.parts.remove(0),
            _ => unreachable!("logits are a matrix"),
        }
    }

    fn matrix(&self, id: ValueId) -> &Packed<A::Value> {
        match &self.values[id.index()] {
            Some(Held::Matrix(matrix)) => matrix,
            _ => unreachable!("the graph's steps fit each other"),
        }
    }

    fn take(&mut self, id: ValueId) -> Held<A::Value> {
        self.values[id.index()].take().expect("steps come in order")
    }

    /// Returns the elements of a dense weight or a bias; zero outside.
    fn element(&self, id: WeightId) -> impl Fn(usize, usize) -> f64 + use<'a, A> {
        let weight = self.weights.map(|w| &*w.all()[id.index()]);
        move |i, j| match weight {
            Some(FloatWeight::Dense(m) | FloatWeight::Bias(m)) if i < m.rows() && j < m.cols() => {
                f64::from(m.get(i, j))
            }
            _ => 0.0,
        }
    }

    fn step(&mut self, op: &Op, inputs: &Inputs<A::Value>) -> Held<A::Value> {
        match op {
            Op::Embed {
                table,
                positions: Some(positions),
                output,
            } => {
                let into = &self.into[output.index()];
                let by = |t: usize| into[class(t)].gain(0);
                let width = self.graph.shape.hidden.next_power_of_two();
                let (table, positions) = (self.element(*table), self.element(*positions));
                let tokens = self.graph.tokens;
                let mut x = linear(self.arithmetic, tokens, &inputs.rows, width, &|i, j, t| {
                    by(t) * table(i, j)
                });
                let place = |s: usize| by(s % tokens) * positions(s % tokens, s / tokens % width);
                self.arithmetic.add_slots(&mut x.parts[0], &place);
                Held::Matrix(x)
            }
            Op::Linear {
                terms,
                bias,
                output,
            } => Held::Matrix(self.linear(terms, *bias, *output)),
            Op::Scores { query, key, .. } => Held::Scores(self.scores(*query, *key)),
            Op::Embed {
                positions: None, ..
            }
            | Op::MergedScores { .. } => {
                unreachable!("the comparator projects queries and keys, and adds positions")
            }
            Op::Exponents { .. } | Op::RowSum { .. } => {
                unreachable!("the comparator has whole functions")
            }
            Op::Kept { .. } | Op::Pool { .. } => unreachable!("the comparator has classifiers"),
            Op::Mix {
                probabilities,
                value,
                ..
            } => Held::Matrix(self.mix(*probabilities, *value, inputs)),
            Op::SquareSum { input, .. } => {
                let x = self.matrix(*input);
                let width = x.width;
                // A copy in place of a borrow: the arithmetic is borrowed too.
                let x = self.arithmetic.copy(&x.parts[0]);
                let mut squares = self.arithmetic.products(&[(&x, &x)]);
                let times = width.trailing_zeros();
                fold(self.arithmetic, &mut squares, self.graph.tokens, times);
                self.one(squares, width)
            }
            Op::ScaleRows { input, factor, .. } => {
                let (x, by) = (self.matrix(*input), self.matrix(*factor));
                let width = x.width;
                let x = self.arithmetic.copy(&x.parts[0]);
                let by = self.arithmetic.copy(&by.parts[0]);
                let level = self.arithmetic.level(&by);
                let x = lowered(self.arithmetic, &x, level);
                let scaled = self.arithmetic.products(&[(&x, &by)]);
                self.one(scaled, width)
            }
            Op::Stop {
                function, input, ..
            } => self.stop(*function, *input, inputs),
        }
    }

    fn one(&self, value: A::Value, width: usize) -> Held<A::Value> {
        Held::Matrix(Packed {
            width,
            parts: vec![value],
        })
    }

    fn linear(&mut self, terms: &[Term], bias: WeightId, output: ValueId) -> Packed<A::Value> {
        let (shape, tokens) = (&self.graph.shape, self.graph.tokens);
        let into = self.into[output.index()].clone();
        let value = self.graph.value(output);
        let projects = matches!(
            value.role,
            ValueRole::Query | ValueRole::Key | ValueRole::Value
        );
        let attention = self.graph.value(terms[0].input).role == ValueRole::Mixed;
        let first_only = value.rows == 1;
        let width = if projects {
            self.widths.heads * self.widths.head
        } else {
            value.cols.next_power_of_two()
        };
        let column = |j: usize| match projects {
            true => self.widths.attention(shape, j).unwrap_or(usize::MAX),
            false => j,
        };
        let row = |i: usize| match attention {
            true => self.widths.attention(shape, i).unwrap_or(usize::MAX),
            false => i,
        };
        let gain = |j: usize, t: usize| into[class(t)].gain(j % self.widths.heads);
        let weight = self.element(terms[0].weight);
        let entries = |i: usize, j: usize, t: usize| match first_only && t > 0 {
            true => 0.0,
            false => gain(j, t) * weight(row(i), column(j)),
        };
        let Some(Held::Matrix(x)) = &self.values[terms[0].input.index()] else {
            unreachable!("the graph's steps fit each other")
        };
        let mut out = linear(self.arithmetic, tokens, x, width, &entries);
        let bias = self.element(bias);
        let most = capacity(self.arithmetic.slots(), tokens);
        for (p, part) in out.parts.iter_mut().enumerate() {
            let slots = |s: usize| match first_only && !s.is_multiple_of(tokens) {
                true => 0.0,
                false => {
                    let j = p * most + s / tokens % width.min(most);
                    let t = s % tokens;
                    gain(j, t) * bias(0, column(j)) + into[class(t)].shift
                }
            };
            self.arithmetic.add_slots(part, &slots);
        }
        if let Some(residual) = terms.get(1) {
            let level = self.arithmetic.level(&out.parts[0]);
            let skipped = self.residual(residual, &into, level);
            self.arithmetic.add(&mut out.parts[0], &skipped);
        }
        out
    }

    /// Computes `g⊙x - ⟨h, x⟩`, at a level.
    fn residual(&mut self, term: &Term, into: &[Into; 2], level: usize) -> A::Value {
        let tokens = self.graph.tokens;
        let weight = self.weights.map(|w| &*w.all()[term.weight.index()]);
        let x = self.matrix(term.input);
        let width = x.width;
        let original = self.arithmetic.copy(&x.parts[0]);
        let x = lowered(self.arithmetic, &original, level + 1);
        let element = |mean: bool, s: usize| match weight {
            Some(FloatWeight::Diagonal { gain, mean: h }) => {
                let values = if mean { h } else { gain };
                let at = values.get(s / tokens % width).copied();
                into[class(s % tokens)].gain(0) * f64::from(at.unwrap_or(0.0))
            }
            _ => 0.0,
        };
        let gains = self
            .arithmetic
            .weighted_sum(&[(&x, &|s| element(false, s))]);
        let mut out = self.arithmetic.rescale(gains);
        // The mean is taken off every real feature; where there are padded ones, they must stay
        // zero.
        let real = self.graph.shape.hidden;
        let padded = real < width;
        let from = if padded { level + 2 } else { level + 1 };
        let x = lowered(self.arithmetic, &original, from);
        let means = self.arithmetic.weighted_sum(&[(&x, &|s| element(true, s))]);
        let mut means = self.arithmetic.rescale(means);
        fold(self.arithmetic, &mut means, tokens, width.trailing_zeros());
        if padded {
            let keep = |s: usize| f64::from(u8::from(s / tokens % width < real));
            means = self.arithmetic.weighted_sum(&[(&means, &keep)]);
            means = self.arithmetic.rescale(means);
        }
        self.arithmetic.subtract(&mut out, &means);
        out
    }

    fn scores(&mut self, query: ValueId, key: ValueId) -> Vec<A::Value> {
        let tokens = self.graph.tokens;
        let query = self.arithmetic.copy(&self.matrix(query).parts[0]);
        let key = self.arithmetic.copy(&self.matrix(key).parts[0]);
        let level = self.arithmetic.level(&key);
        let keys = shift_tokens(self.arithmetic, tokens, &key, level);
        let query = lowered(self.arithmetic, &query, level - 1);
        let (step, times) = (
            self.widths.heads * tokens,
            self.widths.head.trailing_zeros(),
        );
        let one = |key| {
            let mut score = self.arithmetic.products(&[(&query, &key)]);
            fold(self.arithmetic, &mut score, step, times);
            score
        };
        keys.into_iter().map(one).collect()
    }

    fn stop(
        &mut self,
        function: StopFunction,
        input: ValueId,
        inputs: &Inputs<A::Value>,
    ) -> Held<A::Value> {
        let held = self.take(input);
        match (function, held) {
            (StopFunction::Requantise, held) => held,
            (StopFunction::Softmax, Held::Scores(scores)) => self.softmax(input, &scores, inputs),
            (_, Held::Matrix(mut matrix)) => {
                let (a, tokens) = (&mut *self.arithmetic, self.graph.tokens);
                let polynomials = self.polynomials.plain(input.index());
                let mut c = polynomials.each_ref().map(|p| p.coefficients().to_vec());
                if function == StopFunction::InverseRoot {
                    // LayerNorm's input was scaled for the sum of its squares; its root takes that
                    // back. The sum had no bias that its offset could ride on.
                    for (c, polynomial) in c.iter_mut().zip(polynomials) {
                        c.iter_mut().for_each(|c| *c /= root_gain(polynomial));
                    }
                    let offset = |s: usize| polynomials[class(s % tokens)].normalise(0.0);
                    for part in &mut matrix.parts {
                        a.add_slots(part, &offset);
                    }
                }
                let one = |x: &A::Value| evaluate(a, x, &c, &|s| class(s % tokens));
                let parts = matrix.parts.iter().map(one).collect();
                Held::Matrix(Packed {
                    width: matrix.width,
                    parts,
                })
            }
            _ => unreachable!("the graph's steps fit each other"),
        }
    }

    fn softmax(
        &mut self,
        input: ValueId,
        scores: &[A::Value],
        inputs: &Inputs<A::Value>,
    ) -> Held<A::Value> {
        let (a, tokens) = (&mut *self.arithmetic, self.graph.tokens);
        let softmax = self.polynomials.softmax(input.index());
        let factor = Softmax::factor(softmax.squarings);
        let heads = self.widths.heads;
        // The exponentials of heads that are only padding are zero: no sum leaves its range.
        let start = |s: usize| match softmax.heads[class(s % tokens)].get(s / tokens % heads) {
            Some(head) => (1.0 - factor * head.shift) * start_gain(head, softmax.squarings),
            None => 0.0,
        };
        let exponential = |score: &A::Value| {
            let mut x = a.copy(score);
            a.add_slots(&mut x, &start);
            for _ in 0..softmax.squarings {
                x = a.products(&[(&x, &x)]);
            }
            x
        };
        let exponentials: Vec<A::Value> = scores.iter().map(exponential).collect();
        let level = a.level(&exponentials[0]);
        let masks = shift_tokens(a, tokens, &inputs.mask, level + 1);
        let terms: Vec<_> = exponentials.iter().zip(&masks).collect();
        let mut sum = a.products(&terms);
        // All heads of the first query, then all heads of the others.
        let all: Vec<&Chebyshev> = (softmax.heads.iter().flatten())
            .map(|head| &head.reciprocal)
            .collect();
        let real = softmax.heads[0].len();
        let which = |s: usize| class(s % tokens) * real + (s / tokens % heads).min(real - 1);
        a.add_slots(&mut sum, &|s| all[which(s)].normalise(0.0));
        let coefficients: Vec<Vec<f64>> = (all.iter())
            .map(|r| r.coefficients().iter().map(|c| c * slope(r)).collect())
            .collect();
        let by = evaluate(a, &sum, &coefficients, &which);
        Held::Softmax(exponentials, by)
    }

    fn mix(
        &mut self,
        probabilities: ValueId,
        value: ValueId,
        inputs: &Inputs<A::Value>,
    ) -> Packed<A::Value> {
        let Held::Softmax(exponentials, by) = self.take(probabilities) else {
            unreachable!("the graph's steps fit each other")
        };
        let value = self.matrix(value);
        let width = value.width;
        let value = self.arithmetic.copy(&value.parts[0]);
        let (a, tokens) = (&mut *self.arithmetic, self.graph.tokens);
        let level = a.level(&exponentials[0]);
        // Padded keys must not be mixed in: masked, shifted and brought down to the exponentials.
        let value = lowered(a, &value, level + 2);
        let mask = lowered(a, &inputs.mask, level + 2);
        let value = a.products(&[(&value, &mask)]);
        let values = shift_tokens(a, tokens, &value, level + 1);
        let terms: Vec<_> = exponentials.iter().zip(&values).collect();
        let mixed = a.products(&terms);
        let mixed = lowered(a, &mixed, a.level(&by));
        let out = a.products(&[(&mixed, &by)]);
        Packed {
            width,
            parts: vec![out],
        }
    }
}

//! The float reference: the graph in single precision on one thread.
//!
//! It is the yardstick in two ways. Its results are compared with Hugging Face's own, and all
//! private results with its results; and the cost of privacy is measured against its speed, so it
//! uses a real matrix-product library and does little else.
//!
//! What happens at a stop comes from outside ([`Functions`]): the exact functions by default, or
//! others, to find out what they would do to the model's answers.

use crate::fold::{FloatWeight, FloatWeights};
use primer_plan::function::Activation;
use primer_plan::graph::{Graph, Op, StopFunction, Term, ValueId, WeightId};
use primer_plan::shape::{Head, Shape};
use primer_ring::gemm::{self, Layout};
use primer_ring::matrix::Matrix;
use primer_text::Input;
use std::sync::Arc;

/// Sees every value as it is made.
pub trait Observer {
    /// Takes a value with all its rows.
    fn value(&mut self, id: ValueId, value: &Matrix<f32>);
}

/// Sees nothing.
pub struct NoObserver;

impl Observer for NoObserver {
    fn value(&mut self, _: ValueId, _: &Matrix<f32>) {}
}

/// A stop that a walk over the graph has reached.
pub struct StopPoint<'a> {
    /// Which function the model has there.
    pub function: StopFunction,
    /// The value that it is applied to.
    pub input: ValueId,
    /// The model's shape.
    pub shape: &'a Shape,
    /// Features of a token: where a root is taken, those whose squares were added up.
    pub width: usize,
    /// Tokens of the input, and so keys of a row of scores.
    pub tokens: usize,
    /// Tokens before the padding.
    pub length: usize,
}

/// The functions of a model's stops.
pub trait Functions {
    /// Applies the function of a stop to all of its value.
    fn apply(&self, stop: &StopPoint<'_>, x: &mut Matrix<f32>);
}

/// The functions that the model was trained with.
pub struct Exact;

impl Functions for Exact {
    fn apply(&self, stop: &StopPoint<'_>, x: &mut Matrix<f32>) {
        match stop.function {
            StopFunction::Requantise => {}
            StopFunction::Softmax => {
                for r in 0..x.rows() {
                    softmax(x.row_mut(r), stop.length);
                }
            }
            StopFunction::Activation => {
                let f = activation(stop.shape.activation);
                x.data_mut().iter_mut().for_each(|v| *v = f(*v));
            }
            StopFunction::InverseRoot => {
                let epsilon = stop.shape.epsilon as f32;
                let width = stop.width as f32;
                x.data_mut()
                    .iter_mut()
                    .for_each(|v| *v = (*v / width + epsilon).sqrt().recip());
            }
            StopFunction::Tanh => x.data_mut().iter_mut().for_each(|v| *v = v.tanh()),
            StopFunction::Summary => {
                let Head::Classify { summary, .. } = &stop.shape.head else {
                    unreachable!("a classifier has a summary");
                };
                let f = activation(summary.activation().expect("not the tangent"));
                x.data_mut().iter_mut().for_each(|v| *v = f(*v));
            }
            StopFunction::CoarseMaximum => {
                for r in 0..x.rows() {
                    let row = x.row_mut(r);
                    let keys = row[..stop.length].iter().copied();
                    row.fill(keys.fold(f32::NEG_INFINITY, f32::max));
                }
            }
            StopFunction::Power => x.data_mut().iter_mut().for_each(|v| *v = v.exp2()),
            StopFunction::Reciprocal => x.data_mut().iter_mut().for_each(|v| *v = v.recip()),
        }
    }
}

/// The exponent of a padded key: its power is zero.
const PADDED: f32 = -200.0;

/// Returns an activation as a function of one number.
pub fn activation(activation: Activation) -> fn(f32) -> f32 {
    match activation {
        Activation::GeluErf => gelu_erf,
        Activation::GeluTanh => gelu_tanh,
        Activation::Relu => relu,
    }
}

/// Runs an input through the graph and returns the results in the order of [`Graph::outputs`].
///
/// # Panics
/// If the weights are another graph's, or the input does not have the graph's number of tokens or
/// names an unknown token.
pub fn run(
    graph: &Graph,
    weights: &FloatWeights,
    input: &Input,
    observer: &mut impl Observer,
) -> Vec<Matrix<f32>> {
    run_with(graph, weights, input, &Exact, observer)
}

/// Runs an input as [`run`] does, with other functions at the stops.
///
/// # Panics
/// As [`run`].
pub fn run_with(
    graph: &Graph,
    weights: &FloatWeights,
    input: &Input,
    functions: &impl Functions,
    observer: &mut impl Observer,
) -> Vec<Matrix<f32>> {
    assert!(weights.fit(graph), "the weights belong to the graph");
    assert_eq!(
        input.tokens(),
        graph.tokens,
        "the input is padded to the graph's tokens"
    );
    let last = graph.last_uses();
    let mut walk = FloatWalk {
        graph,
        weights: weights.all(),
        input,
        values: graph.values.iter().map(|_| None).collect(),
    };
    for (index, step) in graph.steps.iter().enumerate() {
        let value = walk.step(&step.op, functions);
        observer.value(step.output(), &value);
        walk.values[step.output().index()] = Some(value);
        for read in step.inputs() {
            if last[read.index()] == index {
                walk.values[read.index()] = None;
            }
        }
    }
    let take = |id: &ValueId| walk.values[id.index()].take().expect("outputs are kept");
    graph.outputs.iter().map(take).collect()
}

struct FloatWalk<'a> {
    graph: &'a Graph,
    weights: &'a [Arc<FloatWeight>],
    input: &'a Input,
    values: Vec<Option<Matrix<f32>>>,
}

impl FloatWalk<'_> {
    fn get(&self, id: ValueId) -> &Matrix<f32> {
        self.values[id.index()]
            .as_ref()
            .expect("steps come in order")
    }

    fn dense(&self, id: WeightId) -> &Matrix<f32> {
        match &*self.weights[id.index()] {
            FloatWeight::Dense(weight) => weight,
            _ => unreachable!("folding checks the kinds"),
        }
    }

    fn bias(&self, id: WeightId) -> &Matrix<f32> {
        match &*self.weights[id.index()] {
            FloatWeight::Bias(bias) => bias,
            _ => unreachable!("folding checks the kinds"),
        }
    }

    fn zeros(&self, id: ValueId) -> Matrix<f32> {
        let value = self.graph.value(id);
        Matrix::zeros(value.rows, value.cols)
    }

    fn step(&mut self, op: &Op, functions: &impl Functions) -> Matrix<f32> {
        match op {
            Op::Embed {
                table,
                positions,
                output,
            } => {
                let table = self.dense(*table);
                let shape = &self.graph.shape;
                let mut out = self.zeros(*output);
                for t in 0..out.rows() {
                    let word = table.row(self.input.ids[t] as usize);
                    let place = match positions {
                        Some(positions) => self.bias(*positions).row(t),
                        None => table.row(shape.one_hot() + t),
                    };
                    for (j, o) in out.row_mut(t).iter_mut().enumerate() {
                        *o = word[j] + place[j];
                    }
                    if shape.types > 0 {
                        let kind = shape.vocab + self.input.types[t] as usize;
                        let kind = table.row(kind).iter();
                        out.row_mut(t)
                            .iter_mut()
                            .zip(kind)
                            .for_each(|(o, k)| *o += k);
                    }
                }
                out
            }
            Op::Linear {
                terms,
                bias,
                output,
            } => {
                let mut out = self.zeros(*output);
                for term in terms {
                    self.term(term, &mut out);
                }
                add_rows(&mut out, self.bias(*bias));
                out
            }
            Op::Scores { query, key, output } => self.heads(*output, |walk, h, out| {
                let (n, d, dh) = walk.sizes();
                let at = Layout::columns_of(n, dh, d);
                let (query, key) = (walk.get(*query).data(), walk.get(*key).data());
                let out = &mut out[h * n * n..][..n * n];
                gemm::f32(&query[h * dh..], at, &key[h * dh..], at.transposed(), out);
            }),
            Op::MergedScores {
                input,
                weight,
                bias,
                output,
            } => {
                let (n, d, _) = self.sizes();
                let (x, weight) = (self.get(*input), self.dense(*weight));
                let mut left = Matrix::zeros(n, weight.cols());
                let (at, by) = (Layout::rows(n, d), Layout::rows(d, weight.cols()));
                gemm::f32(x.data(), at, weight.data(), by, left.data_mut());
                add_rows(&mut left, self.bias(*bias));
                self.heads(*output, |walk, h, out| {
                    let head = Layout::columns_of(n, d, left.cols());
                    let x = walk.get(*input).data();
                    let out = &mut out[h * n * n..][..n * n];
                    gemm::f32(&left.data()[h * d..], head, x, at.transposed(), out);
                })
            }
            Op::Mix {
                probabilities,
                value,
                output,
            } => self.heads(*output, |walk, h, out| {
                let (n, d, dh) = walk.sizes();
                let at = Layout::columns_of(n, dh, d);
                let p = &walk.get(*probabilities).data()[h * n * n..][..n * n];
                let value = &walk.get(*value).data()[h * dh..];
                gemm::f32_into(p, Layout::rows(n, n), value, at, &mut out[h * dh..], at);
            }),
            Op::SquareSum { input, output } => {
                let x = self.get(*input);
                let mut out = self.zeros(*output);
                for r in 0..out.rows() {
                    out.row_mut(r)[0] = x.row(r).iter().map(|v| v * v).sum();
                }
                out
            }
            Op::ScaleRows { input, factor, .. } => {
                let factor = self.get(*factor);
                let mut out = self.get(*input).clone();
                for r in 0..out.rows() {
                    let by = factor.get(r, 0);
                    out.row_mut(r).iter_mut().for_each(|v| *v *= by);
                }
                out
            }
            Op::Exponents {
                scores, reference, ..
            } => {
                let (scores, reference) = (self.get(*scores), self.get(*reference));
                Matrix::from_fn(scores.rows(), scores.cols(), |r, c| {
                    match c < self.input.length {
                        true => scores.get(r, c) - reference.get(r, c),
                        false => PADDED,
                    }
                })
            }
            Op::RowSum { input, .. } => {
                let x = self.get(*input);
                Matrix::from_fn(x.rows(), 1, |r, _| x.row(r).iter().sum())
            }
            Op::Kept { .. } => Matrix::from_fn(self.graph.tokens, 1, |t, _| {
                f32::from(u8::from(t < self.input.length))
            }),
            Op::Pool { input, kept, .. } => {
                let (x, kept) = (self.get(*input), self.get(*kept));
                Matrix::from_fn(1, x.cols(), |_, c| {
                    (0..x.rows()).map(|t| x.get(t, c) * kept.get(t, 0)).sum()
                })
            }
            Op::Stop {
                function, input, ..
            } => self.stop(*function, *input, functions),
        }
    }

    fn sizes(&self) -> (usize, usize, usize) {
        (
            self.graph.tokens,
            self.graph.shape.hidden,
            self.graph.shape.head_size(),
        )
    }

    fn heads(&self, id: ValueId, one: impl Fn(&Self, usize, &mut [f32])) -> Matrix<f32> {
        let mut out = self.zeros(id);
        for h in 0..self.graph.shape.heads {
            one(self, h, out.data_mut());
        }
        out
    }

    fn term(&self, term: &Term, out: &mut Matrix<f32>) {
        let x = self.get(term.input);
        match &*self.weights[term.weight.index()] {
            FloatWeight::Dense(w) => {
                // The dense term comes first and overwrites.
                let (rows, cols) = (out.rows(), out.cols());
                let left = Layout::rows(rows, x.cols());
                gemm::f32(
                    x.data(),
                    left,
                    w.data(),
                    Layout::rows(x.cols(), cols),
                    out.data_mut(),
                );
            }
            FloatWeight::Diagonal { gain, mean } => {
                for r in 0..out.rows() {
                    let row = x.row(r);
                    let shared: f32 = row.iter().zip(mean).map(|(v, h)| v * h).sum();
                    for ((o, v), g) in out.row_mut(r).iter_mut().zip(row).zip(gain) {
                        *o += g * v - shared;
                    }
                }
            }
            FloatWeight::Bias(_) => unreachable!("a bias is not a term"),
        }
    }

    fn stop(
        &mut self,
        function: StopFunction,
        input: ValueId,
        functions: &impl Functions,
    ) -> Matrix<f32> {
        let mut x = self.get(input).clone();
        let stop = StopPoint {
            function,
            input,
            shape: &self.graph.shape,
            width: match function {
                StopFunction::InverseRoot => self.graph.squared_width(input),
                _ => self.graph.value(input).cols,
            },
            tokens: self.graph.tokens,
            length: self.input.length,
        };
        functions.apply(&stop, &mut x);
        x
    }
}

fn add_rows(matrix: &mut Matrix<f32>, bias: &Matrix<f32>) {
    for r in 0..matrix.rows() {
        let row = matrix.row_mut(r).iter_mut();
        row.zip(bias.row(0)).for_each(|(o, b)| *o += b);
    }
}

/// Applies softmax in powers of two to the first `length` keys; the others are padding.
fn softmax(row: &mut [f32], length: usize) {
    let (keys, padding) = row.split_at_mut(length);
    padding.fill(0.0);
    let max = keys.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for v in keys.iter_mut() {
        *v = (*v - max).exp2();
        sum += *v;
    }
    let by = 1.0 / sum;
    keys.iter_mut().for_each(|v| *v *= by);
}

fn gelu_erf(x: f32) -> f32 {
    0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2))
}

fn gelu_tanh(x: f32) -> f32 {
    const SQRT_2_BY_PI: f32 = 0.797_884_6;
    0.5 * x * (1.0 + (SQRT_2_BY_PI * (x + 0.044_715 * x * x * x)).tanh())
}

fn relu(x: f32) -> f32 {
    x.max(0.0)
}

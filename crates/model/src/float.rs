//! The float reference: the graph in single precision on one thread.
//!
//! It is the yardstick twice over. Its results are compared with Hugging Face's own, and
//! everything private with its results; its speed is what "how much does privacy cost" is measured
//! against, so it runs on a real matrix-product library and does little else.

use crate::fold::{FloatWeight, FloatWeights};
use crate::text::Input;
use primer_plan::function::Activation;
use primer_plan::graph::{Graph, Op, StopFunction, Term, ValueId};
use primer_ring::gemm::{self, Layout};
use primer_ring::matrix::Matrix;

/// Sees every value as it is made.
pub trait Observer {
    /// A value, all its rows.
    fn value(&mut self, id: ValueId, value: &Matrix<f32>);
}

/// Sees nothing.
pub struct NoObserver;

impl Observer for NoObserver {
    fn value(&mut self, _: ValueId, _: &Matrix<f32>) {}
}

/// Runs an input through the graph; the results are in the order of [`Graph::outputs`].
///
/// # Panics
/// If the input does not have the graph's number of tokens or names an unknown token.
pub fn run(
    graph: &Graph,
    weights: &FloatWeights,
    input: &Input,
    observer: &mut impl Observer,
) -> Vec<Matrix<f32>> {
    assert_eq!(
        input.tokens(),
        graph.tokens,
        "the input is padded to the graph's tokens"
    );
    let last = graph.last_uses();
    let mut walk = Walk {
        graph,
        weights: weights.all(),
        input,
        values: graph.values.iter().map(|_| None).collect(),
    };
    for (index, step) in graph.steps.iter().enumerate() {
        let value = walk.step(&step.op);
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

struct Walk<'a> {
    graph: &'a Graph,
    weights: &'a [FloatWeight],
    input: &'a Input,
    values: Vec<Option<Matrix<f32>>>,
}

impl Walk<'_> {
    fn get(&self, id: ValueId) -> &Matrix<f32> {
        self.values[id.index()]
            .as_ref()
            .expect("steps come in order")
    }

    fn zeros(&self, id: ValueId) -> Matrix<f32> {
        let value = self.graph.value(id);
        Matrix::zeros(value.rows, value.cols)
    }

    fn step(&mut self, op: &Op) -> Matrix<f32> {
        match op {
            Op::Embed {
                table,
                positions,
                output,
            } => {
                let (FloatWeight::Dense(table), FloatWeight::Bias(positions)) = (
                    &self.weights[table.index()],
                    &self.weights[positions.index()],
                ) else {
                    unreachable!("folding checks the kinds");
                };
                let mut out = self.zeros(*output);
                for t in 0..out.rows() {
                    let word = table.row(self.input.ids[t] as usize);
                    let kind = table.row(self.graph.shape.vocab + self.input.types[t] as usize);
                    let place = positions.row(t);
                    for (j, o) in out.row_mut(t).iter_mut().enumerate() {
                        *o = word[j] + kind[j] + place[j];
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
                let FloatWeight::Bias(bias) = &self.weights[bias.index()] else {
                    unreachable!("folding checks the kinds");
                };
                for r in 0..out.rows() {
                    out.row_mut(r)
                        .iter_mut()
                        .zip(bias.row(0))
                        .for_each(|(o, b)| *o += b);
                }
                out
            }
            Op::Scores { query, key, output } => self.heads(*output, |walk, h, out| {
                let (n, d, dh) = walk.sizes();
                let at = Layout::columns_of(n, dh, d);
                let (query, key) = (walk.get(*query).data(), walk.get(*key).data());
                let out = &mut out[h * n * n..][..n * n];
                gemm::f32(&query[h * dh..], at, &key[h * dh..], at.transposed(), out);
            }),
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
            Op::Stop {
                function, input, ..
            } => self.stop(*function, *input),
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
        match &self.weights[term.weight.index()] {
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

    fn stop(&mut self, function: StopFunction, input: ValueId) -> Matrix<f32> {
        // A stop is the only reader of its accumulator, which can be reused.
        let mut x = self.values[input.index()]
            .take()
            .expect("steps come in order");
        let shape = &self.graph.shape;
        match function {
            StopFunction::Requantise => {}
            StopFunction::Softmax => {
                let length = self.input.length;
                for r in 0..x.rows() {
                    softmax(&mut x.row_mut(r)[..], length);
                }
            }
            StopFunction::Activation => {
                let f = match shape.activation {
                    Activation::GeluErf => gelu_erf,
                    Activation::GeluTanh => gelu_tanh,
                    Activation::Relu => relu,
                };
                x.data_mut().iter_mut().for_each(|v| *v = f(*v));
            }
            StopFunction::InverseRoot => {
                let epsilon = shape.epsilon as f32;
                let width = shape.hidden as f32;
                x.data_mut()
                    .iter_mut()
                    .for_each(|v| *v = (*v / width + epsilon).sqrt().recip());
            }
            StopFunction::Tanh => x.data_mut().iter_mut().for_each(|v| *v = v.tanh()),
        }
        x
    }
}

/// Softmax in powers of two over the first `length` keys; the others are padding.
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

//! From a calibration text to polynomials.
//!
//! Layers are taken in the graph's order. The float model runs over the text with polynomials in
//! the layers before and exact functions from there on, what reaches the layer's stops is kept, and
//! their polynomials are fitted by least squares to what they will meet, errors of the layers below
//! included. A small weight on the whole of a widened range keeps it from running away between and
//! beside the samples. (All polynomials at once, fitted to what exact functions make, do not work:
//! errors of one layer leave the ranges of the next, and after two layers nothing is left.)

use crate::chebyshev::{Chebyshev, nodes};
use crate::polynomials::{Degrees, HeadSoftmax, Polynomial, Polynomials, Softmax, class};
use primer_model::float::{self, Exact, Functions, Observer, StopPoint};
use primer_model::fold::FloatWeights;
use primer_plan::graph::{Op, Step, StopFunction, ValueId};
use primer_plan::shape::Shape;
use primer_ring::matrix::Matrix;
use primer_text::Input;

/// Most inputs of a calibration text that are used, evenly spread: the model runs over them once
/// for every layer.
const INPUTS: usize = 128;
/// Most samples kept of one value.
const MOST: usize = 200_000;
/// How far an activation goes beyond the numbers that were seen, as a factor of the range.
const MARGIN: f64 = 1.5;
/// How far a root goes beyond the sums of squares that were seen.
const ROOT_MARGIN: f64 = 2.0;
/// How far a reciprocal goes beyond the sums that were seen. Nothing else diverges as often: a
/// score that is three larger than any before makes a sum eight times as large.
const SUM_MARGIN: f64 = 16.0;
/// Weight of the range as a whole, that of all samples being 1.
const FLOOR: f64 = 0.02;

/// What reached one stop in tokens of one class.
#[derive(Default)]
struct Samples {
    values: Vec<f32>,
    range: Option<(f64, f64)>,
    /// Of a softmax: the head and the scores of the real keys.
    rows: Vec<(usize, Vec<f32>)>,
}

/// What reached one stop.
struct Seen {
    stop: ValueId,
    function: StopFunction,
    /// The first token's, and the others'.
    classes: [Samples; 2],
    tokens: usize,
    length: usize,
}

impl Seen {
    /// Makes an empty record, if a step is a stop with a function.
    fn nothing(step: &Step) -> Option<Self> {
        match step.op {
            Op::Stop {
                function, input, ..
            } if function != StopFunction::Requantise => Some(Self {
                stop: input,
                function,
                classes: Default::default(),
                tokens: 0,
                length: 0,
            }),
            _ => None,
        }
    }

    /// Returns the samples of both classes; where only the first token gets anywhere, the others
    /// get the same.
    fn both(&self) -> [&Samples; 2] {
        let [first, others] = &self.classes;
        let nothing = others.range.is_none() && others.rows.is_empty();
        [first, if nothing { first } else { others }]
    }
}

impl Observer for Seen {
    fn value(&mut self, id: ValueId, value: &Matrix<f32>) {
        if id != self.stop {
            return;
        }
        for r in 0..value.rows() {
            let samples = &mut self.classes[class(r % self.tokens)];
            if self.function == StopFunction::Softmax {
                let row = &value.row(r)[..self.length];
                if row.iter().all(|v| v.is_finite()) {
                    samples.rows.push((r / self.tokens, row.to_vec()));
                }
                continue;
            }
            let finite = value.row(r).iter().filter(|v| v.is_finite());
            for &v in finite.clone() {
                let (low, high) = samples.range.unwrap_or((v.into(), v.into()));
                samples.range = Some((low.min(v.into()), high.max(v.into())));
            }
            // Of wide values a part will do, a different one in every row.
            let every = 1 + value.cols() / 100;
            let room = MOST.saturating_sub(samples.values.len());
            let part = finite.skip(r % every).step_by(every).take(room);
            samples.values.extend(part);
        }
    }
}

/// What reached the stops of a layer.
struct Layer(Vec<Seen>);

impl Observer for Layer {
    fn value(&mut self, id: ValueId, value: &Matrix<f32>) {
        self.0.iter_mut().for_each(|seen| seen.value(id, value));
    }
}

/// Polynomials as far as there are any.
struct Begun<'a>(&'a Polynomials);

impl Functions for Begun<'_> {
    fn apply(&self, stop: &StopPoint<'_>, x: &mut Matrix<f32>) {
        match &self.0.by_value[stop.input.index()] {
            Some(_) => self.0.apply(stop, x),
            None => Exact.apply(stop, x),
        }
    }
}

/// Fits a model's polynomials to a calibration text, given as inputs.
///
/// # Panics
/// If there is no input.
pub fn fit(
    weights: &FloatWeights,
    inputs: &[Input],
    degrees: &Degrees,
    progress: impl Fn(usize, usize),
) -> Polynomials {
    let used: Vec<&Input> = (inputs.iter())
        .step_by(inputs.len().div_ceil(INPUTS))
        .collect();
    assert!(!used.is_empty(), "a calibration text has inputs");
    let graph = weights.graph(1);
    let mut polynomials = Polynomials {
        degrees: *degrees,
        by_value: vec![None; graph.values.len()],
    };
    // Runs of steps in the same layer, or in none.
    let layers: Vec<&[Step]> = graph.steps.chunk_by(|a, b| a.layer == b.layer).collect();
    for (done, steps) in layers.iter().enumerate() {
        progress(done, layers.len());
        let mut layer = Layer(steps.iter().filter_map(Seen::nothing).collect());
        for input in &used {
            for seen in &mut layer.0 {
                (seen.tokens, seen.length) = (input.tokens(), input.length);
            }
            let graph = weights.graph(input.tokens());
            float::run_with(&graph, weights, input, &Begun(&polynomials), &mut layer);
        }
        for seen in &layer.0 {
            let fitted = one(&weights.shape, degrees, seen);
            polynomials.by_value[seen.stop.index()] = Some(fitted);
        }
    }
    progress(layers.len(), layers.len());
    polynomials
}

fn one(shape: &Shape, degrees: &Degrees, seen: &Seen) -> Polynomial {
    let plain = |f: &dyn Fn(&Samples) -> Chebyshev| Polynomial::Plain(seen.both().map(f));
    match seen.function {
        StopFunction::Requantise => unreachable!("no function to fit"),
        StopFunction::CoarseMaximum
        | StopFunction::Power
        | StopFunction::Reciprocal
        | StopFunction::Summary => unreachable!("the comparator has whole functions"),
        StopFunction::Softmax => Polynomial::Softmax(Softmax {
            squarings: degrees.squarings,
            heads: (seen.both()).map(|samples| softmax(shape, degrees, samples)),
        }),
        StopFunction::Activation => {
            let exact = float::activation(shape.activation);
            let f = |x: f64| f64::from(exact(x as f32));
            plain(&|samples| absolute(samples, degrees.activation, f))
        }
        StopFunction::Tanh => plain(&|samples| absolute(samples, degrees.tanh, f64::tanh)),
        StopFunction::InverseRoot => {
            let width = shape.hidden as f64;
            let f = |x: f64| (x / width + shape.epsilon).sqrt().recip();
            plain(&|samples| {
                let values: Vec<f64> = samples.values.iter().map(|v| f64::from(*v)).collect();
                let (low, high) = samples.range.expect("there are samples");
                relative(
                    low / ROOT_MARGIN,
                    high * ROOT_MARGIN,
                    degrees.root,
                    &values,
                    f,
                )
            })
        }
    }
}

/// Fits by least squares of the error itself.
fn absolute(samples: &Samples, degree: usize, f: impl Fn(f64) -> f64) -> Chebyshev {
    let (low, high) = samples.range.expect("there are samples");
    let (middle, half) = ((low + high) / 2.0, ((high - low) / 2.0).max(0.5));
    let (low, high) = (middle - MARGIN * half, middle + MARGIN * half);
    let weight = 1.0 / samples.values.len() as f64;
    let values = samples.values.iter().map(|v| (f64::from(*v), weight));
    let points = values.chain(nodes(low, high, 1000, FLOOR));
    Chebyshev::fit(low, high, degree, points, f)
}

/// Fits by least squares of the relative error, for functions of positive numbers.
fn relative(
    low: f64,
    high: f64,
    degree: usize,
    samples: &[f64],
    f: impl Fn(f64) -> f64,
) -> Chebyshev {
    let weight = 1.0 / samples.len() as f64;
    let share = |x: f64, weight: f64| (x, weight / f(x).powi(2));
    let samples = samples.iter().map(|&x| share(x, weight));
    let even = nodes(low, high, 1000, FLOOR).map(|(x, w)| share(x, w));
    // Small numbers count as much as large ones.
    let logs = nodes(low.ln(), high.ln(), 1000, FLOOR).map(|(x, w)| share(x.exp(), w));
    Chebyshev::fit(low, high, degree, samples.chain(even).chain(logs), &f)
}

fn softmax(shape: &Shape, degrees: &Degrees, samples: &Samples) -> Vec<HeadSoftmax> {
    let one = |head: usize| {
        let rows = || (samples.rows.iter()).filter(|(h, _)| *h == head);
        // A shift by the largest logarithm of a sum: exponents are hardly ever above zero.
        let logs = rows().map(|(_, row)| log_sum(row));
        let shift = logs.fold(f64::NEG_INFINITY, f64::max);
        let sum = |row: &Vec<f32>| {
            Softmax::exponentials(shift, degrees.squarings, &mut row.clone(), row.len())
        };
        let sums: Vec<f64> = rows().map(|(_, row)| sum(row)).collect();
        let least = sums.iter().copied().fold(f64::INFINITY, f64::min);
        let high = SUM_MARGIN * sums.iter().copied().fold(0.0, f64::max);
        // A polynomial of degree d follows a reciprocal over a range of about d²; below that range
        // it fades.
        let most = ((degrees.reciprocal + 1) as f64).powi(2);
        let low = (least / SUM_MARGIN).max(high / most);
        let within: Vec<f64> = sums.into_iter().filter(|sum| *sum >= low).collect();
        HeadSoftmax {
            shift,
            reciprocal: relative(low, high, degrees.reciprocal, &within, f64::recip),
        }
    };
    (0..shape.heads).map(one).collect()
}

/// Returns the logarithm of the sum of powers of two.
fn log_sum(row: &[f32]) -> f64 {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|v| f64::from(v - max).exp2()).sum();
    sum.log2() + f64::from(max)
}

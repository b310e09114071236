//! From a calibration text to polynomials.
//!
//! Stops are taken in the graph's order. The float model runs over the text with polynomials at the stops before and exact functions
//! from there on, what reaches the stop is kept, and its polynomial is fitted by least squares to what it will really
//! meet, errors of the polynomials below included. A small weight on the whole of a widened range keeps it from
//! running away between and beside the samples. (All polynomials at once, fitted to what exact functions make, do not
//! work: errors of one layer leave the ranges of the next, and after two layers nothing is left.)

use crate::chebyshev::{Chebyshev, nodes};
use crate::polynomials::{Degrees, Polynomial, Polynomials, Softmax};
use primer_model::float::{self, Exact, Functions, Observer, Stop};
use primer_model::fold::FloatWeights;
use primer_model::text::Input;
use primer_plan::graph::{Op, StopFunction, ValueId};
use primer_plan::shape::Shape;
use primer_ring::matrix::Matrix;

/// Most inputs of a calibration text that are used, evenly spread: the model runs over them once for every stop.
const INPUTS: usize = 32;
/// Most samples kept of one value.
const MOST: usize = 200_000;
/// How far beyond the sums of squares that were seen a root goes.
const ROOT_MARGIN: f64 = 2.0;
/// How far beyond the sums that were seen a reciprocal goes.
const SUM_MARGIN: f64 = 4.0;
/// Weight of the range as a whole, that of all samples being 1.
const FLOOR: f64 = 0.02;

/// What reached one stop.
struct Seen {
    stop: ValueId,
    function: StopFunction,
    samples: Vec<f32>,
    low: f64,
    high: f64,
    /// Of a softmax: the head and the scores of the real keys.
    rows: Vec<(usize, Vec<f32>)>,
    tokens: usize,
    length: usize,
}

impl Observer for Seen {
    fn value(&mut self, id: ValueId, value: &Matrix<f32>) {
        if id != self.stop {
            return;
        }
        if self.function == StopFunction::Softmax {
            for r in 0..value.rows() {
                let row = &value.row(r)[..self.length];
                if row.iter().all(|v| v.is_finite()) {
                    self.rows.push((r / self.tokens, row.to_vec()));
                }
            }
            return;
        }
        let finite = value.data().iter().filter(|v| v.is_finite());
        for &v in finite.clone() {
            self.low = self.low.min(v.into());
            self.high = self.high.max(v.into());
        }
        // Of wide values a part will do.
        let every = 1 + value.data().len() / 2000;
        let room = MOST.saturating_sub(self.samples.len());
        self.samples.extend(finite.step_by(every).take(room));
    }
}

/// Polynomials as far as there are any.
struct Begun<'a>(&'a Polynomials);

impl Functions for Begun<'_> {
    fn apply(&self, stop: &Stop<'_>, x: &mut Matrix<f32>) {
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
    let stops: Vec<(StopFunction, ValueId)> = (graph.steps.iter())
        .filter_map(|step| match step.op {
            Op::Stop {
                function, input, ..
            } => Some((function, input)),
            _ => None,
        })
        .filter(|(function, _)| *function != StopFunction::Requantise)
        .collect();
    for (done, &(function, stop)) in stops.iter().enumerate() {
        progress(done, stops.len());
        let mut seen = Seen {
            stop,
            function,
            samples: Vec::new(),
            low: f64::INFINITY,
            high: f64::NEG_INFINITY,
            rows: Vec::new(),
            tokens: 0,
            length: 0,
        };
        for input in &used {
            (seen.tokens, seen.length) = (input.tokens(), input.length);
            let graph = weights.graph(input.tokens());
            float::run_with(&graph, weights, input, &Begun(&polynomials), &mut seen);
        }
        polynomials.by_value[stop.index()] = Some(one(&weights.shape, degrees, &seen));
    }
    progress(stops.len(), stops.len());
    polynomials
}

fn one(shape: &Shape, degrees: &Degrees, seen: &Seen) -> Polynomial {
    match seen.function {
        StopFunction::Requantise => unreachable!("no function to fit"),
        StopFunction::Softmax => Polynomial::Softmax(softmax(shape, degrees, seen)),
        StopFunction::Activation => {
            let exact = float::activation(shape.activation);
            let f = |x: f64| f64::from(exact(x as f32));
            let (low, high) = widened(seen, 1.5);
            Polynomial::Plain(absolute(low, high, degrees.activation, &seen.samples, f))
        }
        StopFunction::Tanh => {
            let (low, high) = widened(seen, 1.5);
            Polynomial::Plain(absolute(low, high, degrees.tanh, &seen.samples, f64::tanh))
        }
        StopFunction::InverseRoot => {
            let width = shape.hidden as f64;
            let f = |x: f64| (x / width + shape.epsilon).sqrt().recip();
            let samples: Vec<f64> = seen.samples.iter().map(|v| f64::from(*v)).collect();
            let (low, high) = (seen.low / ROOT_MARGIN, seen.high * ROOT_MARGIN);
            Polynomial::Plain(relative(low, high, degrees.root, &samples, f))
        }
    }
}

/// The range with a margin on both sides.
fn widened(seen: &Seen, margin: f64) -> (f64, f64) {
    let (middle, half) = (
        (seen.low + seen.high) / 2.0,
        ((seen.high - seen.low) / 2.0).max(0.5),
    );
    (middle - margin * half, middle + margin * half)
}

/// Least squares of the error itself.
fn absolute(
    low: f64,
    high: f64,
    degree: usize,
    samples: &[f32],
    f: impl Fn(f64) -> f64,
) -> Chebyshev {
    let weight = 1.0 / samples.len() as f64;
    let samples = samples.iter().map(|v| (f64::from(*v), weight));
    let points = samples.chain(nodes(low, high, 1000, FLOOR));
    Chebyshev::fit(low, high, degree, points, f)
}

/// Least squares of the error in parts of the value, for functions of positive numbers.
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
    // Small numbers are as many as large ones.
    let logs = nodes(low.ln(), high.ln(), 1000, FLOOR).map(|(x, w)| share(x.exp(), w));
    Chebyshev::fit(low, high, degree, samples.chain(even).chain(logs), &f)
}

fn softmax(shape: &Shape, degrees: &Degrees, seen: &Seen) -> Softmax {
    let squarings = degrees.squarings;
    let mut softmax = Softmax {
        squarings,
        shift: Vec::new(),
        reciprocal: Vec::new(),
    };
    for head in 0..shape.heads {
        let rows = || (seen.rows.iter()).filter(|(h, _)| *h == head);
        // A shift by the largest logarithm of a sum: exponents are hardly ever above zero.
        let shift = rows()
            .map(|(_, row)| log_sum(row))
            .fold(f64::NEG_INFINITY, f64::max);
        let sums: Vec<f64> = rows()
            .map(|(_, row)| Softmax::exponentials(shift, squarings, &mut row.clone(), row.len()))
            .collect();
        let least = sums.iter().copied().fold(f64::INFINITY, f64::min);
        let high = SUM_MARGIN * sums.iter().copied().fold(0.0, f64::max);
        // A polynomial of degree d follows a reciprocal over a range of about (d/2)²; what is below fades.
        let most = ((degrees.reciprocal + 1) as f64).powi(2);
        let low = (least / SUM_MARGIN).max(high / most);
        let within: Vec<f64> = sums.into_iter().filter(|sum| *sum >= low).collect();
        let reciprocal = relative(low, high, degrees.reciprocal, &within, f64::recip);
        softmax.shift.push(shift);
        softmax.reciprocal.push(reciprocal);
    }
    softmax
}

/// The logarithm of the sum of powers of two.
fn log_sum(row: &[f32]) -> f64 {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = row.iter().map(|v| f64::from(v - max).exp2()).sum();
    sum.log2() + f64::from(max)
}

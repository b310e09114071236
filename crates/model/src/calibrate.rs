//! Calibration: the ranges that occur when the float reference runs over a calibration text.
//!
//! Every line of the text is one input, and every line together with the next a pair, so that both
//! token types and longer inputs are seen. Inputs are padded like private ones, and padded rows
//! count: they are computed too, and must not run out of range. Only one number is taken from real
//! tokens alone: how low the largest score of a row can be, which determines how far down a padded
//! key has to be pushed. There a padded key must not count as the maximum that it has to stay
//! below.

use crate::float::{self, Observer};
use crate::fold::{FloatWeight, FloatWeights};
use primer_plan::assign::{self, AssignError, Observation, Observations, WeightRange};
use primer_plan::function::Function;
use primer_plan::graph::{Graph, Op, StopFunction, ValueId};
use primer_plan::role::ValueRole;
use primer_plan::scales::Scales;
use primer_ring::matrix::Matrix;
use primer_text::{Input, TextEncoder, TextError, Truncate};
use thiserror::Error;

/// Why calibration failed.
#[derive(Debug, Error)]
pub enum CalibrateError {
    /// The text has no usable line.
    #[error("the calibration text has no line with words in it")]
    NoText,
    /// A line cannot be encoded.
    #[error("calibration text, line {line}: {source}")]
    Line {
        /// Its number, counted from 1.
        line: usize,
        /// Why.
        source: TextError,
    },
    /// The ranges do not fit fixed point.
    #[error(transparent)]
    Assign(#[from] AssignError),
}

/// What a calibration text determines about a model.
pub struct Calibrated {
    /// Its scales.
    pub scales: Scales,
    /// For every layer the features of its wide part, in the order that the scales are for; empty
    /// where they stay as they are.
    pub(crate) order: Vec<Vec<usize>>,
}

impl Calibrated {
    /// Makes scales for features that stay in the order that they have.
    pub const fn unsorted(scales: Scales) -> Self {
        Self {
            scales,
            order: Vec::new(),
        }
    }
}

struct Ranges {
    /// Values that hold scores, whose columns are keys, have an entry for each head; inputs of
    /// activations, one for each column.
    seen: Observations,
    /// Tokens of the current input, and how many of them are not padding.
    tokens: usize,
    length: usize,
}

impl Ranges {
    fn new(graph: &Graph) -> Self {
        let mut seen = Observations::of(vec![Observation::EMPTY; graph.values.len()]);
        for (value, by_head) in graph.values.iter().zip(&mut seen.by_head) {
            if value.role == ValueRole::Scores {
                *by_head = vec![Observation::EMPTY; graph.shape.heads];
            }
        }
        let columns = activations(graph).map(|(_, id)| (id, vec![0.0; graph.value(id).cols]));
        seen.columns = columns.collect();
        Self {
            seen,
            tokens: 0,
            length: 0,
        }
    }
}

/// Returns the inputs of the layers' activations, in order, with their steps.
fn activations(graph: &Graph) -> impl Iterator<Item = (usize, ValueId)> {
    let steps = graph.steps.iter().enumerate();
    steps.filter_map(|(index, step)| match step.op {
        Op::Stop {
            function: StopFunction::Activation,
            input,
            ..
        } => Some((index, input)),
        _ => None,
    })
}

impl Observer for Ranges {
    fn value(&mut self, id: ValueId, value: &Matrix<f32>) {
        if let Some(columns) = self.seen.columns.get_mut(&id) {
            for r in 0..value.rows() {
                for (most, v) in columns.iter_mut().zip(value.row(r)) {
                    *most = most.max(f64::from(v.abs()));
                }
            }
        }
        let seen = &mut self.seen.values[id.index()];
        let by_head = &mut self.seen.by_head[id.index()];
        for r in 0..value.rows() {
            let row = value.row(r).iter().map(|v| f64::from(*v));
            if by_head.is_empty() {
                seen.record(row);
                continue;
            }
            let kept = row.clone().take(self.length);
            if r % self.tokens < self.length {
                seen.record(kept.clone());
            }
            seen.widen(row.clone());
            let head = &mut by_head[r / self.tokens];
            head.record(kept);
            head.widen(row);
        }
    }
}

/// Makes the inputs of a calibration text: every line, and every line with the next.
///
/// # Errors
/// [`CalibrateError`] if the text has no usable line, or one that the model cannot take.
pub fn inputs(
    weights: &FloatWeights,
    text: &TextEncoder,
    calibration: &str,
) -> Result<Vec<Input>, CalibrateError> {
    let limit = weights.shape.max_tokens().min(text.max_tokens());
    let lines: Vec<(usize, &str)> = calibration
        .lines()
        .enumerate()
        .map(|(i, line)| (i + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    if lines.is_empty() {
        return Err(CalibrateError::NoText);
    }
    let singles = lines.iter().map(|&(number, line)| (number, line, None));
    let pairs = lines.windows(2).map(|w| (w[0].0, w[0].1, Some(w[1].1)));
    // One token type is not enough to tell two texts apart; a model without types does not tell
    // them apart at all.
    let pairs = pairs.filter(|_| weights.shape.types != 1);
    let encode = |(line, first, second): (usize, &str, Option<&str>)| {
        text.encode_padded(first, second, limit, Truncate::LongestFirst)
            .and_then(|input| input.fits(&weights.shape).map(|()| input))
            .map_err(|source| CalibrateError::Line { line, source })
    };
    singles.chain(pairs).map(encode).collect()
}

/// Chooses a model's scales, and the order of its features, from a calibration text.
///
/// # Errors
/// [`CalibrateError`] if the text is not usable or the model's ranges do not fit.
pub fn calibrate(
    weights: &FloatWeights,
    text: &TextEncoder,
    calibration: &str,
    progress: impl Fn(usize, usize),
) -> Result<Calibrated, CalibrateError> {
    let inputs = inputs(weights, text, calibration)?;
    let mut ranges = Ranges::new(&weights.graph(1));
    for (done, input) in inputs.iter().enumerate() {
        progress(done, inputs.len());
        (ranges.tokens, ranges.length) = (input.tokens(), input.length);
        let graph = weights.graph(input.tokens());
        float::run(&graph, weights, input, &mut ranges);
    }
    progress(inputs.len(), inputs.len());
    let graph = weights.graph(1);
    let mut extremes: Vec<WeightRange> = weights.all().iter().map(|w| weight_range(w)).collect();
    for step in &graph.steps {
        if let Op::Embed { table, .. } = step.op
            && let FloatWeight::Dense(matrix) = &*weights.all()[table.index()]
        {
            extremes[table.index()].norm = largest_singular_value(matrix);
        }
    }
    let scales = assign::assign_by(weights.design(), &graph, &ranges.seen, &extremes)?;
    // Features are in an order where their activation has classes of columns.
    let sorted = activations(&graph)
        .filter(|(step, _)| matches!(scales.functions[*step], Some(Function::Sorted(_))));
    let order: Vec<_> = sorted
        .map(|(_, id)| assign::order(&ranges.seen.columns[&id]))
        .collect();
    Ok(Calibrated { scales, order })
}

/// Estimates the largest singular value of a matrix by power iteration.
fn largest_singular_value(matrix: &Matrix<f32>) -> f64 {
    const STEPS: usize = 20;
    let mut right: Vec<f32> = (0..matrix.cols())
        .map(|j| 1.0 + (j % 7) as f32 / 7.0)
        .collect();
    let mut norm = 0.0;
    for _ in 0..STEPS {
        let length = right.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length == 0.0 {
            return 0.0;
        }
        right.iter_mut().for_each(|x| *x /= length);
        let mut next = vec![0.0; matrix.cols()];
        norm = 0.0;
        for r in 0..matrix.rows() {
            let row = matrix.row(r);
            let left: f32 = row.iter().zip(&right).map(|(w, x)| w * x).sum();
            norm += f64::from(left).powi(2);
            let pairs = next.iter_mut().zip(row);
            pairs.for_each(|(next, w)| *next += left * w);
        }
        right = next;
    }
    norm.sqrt()
}

fn weight_range(weight: &FloatWeight) -> WeightRange {
    let largest = |values: &[f32]| values.iter().fold(0.0f64, |m, v| m.max(f64::from(v.abs())));
    let squares = |values: &[f32]| values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>();
    match weight {
        FloatWeight::Dense(m) | FloatWeight::Bias(m) => WeightRange {
            max_abs: largest(m.data()),
            mean_max_abs: 0.0,
            column: (squares(m.data()) / m.cols() as f64).sqrt(),
            norm: 0.0,
        },
        FloatWeight::Diagonal { gain, mean } => {
            // Column j has the mean of every row, and on the diagonal the gain as well.
            let both = gain.iter().zip(mean).map(|(g, h)| {
                let (g, h) = (f64::from(*g), f64::from(*h));
                (g - h).powi(2) - h.powi(2)
            });
            let diagonal = both.sum::<f64>() / gain.len() as f64;
            WeightRange {
                max_abs: largest(gain),
                mean_max_abs: largest(mean),
                column: (squares(mean) + diagonal).sqrt(),
                norm: 0.0,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_keys_widen_the_range_but_are_no_row_maximum() {
        let shape = crate::synthetic::bert_shape(1, 8, 2);
        let graph = Graph::new(&shape, 3);
        let mut ranges = Ranges::new(&graph);
        (ranges.tokens, ranges.length) = (3, 2);
        let id = graph
            .value_ids()
            .find(|id| !ranges.seen.by_head[id.index()].is_empty());
        let id = id.expect("a layer has scores");
        // Two heads of three queries; the last key and the last query of each are padding.
        let rows = [[1., 2., 9.], [-3., -5., 4.], [-70., -80., -60.]];
        ranges.value(id, &Matrix::from_fn(6, 3, |r, c| rows[r % 3][c]));
        let seen = ranges.seen.values[id.index()];
        assert_eq!((seen.min, seen.max, seen.min_row_max), (-80.0, 9.0, -3.0));
        // Rows of padded queries have sums of their own, which may run dry.
        for head in &ranges.seen.by_head[id.index()] {
            assert_eq!((head.min, head.max, head.min_row_max), (-80.0, 9.0, -70.0));
        }
    }
}

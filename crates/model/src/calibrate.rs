//! Which ranges occur: the float reference over a calibration text.
//!
//! Every line of the text is one input, and every line together with the next a pair, so that
//! both token types and longer inputs are seen. Inputs are padded like private ones, and padded
//! rows count: they are computed too, and must not run out of range.

use crate::float::{self, Observer};
use crate::fold::{FloatWeight, FloatWeights};
use crate::text::{TextEncoder, TextError, Truncate};
use primer_plan::assign::{self, AssignError, Observation, WeightRange};
use primer_plan::graph::{Graph, ValueId};
use primer_plan::scales::Scales;
use primer_ring::matrix::Matrix;
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

struct Ranges(Vec<Observation>);

impl Observer for Ranges {
    fn value(&mut self, id: ValueId, value: &Matrix<f32>) {
        let seen = &mut self.0[id.index()];
        for r in 0..value.rows() {
            seen.record(value.row(r).iter().map(|v| f64::from(*v)));
        }
    }
}

/// Chooses a model's scales from a calibration text.
///
/// # Errors
/// [`CalibrateError`] if the text is not usable or the model's ranges do not fit.
pub fn calibrate(
    weights: &FloatWeights,
    text: &TextEncoder,
    calibration: &str,
    progress: impl Fn(usize, usize),
) -> Result<Scales, CalibrateError> {
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
    let inputs: Vec<_> = if weights.shape.types > 1 {
        singles.chain(pairs).collect()
    } else {
        singles.collect()
    };
    let mut ranges = Ranges(vec![
        Observation::EMPTY;
        Graph::bert(&weights.shape, 1).values.len()
    ]);
    for (done, (line, first, second)) in inputs.iter().enumerate() {
        progress(done, inputs.len());
        let input = text
            .encode_padded(first, *second, limit, Truncate::LongestFirst)
            .map_err(|source| CalibrateError::Line {
                line: *line,
                source,
            })?;
        let graph = Graph::bert(&weights.shape, input.tokens());
        float::run(&graph, weights, &input, &mut ranges);
    }
    progress(inputs.len(), inputs.len());
    let graph = Graph::bert(&weights.shape, 1);
    let extremes: Vec<WeightRange> = weights.all().iter().map(weight_range).collect();
    Ok(assign::assign(&graph, &ranges.0, &extremes)?)
}

fn weight_range(weight: &FloatWeight) -> WeightRange {
    let largest = |values: &[f32]| values.iter().fold(0.0f64, |m, v| m.max(f64::from(v.abs())));
    match weight {
        FloatWeight::Dense(m) | FloatWeight::Bias(m) => WeightRange {
            max_abs: largest(m.data()),
            mean_max_abs: 0.0,
        },
        FloatWeight::Diagonal { gain, mean } => WeightRange {
            max_abs: largest(gain),
            mean_max_abs: largest(mean),
        },
    }
}

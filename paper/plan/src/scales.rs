//! Scales of whole functions and of exact products.

use primer_plan::assign::{AssignError, Assigner, MASK_DISTANCE, Weights};
use primer_plan::function::{Function, Softmax};
use primer_plan::graph::{Op, Term, ValueId, WeightId, WeightKind};
use primer_plan::scales::{Scale, WEIGHT_BITS, WeightScale};
use primer_ring::fixed::Format;

/// Fractional bits of a score, in units of log 2.
const SCORE_FRACTION: u32 = 5;
/// Bits of the longest ring of scores.
const SCORE_BITS: u32 = 20;
/// Fractional bits that the input of merged scores keeps in any case.
const MERGED_INPUT_FRACTION: i32 = 8;

/// Gives the stop of step `index` the softmax of `scores`.
pub(crate) fn softmax(
    scales: &mut Assigner<'_>,
    index: usize,
    scores: ValueId,
) -> Result<Scale, AssignError> {
    let softmax = fitting(scales, scores)?;
    scales.accumulator(scores, softmax.ring_bits, softmax.fraction as i32);
    match scales.graph().maker(scores).op {
        Op::MergedScores { input, weight, .. } => fit_merged(scales, input, weight, scores),
        _ => scales.fit_factors(scores),
    }
    Ok(scales.leave(index, Function::Softmax(softmax)))
}

/// Returns a softmax whose ring holds the scores, those of padded keys among them.
fn fitting(scales: &Assigner<'_>, scores: ValueId) -> Result<Softmax, AssignError> {
    let seen = scales.score_span(scores, MASK_DISTANCE);
    let span = seen.high - seen.low + seen.mask;
    let unit = f64::from(1 << SCORE_FRACTION);
    let ring_bits = ((span * unit + 16.0).log2().ceil() as u32).max(SCORE_FRACTION + 6);
    if ring_bits > SCORE_BITS {
        return Err(scales.too_wide(scores, span, SCORE_BITS));
    }
    let offset = -(seen.high + seen.low - seen.mask) / 2.0;
    let units = |v: f64| (v * unit).round() as i64;
    Ok(Softmax::new(
        ring_bits,
        SCORE_FRACTION,
        units(seen.mask),
        units(offset),
    ))
}

/// Gives up fractional bits of a merged input where its matrix would be left with too few.
///
/// The input is a factor twice, so one bit of it is worth two of the matrix. It gives up bits until
/// the rounding of the matrix, about 0.29 units for an element and so `0.29·d` units for a row of
/// length `√d` on either side, is half a unit of the scores.
fn fit_merged(scales: &mut Assigner<'_>, input: ValueId, weight: WeightId, scores: ValueId) {
    let width = scales.graph().value(input).cols as f64;
    let half_unit = f64::from(2 << SCORE_FRACTION);
    let enough = (0.29 * width * half_unit).log2().ceil() as i32;
    let finest = Format::fitting(WEIGHT_BITS, scales.weight(weight).max_abs).fraction;
    let room = scales.fraction(scores) - 2 * scales.fraction(input);
    let missing = (finest.min(enough) - room + 1) / 2;
    // What a LayerNorm leaves, or projected embeddings: its products stay below its accumulator.
    let sum = scales.graph().accumulator_of(input);
    let slack = scales.fraction(sum) - scales.finest_product(sum);
    let spare = (scales.fraction(input) - MERGED_INPUT_FRACTION).min(slack);
    scales.coarsen(input, missing.min(spare));
}

/// Returns the scales of all weights: as fine as they fit.
pub(crate) fn of_weights(weights: &Weights<'_>) -> Vec<WeightScale> {
    let biases = weights.graph.weights.iter().map(|_| WeightScale::Bias);
    let mut scales: Vec<WeightScale> = biases.collect();
    for step in &weights.graph.steps {
        match &step.op {
            Op::Embed { table, output, .. } => {
                let fraction = weights.finest(weights.ranges[table.index()].max_abs, 0, *output);
                scales[table.index()] = WeightScale::Dense { fraction };
            }
            Op::Linear { terms, output, .. } => {
                for term in terms {
                    scales[term.weight.index()] = of_term(weights, term, *output);
                }
            }
            Op::MergedScores {
                input,
                weight,
                output,
                ..
            } => {
                // The input is a factor twice.
                let doubled = 2 * weights.values[input.index()].fraction();
                let range = weights.ranges[weight.index()];
                let fraction = weights.finest(range.max_abs, doubled, *output);
                scales[weight.index()] = WeightScale::Dense { fraction };
            }
            _ => {}
        }
    }
    scales
}

/// Returns the scale of a term's weight.
fn of_term(weights: &Weights<'_>, term: &Term, output: ValueId) -> WeightScale {
    let range = weights.ranges[term.weight.index()];
    let input = weights.values[term.input.index()].fraction();
    let finest = |max_abs: f64| weights.finest(max_abs, input, output);
    match weights.graph.weight(term.weight).kind {
        WeightKind::Diagonal => WeightScale::Diagonal {
            gain: finest(range.max_abs),
            mean: finest(range.mean_max_abs),
        },
        WeightKind::Dense | WeightKind::Bias => WeightScale::Dense {
            fraction: finest(range.max_abs),
        },
    }
}

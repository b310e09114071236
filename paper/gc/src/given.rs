//! What the garbler gives: weights, and the numbers that gather everything it knows about a result.
//!
//! The circuits are public and say nothing about the weights, whose bits are inputs like any other.
//! Only the garbler computes what is in this module; the evaluator knows how many bits there are.

use crate::error::{GcError, Result};
use crate::products::{Digits, Products};
use crate::spec::{WEIGHT, embedded_signs, negative_constant};
use crate::window::Window;
use primer_model::quantise::IntModel;
use primer_plan::graph::WeightId;
use primer_plan::plan::Plan;
use primer_plan::weights::IntWeight;
use primer_ring::matrix::Matrix;
use zeroize::Zeroizing;

/// Digits of a weight.
pub(crate) const WEIGHT_DIGITS: Digits = Digits {
    bits: WEIGHT,
    signed: true,
};

/// Which numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    /// A matrix, column by column.
    Dense(WeightId),
    /// The gains of a diagonal weight.
    Gains(WeightId),
    /// Its means.
    Means(WeightId),
    /// For every result of a linear step: the bias, the rounding, and what its products with
    /// weights leave to be added.
    Constants {
        bias: WeightId,
        dense: Option<(WeightId, Products)>,
        gains: Option<(WeightId, Products)>,
        window: Window,
    },
    /// The same for the products with means; there is no bias.
    MeanConstant(WeightId, Products),
    /// The position embeddings of the first tokens, the rounding, and the signs of word and type.
    Positions {
        positions: WeightId,
        window: Window,
        at: u32,
    },
}

/// Numbers of one length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given {
    pub(crate) source: Source,
    pub(crate) count: usize,
    pub(crate) bits: usize,
    /// Numbers in a row.
    pub(crate) cols: usize,
}

impl Given {
    /// Returns the number of input bits.
    pub(crate) fn input_bits(&self) -> u64 {
        (self.count * self.bits) as u64
    }
}

/// Computes the numbers themselves, the low bits of each.
pub(crate) fn values(plan: &Plan, model: &IntModel, given: &Given) -> Result<Zeroizing<Vec<u64>>> {
    let all = model.weights();
    let values: Vec<u64> = match given.source {
        Source::Dense(id) => {
            let matrix = dense(all, id)?;
            let columns = (0..matrix.cols()).flat_map(|c| (0..matrix.rows()).map(move |r| (r, c)));
            columns.map(|(r, c)| matrix.get(r, c) as u64).collect()
        }
        Source::Gains(id) => diagonal(all, id)?.0.iter().map(|&g| g as u64).collect(),
        Source::Means(id) => diagonal(all, id)?.1.iter().map(|&h| h as u64).collect(),
        Source::Constants {
            bias: id,
            dense: weights,
            gains,
            window,
        } => {
            let bias = bias(all, id)?;
            let mut numbers: Vec<i128> = (bias.row(0).iter())
                .map(|&b| 2 * i128::from(b) + window.rounding())
                .collect();
            if let Some((id, of)) = weights {
                let matrix = dense(all, id)?;
                for (c, number) in numbers.iter_mut().enumerate() {
                    let column = (0..matrix.rows()).map(|r| matrix.get(r, c));
                    *number += known(of, column);
                }
            }
            if let Some((id, of)) = gains {
                let correction = negative_constant(of.x) << of.at;
                for (number, &gain) in numbers.iter_mut().zip(diagonal(all, id)?.0) {
                    *number += known(of, [gain]) + correction;
                }
            }
            numbers.into_iter().map(|n| window.cut(n)).collect()
        }
        Source::MeanConstant(id, of) => {
            let means = diagonal(all, id)?.1.iter().copied();
            vec![of.window.cut(known(of, means))]
        }
        Source::Positions {
            positions,
            window,
            at,
        } => {
            let positions = bias(all, positions)?;
            let tokens = 0..plan.graph().tokens;
            let rows = tokens.flat_map(|t| positions.row(t).iter());
            let signs = embedded_signs(at) + window.rounding();
            rows.map(|&p| window.cut(2 * i128::from(p) + signs))
                .collect()
        }
    };
    if values.len() != given.count {
        return Err(GcError::OtherModel("a weight has another size"));
    }
    Ok(Zeroizing::new(values))
}

/// Returns what products with known digits leave to be added: their negatives and their signs.
fn known(of: Products, weights: impl IntoIterator<Item = i16>) -> i128 {
    let each = weights.into_iter().map(|w| {
        let negatives = WEIGHT_DIGITS.negatives(i64::from(w)) << of.at;
        negatives + of.signs()
    });
    each.sum()
}

const OTHER: GcError = GcError::OtherModel("a weight is of another kind");

fn dense(all: &[IntWeight], id: WeightId) -> Result<&Matrix<i16>> {
    match all.get(id.index()) {
        Some(IntWeight::Dense(matrix)) => Ok(matrix),
        _ => Err(OTHER),
    }
}

fn diagonal(all: &[IntWeight], id: WeightId) -> Result<(&[i16], &[i16])> {
    match all.get(id.index()) {
        Some(IntWeight::Diagonal { gain, mean }) => Ok((gain, mean)),
        _ => Err(OTHER),
    }
}

fn bias(all: &[IntWeight], id: WeightId) -> Result<&Matrix<i64>> {
    match all.get(id.index()) {
        Some(IntWeight::Bias(matrix)) => Ok(matrix),
        _ => Err(OTHER),
    }
}

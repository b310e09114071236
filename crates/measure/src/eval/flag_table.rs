//! Whether a client that heeds its range flags would be misled, and how far logits are off.
//!
//! A text unlike the calibration text may lead values out of their ranges. Then an answer may be
//! wrong, and the client should be told. Here *right* is what single precision answers, even if
//! the data say otherwise.

use super::EvalAnswer;
use serde::Serialize;

/// Examples by whether their answer is that of single precision and whether the client is told that
/// it may not be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FlagTable {
    /// Right, and no flag is set.
    pub right: usize,
    /// Right, though a flag is set.
    pub right_flagged: usize,
    /// Wrong, and a flag is set.
    pub wrong_flagged: usize,
    /// Wrong, and nothing tells.
    pub wrong_unflagged: usize,
}

impl FlagTable {
    /// Counts examples, of which `wrong` says which are not as single precision answers them. An
    /// example is flagged if one of its inputs is. `None` if no client would be told of ranges.
    pub(super) fn count(wrong: &[bool], answers: &[EvalAnswer]) -> Option<Self> {
        let mut flagged = vec![false; wrong.len()];
        for answer in answers {
            flagged[answer.example] |= !answer.in_range?;
        }
        let mut told = Self::default();
        for (wrong, flagged) in wrong.iter().zip(flagged) {
            *match (wrong, flagged) {
                (false, false) => &mut told.right,
                (false, true) => &mut told.right_flagged,
                (true, true) => &mut told.wrong_flagged,
                (true, false) => &mut told.wrong_unflagged,
            } += 1;
        }
        Some(told)
    }
}

/// By how much logits differ from those of single precision, in absolute terms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LogitError {
    /// The mean of all.
    pub mean: f64,
    /// What 99 of 100 are below.
    pub p99: f64,
    /// The largest.
    pub largest: f64,
}

impl LogitError {
    /// Compares all logits but those of padding; `None` if there are none.
    pub(super) fn of(answers: &[EvalAnswer]) -> Option<Self> {
        let mut errors: Vec<f64> = answers.iter().flat_map(differences).collect();
        errors.sort_by(f64::total_cmp);
        let n = errors.len();
        let largest = *errors.last()?;
        Some(Self {
            mean: errors.iter().sum::<f64>() / n as f64,
            p99: errors[(n * 99 / 100).min(n - 1)],
            largest,
        })
    }
}

fn differences(answer: &EvalAnswer) -> impl Iterator<Item = f64> {
    // A head of tokens has a row for each, padding included; others have one row.
    let rows = match answer.logits.len() == answer.input.tokens() {
        true => answer.input.length,
        false => answer.logits.len(),
    };
    let rows = answer.logits.iter().zip(&answer.float).take(rows);
    let pairs = rows.flat_map(|(ours, float)| ours.iter().zip(float));
    pairs.map(|(ours, float)| (ours - float).abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_text::Input;

    fn answer(example: usize, in_range: Option<bool>, logits: Vec<Vec<f64>>) -> EvalAnswer {
        let tokens = logits.len().max(2);
        EvalAnswer {
            example,
            float: logits.iter().map(|row| vec![0.0; row.len()]).collect(),
            logits,
            fixed: None,
            fixed_in_range: None,
            out_of_range: Vec::new(),
            in_range,
            input: Input {
                ids: vec![0; tokens],
                types: vec![0; tokens],
                length: tokens - 1,
                removed: 0,
                second: vec![None; tokens],
            },
            commit: None,
        }
    }

    #[test]
    fn examples_are_right_or_flagged_or_neither() {
        let wrong = [false, false, false, true, true, true];
        let flags = [true, true, false, true, false, false];
        let mut answers: Vec<EvalAnswer> = (flags.iter().enumerate())
            .map(|(example, in_range)| answer(example, Some(*in_range), vec![vec![0.0]]))
            .collect();
        // Another window of the first example.
        answers.push(answer(0, Some(false), vec![vec![0.0]]));
        let told = FlagTable {
            right: 1,
            right_flagged: 2,
            wrong_flagged: 2,
            wrong_unflagged: 1,
        };
        assert_eq!(FlagTable::count(&wrong, &answers), Some(told));
        answers[2].in_range = None;
        assert_eq!(
            FlagTable::count(&wrong, &answers),
            None,
            "not of a part only"
        );
    }

    #[test]
    fn padding_has_no_logits() {
        let one_row = answer(0, None, vec![vec![-0.5, 0.25]]);
        let error = LogitError::of(&[one_row]).unwrap();
        assert_eq!((error.mean, error.largest), (0.375, 0.5));
        // Of three tokens the last is padding.
        let rows = answer(0, None, vec![vec![1.0], vec![2.0], vec![9.0]]);
        let error = LogitError::of(&[rows]).unwrap();
        assert_eq!((error.mean, error.largest), (1.5, 2.0));
        let many = (0..200).map(|i| answer(i, None, vec![vec![i as f64]]));
        let error = LogitError::of(&many.collect::<Vec<_>>()).unwrap();
        assert_eq!((error.p99, error.largest), (198.0, 199.0));
        assert_eq!(LogitError::of(&[]), None);
    }
}

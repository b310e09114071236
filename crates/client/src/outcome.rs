//! What a client gets: a label, and what it cost.

use primer_engine::client::Answer;
use primer_plan::shape::Problem;
use primer_wire::PhaseBytes;
use serde::Serialize;

/// What one inference cost the client.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Cost {
    /// Seconds of the offline phase if it ran now; zero if the bundle was prepared ahead.
    pub offline_s: f64,
    /// Seconds of the online phase.
    pub online_s: f64,
    /// Bytes of both.
    pub bytes: PhaseBytes,
    /// The padded length: all that the server learnt about the text.
    pub tokens: usize,
    /// Whether the bundle was prepared ahead.
    pub prepared_ahead: bool,
}

/// A label for a text.
#[derive(Debug, Clone)]
pub struct Classification {
    /// The best label.
    pub label: String,
    /// Its index.
    pub index: usize,
    /// Its probability, or the number itself if the model is a regression; `None` if the server
    /// reveals only labels.
    pub score: Option<f64>,
    /// What [`Self::score`] is of every label; empty if the server reveals only labels.
    pub scores: Vec<f64>,
    /// The model's outputs; empty if the server reveals only labels.
    pub logits: Vec<f64>,
    /// Tokens that were cut off because the text was too long.
    pub removed: usize,
    /// Whether the model's values stayed in the ranges that it was calibrated for: `Some(false)` if
    /// one came near the end of its range, so that the answer may be wrong; `None` if the model has
    /// no range flags.
    pub in_range: Option<bool>,
    /// What it cost.
    pub cost: Cost,
}

/// Computes the probabilities of a model's outputs, as Hugging Face's pipelines compute them:
/// softmax, or the logistic function if there is only one.
pub fn probabilities(logits: &[f64]) -> Vec<f64> {
    if let [single] = logits {
        return vec![1.0 / (1.0 + (-single).exp())];
    }
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = logits.iter().map(|l| (l - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|p| p / sum).collect()
}

/// Returns what a classifier's outputs say of each label.
fn scores(logits: &[f64], problem: Problem) -> Vec<f64> {
    match problem {
        Problem::SingleLabel => probabilities(logits),
        Problem::MultiLabel => logits.iter().map(|l| 1.0 / (1.0 + (-l).exp())).collect(),
        Problem::Regression => logits.to_vec(),
    }
}

/// Returns the index of the largest value; the first of equals.
pub fn argmax(values: &[f64]) -> usize {
    let better = |best: usize, i: usize| if values[i] > values[best] { i } else { best };
    (1..values.len()).fold(0, better)
}

/// Finds the label of an answer. A peer decides what the plan gives out, so nothing here is taken
/// for granted.
pub(crate) fn classification(
    answer: &Answer,
    (labels, problem): (&[String], Problem),
    removed: usize,
    cost: Cost,
) -> Option<Classification> {
    if let [index] = answer.labels[..] {
        return Some(Classification {
            label: labels.get(index)?.clone(),
            index,
            score: None,
            scores: Vec::new(),
            logits: Vec::new(),
            removed,
            in_range: answer.in_range,
            cost,
        });
    }
    let logits = answer.reals.first()?.data().to_vec();
    if logits.len() != labels.len() || logits.is_empty() {
        return None;
    }
    let (index, scores) = (argmax(&logits), scores(&logits, problem));
    Some(Classification {
        label: labels[index].clone(),
        index,
        score: Some(scores[index]),
        scores,
        logits,
        removed,
        in_range: answer.in_range,
        cost,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_add_up_and_do_not_overflow() {
        let p = probabilities(&[1000.0, 999.0]);
        assert!((p[0] - 0.731_058_578_630_004_9).abs() < 1e-12);
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(probabilities(&[0.0]), [0.5]);
        assert_eq!(argmax(&[1.0, 3.0, 3.0]), 1);
    }

    #[test]
    fn scores_are_what_the_problem_says() {
        let logits = [-1.0, 2.0];
        assert_eq!(scores(&logits, Problem::Regression), logits);
        let one = |x: f64| 1.0 / (1.0 + (-x).exp());
        let several = scores(&logits, Problem::MultiLabel);
        assert!((several[0] - one(-1.0)).abs() < 1e-12 && (several[1] - one(2.0)).abs() < 1e-12);
        let single = scores(&logits, Problem::SingleLabel);
        assert!((single[1] - one(3.0)).abs() < 1e-12);
    }
}

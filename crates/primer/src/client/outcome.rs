//! What a client gets: a label or an answer, and what it cost.

use super::span;
use primer_net::PhaseBytes;
use primer_protocol::client::Answer;

/// What one inference cost the client.
#[derive(Debug, Clone, Copy, Default)]
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
    /// Its probability; `None` if the server reveals only labels.
    pub score: Option<f64>,
    /// The model's outputs; empty if the server reveals only labels.
    pub logits: Vec<f64>,
    /// Tokens that were cut off because the text was too long.
    pub removed: usize,
    /// Whether the model's values stayed in the ranges that it was calibrated for, as far as the
    /// scheme can tell: `Some(false)` if one came near the end of its range, so that the answer may
    /// be wrong; `None` for schemes without range flags, where nobody is told.
    pub in_range: Option<bool>,
    /// What it cost.
    pub cost: Cost,
}

/// A piece of a context that answers a question.
#[derive(Debug, Clone)]
pub struct Extract {
    /// The piece.
    pub answer: String,
    /// The probability of its start times that of its end.
    pub score: f64,
    /// Where it begins in the context, in characters.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Tokens of the context that were cut off because it was too long.
    pub removed: usize,
    /// As [`Classification::in_range`].
    pub in_range: Option<bool>,
    /// What it cost.
    pub cost: Cost,
}

/// Probabilities of a model's outputs, as Hugging Face's pipelines compute them: softmax, or the
/// logistic function if there is only one.
pub fn probabilities(logits: &[f64]) -> Vec<f64> {
    if let [single] = logits {
        return vec![1.0 / (1.0 + (-single).exp())];
    }
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = logits.iter().map(|l| (l - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|p| p / sum).collect()
}

/// The index of the largest value; the first of equals.
pub fn argmax(values: &[f64]) -> usize {
    let better = |best: usize, i: usize| if values[i] > values[best] { i } else { best };
    (1..values.len()).fold(0, better)
}

/// The label of an answer. A peer decides what the plan gives out, so nothing here is taken for
/// granted.
pub(crate) fn classification(
    answer: &Answer,
    labels: &[String],
    removed: usize,
    cost: Cost,
) -> Option<Classification> {
    if let Some(index) = answer.label {
        return Some(Classification {
            label: labels.get(index)?.clone(),
            index,
            score: None,
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
    let index = argmax(&logits);
    Some(Classification {
        label: labels[index].clone(),
        index,
        score: Some(probabilities(&logits)[index]),
        logits,
        removed,
        in_range: answer.in_range,
        cost,
    })
}

/// The best piece of a context: start and end score of every token, and where the tokens stand.
pub(crate) fn extract(
    scores: &[(f64, f64)],
    tokens: &[Option<(usize, usize)>],
    context: &str,
    removed: usize,
    in_range: Option<bool>,
    cost: Cost,
) -> Option<Extract> {
    let (start, end) = span::best_span(scores, tokens)?;
    let inside: Vec<usize> = (0..scores.len().min(tokens.len()))
        .filter(|i| tokens[*i].is_some())
        .collect();
    let chance = |score: fn(&(f64, f64)) -> f64, wanted: &dyn Fn((usize, usize)) -> bool| {
        let values: Vec<f64> = inside.iter().map(|i| score(&scores[*i])).collect();
        let chances = probabilities(&values);
        let fitting = inside.iter().zip(chances);
        let fitting = fitting.filter(|(i, _)| tokens[**i].is_some_and(wanted));
        fitting.map(|(_, p)| p).fold(0.0, f64::max)
    };
    Some(Extract {
        answer: span::characters(context, (start, end)).to_owned(),
        score: chance(|s| s.0, &|at| at.0 == start) * chance(|s| s.1, &|at| at.1 == end),
        start,
        end,
        removed,
        in_range,
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
    fn an_extract_tells_where_it_stands() {
        let tokens = [None, Some((0, 3)), Some((4, 7)), Some((8, 9)), None];
        let scores = [(9.0, 9.0), (4.0, 0.0), (0.0, 5.0), (-5.0, -9.0), (9.0, 9.0)];
        let found = extract(
            &scores,
            &tokens,
            "the cat x",
            0,
            Some(false),
            Cost::default(),
        )
        .unwrap();
        assert_eq!(found.in_range, Some(false));
        assert_eq!(
            (found.answer.as_str(), found.start, found.end),
            ("the cat", 0, 7)
        );
        // Softmax over the three tokens of the context only.
        let start = 1.0 / (1.0 + (-4f64).exp() + (-9f64).exp());
        let end = 1.0 / (1.0 + (-5f64).exp() + (-14f64).exp());
        assert!((found.score - start * end).abs() < 1e-9);
        assert!(extract(&scores, &[None; 5], "", 0, None, Cost::default()).is_none());
    }
}

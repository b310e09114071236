//! Accuracy and F1 of predicted labels.

/// Measures of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// The part of predictions that is right.
    pub accuracy: f64,
    /// F1 of the positive label if there are two labels, the mean of all labels' F1 if there are
    /// more; of the words of answers that are texts, their mean.
    pub f1: f64,
}

/// Returns the measures of predictions against the right labels, of which `positive` is the one
/// that F1 of a task with two labels is about.
///
/// # Panics
/// If there are no predictions, or not as many as right labels.
pub fn accuracy_and_f1(
    predicted: &[usize],
    gold: &[usize],
    labels: usize,
    positive: usize,
) -> Scores {
    assert!(!gold.is_empty() && predicted.len() == gold.len());
    let right = predicted.iter().zip(gold).filter(|(p, g)| p == g).count();
    let f1_of = |label: usize| {
        let both = predicted
            .iter()
            .zip(gold)
            .filter(|(p, g)| **p == label && **g == label)
            .count();
        let either = predicted.iter().filter(|p| **p == label).count()
            + gold.iter().filter(|g| **g == label).count();
        if either == 0 {
            0.0
        } else {
            2.0 * both as f64 / either as f64
        }
    };
    let f1 = if labels == 2 {
        f1_of(positive)
    } else {
        (0..labels).map(f1_of).sum::<f64>() / labels as f64
    };
    Scores {
        accuracy: right as f64 / gold.len() as f64,
        f1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_by_hand() {
        // Label 1: predicted 3 times, right 2 times, there 3 times: F1 = 4 / 6.
        let scores = accuracy_and_f1(&[1, 1, 0, 1, 0], &[1, 1, 1, 0, 0], 2, 1);
        assert!((scores.accuracy - 0.6).abs() < 1e-12);
        assert!((scores.f1 - 2.0 / 3.0).abs() < 1e-12);
        // Label 0: predicted 2 times, right once, there 2 times: F1 = 2 / 4.
        let scores = accuracy_and_f1(&[1, 1, 0, 1, 0], &[1, 1, 1, 0, 0], 2, 0);
        assert!((scores.f1 - 0.5).abs() < 1e-12);
        let scores = accuracy_and_f1(&[0, 1, 2, 2], &[0, 1, 1, 2], 3, 1);
        let expected = (1.0 + 2.0 / 3.0 + 2.0 / 3.0) / 3.0;
        assert!((scores.f1 - expected).abs() < 1e-12);
    }
}

//! Accuracy and F1 of predicted labels.

/// Measures of a classification run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// The part of predictions that is right.
    pub accuracy: f64,
    /// F1 of label 1 if there are two labels; the mean of all labels' F1 otherwise.
    pub f1: f64,
}

/// The measures of predictions against the right labels.
///
/// # Panics
/// If there are no predictions, or not as many as right labels.
pub fn accuracy_and_f1(predicted: &[usize], gold: &[usize], labels: usize) -> Scores {
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
        f1_of(1)
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
        let scores = accuracy_and_f1(&[1, 1, 0, 1, 0], &[1, 1, 1, 0, 0], 2);
        assert!((scores.accuracy - 0.6).abs() < 1e-12);
        assert!((scores.f1 - 2.0 / 3.0).abs() < 1e-12);
        let scores = accuracy_and_f1(&[0, 1, 2, 2], &[0, 1, 1, 2], 3);
        let expected = (1.0 + 2.0 / 3.0 + 2.0 / 3.0) / 3.0;
        assert!((scores.f1 - expected).abs() < 1e-12);
    }
}

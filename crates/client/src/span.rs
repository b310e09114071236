//! From start and end scores to a piece of the context.

use primer_text::CharSpan;

/// The longest answer, in tokens: Hugging Face's default.
const MAX_ANSWER: usize = 30;
/// How many of the best starts and ends are combined: Hugging Face's default.
const BEST: usize = 20;

/// A piece of the context, and how it compares with there being none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Where it begins in the context, in characters.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The sum of its start and end scores.
    pub score: f64,
    /// The product of their probabilities among the context's tokens.
    pub probability: f64,
}

/// Finds the best piece of the context of one window.
///
/// `logits` has a start and an end score for every token; `context` says which tokens belong to
/// the context, and where. Returns nothing if no token does.
pub fn best_span(logits: &[(f64, f64)], context: &[CharSpan]) -> Option<Span> {
    let inside: Vec<usize> = (0..logits.len().min(context.len()))
        .filter(|i| context[*i].is_some())
        .collect();
    let candidates = |score: fn(&(f64, f64)) -> f64| {
        let mut tokens = inside.clone();
        tokens.sort_by(|a, b| score(&logits[*b]).total_cmp(&score(&logits[*a])));
        tokens.truncate(BEST);
        tokens
    };
    let (starts, ends) = (candidates(|l| l.0), candidates(|l| l.1));
    let mut best: Option<(f64, usize, usize)> = None;
    for &start in &starts {
        for &end in ends
            .iter()
            .filter(|end| **end >= start && **end - start < MAX_ANSWER)
        {
            let score = logits[start].0 + logits[end].1;
            if best.is_none_or(|(s, _, _)| score > s) {
                best = Some((score, start, end));
            }
        }
    }
    // Every single token is a span, so there is a best one if there is a token at all... unless
    // all good ends lie before all good starts; then the best start stands alone.
    let (start, end) = match best {
        Some((_, start, end)) => (start, end),
        None => (*starts.first()?, *starts.first()?),
    };
    let chance = |score: fn(&(f64, f64)) -> f64, token: usize| {
        let values: Vec<f64> = inside.iter().map(|i| score(&logits[*i])).collect();
        let place = inside.iter().position(|i| *i == token);
        place.map_or(0.0, |place| softmax(&values)[place])
    };
    Some(Span {
        start: context[start]?.0,
        end: context[end]?.1,
        score: logits[start].0 + logits[end].1,
        probability: chance(|l| l.0, start) * chance(|l| l.1, end),
    })
}

/// What the windows of one context say together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContextAnswer {
    /// The best piece of all windows.
    pub best: Span,
    /// The score of there being no answer: that of the first token as start and end, in the window
    /// that is the least sure of it.
    pub null_score: f64,
    /// Its probability there, among the first token and the context's.
    pub null_probability: f64,
}

impl ContextAnswer {
    /// Looks through all windows: for each, scores of all tokens, and where they stand in the
    /// context. Returns nothing if no token belongs to the context.
    pub fn over<'a>(
        windows: impl IntoIterator<Item = (&'a [(f64, f64)], &'a [CharSpan])>,
    ) -> Option<Self> {
        let mut found: Option<Self> = None;
        for (logits, context) in windows {
            let (Some(best), Some(first)) = (best_span(logits, context), logits.first()) else {
                continue;
            };
            let chance = |score: fn(&(f64, f64)) -> f64| {
                let inside = logits.iter().zip(context).filter(|(_, c)| c.is_some());
                let inside = inside.map(|(l, _)| score(l));
                let values: Vec<f64> = std::iter::once(score(first)).chain(inside).collect();
                softmax(&values)[0]
            };
            let this = Self {
                best,
                null_score: first.0 + first.1,
                null_probability: chance(|l| l.0) * chance(|l| l.1),
            };
            found = Some(match found {
                None => this,
                Some(before) => {
                    let null = if this.null_score < before.null_score {
                        this
                    } else {
                        before
                    };
                    let better = this.best.score > before.best.score;
                    Self {
                        best: if better { this.best } else { before.best },
                        ..null
                    }
                }
            });
        }
        found
    }

    /// Returns the piece, unless there being none is better by more than a threshold: SQuAD 2.0's
    /// rule.
    pub fn answer(&self, threshold: f64) -> Option<Span> {
        (self.null_score - self.best.score <= threshold).then_some(self.best)
    }
}

fn softmax(values: &[f64]) -> Vec<f64> {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = values.iter().map(|v| (v - most).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|p| p / sum).collect()
}

/// Returns the piece of a text between two character positions.
pub fn characters(text: &str, (start, end): (usize, usize)) -> &str {
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(i, _)| i);
    &text[byte(start)..byte(end.max(start))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_best_pair_in_order() {
        let context = [None, Some((0, 3)), Some((4, 7)), Some((8, 9)), None];
        // The best start is token 3, but the best end before it: the pair (1, 2) wins.
        let logits = [(9.0, 9.0), (4.0, 0.0), (0.0, 5.0), (5.0, -9.0), (9.0, 9.0)];
        let found = best_span(&logits, &context).unwrap();
        assert_eq!((found.start, found.end, found.score), (0, 7, 9.0));
        assert_eq!(best_span(&logits, &[None; 5]), None);
        // Softmax over the three tokens of the context only.
        let start = 1.0 / (1.0 + (-4f64).exp() + 1f64.exp());
        let end = 1.0 / (1.0 + (-5f64).exp() + (-14f64).exp());
        assert!((found.probability - start * end).abs() < 1e-9);
    }

    #[test]
    fn no_answer_is_what_the_least_sure_window_says() {
        let context = [None, Some((0, 3)), Some((4, 7))];
        let later = [None, Some((4, 7)), Some((8, 11))];
        let first = [(5.0, 5.0), (1.0, 0.0), (0.0, 1.0)];
        let second = [(2.0, 2.0), (0.0, 0.5), (1.0, 2.5)];
        let found =
            ContextAnswer::over([(&first[..], &context[..]), (&second[..], &later[..])]).unwrap();
        assert_eq!(
            (found.best.start, found.best.end, found.best.score),
            (8, 11, 3.5)
        );
        assert_eq!(found.null_score, 4.0);
        assert_eq!(found.answer(0.0), None);
        assert_eq!(found.answer(0.5), Some(found.best));
        let alone = ContextAnswer::over([(&second[..], &later[..])]).unwrap();
        assert_eq!(alone.null_probability, found.null_probability);
        assert!(ContextAnswer::over([(&first[..], &[None; 3][..])]).is_none());
    }

    #[test]
    fn positions_are_characters() {
        assert_eq!(characters("näïve text", (1, 5)), "äïve");
        assert_eq!(characters("näïve", (3, 99)), "ve");
        assert_eq!(characters("abc", (2, 1)), "");
    }
}

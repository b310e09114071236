//! From start and end scores to a piece of the context.

/// The longest answer, in tokens: Hugging Face's default.
const MAX_ANSWER: usize = 30;
/// How many of the best starts and ends are combined: Hugging Face's default.
const BEST: usize = 20;

/// The characters of the context between the best start and end.
///
/// `logits` has a start and an end score for every token; `context` says which tokens belong to
/// the context, and where. Returns nothing if no token does.
pub fn best_span(
    logits: &[(f64, f64)],
    context: &[Option<(usize, usize)>],
) -> Option<(usize, usize)> {
    let candidates = |score: fn(&(f64, f64)) -> f64| {
        let mut tokens: Vec<usize> = (0..logits.len().min(context.len()))
            .filter(|i| context[*i].is_some())
            .collect();
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
    Some((context[start]?.0, context[end]?.1))
}

/// The piece of a text between two character positions.
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
        assert_eq!(best_span(&logits, &context), Some((0, 7)));
        assert_eq!(best_span(&logits, &[None; 5]), None);
    }

    #[test]
    fn positions_are_characters() {
        assert_eq!(characters("näïve text", (1, 5)), "äïve");
        assert_eq!(characters("näïve", (3, 99)), "ve");
        assert_eq!(characters("abc", (2, 1)), "");
    }
}

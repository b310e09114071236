//! From scores of tokens to entities, as Hugging Face's pipelines group them.
//!
//! A label may say where an entity begins (`B-PER`) and where it goes on (`I-PER`). With
//! [`Aggregate::Simple`] neighbours of one kind are put together until another begins; tokens with
//! the label `O` belong to none and are left out.

use primer_text::{CharSpan, Input, TextEncoder};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Whether tokens are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// Every token for itself.
    None,
    /// Neighbours of one kind together.
    Simple,
}

/// A token with a label, or several.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    /// The label; of several tokens, what is behind its `B-` or `I-`.
    pub label: String,
    /// The label's probability; of several tokens, the mean; `None` if the server reveals only
    /// labels.
    pub score: Option<f64>,
    /// The token's place among all tokens of the text; none if there are several.
    pub index: Option<usize>,
    /// The token as the vocabulary has it, or several as text.
    pub word: String,
    /// Where it begins in the text, in characters.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// As Hugging Face's pipeline has it: `entity` and `index` of a token, `entity_group` of several.
impl Serialize for Entity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.index {
            Some(index) => {
                map.serialize_entry("entity", &self.label)?;
                map.serialize_entry("index", &index)?;
            }
            None => map.serialize_entry("entity_group", &self.label)?,
        }
        map.serialize_entry("score", &self.score)?;
        map.serialize_entry("word", &self.word)?;
        map.serialize_entry("start", &self.start)?;
        map.serialize_entry("end", &self.end)?;
        map.end()
    }
}

/// A token, before it is put together with others.
struct Token {
    id: u32,
    index: usize,
    label: usize,
    score: Option<f64>,
    place: (usize, usize),
}

/// Collects the entities of a text: `found` has the label of each token and its probability,
/// `places` tells where the tokens stand.
pub(super) fn entities(
    text: &str,
    (input, places): (&Input, &[CharSpan]),
    labels: &[String],
    found: &[(usize, Option<f64>)],
    (aggregate, encoder): (Aggregate, &TextEncoder),
) -> Vec<Entity> {
    let tokens = found.iter().zip(places).zip(&input.ids).enumerate();
    let tokens = tokens.filter_map(|(index, (((label, score), place), id))| {
        Some(Token {
            id: *id,
            index,
            label: *label,
            score: *score,
            place: (*place)?,
        })
    });
    match aggregate {
        Aggregate::None => {
            let named = tokens.filter(|token| labels[token.label] != "O");
            let alone = |token: Token| Entity {
                label: labels[token.label].clone(),
                score: token.score,
                index: Some(token.index),
                word: match encoder.piece(token.id) {
                    Some(piece) if !encoder.is_unknown(token.id) => piece,
                    _ => super::span::characters(text, token.place).to_owned(),
                },
                start: token.place.0,
                end: token.place.1,
            };
            named.map(alone).collect()
        }
        Aggregate::Simple => {
            let groups = grouped(tokens.collect(), labels);
            let named = groups.iter().filter(|g| kind(&labels[g[0].label]).1 != "O");
            let together = |group: &Vec<Token>| {
                let ids: Vec<u32> = group.iter().map(|token| token.id).collect();
                // All tokens have one, or none.
                let sum: Option<f64> = group.iter().map(|token| token.score).sum();
                Entity {
                    label: kind(&labels[group[0].label]).1.to_owned(),
                    score: sum.map(|sum| sum / group.len() as f64),
                    index: None,
                    word: encoder.join(&ids),
                    start: group[0].place.0,
                    end: group[group.len() - 1].place.1,
                }
            };
            named.map(together).collect()
        }
    }
}

/// Tells whether a label begins an entity, and of which kind it is.
fn kind(label: &str) -> (bool, &str) {
    match label.split_once('-') {
        Some(("B", kind)) => (true, kind),
        Some(("I", kind)) => (false, kind),
        _ => (false, label),
    }
}

/// Groups neighbours of one kind, up to where another begins.
fn grouped(tokens: Vec<Token>, labels: &[String]) -> Vec<Vec<Token>> {
    let mut groups: Vec<Vec<Token>> = Vec::new();
    for token in tokens {
        let (begins, this) = kind(&labels[token.label]);
        let joins = |last: &Token| !begins && kind(&labels[last.label]).1 == this;
        match groups.last_mut() {
            Some(group) if group.last().is_some_and(joins) => group.push(token),
            _ => groups.push(vec![token]),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nanna\nweber\nin\nro\n##me\n.";

    #[test]
    fn neighbours_of_one_kind_are_one_entity() {
        let encoder = TextEncoder::from_vocabulary(WORDS.as_bytes(), None).unwrap();
        let labels = ["O", "B-PER", "I-PER", "I-LOC"].map(str::to_owned);
        let text = "Anna Weber Anna in Rome .";
        let (mut input, mut places) = encoder.encode_with_places(text, 32).unwrap();
        input.pad_to(12, encoder.padding());
        places.resize(12, None);
        // The special tokens and the padding look like persons, and do not count.
        let best = [1, 1, 2, 1, 0, 3, 3, 0, 1, 1, 1, 1];
        let of = |aggregate, score| {
            let found = best.map(|label| (label, score));
            let how = (aggregate, &encoder);
            entities(text, (&input, &places), &labels, &found, how)
        };
        let shown = |found: &[Entity]| -> Vec<(String, String, usize, usize)> {
            let one = |e: &Entity| (e.label.clone(), e.word.clone(), e.start, e.end);
            found.iter().map(one).collect()
        };
        let entity =
            |label: &str, word: &str, start, end| (label.to_owned(), word.to_owned(), start, end);
        let simple = of(Aggregate::Simple, Some(0.75));
        assert_eq!(
            shown(&simple),
            [
                entity("PER", "anna weber", 0, 10),
                entity("PER", "anna", 11, 15),
                entity("LOC", "rome", 19, 23),
            ]
        );
        assert!(
            simple
                .iter()
                .all(|e| e.score == Some(0.75) && e.index.is_none())
        );
        // Without scores the labels are the same.
        let bare = of(Aggregate::Simple, None);
        assert_eq!(shown(&bare), shown(&simple));
        let json = serde_json::to_value(&bare[0]).unwrap();
        assert!(json["score"].is_null() && json["entity_group"] == "PER");
        let alone = of(Aggregate::None, None);
        assert_eq!(
            shown(&alone),
            [
                entity("B-PER", "anna", 0, 4),
                entity("I-PER", "weber", 5, 10),
                entity("B-PER", "anna", 11, 15),
                entity("I-LOC", "ro", 19, 21),
                entity("I-LOC", "##me", 21, 23),
            ]
        );
        assert_eq!(alone[3].index, Some(5));
    }
}

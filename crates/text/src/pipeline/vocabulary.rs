//! The model of a tokenizer: its words, and how it divides other words into them.

use super::parts::{Checked, MAX_AFFIX, MAX_VOCAB, index, short};
use super::{PIPELINES, Pipeline};
use serde_json::{Map, Value, json};

/// Letters of a word that is looked up piece by piece, which takes time that grows with their cube.
const MAX_WORD: u64 = 200;

/// Tokens that are added to the vocabulary: a model has a handful, a fine-tuned one at most
/// thousands.
const MAX_ADDED: usize = 1 << 14;
/// Letters of the tree in which the library keeps a vocabulary with scores, where tokens share what
/// they begin with. Each takes a table of some 350 bytes: 16 MB of tokens without common beginnings
/// would take 5 GB. This limit is 1.1 GB at most, and enough for a vocabulary of 250,000.
const MAX_TREE: usize = 3 << 20;

/// Rebuilds the tokens that are set apart from the vocabulary.
pub(super) fn added_tokens(value: Value) -> Checked<Value> {
    let tokens = match value {
        Value::Null => Vec::new(),
        Value::Array(tokens) => tokens,
        _ => return Err("added_tokens is not a list".into()),
    };
    if tokens.len() > MAX_ADDED {
        let count = tokens.len();
        return Err(format!("{count} added tokens, the limit is {MAX_ADDED}"));
    }
    for token in &tokens {
        short(&token["content"], "an added token")?;
        index(&token["id"], "an added token")?;
    }
    Ok(Value::Array(tokens))
}

/// Rebuilds the model, and finds the pipeline that it belongs to. Old files do not say what it is.
pub(super) fn model(value: Value) -> Checked<(Value, &'static Pipeline)> {
    let Value::Object(mut model) = value else {
        return Err("there is no model".into());
    };
    let kind = match model.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None if model.contains_key("merges") => "BPE",
        None if model.contains_key("max_input_chars_per_word") => "WordPiece",
        None => "Unigram",
    };
    let family = PIPELINES.iter().find(|family| family.model == kind);
    let family = family.ok_or_else(|| {
        let known = PIPELINES.map(|family| family.model);
        format!("its model is none of {}", known.join(", "))
    })?;
    let options: &[&str] = match family.model {
        "WordPiece" => &["unk_token", "continuing_subword_prefix"],
        "BPE" => &[
            "unk_token",
            "continuing_subword_prefix",
            "end_of_word_suffix",
        ],
        _ => &[],
    };
    let mut rebuilt = Map::new();
    rebuilt.insert("type".into(), json!(family.model));
    for &name in options {
        let value = model.remove(name).unwrap_or_default();
        short(&value, name)?;
        rebuilt.insert(name.into(), value);
    }
    let vocab = model.remove("vocab").unwrap_or_default();
    check_vocab(&vocab)?;
    rebuilt.insert("vocab".into(), vocab);
    let rest: &[&str] = match family.model {
        "WordPiece" => {
            let letters = model.get("max_input_chars_per_word");
            let letters = letters.map_or(Some(100), Value::as_u64);
            if letters.is_none_or(|letters| letters > MAX_WORD) {
                let name = "max_input_chars_per_word";
                return Err(format!("{name} is beyond the limit of {MAX_WORD}"));
            }
            rebuilt.insert("max_input_chars_per_word".into(), json!(letters));
            &[]
        }
        "BPE" => {
            if model
                .get("dropout")
                .is_some_and(|dropout| !dropout.is_null())
            {
                return Err("dropout makes tokens random".into());
            }
            &["merges", "fuse_unk", "byte_fallback", "ignore_merges"]
        }
        _ => &["unk_id", "byte_fallback"],
    };
    for &name in rest {
        if let Some(value) = model.remove(name) {
            rebuilt.insert(name.into(), value);
        }
    }
    Ok((Value::Object(rebuilt), family))
}

/// Checks a vocabulary: tokens with their indices, or in their order with their scores.
fn check_vocab(vocab: &Value) -> Checked<()> {
    let entries = match vocab {
        Value::Object(tokens) => {
            for id in tokens.values() {
                index(id, "a token")?;
            }
            tokens.len()
        }
        Value::Array(tokens) => {
            let mut texts = Vec::with_capacity(tokens.len());
            for token in tokens {
                match token[0].as_str() {
                    Some(text) if !text.is_empty() && text.len() <= 4 * MAX_AFFIX => {
                        texts.push(text);
                    }
                    _ => return Err("a token is empty, not a text, or too long".into()),
                }
            }
            let letters = tree_letters(texts);
            if letters > MAX_TREE {
                return Err(format!(
                    "its tokens make a tree of {letters} letters, the limit is {MAX_TREE}"
                ));
            }
            tokens.len()
        }
        _ => return Err("there is no vocabulary".into()),
    };
    if entries as u64 > MAX_VOCAB {
        return Err(format!(
            "a vocabulary of {entries}, the limit is {MAX_VOCAB}"
        ));
    }
    Ok(())
}

/// Counts the letters of the tree of `texts`: for each one, those beyond what it shares with the
/// one before it.
fn tree_letters(mut texts: Vec<&str>) -> usize {
    texts.sort_unstable();
    let mut before = "";
    let beyond = texts.into_iter().map(|text| {
        let both = before.bytes().zip(text.bytes());
        before = text;
        text.len() - both.take_while(|(a, b)| a == b).count()
    });
    beyond.sum()
}

//! Which tokenizers are accepted, and what they can cost.
//!
//! A client takes the tokenizer from the server, whom it does not trust with its memory or its
//! time. `tokenizer.json` is a small programming language: normalisers that replace anything by
//! anything, one after the other, patterns of which matching takes for ever, templates that repeat
//! the text. Eight replacements of one letter by 64 make 2^48 letters of one.
//!
//! So the file is not run but *read*, and rebuilt from the parts that we know. [`PIPELINES`] is the
//! closed list of what supported models use; each part in it has a bounded *growth*, the factor by
//! which it can make a text longer (in bytes of UTF-8), and the product of all growths of a file is
//! at most [`MAX_GROWTH`]. Together with [`MAX_TEXT`] that bounds what tokenising takes. Whatever
//! is not rebuilt (decoders, truncation, padding, unknown fields, a second value under the same
//! name) does not reach the tokenizer.

mod vocabulary;

use super::TextError;
use serde_json::{Map, Value, json};
use vocabulary::{added_tokens, model};

/// Bytes of the longest text: a model takes 512 tokens, which are a few thousand.
pub const MAX_TEXT: usize = 256 << 10;
/// How much longer all parts together may make a text.
const MAX_GROWTH: f64 = 64.0;
/// Entries of a vocabulary, and more than any token's index: what a server's card may say.
const MAX_VOCAB: u64 = 1 << 20;
/// Parts of a sequence.
const MAX_PARTS: usize = 8;
/// Pieces of a template: a pair of texts and their special tokens.
const MAX_PIECES: usize = 8;
/// Bytes of a token that is set apart, of a prefix, of a replacement.
const MAX_AFFIX: usize = 64;
/// The parts that the tokenizers of a family of models are made of. Another family is another line.
struct Pipeline {
    model: &'static str,
    normalizers: &'static [&'static str],
    pre_tokenizers: &'static [&'static str],
    post_processors: &'static [&'static str],
    /// What joins tokens to text again; a file's own is not looked at.
    decoder: &'static str,
}

const PIPELINES: [Pipeline; 3] = [
    // BERT, DistilBERT, ELECTRA, MiniLM.
    Pipeline {
        model: "WordPiece",
        normalizers: &["BertNormalizer"],
        pre_tokenizers: &["BertPreTokenizer"],
        post_processors: &["TemplateProcessing", "BertProcessing"],
        decoder: r###"{"type": "WordPiece", "prefix": "##", "cleanup": true}"###,
    },
    // RoBERTa.
    Pipeline {
        model: "BPE",
        normalizers: &[],
        pre_tokenizers: &["ByteLevel"],
        post_processors: &["RobertaProcessing", "ByteLevel", "TemplateProcessing"],
        decoder: r#"{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true}"#,
    },
    // XLM-R, ALBERT, without the tables of `Precompiled`: a reader of such a table trusts it.
    Pipeline {
        model: "Unigram",
        normalizers: &[
            "NFC",
            "NFD",
            "NFKC",
            "NFKD",
            "Lowercase",
            "StripAccents",
            "Strip",
            "Replace",
        ],
        pre_tokenizers: &["WhitespaceSplit", "Metaspace"],
        post_processors: &["TemplateProcessing"],
        decoder: r#"{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}"#,
    },
];

type Checked<T> = Result<T, String>;

/// A `tokenizer.json` rebuilt from the parts that are known, or the first that is not.
///
/// # Errors
/// [`TextError::Tokenizer`].
pub(super) fn rebuilt(bytes: &[u8]) -> Result<Vec<u8>, TextError> {
    rebuild(bytes).map_err(|reason| TextError::Tokenizer {
        file: "tokenizer.json",
        reason,
    })
}

fn rebuild(bytes: &[u8]) -> Checked<Vec<u8>> {
    let mut file: Map<String, Value> = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let mut take = |name: &str| file.remove(name).unwrap_or_default();
    let (model, family) = model(take("model"))?;
    let mut growth = 1.0;
    let parts = |value: Value, list: &str, known: &[&str]| sequence(value, list, known);
    let mut normalizers = Vec::new();
    for part in parts(take("normalizer"), "normalizers", family.normalizers)? {
        let (part, factor) = normalizer(part)?;
        growth *= factor;
        normalizers.push(part);
    }
    let mut pre_tokenizers = Vec::new();
    let known = family.pre_tokenizers;
    for part in parts(take("pre_tokenizer"), "pretokenizers", known)? {
        let (part, factor) = pre_tokenizer(part)?;
        growth *= factor;
        pre_tokenizers.push(part);
    }
    if growth > MAX_GROWTH {
        return Err(format!(
            "its parts could make a text {growth:.0} times as long, the limit is {MAX_GROWTH}"
        ));
    }
    let mut processors = Vec::new();
    for part in parts(take("post_processor"), "processors", family.post_processors)? {
        processors.push(post_processor(part)?);
    }
    let rebuilt = json!({
        "version": "1.0", "truncation": null, "padding": null,
        "decoder": serde_json::from_str::<Value>(family.decoder).map_err(|e| e.to_string())?,
        "added_tokens": added_tokens(take("added_tokens"))?,
        "normalizer": joined(normalizers, "normalizers"),
        "pre_tokenizer": joined(pre_tokenizers, "pretokenizers"),
        "post_processor": joined(processors, "processors"),
        "model": model,
    });
    serde_json::to_vec(&rebuilt).map_err(|e| e.to_string())
}

/// The fields of a part that it may have, and their values; what is missing is null.
fn fields<const N: usize>(part: &Value, names: [&str; N]) -> [Value; N] {
    names.map(|name| part.get(name).cloned().unwrap_or_default())
}

fn name_of(part: &Value) -> &str {
    part.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// The parts of a sequence, or a part that stands alone; each one of those that are known.
fn sequence(value: Value, list: &str, known: &[&str]) -> Checked<Vec<Value>> {
    let parts = match value {
        Value::Null => Vec::new(),
        Value::Object(mut object) if object.get("type") == Some(&json!("Sequence")) => {
            match object.remove(list) {
                Some(Value::Array(parts)) => parts,
                _ => return Err(format!("a Sequence without {list}")),
            }
        }
        part => vec![part],
    };
    if parts.len() > MAX_PARTS {
        return Err(format!("{} {list}, the limit is {MAX_PARTS}", parts.len()));
    }
    for part in &parts {
        let name = name_of(part);
        if !known.contains(&name) {
            let name: String = name.chars().filter(|c| !c.is_control()).take(40).collect();
            return Err(format!(
                "{name:?} among its {list} is not a part that Primer runs for this kind of model; \
                 known: {}",
                known.join(", ")
            ));
        }
    }
    Ok(parts)
}

fn joined(mut parts: Vec<Value>, list: &str) -> Value {
    match parts.len() {
        0 => Value::Null,
        1 => parts.remove(0),
        _ => json!({"type": "Sequence", list: parts}),
    }
}

/// A text of at most [`MAX_AFFIX`] bytes, or none.
fn short(value: &Value, what: &str) -> Checked<()> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) if text.len() <= MAX_AFFIX => Ok(()),
        _ => Err(format!("{what} is not a text of at most {MAX_AFFIX} bytes")),
    }
}

/// An index that a card could allow for.
fn index(value: &Value, what: &str) -> Checked<()> {
    match value.as_u64() {
        Some(id) if id < MAX_VOCAB => Ok(()),
        _ => Err(format!("{what} has no index below {MAX_VOCAB}")),
    }
}

fn normalizer(part: Value) -> Checked<(Value, f64)> {
    let kind = name_of(&part).to_owned();
    // Of UTF-8, by the tables of Unicode's annex 15 and of its case mappings.
    let factor = match &*kind {
        "BertNormalizer" => {
            let [clean, chinese, accents, lower] = fields(
                &part,
                [
                    "clean_text",
                    "handle_chinese_chars",
                    "strip_accents",
                    "lowercase",
                ],
            );
            let rebuilt = json!({
                "type": kind, "clean_text": clean, "handle_chinese_chars": chinese,
                "strip_accents": accents, "lowercase": lower,
            });
            // Spaces around an ideogram (5/3), decomposition (3), lower case (3/2).
            return Ok((rebuilt, 7.5));
        }
        "Replace" => return replacement(&part),
        "Strip" => {
            let [left, right] = fields(&part, ["strip_left", "strip_right"]);
            let rebuilt = json!({"type": kind, "strip_left": left, "strip_right": right});
            return Ok((rebuilt, 1.0));
        }
        "NFC" | "NFD" => 3.0,
        "NFKC" | "NFKD" => 11.0,
        "Lowercase" => 1.5,
        _ => 1.0,
    };
    Ok((json!({"type": kind}), factor))
}

/// A replacement of one text by another; of patterns, the one that joins spaces.
fn replacement(part: &Value) -> Checked<(Value, f64)> {
    let [pattern, content] = fields(part, ["pattern", "content"]);
    short(&content, "a replacement")?;
    let new = content.as_str().ok_or("a Replace without content")?;
    let text = pattern.get("String").and_then(Value::as_str);
    let regex = pattern.get("Regex").and_then(Value::as_str);
    let (pattern, old) = match (text, regex) {
        (Some(text), None) if !text.is_empty() => (json!({"String": text}), text.len()),
        (None, Some(" {2,}")) => (json!({"Regex": " {2,}"}), 2),
        _ => return Err("a Replace of something other than a text or \" {2,}\"".into()),
    };
    let rebuilt = json!({"type": "Replace", "pattern": pattern, "content": new});
    Ok((rebuilt, (new.len() as f64 / old as f64).max(1.0)))
}

fn pre_tokenizer(part: Value) -> Checked<(Value, f64)> {
    let kind = name_of(&part);
    Ok(match kind {
        "ByteLevel" => {
            let [prefix, trim, regex] =
                fields(&part, ["add_prefix_space", "trim_offsets", "use_regex"]);
            let regex = if regex.is_null() { json!(true) } else { regex };
            let rebuilt = json!({
                "type": kind, "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": regex,
            });
            // A byte is a letter, of two bytes at most.
            (rebuilt, 2.0)
        }
        "Metaspace" => {
            let [letter, scheme, split] = fields(&part, ["replacement", "prepend_scheme", "split"]);
            short(&letter, "the replacement of a space")?;
            let mut rebuilt = json!({"type": kind, "replacement": letter});
            // What old files call a scheme that is not the usual one.
            let scheme = match part["add_prefix_space"] == false && scheme.is_null() {
                true => json!("never"),
                false => scheme,
            };
            for (name, value) in [("prepend_scheme", scheme), ("split", split)] {
                if !value.is_null() {
                    rebuilt[name] = value;
                }
            }
            // A space is a letter, of four bytes at most.
            (rebuilt, 4.0)
        }
        _ => (json!({"type": kind}), 1.0),
    })
}

fn post_processor(part: Value) -> Checked<Value> {
    let kind = name_of(&part);
    match kind {
        "TemplateProcessing" => template(&part),
        "ByteLevel" => {
            let [prefix, trim, regex] =
                fields(&part, ["add_prefix_space", "trim_offsets", "use_regex"]);
            let regex = if regex.is_null() { json!(true) } else { regex };
            Ok(json!({
                "type": kind, "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": regex,
            }))
        }
        _ => {
            let [sep, cls] = fields(&part, ["sep", "cls"]);
            for token in [&sep, &cls] {
                short(&token[0], "a special token")?;
                index(&token[1], "a special token")?;
            }
            let mut rebuilt = json!({"type": kind, "sep": sep, "cls": cls});
            if kind == "RobertaProcessing" {
                let names = ["trim_offsets", "add_prefix_space"];
                for (name, value) in names.into_iter().zip(fields(&part, names)) {
                    rebuilt[name] = value;
                }
            }
            Ok(rebuilt)
        }
    }
}

/// A template in which each text stands once, among few special tokens of one index each.
///
/// The library trusts a template: a piece that names a token or a text that is not there ends the
/// program. So pieces are rebuilt, too.
fn template(part: &Value) -> Checked<Value> {
    let [single, pair, special] = fields(part, ["single", "pair", "special_tokens"]);
    let tokens = special.as_object().ok_or("a template without tokens")?;
    if tokens.len() > MAX_PIECES {
        return Err(format!("a template with {} tokens", tokens.len()));
    }
    let mut rebuilt = Map::new();
    for (name, token) in tokens {
        short(&json!(name), "a special token")?;
        match (token["ids"].as_array().map(Vec::as_slice), &token["tokens"]) {
            (Some([id]), Value::Array(texts)) if texts.len() == 1 && texts[0].is_string() => {
                index(id, "a special token")?;
                short(&texts[0], "a special token")?;
                let token = json!({"id": name, "ids": [id], "tokens": texts});
                rebuilt.insert(name.clone(), token);
            }
            _ => return Err("a special token that stands for several".into()),
        }
    }
    let (single, pair) = (
        pieces(&single, &["A"], &rebuilt)?,
        pieces(&pair, &["A", "B"], &rebuilt)?,
    );
    Ok(json!({
        "type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": rebuilt,
    }))
}

/// The pieces of a template for some texts.
fn pieces(pieces: &Value, texts: &[&str], tokens: &Map<String, Value>) -> Checked<Vec<Value>> {
    let pieces = pieces.as_array().ok_or("a template without pieces")?;
    let mut rebuilt = Vec::with_capacity(pieces.len().min(MAX_PIECES));
    let mut seen = Vec::new();
    for piece in pieces {
        let (kind, piece) = match (piece.get("Sequence"), piece.get("SpecialToken")) {
            (Some(text), None) => ("Sequence", text),
            (None, Some(token)) => ("SpecialToken", token),
            _ => return Err("a piece of a template that is neither text nor token".into()),
        };
        let id = piece["id"].as_str().unwrap_or_default();
        match kind {
            "Sequence" => seen.push(id),
            _ if tokens.contains_key(id) => {}
            _ => return Err("a template with a token that it does not define".into()),
        }
        let type_id = piece["type_id"].as_u64().filter(|kind| *kind < 256);
        let type_id = type_id.ok_or("a piece of a template without a type below 256")?;
        rebuilt.push(json!({kind: {"id": id, "type_id": type_id}}));
    }
    seen.sort_unstable();
    if rebuilt.len() > MAX_PIECES || seen != texts {
        return Err(format!(
            "a template of {} pieces; at most {MAX_PIECES} are accepted, and each text once",
            rebuilt.len()
        ));
    }
    Ok(rebuilt)
}

#[cfg(test)]
mod tests;

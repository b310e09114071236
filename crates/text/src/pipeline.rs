//! The tokenizers that are accepted, and what they can cost.
//!
//! A client takes the tokenizer from the server, which it does not trust with its memory or its
//! time. `tokenizer.json` is a small programming language: normalisers that replace anything by
//! anything, one after the other, patterns that take forever to match, templates that repeat the
//! text. Eight replacements of one letter by 64 turn one letter into 2^48.
//!
//! So the file is not run but *read*, and rebuilt from the parts that we know. [`PIPELINES`] is the
//! closed list of what supported models use; each part in it has a bounded *growth*, the factor by
//! which it can make a text longer (in bytes of UTF-8), and the product of all growths of a file is
//! at most [`MAX_GROWTH`]. Together with [`MAX_TEXT`] that bounds what tokenising takes. All that
//! is not rebuilt (decoders, truncation, padding, unknown fields, a second value under the same
//! name) does not reach the tokenizer.

mod charsmap;
mod normalizers;
mod parts;
mod post_processors;
mod pre_tokenizers;
mod vocabulary;

use super::TextError;
use normalizers::normalizer;
use parts::{Checked, joined, name_of, sequence};
use post_processors::post_processor;
use pre_tokenizers::pre_tokenizer;
use serde_json::{Map, Value, json};
use vocabulary::{added_tokens, model};

/// Bytes of the longest text: a model takes 512 tokens, which are a few thousand.
pub const MAX_TEXT: usize = 256 << 10;
/// The factor by which all parts together may make a text longer.
const MAX_GROWTH: f64 = 64.0;

/// The parts that the tokenizers of a family of models are made of. Another family needs another
/// entry.
struct Pipeline {
    model: &'static str,
    normalizers: &'static [&'static str],
    pre_tokenizers: &'static [&'static str],
    post_processors: &'static [&'static str],
    /// What joins tokens into text again; a file's own decoder is ignored.
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
    // XLM-R.
    Pipeline {
        model: "Unigram",
        normalizers: &[
            "Precompiled",
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

/// Rebuilds a `tokenizer.json` from the parts that are known, or names the first that is not.
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
    let mut normalizers = Vec::new();
    for part in sequence(take("normalizer"), "normalizers", family.normalizers)? {
        let (part, factor) = normalizer(part)?;
        growth *= factor;
        normalizers.push(part);
    }
    let mut pre_tokenizers = Vec::new();
    let known = family.pre_tokenizers;
    for part in sequence(take("pre_tokenizer"), "pretokenizers", known)? {
        let (part, factor) = pre_tokenizer(part)?;
        if pre_tokenizers
            .iter()
            .any(|before| name_of(before) == name_of(&part))
        {
            return Err(format!("{} twice among its pretokenizers", part["type"]));
        }
        growth *= factor;
        pre_tokenizers.push(part);
    }
    if growth > MAX_GROWTH {
        return Err(format!(
            "its parts could make a text {growth:.0} times as long, the limit is {MAX_GROWTH}"
        ));
    }
    let mut processors = Vec::new();
    for part in sequence(take("post_processor"), "processors", family.post_processors)? {
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

#[cfg(test)]
mod tests;

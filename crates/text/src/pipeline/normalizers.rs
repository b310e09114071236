//! What is done to a text before it is cut into words, and how much longer it can make one.

use super::charsmap;
use super::parts::{Checked, fields, name_of, short};
use serde_json::{Value, json};

/// Rebuilds a normaliser that is known, and returns its growth.
pub(super) fn normalizer(part: Value) -> Checked<(Value, f64)> {
    let kind = name_of(&part).to_owned();
    // Growth in UTF-8, by the tables of Unicode's annex 15 and of its case mappings.
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
        "Precompiled" => {
            let [table] = fields(&part, ["precompiled_charsmap"]);
            let table = table.as_str().ok_or("a Precompiled without its table")?;
            let (table, growth) = charsmap::checked(table)?;
            let rebuilt = json!({"type": kind, "precompiled_charsmap": table});
            return Ok((rebuilt, growth));
        }
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

/// Rebuilds a replacement of one text by another; of patterns, the one that joins spaces.
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

//! What cuts a text into words, and how much longer it can make one.

use super::parts::{Checked, fields, name_of, short};
use serde_json::{Value, json};

/// Rebuilds a pre-tokenizer that is known, and returns its growth.
pub(super) fn pre_tokenizer(part: Value) -> Checked<(Value, f64)> {
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
            let growth = letter.as_str().map_or(1, str::len).max(1);
            let mut rebuilt = json!({"type": kind, "replacement": letter});
            // Old files name a scheme that is not the usual one in this way.
            let scheme = match part["add_prefix_space"] == false && scheme.is_null() {
                true => json!("never"),
                false => scheme,
            };
            for (name, value) in [("prepend_scheme", scheme), ("split", split)] {
                if !value.is_null() {
                    rebuilt[name] = value;
                }
            }
            // A space becomes this letter, and a word begins with one, after the space or the token
            // that separates it. Nothing puts words closer together if this part occurs here only
            // once.
            (rebuilt, growth as f64)
        }
        _ => (json!({"type": kind}), 1.0),
    })
}

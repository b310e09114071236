//! What all parts of a `tokenizer.json` have in common: a name, fields, and their bounds.

use serde_json::{Value, json};

/// What was checked, or why it was not accepted.
pub(super) type Checked<T> = Result<T, String>;

/// Entries of a vocabulary, and more than any token's index: what a server's card may say.
pub(super) const MAX_VOCAB: u64 = 1 << 20;
/// Parts of a sequence.
const MAX_PARTS: usize = 8;
/// Bytes of an added token, of a prefix, of a replacement.
pub(super) const MAX_AFFIX: usize = 64;

/// Returns the values of the fields that a part may have; what is missing is null.
pub(super) fn fields<const N: usize>(part: &Value, names: [&str; N]) -> [Value; N] {
    names.map(|name| part.get(name).cloned().unwrap_or_default())
}

pub(super) fn name_of(part: &Value) -> &str {
    part.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// Lists the parts of a sequence, or a part that stands alone; each one of those that are known.
pub(super) fn sequence(value: Value, list: &str, known: &[&str]) -> Checked<Vec<Value>> {
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

pub(super) fn joined(mut parts: Vec<Value>, list: &str) -> Value {
    match parts.len() {
        0 => Value::Null,
        1 => parts.remove(0),
        _ => json!({"type": "Sequence", list: parts}),
    }
}

/// Checks for a text of at most [`MAX_AFFIX`] bytes, or none.
pub(super) fn short(value: &Value, what: &str) -> Checked<()> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) if text.len() <= MAX_AFFIX => Ok(()),
        _ => Err(format!("{what} is not a text of at most {MAX_AFFIX} bytes")),
    }
}

/// Checks for an index that a card could allow for.
pub(super) fn index(value: &Value, what: &str) -> Checked<()> {
    match value.as_u64() {
        Some(id) if id < MAX_VOCAB => Ok(()),
        _ => Err(format!("{what} has no index below {MAX_VOCAB}")),
    }
}

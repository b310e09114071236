//! What joins the tokens of one text or of two, and adds special ones.

use super::parts::{Checked, fields, index, name_of, short};
use serde_json::{Map, Value, json};

/// Pieces of a template: a pair of texts and their special tokens.
const MAX_PIECES: usize = 8;

/// Rebuilds a post-processor that is known.
pub(super) fn post_processor(part: Value) -> Checked<Value> {
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

/// Rebuilds a template in which each text stands once, among few special tokens of one index each.
///
/// The library trusts a template: a piece that names a token or a text that is not there crashes
/// the program. So pieces are rebuilt, too.
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

/// Rebuilds the pieces of a template for some texts.
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

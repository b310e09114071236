//! Results that were not measured, for tests: what `primer bench` and `primer eval` print, made up.

use super::Records;
use crate::bench::Entrant;
use serde_json::Value;

/// Makes a table of `bench` with one row for each scheme.
pub(super) fn table(model: &str, schemes: &[&str], extrapolated: bool, offline_s: f64) -> String {
    let steps = ["embed", "qkv", "qk", "softmax", "attention_value", "others"];
    let steps: Vec<_> = steps
        .iter()
        .map(|s| serde_json::json!({"step": s, "offline_s": offline_s / 6.0, "online_s": 0.5}))
        .collect();
    let results: Vec<_> = schemes
        .iter()
        .map(|scheme| {
            serde_json::json!({
                "scheme": scheme, "extrapolated": extrapolated,
                "offline_s": offline_s, "online_s": 3.0, "plaintext_s": 0.1,
                "bytes": {"offline_up": 1, "offline_down": 2, "online_up": 3, "online_down": 4},
                "setup_bytes": 5, "rounds_online": 6, "peak_rss_client": 7,
                "peak_rss_server": 8, "and_gates": 9,
                "max_abs_logit_error": 0.001, "steps": steps,
            })
        })
        .collect();
    serde_json::json!({
        "model": model, "layers": 12, "layers_measured": if extrapolated { 1 } else { 12 },
        "tokens": 30, "link": "loopback", "threads_per_party": 1, "pinned": true,
        "results": results, "machine": "a machine", "commit": "abc",
        "command": format!("primer bench --model {model}"),
    })
    .to_string()
}

/// Makes a text of JSON with one field of the whole, or of every result, set.
pub(super) fn with(text: &str, field: &str, value: impl Into<Value>) -> String {
    let mut json: Value = serde_json::from_str(text).unwrap();
    let value = value.into();
    match field.strip_prefix("results.") {
        Some(field) => {
            for row in json["results"].as_array_mut().unwrap() {
                row[field] = value.clone();
            }
        }
        None => json[field] = value,
    }
    json.to_string()
}

/// Makes a table of another length and link.
pub(super) fn table_at(model: &str, tokens: usize, link: &str, schemes: &[&str]) -> String {
    let text = with(&table(model, schemes, false, 40.0), "tokens", tokens);
    with(&text, "link", link)
}

/// Makes a table with growth, in proportion to layers and tokens; points of schemes alternate as
/// `bench` prints them.
pub(super) fn grown(model: &str, schemes: &[&str], second: f64) -> String {
    let point = |scheme: &str, layers: u64, tokens: u64| {
        serde_json::json!({
            "scheme": scheme, "layers": layers, "tokens": tokens,
            "offline_s": second * (layers * tokens) as f64 / 30.0, "online_s": layers as f64,
            "bytes": {
                "offline_up": 0, "offline_down": 1000 * layers * tokens,
                "online_up": 5, "online_down": 5,
            },
            "rounds_online": 8 * layers, "and_gates": 9,
        })
    };
    let of = |sizes: &[(u64, u64)]| -> Vec<Value> {
        let of_size = |(layers, tokens)| schemes.iter().map(move |s| point(s, layers, tokens));
        sizes.iter().copied().flat_map(of_size).collect()
    };
    let layers = of(&[(1, 30), (2, 30), (4, 30)]);
    let growth = serde_json::json!({"layers": layers, "tokens": of(&[(1, 8), (1, 30)])});
    with(&table(model, schemes, true, 40.0), "growth", growth)
}

/// Makes a result of `eval`.
pub(super) fn accuracy(task: &str, engine: &str) -> String {
    result(task, engine, "shares", 50)
}

/// Returns the same with other truncation and more examples.
pub(super) fn result(task: &str, engine: &str, truncation: &str, n: usize) -> String {
    serde_json::json!({
        "model": "minilm", "task": task, "engine": engine, "n": n, "accuracy": 0.9, "f1": 0.9,
        "scheme": (engine == "secure").then_some("fp"),
        "accuracy_of_float": 0.92, "truncation": truncation, "agreement_with_float": 0.98,
        "machine": "a machine", "commit": "abc", "command": "primer eval",
    })
    .to_string()
}

/// Returns every entrant on two subjects, over a slow link, with its growth and its accuracy.
pub(super) fn everything() -> Vec<String> {
    let names: Vec<&str> = Entrant::all().map(Entrant::name).collect();
    let evaluated = |entrant| match entrant {
        Entrant::Scheme(scheme) => with(&accuracy("mnli", "secure"), "scheme", scheme.name()),
        Entrant::Gc => result("mnli", "fixed", "exact", 50),
        Entrant::Fhe => accuracy("mnli", "fhe"),
    };
    let costs = [
        table("bert-base", &names, false, 40.0),
        table_at("minilm", 64, "loopback", &names),
        table_at("bert-base", 30, "wan", &names),
        grown("bert-base", &names, 1.0),
    ];
    costs
        .into_iter()
        .chain(Entrant::all().map(evaluated))
        .collect()
}

pub(super) fn records(texts: &[String]) -> Records {
    let mut records = Records::default();
    for text in texts {
        records.add(text).unwrap();
    }
    records
}

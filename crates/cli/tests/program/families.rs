//! Families and heads as people use them: labels of tokens, embeddings, answers and none.

use primer_testkit::command::{fails, json, stderr};
use primer_testkit::files::{random_qa, repository};
use primer_testkit::process::{Server, client, primer};
use serde_json::Value;

fn family(name: &str) -> String {
    let dir = repository("crates/model/tests/fixtures/family").join(name);
    dir.display().to_string()
}

/// Returns what Hugging Face's own code says of a text.
fn golden(name: &str, text: &str) -> Value {
    let path = repository("crates/model/tests/fixtures/family").join(name);
    let lines = std::fs::read_to_string(path.join("golden.jsonl")).unwrap();
    let lines = lines.lines().map(|l| serde_json::from_str(l).unwrap());
    let mut found =
        lines.filter(|line: &Value| line["text"] == text && line["text_pair"].is_null());
    found.next().unwrap()
}

#[test]
fn tokens_get_labels() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("client");
    let model = family("roberta-ner");
    let server = Server::start(
        &dir.path().join("server"),
        &["--model", &model, "--max-tokens", "16"],
    );
    let text = "a quiet , moving film";
    let mut tag = client("tag", &server, &state);
    let found = json(tag.args([text, "--aggregate", "none"]));
    let entities = found["entities"].as_array().unwrap();
    let golden = golden("roberta-ner", text);
    let rows = golden["logits"].as_array().unwrap();
    // All but the special tokens, none of which is labelled O by this model.
    assert_eq!(entities.len(), rows.len() - 2);
    for (entity, row) in entities.iter().zip(&rows[1..]) {
        let row: Vec<f64> = row
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v.as_f64().unwrap())
            .collect();
        let best = (0..3).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
        assert_eq!(entity["entity"], format!("LABEL_{best}"));
        let sum: f64 = row.iter().map(|v| v.exp()).sum();
        let off = entity["score"].as_f64().unwrap() - row[best].exp() / sum;
        assert!(off.abs() < 0.02, "{entity}: off by {off}");
        let place = |name: &str| entity[name].as_u64().unwrap() as usize;
        let word = entity["word"].as_str().unwrap().trim_start_matches('Ġ');
        assert_eq!(&text[place("start")..place("end")], word);
    }
    assert_eq!(entities[0]["index"], 1);
    // Neighbours with one label are one; this is also what is printed without --json.
    let mut plain = client("tag", &server, &state);
    let output = plain.arg("ok").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let group = &printed[0];
    assert_eq!(group["entity_group"], "LABEL_0");
    assert_eq!((&group["word"], &group["end"]), (&"ok".into(), &2.into()));
    assert_eq!(printed.as_array().unwrap().len(), 1);
    let mut embed = client("embed", &server, &state);
    let named = [
        "labels of tokens",
        "RobertaForTokenClassification",
        "modules.json",
    ];
    fails(embed.arg("ok"), 1, &named);
}

/// Checks that with labels alone the entities are the same, and have no scores; and an answer
/// carries fewer bits, as `inspect` says and `serve` announces. What has no labels cannot reveal
/// them.
#[test]
fn tokens_get_labels_alone() {
    let dir = tempfile::tempdir().unwrap();
    let model = family("roberta-ner");
    let text = "a quiet , moving film";
    let tagged = |reveal: &str| {
        let args = ["--model", &model, "--max-tokens", "16", "--reveal", reveal];
        let server = Server::start(&dir.path().join(reveal), &args);
        let state = dir.path().join("client").join(reveal);
        let found = json(client("tag", &server, &state).args([text, "--aggregate", "none"]));
        found["entities"].as_array().unwrap().clone()
    };
    let (with, without) = (tagged("logits"), tagged("label"));
    assert_eq!(with.len(), without.len());
    for (with, without) in with.iter().zip(&without) {
        assert!(with["score"].is_f64() && without["score"].is_null());
        for key in ["entity", "index", "word", "start", "end"] {
            assert_eq!(with[key], without[key], "{key}");
        }
    }
    let inspect = |model: &str| {
        let mut inspect = primer();
        json(inspect.args(["inspect", "--tokens", "16", "--model", model]))
    };
    let found = inspect(&model);
    let logits = found["steps"].as_array().unwrap().iter().rev();
    let ring = logits
        .filter_map(|step| step["scale"]["ring_bits"].as_u64())
        .next()
        .unwrap();
    assert_eq!(found["bits_per_answer"], 16 * 3 * ring + 1);
    assert_eq!(found["bits_per_answer_of_labels"], 16 * 2 + 1);
    assert!(inspect(&family("sentence"))["bits_per_answer_of_labels"].is_null());
    let mut none = primer();
    none.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--reveal",
        "label",
        "--model",
    ]);
    none.arg(family("sentence"))
        .arg("--state")
        .arg(dir.path().join("none"));
    fails(&mut none, 1, &["only a model with labels"]);
}

/// Checks that any of several labels may be right, in any of many languages.
#[test]
fn each_of_several_labels_has_its_own_probability() {
    let dir = tempfile::tempdir().unwrap();
    let model = family("xlm-roberta");
    let args = ["--model", &model, "--max-tokens", "48"];
    let server = Server::start(&dir.path().join("server"), &args);
    let text = "Ein ﬁlm über Ｚürich № ５ — ganz ①a !";
    let found = json(client("classify", &server, &dir.path().join("client")).arg(text));
    let golden = golden("xlm-roberta", text);
    let numbers = |value: &Value| -> Vec<f64> {
        let values = value.as_array().unwrap().iter();
        values.map(|v| v.as_f64().unwrap()).collect()
    };
    let (golden, logits) = (numbers(&golden["logits"]), numbers(&found["logits"]));
    let scores = numbers(&found["scores"]);
    assert_eq!((logits.len(), scores.len()), (3, 3));
    for ((golden, logit), score) in golden.iter().zip(&logits).zip(&scores) {
        assert!((golden - logit).abs() < 0.05, "{logit} for {golden}");
        let chance = 1.0 / (1.0 + (-golden).exp());
        assert!((chance - score).abs() < 0.0125, "{score} for {chance}");
    }
    // Not what one label of three would have.
    assert!((scores.iter().sum::<f64>() - 1.0).abs() > 0.1, "{scores:?}");
    assert_eq!(found["label"], "sad");
    assert_eq!(found["score"], found["scores"][2]);
    let mut alone = primer();
    alone.args(["serve", "--model", &model, "--reveal", "label", "--state"]);
    let named = ["labels, one of which is right"];
    fails(alone.arg(dir.path().join("other")), 1, &named);
}

#[test]
fn a_regression_gives_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model");
    std::fs::create_dir(&model).unwrap();
    for entry in std::fs::read_dir(family("distilbert")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, model.join(path.file_name().unwrap())).unwrap();
    }
    let config = model.join("config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    let mut changed: Value = serde_json::from_str(&text).unwrap();
    changed["problem_type"] = "regression".into();
    std::fs::write(&config, changed.to_string()).unwrap();
    let model = model.display().to_string();
    let args = ["--model", &model, "--max-tokens", "16"];
    let server = Server::start(&dir.path().join("server"), &args);
    let text = "a quiet , moving film";
    let found = json(client("classify", &server, &dir.path().join("client")).arg(text));
    assert_eq!(found["scores"], found["logits"]);
    let golden = golden("distilbert", text);
    for (golden, score) in golden["logits"]
        .as_array()
        .unwrap()
        .iter()
        .zip(found["scores"].as_array().unwrap())
    {
        let off = (golden.as_f64().unwrap() - score.as_f64().unwrap()).abs();
        assert!(off < 0.05, "off by {off}");
    }
}

#[test]
fn a_text_becomes_a_vector() {
    let dir = tempfile::tempdir().unwrap();
    let model = family("sentence");
    let args = ["--model", &model, "--max-tokens", "16"];
    let server = Server::start(&dir.path().join("server"), &args);
    let text = "a quiet , moving film";
    let found = json(client("embed", &server, &dir.path().join("client")).arg(text));
    let vector = found["embedding"].as_array().unwrap();
    let golden = golden("sentence", text);
    let golden = golden["embedding"].as_array().unwrap();
    assert_eq!(vector.len(), golden.len());
    let mut length = 0.0;
    for (found, golden) in vector.iter().zip(golden) {
        let (found, golden) = (found.as_f64().unwrap(), golden.as_f64().unwrap());
        assert!((found - golden).abs() < 0.05, "{found} for {golden}");
        length += found * found;
    }
    assert!((length - 1.0).abs() < 1e-9);
    assert_eq!(found["in_range"], true);
}

#[test]
fn long_contexts_are_windows_and_there_may_be_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (model, state) = (random_qa(dir.path()), dir.path().join("client"));
    let args = ["--model", &model, "--max-tokens", "16"];
    let server = Server::start(&dir.path().join("server"), &args);
    let context = "the plot is thin but the cast is a joy and it is a quiet , moving film .";
    let answer = |threshold: &str| {
        let mut answer = client("answer", &server, &state);
        answer.args(["--question", "who made it", "--context", context]);
        answer.args(["--stride", "4", "--null-threshold", threshold]);
        json(&mut answer)
    };
    let found = answer("inf");
    assert!(found["windows"].as_u64().unwrap() > 1, "{found}");
    let place = |name: &str| found[name].as_u64().unwrap() as usize;
    let piece = found["answer"].as_str().unwrap();
    assert!(!piece.is_empty());
    assert_eq!(&context[place("start")..place("end")], piece);
    let none = answer("-1000");
    assert_eq!((&none["answer"], &none["end"]), (&"".into(), &0.into()));
    assert!((0.0..1.0).contains(&none["score"].as_f64().unwrap()));
}

#[test]
fn inspect_names_family_and_head() {
    for (name, wanted) in [
        (
            "distilbert",
            ["DistilBertForSequenceClassification", "NEGATIVE, POSITIVE"],
        ),
        (
            "electra",
            ["ElectraForSequenceClassification", "embeddings_project"],
        ),
        (
            "roberta-ner",
            [
                "RobertaForTokenClassification",
                "classifier of tokens (LABEL_0",
            ],
        ),
        (
            "xlm-roberta",
            [
                "XLMRobertaForSequenceClassification",
                "several labels (calm, funny, sad)",
            ],
        ),
        (
            "sentence",
            ["mean of all tokens, normalised", "sum of rows"],
        ),
    ] {
        let output = primer()
            .args(["inspect", "--model", &family(name)])
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(wanted.iter().all(|w| shown.contains(w)), "{shown}");
    }
}

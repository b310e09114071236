//! The program as a person runs it: output, exit codes, and one clear sentence for bad input.
#![allow(missing_docs)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const DATA: &str = "sentence\tlabel\n\
    a warm , funny film\t1\n\
    an utter mess\t0\n\
    the plot is thin and the jokes are old\t0\n\
    one of the best films of the year\t1\n";

fn primer(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_primer"))
        .args(args)
        .output()
        .unwrap()
}

fn write(dir: &Path, name: &str, text: &[u8]) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout_json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("one JSON object on standard output")
}

/// Runs a failing command; it must end with the code, say the words, and not panic.
fn fails(args: &[&str], code: i32, words: &[&str]) {
    let output = primer(args);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert!(!message.contains("panicked"), "{args:?}: {message}");
    for word in words {
        assert!(
            message.contains(word),
            "{args:?}: no \"{word}\" in: {message}"
        );
    }
}

#[test]
fn eval_measures_the_embedded_model() {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "dev.tsv", DATA.as_bytes());
    let predictions = dir.path().join("out.jsonl");
    for (engine, truncation) in [
        ("float", "exact"),
        ("fixed", "exact"),
        ("fixed", "shares"),
        ("fhe", "exact"),
    ] {
        let output = primer(&[
            "eval",
            "--task",
            "sst2",
            "--data",
            data.to_str().unwrap(),
            "--engine",
            engine,
            "--truncation",
            truncation,
            "--predictions",
            predictions.to_str().unwrap(),
            "--json",
        ]);
        let report = stdout_json(&output);
        assert_eq!(report["task"], "sst2");
        assert_eq!(report["engine"], engine);
        assert_eq!(report["n"], 4);
        assert_eq!(report["accuracy"], 1.0);
        assert_eq!(report["f1"], 1.0);
        assert_eq!(report["accuracy_of_float"], 1.0);
        assert_eq!(report["agreement_with_float"], 1.0);
        let lines = std::fs::read_to_string(&predictions).unwrap();
        let lines: Vec<Value> = lines
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[1]["index"], 1);
        assert_eq!(lines[1]["label"], 0);
        assert_eq!(lines[1]["logits"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn limits_and_long_texts() {
    let dir = tempfile::tempdir().unwrap();
    let long = format!("h\tl\n{}\t1\nshort\t0\n", "a wonderful film ".repeat(5_000));
    let data = write(dir.path(), "long.tsv", long.as_bytes());
    let data = data.to_str().unwrap();
    let output = primer(&[
        "eval", "--task", "sst2", "--data", data, "--limit", "1", "--json",
    ]);
    let report = stdout_json(&output);
    assert_eq!(
        (&report["n"], &report["truncated_inputs"]),
        (&1.into(), &1.into())
    );
    assert!(stderr(&output).contains("truncated"));
    let args = [
        "eval", "--task", "sst2", "--data", data, "--tokens", "8", "--engine", "float", "--json",
    ];
    assert_eq!(stdout_json(&primer(&args))["truncated_inputs"], 1);
}

#[test]
fn inspect_shows_the_plan() {
    let output = primer(&["inspect"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "2199023190017",
        "layer0.probabilities",
        "one-hot product",
        "total",
    ] {
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
    let plan = stdout_json(&primer(&["inspect", "--tokens", "30", "--json"]));
    assert_eq!(plan["layers"], 2);
    assert_eq!(plan["tokens"], 30);
    assert_eq!(plan["counts"]["stop_elements"]["activation"], 2 * 30 * 512);
    assert_eq!(plan["fingerprint"].as_str().unwrap().len(), 64);
    // 94 gates for each GELU alone.
    assert!(plan["and_gates"].as_u64().unwrap() > 94 * 2 * 30 * 512);
    assert!(plan["bytes"]["online_up"].as_u64().unwrap() > 30 * 8192 * 41 / 8);
}

#[test]
fn a_prepared_model_saves_calibration() {
    let dir = tempfile::tempdir().unwrap();
    let prepared = dir.path().join("demo.prepared");
    let prepared = prepared.to_str().unwrap();
    let first = stdout_json(&primer(&["inspect", "--json", "--save-prepared", prepared]));
    let again = stdout_json(&primer(&["inspect", "--json", "--prepared", prepared]));
    assert_eq!(first["fingerprint"], again["fingerprint"]);

    // The same shape with one other weight is another model.
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/sst2-demo");
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::copy(demo.join(file), dir.path().join(file)).unwrap();
    }
    let weights = dir.path().join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    std::fs::write(&weights, bytes).unwrap();
    let model = dir.path().to_str().unwrap();
    let args = ["inspect", "--model", model, "--prepared", prepared];
    fails(&args, 1, &[prepared, "another model"]);

    let mut bytes = std::fs::read(prepared).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(prepared, bytes).unwrap();
    fails(
        &["inspect", "--prepared", prepared],
        1,
        &[prepared, "checksum"],
    );
}

#[test]
fn wrong_usage_has_exit_code_2() {
    fails(
        &["eval", "--task", "imdb", "--data", "x"],
        2,
        &["imdb", "sst2"],
    );
    fails(&["eval", "--task", "sst2"], 2, &["--data"]);
    fails(
        &["eval", "--task", "sst2", "--data", "x", "--limit", "0"],
        2,
        &["--limit"],
    );
    fails(
        &["eval", "--task", "sst2", "--data", "x", "--journal", "y"],
        2,
        &["--journal", "--engine secure"],
    );
    fails(&["explode"], 2, &["explode"]);
}

#[test]
fn bad_data_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let eval = |name: &str, text: &[u8], words: &[&str]| {
        let path = write(dir.path(), name, text);
        let args = ["eval", "--task", "sst2", "--data", path.to_str().unwrap()];
        fails(&args, 1, &[&[name], words].concat());
    };
    eval(
        "columns.tsv",
        b"h\tl\nfine\t1\nno label here\n",
        &["line 3", "1 columns where 2"],
    );
    eval(
        "label.tsv",
        b"h\tl\nfine\tmaybe\n",
        &["line 2", "\"maybe\""],
    );
    eval("empty.tsv", b"h\tl\n \t1\n", &["line 2", "empty"]);
    eval("none.tsv", b"h\tl\n", &["no examples"]);
    let args = ["eval", "--task", "sst2", "--data", "/nowhere/dev.tsv"];
    fails(&args, 1, &["/nowhere/dev.tsv"]);
    let data = write(dir.path(), "good.tsv", DATA.as_bytes());
    let data = data.to_str().unwrap();
    fails(
        &["eval", "--task", "squad", "--data", data],
        1,
        &["BertForQuestionAnswering"],
    );
    fails(
        &["eval", "--task", "mnli", "--data", data],
        1,
        &["3 labels, not 2"],
    );
    let args = [
        "eval",
        "--task",
        "sst2",
        "--data",
        data,
        "--calibration",
        "/nowhere/text",
    ];
    fails(&args, 1, &["/nowhere/text"]);
    let blank = write(dir.path(), "blank.txt", b"\n  \n");
    let args = [
        "eval",
        "--task",
        "sst2",
        "--data",
        data,
        "--calibration",
        blank.to_str().unwrap(),
    ];
    fails(&args, 1, &["no line with words"]);
    let args = [
        "eval",
        "--task",
        "sst2",
        "--data",
        data,
        "--predictions",
        "/nowhere/out",
    ];
    fails(&args, 1, &["/nowhere/out"]);
}

#[test]
fn bad_models_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().to_str().unwrap();
    fails(
        &["inspect", "--model", "/nowhere"],
        1,
        &["/nowhere", "not a directory"],
    );
    fails(&["inspect", "--model", model], 1, &["config.json"]);
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/sst2-demo");
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::copy(demo.join(file), dir.path().join(file)).unwrap();
    }
    let weights = std::fs::read(demo.join("model.safetensors")).unwrap();
    std::fs::write(dir.path().join("model.safetensors"), &weights[..1_000_000]).unwrap();
    fails(
        &["inspect", "--model", model],
        1,
        &["model.safetensors", "cut off or damaged"],
    );
}

#[test]
fn question_answering_runs_on_squad() {
    let dir = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/fixtures/random-qa");
    let vocab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/sst2-demo/vocab.txt");
    for file in ["config.json", "model.safetensors", "tokenizer_config.json"] {
        std::fs::copy(fixtures.join(file), dir.path().join(file)).unwrap();
    }
    std::fs::copy(vocab, dir.path().join("vocab.txt")).unwrap();
    let squad = serde_json::json!({"data": [{"title": "t", "paragraphs": [{
        "context": "The film was directed by a newcomer from Oslo and shot in nine days.",
        "qas": [{"id": "q1", "question": "Who directed it?",
                 "answers": [{"text": "a newcomer from Oslo", "answer_start": 25}]}],
    }]}]});
    let data = write(dir.path(), "squad.json", squad.to_string().as_bytes());
    let out = dir.path().join("answers.jsonl");
    let args = [
        "eval",
        "--model",
        dir.path().to_str().unwrap(),
        "--task",
        "squad",
        "--data",
        data.to_str().unwrap(),
        "--predictions",
        out.to_str().unwrap(),
        "--json",
    ];
    let report = stdout_json(&primer(&args));
    assert_eq!(
        (&report["task"], &report["n"]),
        (&"squad".into(), &1.into())
    );
    let line: Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    assert_eq!(line["id"], "q1");
    let answer = line["answer"].as_str().unwrap();
    assert!(
        !answer.is_empty() && squad.to_string().contains(answer),
        "{answer}"
    );
}

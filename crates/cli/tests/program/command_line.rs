//! The program as a person runs it: output, exit codes, and one clear sentence for bad input.

use primer_testkit::command::{self, stderr};
use primer_testkit::files::{copy_of_demo, random_qa, write};
use primer_testkit::process::primer;
use serde_json::Value;

const DATA: &str = "sentence\tlabel\n\
    a warm , funny film\t1\n\
    an utter mess\t0\n\
    the plot is thin and the jokes are old\t0\n\
    one of the best films of the year\t1\n";

/// Returns what a command that must succeed says as JSON.
fn json(args: &[&str]) -> Value {
    command::json(primer().args(args))
}

/// Checks that a command fails with a code and certain words.
fn fails(args: &[&str], code: i32, words: &[&str]) {
    command::fails(primer().args(args), code, words);
}

#[test]
fn eval_measures_the_embedded_model() {
    let dir = tempfile::tempdir().unwrap();
    let data = write(dir.path(), "dev.tsv", DATA.as_bytes());
    let predictions = dir.path().join("out.jsonl");
    for (engine, truncation) in [("float", "exact"), ("fixed", "exact"), ("fixed", "shares")] {
        let mut eval = primer();
        eval.args([
            "eval", "--task", "sst2", "--data", &data, "--engine", engine,
        ]);
        eval.args(["--truncation", truncation, "--predictions"]);
        let report = command::json(eval.arg(&predictions));
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
    let eval = ["eval", "--task", "sst2", "--data", &data, "--json"];
    let output = primer().args(eval).args(["--limit", "1"]).output().unwrap();
    assert!(stderr(&output).contains("truncated"));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["n"], &report["truncated_inputs"]),
        (&1.into(), &1.into())
    );
    let eval = ["eval", "--task", "sst2", "--data", &data];
    let report = json(&[&eval[..], &["--tokens", "8", "--engine", "float"]].concat());
    assert_eq!(report["truncated_inputs"], 1);
    // Padding is invisible to rounded integers: the same logits for eight tokens and for forty.
    let predictions = |pad: &str| {
        let data = write(dir.path(), "short.tsv", b"h\tl\nshort and fine\t0\n");
        let out = dir.path().join(pad);
        let mut eval = primer();
        eval.args(["eval", "--task", "sst2", "--data", &data, "--pad", pad]);
        eval.args(["--truncation", "exact", "--predictions"]);
        command::json(eval.arg(&out));
        std::fs::read(out).unwrap()
    };
    assert_eq!(predictions("0"), predictions("40"));
}

#[test]
fn inspect_shows_the_plan() {
    let output = primer().arg("inspect").output().unwrap();
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
    let plan = json(&["inspect", "--tokens", "30", "--scheme", "lean"]);
    assert_eq!(plan["layers"], 2);
    assert_eq!(plan["tokens"], 30);
    assert_eq!(plan["fingerprint"].as_str().unwrap().len(), 64);
    assert_eq!(plan["counts"]["stop_elements"]["activation"], 2 * 30 * 512);
    let steps = plan["steps"].as_array().unwrap();
    let of = |name: &str| steps.iter().find(|step| step["value"] == name).unwrap();
    assert!(of("layer0.powers")["classes"][0]["heads"].is_array());
    assert!(of("layer0.intermediate")["classes"][0]["columns"].is_u64());
    assert!(plan["and_gates"].as_u64().unwrap() < 20 * 2 * 30 * 512);
}

#[test]
fn a_prepared_model_saves_calibration() {
    let dir = tempfile::tempdir().unwrap();
    let prepared = dir.path().join("demo.prepared");
    let prepared = prepared.to_str().unwrap();
    let first = json(&["inspect", "--save-prepared", prepared]);
    let again = json(&["inspect", "--prepared", prepared]);
    assert_eq!(first["fingerprint"], again["fingerprint"]);

    // The same shape with one other weight is another model.
    copy_of_demo(dir.path());
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
    let long = ["eval", "--task", "sst2", "--data", "DATA", "--pad", "4000"];
    fails(
        &[&long[..], &["--tokens", "64"]].concat(),
        2,
        &["64 tokens", "4000"],
    );
    fails(&["explode"], 2, &["explode"]);
}

/// Checks that every command that takes a scheme takes the one that there is, and says where the
/// others are.
#[test]
fn the_paper_has_a_program_of_its_own() {
    let data = ["--task", "sst2", "--data", "DATA"];
    let taking = [
        ("serve", "--scheme", &[][..]),
        ("eval", "--scheme", &data),
        ("inspect", "--scheme", &[]),
        ("bench", "--schemes", &[]),
    ];
    for name in ["base", "f", "fp", "fpc", "gc", "fhe", "nonsense"] {
        for (command, flag, others) in taking {
            let named = match flag {
                "--schemes" => format!("lean,{name}"),
                _ => name.to_owned(),
            };
            let args = [&[command, flag, &*named], others].concat();
            fails(&args, 2, &[&format!("no scheme `{name}`"), "primer-lab"]);
        }
    }
    let args = [&["eval", "--engine", "fhe"], &data[..]].concat();
    fails(&args, 2, &["fhe"]);
    fails(&["report", "results"], 2, &["report"]);
}

#[test]
fn bad_data_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let eval = |name: &str, text: &[u8], words: &[&str]| {
        let path = write(dir.path(), name, text);
        let args = ["eval", "--task", "sst2", "--data", &path];
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
    fails(
        &["eval", "--task", "squad", "--data", &data],
        1,
        &["BertForQuestionAnswering"],
    );
    fails(
        &["eval", "--task", "mnli", "--data", &data],
        1,
        &["3 labels, not 2"],
    );
    let with = |name: &str, value: &str, words: &[&str]| {
        let args = ["eval", "--task", "sst2", "--data", &data, name, value];
        fails(&args, 1, words);
    };
    with("--calibration", "/nowhere/text", &["/nowhere/text"]);
    let blank = write(dir.path(), "blank.txt", b"\n  \n");
    with("--calibration", &blank, &["no line with words"]);
    with("--predictions", "/nowhere/out", &["/nowhere/out"]);
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
    copy_of_demo(dir.path());
    let weights = dir.path().join("model.safetensors");
    let bytes = std::fs::read(&weights).unwrap();
    std::fs::write(&weights, &bytes[..1_000_000]).unwrap();
    fails(
        &["inspect", "--model", model],
        1,
        &["model.safetensors", "cut off or damaged"],
    );
}

#[test]
fn question_answering_runs_on_squad() {
    let dir = tempfile::tempdir().unwrap();
    let model = random_qa(dir.path());
    let squad = serde_json::json!({"data": [{"title": "t", "paragraphs": [{
        "context": "The film was directed by a newcomer from Oslo and shot in nine days.",
        "qas": [{"id": "q1", "question": "Who directed it?",
                 "answers": [{"text": "a newcomer from Oslo", "answer_start": 25}]}],
    }]}]});
    let data = write(dir.path(), "squad.json", squad.to_string().as_bytes());
    let out = dir.path().join("answers.jsonl");
    let mut eval = primer();
    eval.args([
        "eval", "--model", &model, "--task", "squad", "--data", &data,
    ]);
    let report = command::json(eval.arg("--predictions").arg(&out));
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

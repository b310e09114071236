//! Measurements as a person takes them: accuracy through the protocol, costs between two processes.

use primer_testkit::command::{fails, json};
use primer_testkit::files::{random_qa, write};
use primer_testkit::process::primer;

#[test]
fn accuracy_through_the_protocol_goes_on_where_it_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let question = |id: &str, context: &str| {
        serde_json::json!({"context": context, "qas": [{
            "id": id, "question": "Who?", "answers": [{"text": "a", "answer_start": 0}],
        }]})
    };
    let paragraphs = [
        question("q1", "a film by a newcomer from Oslo"),
        question("q2", "a story of two friends"),
    ];
    let squad = serde_json::json!({"data": [{"title": "t", "paragraphs": paragraphs}]});
    let data = write(dir.path(), "squad.json", squad.to_string());
    let model = random_qa(dir.path());
    let journal = dir.path().join("journal");
    let eval = |limit: &str| {
        let mut command = primer();
        command.args([
            "eval", "--model", &model, "--task", "squad", "--data", &data,
        ]);
        command.args(["--engine", "secure", "--limit", limit, "--journal"]);
        json(command.arg(&journal))
    };
    let first = eval("1");
    assert_eq!(
        (&first["n"], &first["engine"]),
        (&1.into(), &"secure".into())
    );
    let kept = std::fs::read_to_string(&journal).unwrap();
    assert_eq!(kept.lines().count(), 2, "what is evaluated, and an answer");
    // The second time only the second question is asked: the first answer is the one of before, to
    // the bit.
    let both = eval("2");
    assert_eq!(both["n"], 2);
    assert_eq!(both["agreement_with_fixed"], 1.0);
    let grown = std::fs::read_to_string(&journal).unwrap();
    assert!(grown.starts_with(&kept), "{grown}");
    assert_eq!(grown.lines().count(), 3);
}

#[test]
fn a_model_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let model = random_qa(dir.path());
    let mut bench = primer();
    bench.args(["bench", "--model", &model, "--tokens", "8"]);
    bench.args(["--schemes", "lean", "--runs", "2", "--bundles", "2"]);
    let table = json(&mut bench);
    assert_eq!(table["model"], "random-qa", "without the way to it");
    let [row] = &table["results"].as_array().unwrap()[..] else {
        panic!("one row: {table}");
    };
    assert_eq!(
        (&row["scheme"], &row["bundles"]),
        (&"lean".into(), &2.into())
    );
    let number = |name: &str| row[name].as_f64().unwrap();
    let sum = |name: &str| -> f64 {
        let steps = row["steps"].as_array().unwrap().iter();
        steps.map(|step| step[name].as_f64().unwrap()).sum()
    };
    for phase in ["offline_s", "online_s"] {
        assert!(number(phase) > 0.0);
        assert!((number(phase) - sum(phase)).abs() < 1e-9, "{phase}");
    }
    for name in [
        "plaintext_s",
        "rounds_online",
        "peak_rss_client",
        "peak_rss_server",
        "and_gates",
        "hint_bytes",
    ] {
        assert!(number(name) > 0.0, "{name}");
    }
    assert_eq!(
        (&row["extrapolated"], &row["in_range"]),
        (&false.into(), &true.into())
    );
    assert!(number("max_abs_logit_error") < 0.1, "{row}");
    let command = table["command"].as_str().unwrap();
    assert!(command.starts_with("primer bench --model"), "{command}");
    assert!(!table["commit"].as_str().unwrap().is_empty());
}

#[test]
fn what_cannot_be_measured_is_refused_at_once() {
    let bench = |args: &[&str]| {
        let mut command = primer();
        command.arg("bench").args(args);
        command
    };
    fails(
        &mut bench(&["--model", "bert-huge"]),
        1,
        &["bert-huge", "minilm"],
    );
    fails(&mut bench(&["--link", "moon"]), 2, &["moon", "wan"]);
    fails(&mut bench(&["--growth"]), 2, &["--growth"]);
}

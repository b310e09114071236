//! Many texts in one call: one line in, one line out, and nothing that was paid for is lost.

use primer_testkit::TEXTS;
use primer_testkit::command::{fails, json, stderr};
use primer_testkit::process::{Server, client};
use primer_testkit::stores::spends;
use primer_testkit::wait::eventually;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Output, Stdio};

/// Runs a call with lines of standard input.
fn classify(server: &Server, state: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child = client("classify", server, state)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn objects(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn one_line_in_is_one_line_out() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"), &["--max-tokens", "16"]);
    let state = dir.path().join("client");
    let mut input = format!("{}\n\n", TEXTS[1].0).into_bytes();
    input.extend(b"\xff\n");
    input.extend(TEXTS[0].0.as_bytes());
    let ends = |output: &Output| {
        let message = stderr(output);
        assert_eq!(output.status.code(), Some(1), "{message}");
        let told = "primer: line 2 of standard input: the text is empty; 2 of 4 lines failed\n";
        assert!(message.ends_with(told), "{message}");
    };
    // What comes of each of the four.
    let check = |results: &[Value]| {
        let numbers: Vec<_> = results.iter().map(|one| one["line"].as_u64()).collect();
        assert_eq!(numbers, [Some(1), Some(2), Some(3), Some(4)]);
        assert_eq!(results[0]["label"], TEXTS[1].1);
        assert!(results[0]["score"].as_f64().unwrap() > 0.5);
        assert!(results[0]["bytes"]["online_up"].as_u64().unwrap() > 0);
        assert_eq!(results[3]["label"], TEXTS[0].1);
        assert_eq!(results[1]["error"], "the text is empty");
        let not_text = results[2]["error"].as_str().unwrap();
        assert!(not_text.contains("UTF-8"), "{not_text}");
        assert!(results[1].get("label").is_none() && results[0].get("error").is_none());
    };
    let output = classify(&server, &state, &["--jsonl"], &input);
    ends(&output);
    check(&objects(&output));
    let output = classify(&server, &state, &["--json"], &input);
    ends(&output);
    let object = objects(&output).remove(0);
    assert_eq!(object["label"], TEXTS[1].1);
    check(object["results"].as_array().unwrap());
    let output = classify(&server, &state, &[], &input);
    ends(&output);
    let lines = objects(&output);
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0][0]["label"], TEXTS[1].1);
    assert_eq!(lines[1][0]["error"], "the text is empty");
    // One text is a line as well.
    let mut single = client("classify", &server, &state);
    let output = single.args(["--jsonl", TEXTS[2].0]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let object = objects(&output).remove(0);
    assert_eq!(
        (&object["line"], &object["label"]),
        (&1.into(), &TEXTS[2].1.into())
    );
    // Pairs are told by their tab.
    let output = classify(&server, &state, &["--jsonl", "--pairs"], b"no tab\n");
    assert_eq!(output.status.code(), Some(1));
    let error = objects(&output)[0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("no tab between"), "{error}");
}

#[test]
fn nothing_to_read_has_one_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"), &[]);
    for form in [&[][..], &["--json"], &["--jsonl"]] {
        let mut empty = client("classify", &server, &dir.path().join("client"));
        fails(empty.args(form), 1, &["there is no text"]);
    }
}

/// Checks that a result is there before the next line is read, so whatever happens later cannot
/// take it.
#[test]
fn results_come_while_the_input_is_open_and_outlive_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    for form in ["--jsonl", "--json"] {
        let mut server = Server::start(&server_state, &[]);
        json(client("prepare", &server, &state).args(["--count", "1", "--tokens", "16"]));
        let before = spends(&state, "client").len();
        let mut child = client("classify", &server, &state)
            .args([form, "--attempts", "1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut results = BufReader::new(child.stdout.take().unwrap());
        writeln!(input, "{}", TEXTS[0].0).unwrap();
        let mut line = String::new();
        if form == "--jsonl" {
            results.read_line(&mut line).unwrap();
        } else {
            eventually("the first answer", || server.log().contains("inferred"));
        }
        server.kill();
        writeln!(input, "{}", TEXTS[1].0).unwrap();
        writeln!(input, "{}", TEXTS[2].0).unwrap();
        drop(input);
        while results.read_line(&mut line).unwrap() > 0 {}
        assert_eq!(child.wait().unwrap().code(), Some(1));
        let mut found: Vec<Value> = line
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        if form == "--json" {
            found = found[0]["results"].as_array().unwrap().clone();
        }
        assert_eq!(found.len(), 3, "{line}");
        assert_eq!(found[0]["label"], TEXTS[0].1);
        for (index, lost) in found.iter().enumerate().skip(1) {
            assert_eq!(lost["line"], index as u64 + 1);
            let error = lost["error"].as_str().unwrap();
            assert!(error.contains(&server.address), "{error}");
        }
        assert_eq!(spends(&state, "client").len(), before + 1);
        std::fs::remove_file(server_state.with_extension("log")).unwrap();
    }
}

//! One server, one client, as people run them: answers, stored bundles, trust, refusals, a stop in
//! good order.

use primer::source::Model;
use primer_model::calibrate::calibrate;
use primer_model::quantise::IntModel;
use primer_plan::function::{Class, Function};
use primer_testkit::TEXTS;
use primer_testkit::command::{fails, json, stderr};
use primer_testkit::files::write;
use primer_testkit::process::{Server, client, primer};
use primer_testkit::stores::check_stores;
use primer_testkit::wait::eventually;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

#[test]
fn a_text_gets_its_label_and_nothing_is_spent_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let server = Server::start(&server_state, &["--metrics", "127.0.0.1:0"]);
    // Nothing is prepared: the offline phase runs now.
    let found = json(client("classify", &server, &state).arg(TEXTS[0].0));
    assert_eq!(found["label"], TEXTS[0].1);
    let score = found["score"].as_f64().unwrap();
    assert!((0.5..=1.0).contains(&score));
    assert_eq!(found["logits"].as_array().unwrap().len(), 2);
    assert!(found["offline_s"].as_f64().unwrap() > 0.0);
    assert!(found["online_s"].as_f64().unwrap() > 0.0);
    for direction in ["offline_up", "offline_down", "online_up", "online_down"] {
        assert!(
            found["bytes"][direction].as_u64().unwrap() > 0,
            "{direction}"
        );
    }
    // Prepared ahead: taken from the store, and the server is known by now.
    let mut prepare = client("prepare", &server, &state);
    let made = json(prepare.args(["--count", "2", "--tokens", "16"]));
    assert_eq!(
        (&made["prepared"], &made["tokens"]),
        (&2.into(), &16.into())
    );
    let list = || json(primer().args(["bundles", "list", "--state"]).arg(&state));
    let listed = list();
    assert_eq!(listed["bundles"].as_array().unwrap().len(), 2);
    assert_eq!(listed["bundles"][0]["server"], server.address);
    let output = primer()
        .args(["classify", "--server", &server.address, "--state"])
        .arg(&state)
        .arg(TEXTS[1].0)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        line.starts_with("[{\"label\": \"negative\", \"score\": 0."),
        "{line}"
    );
    assert!(stderr(&output).contains("offline ahead of time"));
    assert_eq!(list()["bundles"].as_array().unwrap().len(), 1);
    // One is deleted here; the server's half stays until it expires.
    let id = list()["bundles"][0]["id"].as_str().unwrap().to_owned();
    let mut delete = primer();
    delete
        .args(["bundles", "delete", &id, "--state"])
        .arg(&state);
    assert!(delete.status().unwrap().success());
    fails(&mut delete, 1, &[&id, "deleted"]);
    server.metrics.counts("primer_bundles_prepared_total", 3.0);
    server.metrics.counts("primer_inferences_total", 2.0);
    server.metrics.counts("primer_bundles_stored", 1.0);
    assert!(server.metrics.page("/healthz").starts_with("HTTP/1.1 200"));
    assert!(server.metrics.page("/nothing").starts_with("HTTP/1.1 404"));
    let log = server.log();
    assert_eq!(server.terminate().code(), Some(0));
    assert!(log.contains("inferred") && !log.contains("funny") && !log.contains("mess"));
    check_stores(&server_state, &[&state]);
}

#[test]
fn lines_of_standard_input_and_long_texts() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"), &["--max-tokens", "16"]);
    let long = "wonderful ".repeat(40);
    let input = format!("{}\n{long}\n", TEXTS[1].0);
    let mut child = client("classify", &server, &dir.path().join("client"))
        .arg("--json")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let message = stderr(&output);
    assert!(output.status.success(), "{message}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["label"], "negative");
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!(results[1]["label"], "positive");
    assert_eq!(results[1]["tokens"], 16);
    assert_eq!(results[1]["truncated_tokens"], 26);
    assert!(
        message.contains("26 tokens longer than the limit of 16"),
        "{message}"
    );
    let mut empty = client("classify", &server, &dir.path().join("client"));
    fails(empty.arg("--json"), 1, &["there is no text"]);
    let mut answer = client("answer", &server, &dir.path().join("client"));
    answer.args(["--question", "who?", "--context", "me"]);
    fails(&mut answer, 1, &["sst2-demo", "labels", "span head"]);
    let mut blank = client("classify", &server, &dir.path().join("client"));
    fails(blank.arg("  "), 1, &["the text is empty"]);
}

#[test]
fn servers_are_trusted_by_name_and_fingerprint() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("client");
    let mut server = Server::start(&dir.path().join("one"), &[]);
    let bare = |server: &Server| {
        let mut command = primer();
        command.args([
            "prepare",
            "--tokens",
            "8",
            "--server",
            &server.address,
            "--state",
        ]);
        command.arg(&state);
        command
    };
    // Unknown: refused, with what to type.
    let option = format!("--trust-fingerprint {}", server.fingerprint);
    fails(&mut bare(&server), 1, &["not known", &option]);
    // A wrong fingerprint is refused and not recorded.
    let wrong = "00".repeat(32);
    let mut command = bare(&server);
    command.args(["--trust-fingerprint", &wrong]);
    fails(&mut command, 1, &[&wrong, &server.fingerprint]);
    fails(&mut bare(&server), 1, &["not known"]);
    // The right one is recorded, and not needed again.
    let mut command = bare(&server);
    command.args(["--trust-fingerprint", &server.fingerprint]);
    assert!(command.output().unwrap().status.success());
    assert!(bare(&server).output().unwrap().status.success());
    // Another server at the same address is refused loudly, with both fingerprints and the file.
    let (address, before) = (server.address.clone(), server.fingerprint.clone());
    server.kill();
    let other = Server::start_on(&address, &dir.path().join("two"), &[]);
    assert_ne!(other.fingerprint, before);
    let words = ["HAS CHANGED", &before, &other.fingerprint, "known_servers"];
    fails(&mut bare(&other), 1, &words);
    let mut command = bare(&other);
    command.args(["--trust-fingerprint", &other.fingerprint]);
    fails(&mut command, 1, &words);
}

#[test]
fn a_port_that_is_taken_and_other_wrong_starts() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("one"), &[]);
    let serve = |args: &[&str]| {
        let mut command = primer();
        command
            .args(["serve", "--state"])
            .arg(dir.path().join("two"))
            .args(args);
        command
    };
    let message = fails(
        &mut serve(&["--listen", &server.address]),
        1,
        &[
            "cannot listen on",
            &server.address,
            "another program listens there",
        ],
    );
    assert_eq!(message.lines().count(), 1, "{message}");
    fails(
        &mut serve(&["--scheme", "nonsense"]),
        2,
        &["no scheme `nonsense`"],
    );
    fails(&mut serve(&["--cert", "x"]), 2, &["--key"]);
    fails(
        &mut serve(&["--listen", "127.0.0.1:0", "--model", "nowhere"]),
        1,
        &["nowhere"],
    );
    let mut lonely = primer();
    lonely.args(["prepare", "--server", "127.0.0.1:1", "--state"]);
    fails(
        lonely.arg(dir.path().join("c")),
        1,
        &["cannot connect to 127.0.0.1:1"],
    );
    let mut portless = primer();
    portless.args(["classify", "--server", "localhost", "x"]);
    fails(&mut portless, 2, &["localhost", "a host and a port"]);
}

#[test]
fn a_stop_finishes_inferences_and_keeps_bundles() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let server = Server::start(&server_state, &[]);
    let address = server.address.clone();
    json(client("prepare", &server, &state).args(["--count", "2", "--tokens", "64"]));
    let asking = client("classify", &server, &state)
        .args(["--json", "--attempts", "1", TEXTS[2].0])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("the online phase", || {
        server.log().contains("online phase begins")
    });
    assert_eq!(server.terminate().code(), Some(0));
    let output = asking.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    // The other bundle serves after the restart, under the same identity.
    let server = Server::start_on(&address, &server_state, &[]);
    let found = json(client("classify", &server, &state).arg(TEXTS[3].0));
    assert_eq!(
        (&found["label"], &found["prepared_ahead"]),
        (&TEXTS[3].1.into(), &true.into())
    );
    check_stores(&server_state, &[&state]);
}

/// Saves the embedded model, whose activations are flagged all but around zero.
fn easily_flagged(path: &Path) {
    let model = Model::load(None).unwrap();
    let weights = &model.weights;
    let text = include_str!("../../../../models/calibration.txt");
    let mut calibrated = calibrate(weights, &model.text, text, |_, _| ()).unwrap();
    for function in calibrated.scales.functions.iter_mut().flatten() {
        if let Function::Sorted(sorted) = function {
            for Class { lookup, .. } in &mut sorted.classes {
                lookup.edge = [(1 << (lookup.index_bits - 1)) - 2; 2];
            }
        }
    }
    let flagged = IntModel::quantise(weights, calibrated).unwrap();
    flagged.save(path).unwrap();
}

#[test]
fn a_value_near_the_end_of_its_range_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let prepared = dir.path().join("prepared");
    easily_flagged(&prepared);
    let prepared = prepared.to_str().unwrap();
    let model = ["--scheme", "lean", "--prepared", prepared];
    let server = Server::start(&dir.path().join("server"), &model);
    let mut classify = client("classify", &server, &dir.path().join("client"));
    let output = classify.args(["--json", TEXTS[1].0]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["label"], TEXTS[1].1);
    assert_eq!(found["in_range"], false);
    let warning = stderr(&output);
    assert!(warning.contains("near the end of the range"), "{warning}");
    assert!(warning.contains("--calibration"), "{warning}");
    assert!(!warning.contains("  "), "one sentence: {warning}");
    // An evaluation counts such answers.
    let data = format!("sentence\tlabel\n{}\t0\n", TEXTS[1].0);
    let data = write(dir.path(), "dev.tsv", data);
    let mut eval = primer();
    eval.args([
        "eval", "--task", "sst2", "--data", &data, "--engine", "secure", "--json",
    ]);
    let output = eval.args(model).output().unwrap();
    let warning = stderr(&output);
    assert!(warning.contains("in 1 answers"), "{warning}");
    assert!(!warning.contains("  "), "a gap in {warning}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["answers_out_of_range"], 1);
    assert_eq!(found["flags_as_fixed"], 1.0);
    let told = found["told"].as_object().unwrap();
    let flagged = ["right_flagged", "wrong_flagged"].map(|name| told[name].as_u64().unwrap());
    assert_eq!(flagged.iter().sum::<u64>(), 1, "{told:?}");
    assert_eq!(found["out_of_range"].as_array().unwrap().len(), 0);
}

//! Limits of what a client may have: counted for each token, durably, and named when they end.

use primer_testkit::TEXTS;
use primer_testkit::command::{fails, json, stderr};
use primer_testkit::process::{Server, client, primer};
use primer_testkit::wait::eventually;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Makes a command about tokens.
fn token(action: &str, file: &Path, state: &Path) -> Command {
    let mut command = primer();
    command.args(["token", action, "--token-file"]);
    command.arg(file).arg("--state").arg(state);
    command
}

/// Returns what `primer token list` says of the only token.
fn listed(file: &Path, state: &Path) -> Value {
    let list = json(&mut token("list", file, state));
    assert_eq!(list["tokens"].as_array().unwrap().len(), 1, "{list}");
    list["tokens"][0].clone()
}

#[test]
fn limits_outlive_the_server_and_follow_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (file, state) = (dir.path().join("tokens"), dir.path().join("server"));
    let mut new = token("new", &file, &state);
    let made = json(new.args(["--name", "the archive", "--max-answers", "1000/day,2"]));
    let secret = made["token"].as_str().unwrap().to_owned();
    let (own, other) = (dir.path().join("one"), dir.path().join("two"));
    let args = [
        "--token-file",
        file.to_str().unwrap(),
        "--max-prepared",
        "3",
    ];
    let args = [&args[..], &["--metrics", "127.0.0.1:0"]].concat();
    let mut server = Server::start(&state, &args);
    let ask = |command: &str, server: &Server, state: &Path, text: &[&str]| {
        let mut command = client(command, server, state);
        command.env("PRIMER_TOKEN", &secret).args(text);
        command
    };
    let prepare = ["--tokens", "8", "--count", "2"];
    let text = [TEXTS[0].0];
    let found = listed(&file, &state);
    assert_eq!(found["answers"]["in_all"], 0, "nothing was served yet");
    json(&mut ask("prepare", &server, &own, &prepare));
    json(&mut ask("classify", &server, &own, &text));
    server
        .metrics
        .counts("primer_token_prepared_total{token=\"the archive\"}", 2.0);
    server
        .metrics
        .counts("primer_token_answers_total{token=\"the archive\"}", 1.0);

    // A crash gives nothing back, another pseudonym of the same token neither.
    let address = server.address.clone();
    server.kill();
    let server = Server::start_on(&address, &state, &args);
    let words = [
        "limit of a client is 3 prepared bundles in all",
        "it has had 3",
    ];
    // Of two there is room for one.
    let short = fails(&mut ask("prepare", &server, &other, &prepare), 1, &words);
    assert!(short.contains("1 of 2 bundles are prepared"), "{short}");
    let found = json(&mut ask("classify", &server, &other, &text));
    assert_eq!(found["prepared_ahead"], true);
    let words = ["limit of a client is 2 answers in all", "it has had 2"];
    fails(&mut ask("classify", &server, &own, &text), 1, &words);
    let bundles = |own: &Path| json(primer().args(["bundles", "list", "--state"]).arg(own));
    let left = bundles(&own)["bundles"].as_array().unwrap().len();
    assert_eq!(left, 1, "a refusal costs no bundle");
    // What could never be used is not prepared.
    let mut vain = ask("prepare", &server, &own, &["--tokens", "8"]);
    fails(&mut vain, 1, &["prepared bundles in all"]);
    let mut more = token("limits", &file, &state);
    json(more.args(["the archive", "--max-prepared", "9/day"]));
    server.signal("HUP");
    eventually("reading again", || {
        server.log().contains("reloaded the token file")
    });
    let mut vain = ask("prepare", &server, &own, &["--tokens", "8"]);
    fails(&mut vain, 1, &["2 answers in all"]);
    let found = listed(&file, &state);
    assert_eq!(found["name"], "the archive");
    assert_eq!(found["prepared"]["in_all"], 3);
    assert_eq!(found["answers"]["in_all"], 2);
    assert_eq!(found["prepared"]["limit"], "9/day");
    assert_eq!(found["answers"]["limit"], "1000/day,2");
    server
        .metrics
        .counts("primer_token_limited_total{token=\"the archive\"}", 5.0);

    // A deleted bundle stays counted; a higher limit lets the client go on, until it is revoked.
    let mut delete = primer();
    delete
        .args(["bundles", "delete", "--all", "--state"])
        .arg(&own);
    assert!(delete.output().unwrap().status.success());
    let mut more = token("limits", &file, &state);
    let told = json(more.args(["the archive", "--max-answers", "default"]));
    assert_eq!(told["answers"]["in_all"], 2);
    assert_eq!(told["answers"]["limit"], Value::Null);
    server.signal("HUP");
    let again = || server.log().matches("reloaded the token file").count();
    eventually("reading again", || again() == 2);
    let found = json(&mut ask("classify", &server, &own, &text));
    assert_eq!(found["prepared_ahead"], false);
    let found = listed(&file, &state);
    assert_eq!(
        (&found["prepared"]["in_all"], &found["answers"]["in_all"]),
        (&4.into(), &3.into())
    );
    let id = found["id"].as_str().unwrap();
    let revoked = json(token("revoke", &file, &state).arg(id));
    assert_eq!(revoked["name"], "the archive");
    server.signal("HUP");
    eventually("its end", || {
        server.log().contains("all clients are refused")
    });
    fails(
        &mut ask("classify", &server, &own, &text),
        1,
        &["missing or not known"],
    );
    fails(
        token("revoke", &file, &state).arg(id),
        1,
        &["no token in it is called"],
    );
    // Logs have the token's name, and nothing of the token.
    let log = server.log();
    for line in [
        "prepared",
        "spent, the online phase begins",
        "inferred",
        "request refused",
    ] {
        let named = |l: &&str| l.contains(line) && l.contains("the archive");
        assert!(log.lines().any(|l| named(&l)), "{line}: {log}");
    }
    assert!(!log.contains(&secret[8..]) && !server.metrics.page("/metrics").contains(&secret[8..]));
}

/// Checks that clients without tokens are counted by their pseudonyms.
#[test]
fn without_tokens_limits_are_those_of_a_pseudonym() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("server");
    let server = Server::start(&state, &["--max-answers", "1"]);
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let classify = |state: &Path| {
        let mut command = client("classify", &server, state);
        command.arg(TEXTS[0].0);
        command
    };
    json(&mut classify(&one));
    fails(
        &mut classify(&one),
        1,
        &["limit of a client is 1 answer in all"],
    );
    json(&mut classify(&two));
    let tokens = dir.path().join("tokens");
    json(&mut token("new", &tokens, &state));
    let others = json(&mut token("list", &tokens, &state))["others"].clone();
    assert_eq!(
        (&others["accounts"], &others["answers"]),
        (&Value::from(2), &Value::from(2))
    );
    let mut wrong = primer();
    let wrong = wrong
        .args(["serve", "--max-answers", "1000/hour"])
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        stderr(&wrong).contains("1000/day,100000"),
        "{}",
        stderr(&wrong)
    );
}

//! Who may use a server, and how each side is told who the other is.

use primer_net::tls::Identity;
use primer_testkit::TEXTS;
use primer_testkit::command::{fails, json, stderr};
use primer_testkit::files::{repository, write};
use primer_testkit::process::{Server, client, primer};
use primer_testkit::wait::eventually;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Makes a token.
fn new_token(file: &Path, name: &str) -> String {
    let mut new = primer();
    new.args(["token", "new", "--name", name, "--token-file"]);
    let output = new.arg(file).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1);
    text.trim().to_owned()
}

#[test]
fn tokens_are_printed_once_kept_as_hashes_and_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let file = at.join("tokens");
    let one = new_token(&file, "one");
    let args = ["--token-file", file.to_str().unwrap()];
    let server = Server::start(&at.join("server"), &args);
    let state = at.join("client");
    let admits = |token: &str| {
        let mut prepare = client("prepare", &server, &state);
        prepare.args(["--tokens", "8"]).env("PRIMER_TOKEN", token);
        let output = prepare.output().unwrap();
        let message = stderr(&output);
        let refused = message.contains("access token is missing or not known");
        assert_ne!(output.status.success(), refused, "{message}");
        !refused
    };
    assert!(admits(&one) && !admits("") && !admits(&one[..one.len() - 1]));
    let hash = std::fs::read_to_string(&file).unwrap();
    assert!(
        !admits(hash.split(' ').next().unwrap()),
        "a hash opens nothing"
    );
    // Another one, and the first withdrawn, without a restart.
    let two = new_token(&file, "two");
    assert!(!admits(&two));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.lines().nth(1).unwrap()).unwrap();
    server.signal("HUP");
    eventually("reading again", || {
        server.log().contains("reloaded the token file")
    });
    assert!(admits(&two) && !admits(&one));
    // A file that others have rights to adds none, and those that are still in it stay.
    let three = new_token(&file, "three");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    server.signal("HUP");
    eventually("a fault", || server.log().contains("none is added"));
    assert!(admits(&two) && !admits(&three) && server.log().contains("chmod 600"));
    // From a file of the client's, which is warned about if others can read it.
    let token = write(at, "token", format!("{two}\n"));
    let mut prepare = client("prepare", &server, &state);
    prepare.args(["--tokens", "8", "--token-file", &token]);
    let output = prepare.output().unwrap();
    assert!(output.status.success() && stderr(&output).contains("chmod 600"));
    let mut mixed = client("prepare", &server, &state);
    fails(
        mixed.arg("--token-file").arg(&file),
        1,
        &["server's file of hashes"],
    );
    let log = server.log();
    for secret in [&one, &two, &three] {
        assert!(!log.contains(&secret[8..]) && !text.contains(&secret[8..]));
    }
}

/// Withdraws the last token like any other: by an empty file, and by none at all.
#[test]
fn without_a_token_in_the_file_every_client_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let file = at.join("tokens");
    let token = new_token(&file, "the only one");
    let line = std::fs::read(&file).unwrap();
    let args = ["--token-file", file.to_str().unwrap()];
    let args = [&args[..], &["--metrics", "127.0.0.1:0"]].concat();
    let server = Server::start(&at.join("server"), &args);
    let ask = || {
        let mut prepare = client("prepare", &server, &at.join("client"));
        prepare.args(["--tokens", "8"]).env("PRIMER_TOKEN", &token);
        prepare
    };
    assert!(ask().output().unwrap().status.success());
    for round in [1, 2] {
        match round {
            1 => std::fs::write(&file, "# all have left\n").unwrap(),
            _ => std::fs::remove_file(&file).unwrap(),
        }
        server.signal("HUP");
        eventually("the withdrawal", || {
            server.log().matches("all clients are refused").count() == round
        });
        fails(&mut ask(), 1, &["access token is missing or not known"]);
        let page = server.metrics.page("/readyz");
        assert!(
            page.contains("503") && page.contains("no access token"),
            "{page}"
        );
        assert_eq!(server.metrics.number("primer_access_tokens"), 0.0);
        std::fs::write(&file, &line).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        server.signal("HUP");
        eventually("its return", || {
            server.log().matches("reloaded the token file").count() == round
        });
        assert!(ask().output().unwrap().status.success());
        assert_eq!(server.metrics.number("primer_access_tokens"), 1.0);
    }
}

#[test]
fn files_that_others_can_read_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tokens");
    new_token(&file, "");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let name = file.to_str().unwrap();
    let serve = |option: &str| {
        let mut serve = primer();
        serve.args(["serve", "--listen", "127.0.0.1:0", option, name, "--state"]);
        serve.arg(dir.path().join("server"));
        serve
    };
    fails(
        &mut serve("--token-file"),
        1,
        &[name, "mode 640", "chmod 600"],
    );
    fails(primer().args(["token", "new", name]), 1, &["chmod 600"]);
    // Tokens themselves, as files of before held them, are refused and not repeated.
    let old = dir.path().join("old");
    std::fs::write(&old, "0123456789abcdef-one\n").unwrap();
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut serve_old = primer();
    serve_old.args(["serve", "--listen", "127.0.0.1:0", "--state"]);
    serve_old
        .arg(dir.path().join("server"))
        .arg("--token-file")
        .arg(&old);
    let message = fails(&mut serve_old, 1, &["line 1", "primer token new"]);
    assert!(!message.contains("0123456789abcdef"), "{message}");
    // The name of before is a length everywhere else.
    fails(&mut serve("--tokens"), 2, &["--token-file FILE"]);
}

/// Checks that a mistyped fingerprint is not a changed certificate, and the good record stays.
#[test]
fn a_mistyped_fingerprint_is_called_one() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"), &[]);
    let state = dir.path().join("client");
    let classify = |pin: &str| {
        let mut command = primer();
        command.args(["classify", "--server", &server.address, "--state"]);
        command
            .arg(&state)
            .args(["--trust-fingerprint", pin, TEXTS[0].0]);
        command
    };
    let wrong = "00".repeat(32);
    let words = [&wrong, &server.fingerprint, "--trust-fingerprint"];
    let message = fails(&mut classify(&wrong), 1, &words);
    assert!(
        !message.contains("CHANGED") && !message.contains("on record"),
        "{message}"
    );
    assert!(!state.join("client/known_servers").exists());
    assert!(
        classify(&server.fingerprint)
            .output()
            .unwrap()
            .status
            .success()
    );
    let message = fails(&mut classify(&wrong), 1, &words);
    assert!(message.contains("has not changed"), "{message}");
    for lie in ["CHANGED", "delete"] {
        assert!(!message.contains(lie), "{message}");
    }
}

#[test]
fn certificates_that_are_missing_or_of_no_use_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let accepted = Identity::self_signed(&["client".into()]).unwrap();
    let pin = accepted.fingerprint().to_string();
    let server = Server::start(&dir.path().join("server"), &["--client-fingerprint", &pin]);
    let state = dir.path().join("client");
    let prepare = |cert: Option<(&str, &str)>| {
        let mut command = client("prepare", &server, &state);
        command.args(["--tokens", "8"]);
        if let Some((cert, key)) = cert {
            command.args(["--cert", cert, "--key", key]);
        }
        command
    };
    let asks = "asks clients for a certificate";
    fails(&mut prepare(None), 1, &[asks, "--cert and --key"]);
    let other = Identity::self_signed(&["other".into()]).unwrap();
    let cert = write(dir.path(), "cert.pem", other.chain_pem());
    let key = write(dir.path(), "key.pem", other.key_pem());
    fails(&mut prepare(Some((&cert, &key))), 1, &[asks, "this one"]);
    // X.509 of version 1, made with `openssl x509 -req -signkey` for this test.
    let fixture = |name| repository(name).display().to_string();
    let cert = fixture("crates/cli/tests/fixtures/v1-client.pem");
    let key = fixture("crates/cli/tests/fixtures/v1-client.key");
    let message = fails(
        &mut prepare(Some((&cert, &key))),
        1,
        &["our own certificate"],
    );
    assert!(!message.contains("peer"), "{message}");
}

#[test]
fn a_server_that_everyone_can_use_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let warning = "everyone who reaches this address";
    let file = dir.path().join("tokens");
    new_token(&file, "");
    let (open, token) = ("0.0.0.0:0", file.to_str().unwrap());
    for (listen, args, warned) in [
        (open, &[][..], true),
        (open, &["--token-file", token], false),
        ("127.0.0.1:0", &[], false),
    ] {
        let state = dir.path().join(format!("{warned}{}{listen}", args.len()));
        let server = Server::start_on(listen, &state, args);
        assert_eq!(server.log().contains(warning), warned, "{listen} {args:?}");
    }
}

/// Checks that bundles are of no use when the server reveals something else, and the list says so.
#[test]
fn bundles_that_do_not_fit_are_listed_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let mut server = Server::start(&server_state, &[]);
    let address = server.address.clone();
    json(client("prepare", &server, &state).args(["--tokens", "8"]));
    let list = || json(primer().args(["bundles", "list", "--state"]).arg(&state));
    assert_eq!(list()["bundles"][0]["fits_server"], true);
    server.kill();
    let server = Server::start_on(&address, &server_state, &["--reveal", "label"]);
    let found = json(client("classify", &server, &state).arg(TEXTS[0].0));
    assert_eq!(found["prepared_ahead"], false);
    assert_eq!(list()["bundles"][0]["fits_server"], false);
    let mut text = primer();
    let output = text
        .args(["bundles", "list", "--state"])
        .arg(&state)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("does not fit what the server offers now"),
        "{text}"
    );
    // Looking makes nothing.
    let missing = dir.path().join("missing");
    let found = json(primer().args(["bundles", "list", "--state"]).arg(&missing));
    assert_eq!(found["bundles"].as_array().unwrap().len(), 0);
    assert!(!missing.exists());
}

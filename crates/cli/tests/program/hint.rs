//! The life of a hint: built on the first start, found on the second, fetched, listed, deleted.

use primer_testkit::command::{fails, json, stderr};
use primer_testkit::process::{Server, client, primer};
use primer_testkit::wait::eventually;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Starts a server whose state directory is empty.
fn start(state: &Path) -> Server {
    let mut command = primer();
    command.args([
        "serve",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        "127.0.0.1:0",
    ]);
    command.arg("--state").arg(state);
    let log = File::create(state.with_extension("log")).unwrap();
    Server::spawn_bare(&mut command, state, log)
}

fn list(state: &Path) -> Vec<Value> {
    let list = json(primer().args(["hint", "list", "--state"]).arg(state));
    list["hints"].as_array().unwrap().clone()
}

fn hints(state: &Path) -> PathBuf {
    state.join("server/hints")
}

/// Makes a command of a client with words behind its name.
fn fetch(server: &Server, state: &Path) -> Command {
    let mut fetch = primer();
    fetch.args(["hint", "fetch", "--server", &server.address, "--state"]);
    fetch
        .arg(state)
        .args(["--trust-fingerprint", &server.fingerprint]);
    fetch
}

#[test]
fn a_hint_is_built_found_fetched_listed_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let [state, own] = ["server", "client"].map(|name| dir.path().join(name));
    let server = start(&state);
    assert!(server.log().contains("built the hint"), "{}", server.log());
    let built = &list(&state)[0];
    assert_eq!(
        (&built["role"], &built["complete"]),
        (&"server".into(), &true.into())
    );
    let inspected = json(primer().arg("inspect"));
    assert_eq!(built["bytes"], inspected["hint_bytes"]);
    let on_disk = built["bytes_on_disk"].as_u64().unwrap();
    let both = ["hint_bytes", "multiplier_bytes"].map(|key| inspected[key].as_u64().unwrap());
    assert!(on_disk > both[0] + both[1] && on_disk < both[0] + both[1] + 10_000);
    assert_eq!(server.terminate().code(), Some(0));

    // Found again, by another start and by the command.
    let server = start(&state);
    assert!(!server.log().contains("built the hint"), "{}", server.log());
    let again = json(primer().args(["hint", "build", "--state"]).arg(&state));
    assert_eq!(
        (&again["built"], &again["root"]),
        (&false.into(), &built["root"])
    );

    // A question fetches it; so does the command, and then there is nothing to fetch.
    let sent = || server.metrics.number("primer_hint_bytes_total") as u64;
    let fetched = json(&mut fetch(&server, &own));
    assert_eq!(fetched["root"], built["root"]);
    let once = sent();
    assert!(once > both[0] && once < both[0] + 1000, "{once}");
    json(client("classify", &server, &own).arg("a warm , funny film"));
    assert_eq!(sent(), once);
    let kept = &list(&own)[0];
    assert_eq!(
        (&kept["role"], &kept["complete"]),
        (&"client".into(), &true.into())
    );
    assert_eq!(
        (&kept["server"], &kept["model"]),
        (&(*server.address).into(), &built["model"])
    );

    // By the beginning of its name, or all.
    let mut delete = primer();
    delete.args(["hint", "delete", "zz", "--state"]).arg(&own);
    fails(&mut delete, 1, &["no hint zz"]);
    fails(
        primer().args(["hint", "delete", "--state"]).arg(&own),
        2,
        &["NAME"],
    );
    let name = &kept["name"].as_str().unwrap()[..8];
    let deleted = primer()
        .args(["hint", "delete", name, "--state"])
        .arg(&own)
        .output();
    assert_eq!(deleted.unwrap().stdout, b"deleted 1 hint\n");
    assert!(list(&own).is_empty());
    let output = client("prepare", &server, &own)
        .args(["--tokens", "8"])
        .output()
        .unwrap();
    assert!(output.status.success() && stderr(&output).contains("fetching the hint"));
    assert_eq!(sent(), 2 * once);

    // A server that is running goes on without its files, and builds them again.
    let deleted = primer()
        .args(["hint", "delete", "--all", "--state"])
        .arg(&state)
        .output();
    assert_eq!(deleted.unwrap().stdout, b"deleted 1 hint\n");
    json(client("classify", &server, &own).arg("an utter mess"));
    let copy = own
        .join("client/hints")
        .join(built["root"].as_str().unwrap());
    let copy = copy.with_extension("hint");
    let mut elsewhere = fetch(&server, &dir.path().join("other"));
    json(elsewhere.arg("--hint-url").arg(&copy));
    assert_eq!(sent(), 2 * once + (once - both[0]), "the hashes alone");
}

/// Checks that a server that is killed while it builds, and one whose disk is full, leave nothing
/// that is taken for a hint.
#[test]
fn a_build_that_ends_early_is_begun_again() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("server");
    let build = || {
        let mut build = primer();
        build
            .args(["hint", "build", "--threads", "1", "--state"])
            .arg(&state);
        build
    };
    let mut process = build()
        .stderr(File::create("/dev/null").unwrap())
        .spawn()
        .unwrap();
    let begun = || {
        let files = std::fs::read_dir(hints(&state))
            .into_iter()
            .flatten()
            .flatten();
        files
            .into_iter()
            .any(|file| file.metadata().is_ok_and(|data| data.len() > 1 << 20))
    };
    eventually("it builds", begun);
    process.kill().unwrap();
    process.wait().unwrap();
    let partial = list(&state);
    assert_eq!((partial.len(), &partial[0]["complete"]), (1, &false.into()));

    let args = ["hint", "build", "--state", state.to_str().unwrap()];
    let mut limited = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 40000; exec \"$0\" \"$@\"";
    limited
        .args(["-c", script, env!("CARGO_BIN_EXE_primer")])
        .args(args);
    fails(
        &mut limited,
        1,
        &[".digits.part", "which takes 39", "bytes"],
    );
    assert_eq!(std::fs::read_dir(hints(&state)).unwrap().count(), 0);

    assert_eq!(json(&mut build())["built"], true);
    assert_eq!(list(&state)[0]["complete"], true);
    // A key that is none is an error: another one would make another hint.
    std::fs::write(state.join("server/hint.key"), "x").unwrap();
    fails(&mut build(), 1, &["hint.key", "1 bytes instead of 32"]);
}

/// Checks that a client without room for the hint says so before it fetches any of it, and one that
/// runs out of room keeps what it has.
#[test]
fn a_client_without_room_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("client");
    let server = Server::start(&dir.path().join("server"), &["--metrics", "127.0.0.1:0"]);
    let mut limited = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 5000; exec \"$0\" \"$@\"";
    limited
        .args(["-c", script])
        .arg(env!("CARGO_BIN_EXE_primer"));
    limited.args(fetch(&server, &own).get_args());
    fails(&mut limited, 1, &[".part", "which takes 3", "bytes"]);
    let partial = &list(&own)[0];
    assert_eq!(partial["complete"], false);
    assert!(partial["bytes_there"].as_u64().unwrap() >= 2 << 20);
    let before = server.metrics.number("primer_hint_bytes_total");
    let fetched = json(&mut fetch(&server, &own));
    let rest = server.metrics.number("primer_hint_bytes_total") - before;
    assert_eq!(
        fetched["bytes"].as_f64().unwrap() - rest,
        f64::from(2 << 20)
    );
}

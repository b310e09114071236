//! Replicas that share a store: one service to clients, whatever dies.
//!
//! `scripts/fleet` starts PostgreSQL, an S3 server and HAProxy; where they are missing, these tests
//! say so and pass. `scripts/fleet test` runs all of them, `chaos` included, which takes minutes;
//! `scripts/fleet figures` measures.

mod chaos;
mod rig;
mod rollback;

use primer_testkit::TEXTS;
use primer_testkit::command::{fails, stderr};
use primer_testkit::process::primer;
use primer_testkit::wait::eventually;
use rig::{Rig, client};
use std::time::{Duration, Instant};

/// Checks that bundles and quotas are shared; roles, readiness, draining and journals are each
/// replica's own.
#[test]
fn a_bundle_of_one_replica_is_spent_on_another() {
    let Some(rig) = Rig::start(false) else { return };
    let one = rig.replica("one", None, &["--roles", "prepare"]);
    let two = rig.replica(
        "two",
        None,
        &["--roles", "infer", "--max-stored-bytes-per-client=2000000"],
    );
    assert_eq!(one.fingerprint, two.fingerprint);
    assert!(
        one.metrics.page("/readyz").starts_with("HTTP/1.1 200"),
        "{}",
        one.metrics.page("/readyz")
    );
    let (address, trust) = (&two.address, &two.fingerprint);
    let state = rig.path("client");
    // Prepared at one address, asked at another: two replicas of one service.
    let mut preparing = client("prepare", address, trust, &state);
    preparing.args([
        "--prepare-server",
        &one.address,
        "--count",
        "2",
        "--tokens",
        "8",
    ]);
    let output = preparing.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let (text, label) = TEXTS[1];
    let mut asking = client("classify", address, trust, &state);
    let found = asking.arg(text).output().unwrap();
    assert!(found.status.success(), "{}", stderr(&found));
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(
        (&found["label"], &found["prepared_ahead"]),
        (&label.into(), &true.into())
    );
    let by = rig.sql("SELECT replica_name, spends FROM primer_past");
    assert_eq!(by, "two|1");
    // What a replica does not do it says.
    let mut asking = client("prepare", address, trust, &state);
    asking.args(["--count", "1", "--tokens", "8", "--wait", "0"]);
    fails(&mut asking, 1, &["this replica does not prepare"]);
    let page = two.metrics.page("/metrics");
    assert!(
        page.contains("primer_replica_info{replica=\"two\",roles=\"infer\"} 1"),
        "{page}"
    );
    eventually("they are counted", || {
        two.metrics.number("primer_bundles_stored") == 1.0
    });

    // The database goes: no session begins, with a reason; it comes back: they do by themselves.
    rig.act("postgres", "crash");
    eventually("it is not ready", || {
        two.metrics.page("/readyz").contains("503")
    });
    assert!(
        two.metrics.page("/readyz").contains("database failed"),
        "{}",
        two.metrics.page("/readyz")
    );
    assert!(two.metrics.page("/healthz").contains("200"));
    let mut asking = client("classify", address, trust, &state);
    let words = ["its store of bundles cannot be reached"];
    fails(asking.args([text, "--wait", "0"]), 1, &words);
    rig.act("postgres", "start");
    eventually("it is ready again", || {
        two.metrics.page("/readyz").contains("200")
    });
    let found = client("classify", address, trust, &state)
        .arg(text)
        .output()
        .unwrap();
    assert!(found.status.success(), "{}", stderr(&found));

    // Drained, and nothing is left of either.
    assert_eq!(one.terminate().code(), Some(0));
    assert_eq!(two.terminate().code(), Some(0));
    let checked = rig.store("check");
    assert_eq!(checked["orphan_objects"], 0, "{checked}");
    assert_eq!(checked["orphan_bundles"], 0, "{checked}");
    assert_eq!(checked["bundles"], 0, "{checked}");
    assert_eq!(checked["tombstones"], 2, "{checked}");
    assert_eq!(checked["replicas"], serde_json::json!(["primer store"]));
}

/// Checks that a database that hangs delays no probe and no scraper.
#[test]
fn a_database_that_hangs_holds_up_no_probe() {
    let Some(rig) = Rig::start(false) else { return };
    let one = rig.replica("one", None, &[]);
    assert!(one.metrics.prompt_page("/readyz").contains("200"));
    rig.act("postgres", "hang");
    let started = Instant::now();
    eventually("it is not ready", || {
        for (path, words) in [("/healthz", "200"), ("/metrics", "primer_store_ready")] {
            assert!(one.metrics.prompt_page(path).contains(words));
        }
        one.metrics.prompt_page("/readyz").contains("503")
    });
    let noticed = started.elapsed();
    assert!(noticed < Duration::from_secs(15), "{noticed:?}");
    // What is told of the store is old, and that is told, too.
    eventually("it is old", || {
        one.metrics.prompt_page("/healthz");
        one.metrics.number("primer_store_seen_seconds") > 9.0
    });
    assert_eq!(one.metrics.number("primer_store_ready"), 0.0);
    rig.act("postgres", "resume");
    eventually("it is ready again", || {
        one.metrics.prompt_page("/readyz").contains("200")
    });
    assert_eq!(one.terminate().code(), Some(0));
}

/// Checks what is said before anything is connected to.
#[test]
fn options_that_do_not_fit_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let serve = |args: &[&str]| {
        let mut command = primer();
        command.args(["serve", "--listen", "127.0.0.1:0", "--state"]);
        command.arg(dir.path()).args(args);
        command
    };
    let store = ["--store", "postgres://u:secret@127.0.0.1:1/p"];
    fails(&mut serve(&store), 1, &["both --store and --blobs"]);
    let blobs = [&store[..], &["--blobs", "file:///tmp/nowhere"]].concat();
    fails(&mut serve(&blobs), 1, &["--store-key-file"]);
    let mut keyed = serve(&blobs);
    keyed.env("PRIMER_STORE_KEY", "07");
    fails(&mut keyed, 1, &["is not 64 hexadecimal digits"]);
    keyed.env("PRIMER_STORE_KEY", "07".repeat(32));
    fails(&mut keyed, 1, &["the same certificate", "--cert"]);
    let mut directory = serve(&["--store", "/somewhere", "--blobs", "file:///tmp/nowhere"]);
    fails(&mut directory, 1, &["--store takes postgres://"]);
    fails(
        &mut serve(&["--roles", "dance"]),
        2,
        &["is not prepare or infer"],
    );
    // A database that is not there, without its password.
    let mut checking = primer();
    checking.args(["store", "check"]).args(&blobs);
    checking.env("PRIMER_STORE_KEY", "07".repeat(32));
    let said = fails(&mut checking, 1, &["database failed"]);
    assert!(!said.contains("secret"), "{said}");
}

//! A store that is restored from a copy, with its clients: no replica serves until it is renewed.

use super::rig::{Rig, client};
use primer_testkit::TEXTS;
use primer_testkit::command::{fails, stderr};
use primer_testkit::wait::eventually;

#[test]
fn a_restored_store_is_refused_by_every_replica_until_it_is_renewed() {
    let Some(rig) = Rig::start(false) else { return };
    let one = rig.replica("one", None, &[]);
    let mut two = rig.replica("two", None, &[]);
    let (address, trust, state) = (&one.address, &one.fingerprint, rig.path("client"));
    let mut preparing = client("prepare", address, trust, &state);
    preparing.args(["--count", "1", "--tokens", "8"]);
    let output = preparing.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    rig.copy("save", &["blobs", "client"]);
    eventually("it is ready again", || {
        one.metrics.page("/readyz").contains("200")
    });
    let (text, label) = TEXTS[1];
    let ask = || {
        let output = client("classify", address, trust, &state)
            .arg(text)
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["label"], label);
        found["prepared_ahead"] == true
    };
    assert!(ask());
    // The epoch is due, and a replica that starts moves it on.
    let seen = |name: &str| std::fs::read_to_string(rig.path(name).join("server/epoch")).unwrap();
    let before = seen("one");
    rig.sql("UPDATE primer_about SET moved = now() - interval '1 hour'");
    let three = rig.replica("three", None, &[]);
    for name in ["one", "two", "three"] {
        eventually("all have seen it", || seen(name) > before);
    }

    rig.copy("restore", &["blobs", "client"]);
    for replica in [&one, &two, &three] {
        eventually("it is noticed", || {
            replica.metrics.page("/readyz").contains("was rolled back")
        });
        assert!(replica.metrics.page("/readyz").contains("503"));
        assert_eq!(replica.metrics.number("primer_store_ready"), 0.0);
        assert_eq!(replica.metrics.number("primer_store_rolled_back"), 1.0);
    }
    let words = ["was rolled back", "had seen epoch", "primer store renew"];
    rig.refused("four", &words);
    two.kill();
    rig.refused("two", &words);
    fails(&mut rig.store_command("check"), 1, &words);
    let mut asking = client("classify", address, trust, &state);
    let cannot = ["its store of bundles cannot be reached"];
    fails(asking.args([text, "--wait", "0"]), 1, &cannot);
    assert_eq!(rig.sql("SELECT count(*) FROM primer_past"), "0");

    assert_eq!(rig.store("renew")["bundles_deleted"], 1);
    for replica in [&one, &three] {
        eventually("it goes on", || {
            replica.metrics.page("/readyz").contains("200")
        });
        assert_eq!(replica.metrics.number("primer_store_rolled_back"), 0.0);
    }
    drop(rig.replica("four", None, &[]));
    drop(rig.replica("two", None, &[]));
    // The client's half is there again, the server's is not.
    assert!(!ask());
}

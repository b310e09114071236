//! Health, readiness and metrics while a disk is full: a small file system in memory, mounted where
//! only the process under test sees it. Where that is not permitted, the tests say so and pass.

use primer_testkit::TEXTS;
use primer_testkit::command::{fails, json, stderr};
use primer_testkit::process::{Server, client, primer};
use primer_testkit::wait::eventually;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Makes a command that runs a program with a file system of some megabytes mounted at a directory.
fn on_small_disk(dir: &Path, megabytes: u32, program: &Command) -> Option<Command> {
    std::fs::create_dir_all(dir).unwrap();
    let mount = "mount -t tmpfs -o size=\"$0\" primer \"$1\" && shift && exec \"$@\"";
    // As root, or as root of a namespace of one's own.
    let mut refused = String::new();
    for namespace in ["-m", "-rm"] {
        let begin = |rest: &mut dyn Iterator<Item = &std::ffi::OsStr>| {
            let mut command = Command::new("unshare");
            command.args([namespace, "sh", "-c", mount, &format!("{megabytes}m")]);
            command.arg(dir).args(rest);
            command
        };
        let tried = begin(&mut [std::ffi::OsStr::new("true")].into_iter()).output();
        match tried {
            Ok(output) if output.status.success() => {
                let words = std::iter::once(program.get_program());
                let mut command = begin(&mut words.chain(program.get_args()));
                for (name, value) in program.get_envs() {
                    match value {
                        Some(value) => command.env(name, value),
                        None => command.env_remove(name),
                    };
                }
                return Some(command);
            }
            Ok(output) => refused = stderr(&output),
            Err(error) => refused = error.to_string(),
        }
    }
    println!(
        "skipped, because no file system can be mounted: {}",
        refused.trim()
    );
    None
}

/// What is left of a disk, as another process sees it.
struct Filler(PathBuf);

impl Filler {
    /// Fills the disk but for some bytes.
    fn leave(&self, bytes: u64) {
        let mut file = File::create(&self.0).unwrap();
        let block = vec![1; 1 << 16];
        while file.write_all(&block).is_ok() {}
        while file.write_all(&[1]).is_ok() {}
        let full = file.metadata().unwrap().len();
        file.set_len(full - bytes).unwrap();
    }
}

/// Checks that a server on a full disk is not ready and says so before a client spends its half; on
/// a nearly full one bundles can be used, and none is prepared.
#[test]
fn a_full_disk_costs_no_client_its_half() {
    let dir = tempfile::tempdir().unwrap();
    let (state, own) = (dir.path().join("server"), dir.path().join("client"));
    let mut serve = primer();
    serve.args(["serve", "--json", "--listen", "127.0.0.1:0", "--state"]);
    // The hint would not fit there.
    serve.arg(&state).arg("--hint-dir").arg(dir.path());
    serve.args(["--metrics", "127.0.0.1:0"]);
    let Some(command) = on_small_disk(&state, 48, &serve) else {
        return;
    };
    let server = Server::spawn(command, &state);
    let prepare = || {
        let mut prepare = client("prepare", &server, &own);
        prepare.args(["--tokens", "8", "--wait", "0"]);
        prepare
    };
    let classify = || {
        let mut classify = client("classify", &server, &own);
        classify.args([TEXTS[1].0, "--wait", "0"]);
        classify
    };
    let kept = || {
        let list = json(primer().args(["bundles", "list", "--state"]).arg(&own));
        list["bundles"].as_array().unwrap().len()
    };
    json(prepare().args(["--count", "2"]));
    assert_eq!(kept(), 2);
    let inside = format!("/proc/{}/root{}", server.process(), state.display());
    let filler = Filler(Path::new(&inside).join("filler"));

    // Full. A client that comes before that was noticed is refused as well.
    filler.leave(0);
    fails(
        &mut classify(),
        1,
        &["its store of bundles cannot be reached"],
    );
    assert_eq!(kept(), 2, "the client keeps its halves");
    eventually("it is not ready", || {
        server.metrics.prompt_page("/readyz").contains("503")
    });
    let page = server.metrics.prompt_page("/readyz");
    assert!(page.contains("No space left on device"), "{page}");
    assert!(server.metrics.prompt_page("/healthz").contains("200"));
    assert_eq!(server.metrics.number("primer_store_ready"), 0.0);
    assert_eq!(server.metrics.number("primer_store_free_bytes"), 0.0);
    fails(
        &mut classify(),
        1,
        &["its store of bundles cannot be reached"],
    );
    fails(
        &mut prepare(),
        1,
        &["its store of bundles cannot be reached"],
    );
    assert_eq!(kept(), 2);

    // Room for marks alone: what is prepared can be used.
    filler.leave(8 << 20);
    eventually("it is ready for some", || {
        server
            .metrics
            .prompt_page("/readyz")
            .contains("no more bundles are prepared")
    });
    assert!(server.metrics.prompt_page("/readyz").contains("200"));
    fails(&mut prepare(), 1, &["its store is full"]);
    let found = json(&mut classify());
    assert_eq!(found["prepared_ahead"], true);
    assert_eq!(kept(), 1);

    // Room again.
    std::fs::remove_file(&filler.0).unwrap();
    eventually("it is ready", || {
        server.metrics.prompt_page("/readyz").ends_with("ready\n")
    });
    json(&mut prepare());
    assert_eq!(kept(), 2);
    let log = server.log();
    for words in [
        "the store cannot be used",
        "can be used again",
        "nearly full",
    ] {
        assert!(log.contains(words), "{log}");
    }
}

/// Checks that a client without room says so before anything is prepared.
#[test]
fn a_client_looks_for_room_before_it_prepares() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("server");
    let server = Server::start(&state, &["--metrics", "127.0.0.1:0"]);
    let own = dir.path().join("client");
    let mut prepare = client("prepare", &server, &own);
    prepare.args(["--tokens", "64", "--wait", "0"]);
    let Some(mut command) = on_small_disk(&own, 20, &prepare) else {
        return;
    };
    let place = own.join("client/store").display().to_string();
    fails(&mut command, 1, &[&place, "bytes free", "are needed"]);
    assert_eq!(server.metrics.number("primer_bundles_prepared_total"), 0.0);
    // The offline phase alone would have sent 30 MB.
    assert!(server.metrics.number("primer_sent_bytes_total") < 1e7);
}

//! Standard streams that end early: a reader that has gone, a disk that is full, nothing to read.

use primer_testkit::TEXTS;
use primer_testkit::command::stderr;
use primer_testkit::files::{random_qa, write};
use primer_testkit::process::{Server, client, primer};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

const SIGPIPE: i32 = 13;

/// Lists every command that prints and needs no server.
fn printing(dir: &Path) -> Vec<Command> {
    let data = write(dir, "dev.tsv", "sentence\tlabel\nan utter mess\t0\n");
    let model = random_qa(dir);
    let missing = dir.join("missing").display().to_string();
    let lines: [&[&str]; 9] = [
        &["--help"],
        &["serve", "--help"],
        &["--version"],
        &["inspect"],
        &["inspect", "--json"],
        &["bundles", "list", "--json", "--state", &missing],
        &["bundles", "delete", "--all", "--state", &missing],
        &[
            "eval", "--task", "sst2", "--engine", "float", "--data", &data,
        ],
        &["bench", "--model", &model, "--tokens", "8"],
    ];
    let command = |args: &&[&str]| {
        let mut command = primer();
        command.args(*args).stdin(Stdio::null());
        command
    };
    lines.iter().map(command).collect()
}

/// Runs a command whose reader has gone before it began.
fn closed(command: &mut Command) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).output().unwrap();
    let message = stderr(&output);
    assert_eq!(
        output.status.signal(),
        Some(SIGPIPE),
        "{command:?}: {message}"
    );
    for word in ["panicked", "ipe", "standard output"] {
        assert!(!message.contains(word), "{command:?}: {message}");
    }
}

/// Runs a command whose results go to a full disk.
fn full(command: &mut Command) {
    let disk = File::options().write(true).open("/dev/full").unwrap();
    let output = command.stdout(disk).output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{command:?}: {message}");
    let told = "primer: writing to standard output: No space left on device";
    assert!(message.contains(told), "{command:?}: {message}");
    assert!(!message.contains("panicked"), "{command:?}: {message}");
}

#[test]
fn a_reader_that_has_gone_ends_a_command_quietly() {
    let dir = tempfile::tempdir().unwrap();
    for mut command in printing(dir.path()) {
        closed(&mut command);
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    for mut command in printing(dir.path()) {
        full(&mut command);
    }
    // Files that are named behave the same.
    let data = write(dir.path(), "dev.tsv", "sentence\tlabel\nan utter mess\t0\n");
    let mut eval = primer();
    eval.args([
        "eval", "--task", "sst2", "--engine", "float", "--data", &data,
    ]);
    let output = eval.args(["--predictions", "/dev/full"]).output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("writing predictions: No space left"),
        "{message}"
    );
}

/// Checks both parties: the other process and the temporary directory are gone as well.
#[test]
fn a_demo_cleans_up_when_its_reader_goes() {
    for end in [closed, full] {
        let dir = tempfile::tempdir().unwrap();
        let mut demo = primer();
        end(demo.args(["demo", TEXTS[0].0]).env("TMPDIR", dir.path()));
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Progress and warnings are worth less than the results.
#[test]
fn standard_error_need_not_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let deaf = || File::options().write(true).open("/dev/full").unwrap();
    let mut inspect = primer();
    let prepared = dir.path().join("prepared");
    inspect.arg("inspect").arg("--save-prepared").arg(&prepared);
    let output = inspect.stderr(deaf()).output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty());
    let state = dir.path().join("server");
    let mut serve = primer();
    serve.args(["serve", "--json", "--listen", "127.0.0.1:0", "--prepared"]);
    serve.arg(&prepared).arg("--state").arg(&state);
    let server = Server::spawn_logging(serve, &state, deaf());
    for _ in 0..2 {
        let mut classify = client("classify", &server, &dir.path().join("client"));
        let output = classify.arg(TEXTS[0].0).stderr(deaf()).output().unwrap();
        assert!(output.status.success());
        let line = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(line.contains(TEXTS[0].1), "{line}");
    }
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn quiet_leaves_the_results() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"), &[]);
    let mut classify = client("classify", &server, &dir.path().join("client"));
    let output = classify.args(["--quiet", TEXTS[1].0]).output().unwrap();
    assert_eq!(stderr(&output), "");
    assert!(String::from_utf8_lossy(&output.stdout).contains(TEXTS[1].1));
}

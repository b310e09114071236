//! What a process bears: a thousand silent connections, a stop in the middle, disks that are full.

use primer_testkit::TEXTS;
use primer_testkit::command::{fails, json, stderr};
use primer_testkit::far::Link;
use primer_testkit::process::{Server, client};
use primer_testkit::stores::bundle_files;
use primer_testkit::wait::eventually;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn a_thousand_silent_connections_do_not_keep_others_out() {
    a_thousand_silent_connections(Link::Near);
}

#[test]
fn a_thousand_silent_connections_do_not_keep_others_out_from_far() {
    a_thousand_silent_connections(Link::Far);
}

fn a_thousand_silent_connections(link: Link) {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--metrics", "127.0.0.1:0"];
    let mut server = Server::start(&dir.path().join("server"), &args);
    let direct = server.address.clone();
    server.address = link.to(&direct);
    let found = json(client("classify", &server, &dir.path().join("client")).arg(TEXTS[0].0));
    assert_eq!(found["label"], TEXTS[0].1);
    let before = server.peak_memory();
    let silent: Vec<TcpStream> = (0..1000)
        .map(|_| TcpStream::connect(&direct).unwrap())
        .collect();
    eventually("the thousandth connection", || {
        server.metrics.number("primer_connections_total") >= 1001.0
    });
    let found = json(client("classify", &server, &dir.path().join("client")).arg(TEXTS[1].0));
    assert_eq!(found["label"], TEXTS[1].1);
    let grown = server.peak_memory() - before;
    println!("1,000 silent connections: {} kB more", grown / 1000);
    assert!(grown < 64 << 20, "{grown} bytes");
    drop(silent);
}

/// Stops a server while a client prepares far more bundles than it can by then.
#[test]
fn a_client_in_the_middle_of_its_bundles_notices_that_the_server_stops() {
    std::thread::scope(|scope| {
        for signal in ["TERM", "STOP"] {
            scope.spawn(move || in_the_middle_of_its_bundles(signal));
        }
    });
}

fn in_the_middle_of_its_bundles(signal: &str) {
    let dir = tempfile::tempdir().unwrap();
    let drain = ["--drain-timeout", "2"];
    let server = Server::start(&dir.path().join("server"), &drain);
    let mut prepare = client("prepare", &server, &dir.path().join("client"));
    prepare.args(["--count", "500", "--tokens", "64", "--attempts", "1"]);
    prepare.args(["--timeout", "5"]);
    let asking = prepare
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    eventually("a session", || server.log().contains("session begins"));
    server.signal(signal);
    let started = Instant::now();
    let output = asking.wait_with_output().unwrap();
    let took = started.elapsed();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(took < Duration::from_secs(15), "{took:?} after {signal}");
}

/// Makes a command under a limit of the size of files: writing beyond it fails as on a full disk.
fn limited(blocks: u32, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    command
        .args(["-c", &script, env!("CARGO_BIN_EXE_primer")])
        .args(args);
    command
}

/// Gives the client a disk that takes all of a bundle but its last bytes. By then the server has
/// its half, which could never be used.
#[test]
fn a_disk_that_fills_at_the_last_byte_leaves_nothing_with_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let server = Server::start(&server_state, &[]);
    let made = json(client("prepare", &server, &state).args(["--tokens", "8"]));
    let id = made["ids"][0].as_str().unwrap();
    let kept = std::fs::read_dir(state.join("client/store/bundles")).unwrap();
    let sizes: Vec<u64> = kept
        .map(|file| file.unwrap().metadata().unwrap().len())
        .collect();
    let blocks = u32::try_from((sizes[0] - 1) / 512).unwrap();
    let path = state.to_str().unwrap();
    let server_of_it = ["--server", &server.address, "--state", path];
    let args = [
        &["prepare", "--tokens", "8", "--count", "2"][..],
        &server_of_it,
    ]
    .concat();
    fails(
        &mut limited(blocks, &args),
        1,
        &["bundles", "File too large"],
    );
    assert!(
        server.log().contains("bundles=2"),
        "it had prepared them: {}",
        server.log()
    );
    let left = (
        bundle_files(&state, "client"),
        bundle_files(&server_state, "server"),
    );
    assert_eq!(left, (1, 1));
    // What was there before is as good as ever.
    let found = json(client("classify", &server, &state).arg(TEXTS[0].0));
    assert_eq!(
        (&found["label"], &found["prepared_ahead"]),
        (&TEXTS[0].1.into(), &true.into())
    );
    assert!(server.log().contains(id));
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let server = Server::start(&server_state, &[]);
    // The stores are made before the limit is felt.
    json(client("prepare", &server, &state).args(["--tokens", "8"]));
    let whole = |state: &Path, role: &str| {
        let dir = state.join(role).join("store/bundles");
        let file = std::fs::read_dir(dir).unwrap().next().unwrap().unwrap();
        file.metadata().unwrap().len()
    };
    let (client_half, server_half) = (whole(&state, "client"), whole(&server_state, "server"));
    assert_eq!(
        (
            bundle_files(&state, "client"),
            bundle_files(&server_state, "server")
        ),
        (1, 1)
    );
    let path = state.to_str().unwrap();
    let args = [
        "prepare",
        "--server",
        &server.address,
        "--tokens",
        "16",
        "--state",
        path,
    ];
    // Room for the index and half a bundle of 16 tokens.
    let blocks = u32::try_from(client_half / 512).unwrap();
    fails(
        &mut limited(blocks, &args),
        1,
        &["bundles", "File too large"],
    );
    eventually("the server's draft to go", || {
        bundle_files(&server_state, "server") == 1
    });
    assert_eq!(bundle_files(&state, "client"), 1);
    drop(server);
    // The server's disk is full: the client hears of it, and the server goes on.
    let path = server_state.to_str().unwrap();
    let args = [
        "serve",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--state",
        path,
    ];
    // Room for the index and for the server's half of 8 tokens, not for that of 16.
    let blocks = u32::try_from(server_half * 3 / 2 / 512).unwrap();
    let server = Server::spawn(limited(blocks, &args), &server_state);
    let mut prepare = client("prepare", &server, &state);
    fails(
        prepare.args(["--tokens", "16"]),
        1,
        &["the server refused: its store is full"],
    );
    let found = json(client("classify", &server, &state).arg("good"));
    assert_eq!(found["label"], "positive");
    assert_eq!(
        bundle_files(&state, "client"),
        1,
        "the one for the other address"
    );
}

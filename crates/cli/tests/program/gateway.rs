//! The gateway as a program: its arguments, signals and the page of the demonstration. What it
//! answers is tested beside it, in `crates/gateway/tests`.

use primer_testkit::TEXTS;
use primer_testkit::command::{fails, signal};
use primer_testkit::files::write;
use primer_testkit::gateway::asking;
use primer_testkit::http::{post, send};
use primer_testkit::process::{Server, client, primer};
use primer_testkit::wait::eventually;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn texts_do_not_leave_the_machine_unasked() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"), &[]);
    let state = dir.path().join("client");
    let gateway = || client("gateway", &server, &state);
    let open = ["--listen", "0.0.0.0:0"];
    fails(gateway().args(open), 1, &["in the clear", "--expose"]);
    fails(
        gateway().args(open).arg("--expose"),
        2,
        &["--gateway-token-file"],
    );
    let empty = write(dir.path(), "empty", "\n");
    let with_token = ["--gateway-token-file", &empty];
    fails(gateway().args(with_token), 1, &["holds no token"]);
    fails(
        gateway().args(["--lengths", "500"]),
        1,
        &["at most 128 tokens"],
    );
}

#[test]
fn a_stop_does_not_wait_for_a_server_that_hangs() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"), &[]);
    let state = dir.path().join("client");
    let args = ["--workers", "1", "--drain-timeout", "1", "--timeout", "600"];
    let mut command = client("gateway", &server, &state);
    command
        .args(["--json", "--listen", "127.0.0.1:0"])
        .args(args);
    let gateway = Server::spawn(command, &state);
    let address = gateway.address.clone();
    let address = address.as_str();
    assert_eq!(post(address, &json!({"inputs": TEXTS[0].0})).status, 200);
    server.signal("STOP");
    std::thread::scope(|scope| {
        let body = json!({"inputs": TEXTS[0].0}).to_string();
        scope.spawn(move || {
            // Cut off without an answer.
            let mut socket = TcpStream::connect(address).unwrap();
            let head = format!("POST / HTTP/1.1\r\nHost: {address}\r\n");
            write!(socket, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
            let _ = socket.read_to_end(&mut Vec::new());
        });
        eventually("the question", || asking(address) == 1);
        let started = Instant::now();
        gateway.signal("TERM");
        assert!(gateway.wait().success());
        let waited = started.elapsed();
        assert!(
            waited < Duration::from_secs(60),
            "{waited:?}, not the time-out of 600 s"
        );
    });
}

#[test]
fn the_demo_opens_a_page() {
    let mut child = primer()
        .args(["demo", "--open", "--listen", "127.0.0.1:0"])
        .env("BROWSER", "true")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .split(['/', ';'])
        .find(|part| part.contains("127.0.0.1:"));
    let address = address
        .unwrap_or_else(|| panic!("no address in {line}"))
        .to_owned();
    let page = send(&address, "GET", "/", &["Accept: text/html"], b"");
    assert!(page.body.contains("Ask without showing"));
    let reply = post(&address, &json!({"inputs": TEXTS[1].0}));
    assert_eq!(reply.json()[0][0]["label"], TEXTS[1].1);
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

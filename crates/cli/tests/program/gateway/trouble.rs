//! Servers that go away, in the middle of a question too, and a stop that does not wait for them.

use super::{asking, gateway, stock};
use primer_testkit::TEXTS;
use primer_testkit::http::{get, post};
use primer_testkit::process::Server;
use primer_testkit::stores::check_stores;
use primer_testkit::wait::eventually;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn a_server_that_goes_away_is_missed_and_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let mut server = Server::start(&server_state, &[]);
    let listen = server.address.clone();
    let args = [
        "--stock",
        "2",
        "--lengths",
        "8",
        "--attempts",
        "2",
        "--timeout",
        "5",
    ];
    let gateway = gateway(&server, &state, &args);
    let address = gateway.address.as_str();
    eventually("a full stock", || stock(address, 8) == 2);
    let body = json!({"inputs": TEXTS[0].0});
    assert_eq!(post(address, &body).status, 200);
    assert_eq!(get(address, "/healthz").body, "ok\n");

    server.kill();
    let reply = post(address, &body);
    assert_eq!(reply.status, 503, "{}", reply.body);
    assert!(reply.error().contains(&listen), "{}", reply.body);
    assert_eq!(get(address, "/healthz").status, 503);

    // Its return is noticed, though nobody asks.
    let _server = Server::start_on(&listen, &server_state, &[]);
    eventually("health", || get(address, "/healthz").status == 200);
    let reply = post(address, &body);
    assert_eq!(reply.status, 200, "{}", reply.body);
    check_stores(&server_state, &[&state]);
}

#[test]
fn a_server_that_dies_in_the_middle_of_a_question_costs_that_question() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let mut server = Server::start(&server_state, &[]);
    let listen = server.address.clone();
    let args = ["--stock", "0", "--attempts", "2", "--timeout", "5"];
    let gateway = gateway(&server, &state, &args);
    let address = gateway.address.as_str();
    // Nothing is prepared, so the server has to work for a while.
    let long = TEXTS.map(|(text, _)| text).join(" , ");
    let body = json!({"inputs": format!("{long} {long}")});
    let reply = std::thread::scope(|scope| {
        let asked = scope.spawn(|| post(address, &body));
        eventually("the question", || {
            assert!(!asked.is_finished(), "answered too soon for this test");
            asking(address) == 1
        });
        server.kill();
        asked.join().unwrap()
    });
    assert_eq!(reply.status, 503, "{}", reply.body);
    assert!(reply.head.contains("retry-after: "), "{}", reply.head);
    assert!(!reply.body.contains("film"), "no text in an error");
    let _server = Server::start_on(&listen, &server_state, &[]);
    let body = json!({"inputs": TEXTS[0].0});
    eventually("an answer", || post(address, &body).status == 200);
    assert!(!gateway.log().contains("panicked"), "{}", gateway.log());
    assert!(!gateway.log().contains("film"), "no text in the log");
    assert!(gateway.terminate().success());
    check_stores(&server_state, &[&state]);
}

#[test]
fn a_stop_does_not_wait_for_a_server_that_hangs() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"), &[]);
    let state = dir.path().join("client");
    let args = ["--workers", "1", "--drain-timeout", "1", "--timeout", "600"];
    let gateway = gateway(&server, &state, &args);
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
fn at_a_limit_of_the_server_the_gateway_rests_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let server = ["--max-answers", "1/day", "--metrics", "127.0.0.1:0"];
    let server = Server::start(&dir.path().join("server"), &server);
    let args = ["--stock", "1", "--lengths", "8"];
    let gateway = gateway(&server, &dir.path().join("client"), &args);
    let address = gateway.address.as_str();
    eventually("a full stock", || stock(address, 8) == 1);
    let body = json!({"inputs": TEXTS[0].0});
    assert_eq!(post(address, &body).status, 200);
    // What was used is not prepared again, for it could not be used today.
    let trouble = || get(address, "/status").json()["stock_trouble"].to_string();
    eventually("the reason", || trouble().contains("1 answer a day"));
    let refused = || {
        server
            .metrics
            .number("primer_requests_refused_total{reason=\"limit\"}")
    };
    let before = refused();
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(refused(), before, "the keeper asks again and again");
    let reply = post(address, &body);
    assert_eq!(reply.status, 429, "{}", reply.body);
    assert!(reply.error().contains("1 answer a day"), "{}", reply.body);
    let after = reply.head.split("retry-after: ").nth(1).unwrap();
    let after: u64 = after.lines().next().unwrap().parse().unwrap();
    assert!((1..=24 * 3600).contains(&after) && after != 2, "{after}");
    assert_eq!(get(address, "/healthz").status, 200);
    assert!(trouble().contains("1 answer a day"));
}

//! Servers that go away, in the middle of a question too, and servers that refuse.

use primer_testkit::TEXTS;
use primer_testkit::gateway::{Gateway, asking, stock};
use primer_testkit::http::{get, post};
use primer_testkit::log::Log;
use primer_testkit::server::Server;
use primer_testkit::stores::check_stores;
use primer_testkit::wait::{always, eventually};
use serde_json::json;
use std::time::Duration;

#[test]
fn a_server_that_goes_away_is_missed_and_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let server = Server::start(&server_state);
    let listen = server.address.clone();
    let gateway = Gateway::start(&server, &state, |options, client| {
        (options.stock, options.lengths) = (2, vec![8]);
        (client.attempts, client.timeout) = (2, Duration::from_secs(5));
    });
    let address = gateway.address.as_str();
    eventually("a full stock", || stock(address, 8) == 2);
    let body = json!({"inputs": TEXTS[0].0});
    assert_eq!(post(address, &body).status, 200);
    assert_eq!(get(address, "/healthz").body, "ok\n");

    server.stop();
    let reply = post(address, &body);
    assert_eq!(reply.status, 503, "{}", reply.body);
    assert!(reply.error().contains(&listen), "{}", reply.body);
    assert_eq!(get(address, "/healthz").status, 503);

    // Its return is noticed without a question.
    let server = Server::start_with(&server_state, |options| options.listen = listen);
    eventually("health", || get(address, "/healthz").status == 200);
    let reply = post(address, &body);
    assert_eq!(reply.status, 200, "{}", reply.body);
    gateway.stop();
    server.stop();
    check_stores(&server_state, &[&state]);
}

#[test]
fn a_server_that_dies_in_the_middle_of_a_question_costs_that_question() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::start());
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    // Told to stop, it cuts everything at once.
    let server = Server::start_with(&server_state, |options| {
        options.limits.drain = Duration::ZERO;
    });
    let listen = server.address.clone();
    let gateway = Gateway::start(&server, &state, |options, client| {
        options.stock = 0;
        (client.attempts, client.timeout) = (2, Duration::from_secs(5));
    });
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
        server.stop();
        asked.join().unwrap()
    });
    assert_eq!(reply.status, 503, "{}", reply.body);
    assert!(reply.head.contains("retry-after: "), "{}", reply.head);
    assert!(!reply.body.contains("film"), "no text in an error");
    let server = Server::start_with(&server_state, |options| options.listen = listen);
    let body = json!({"inputs": TEXTS[0].0});
    eventually("an answer", || post(address, &body).status == 200);
    gateway.stop();
    server.stop();
    assert!(!log.has("panicked"), "{}", log.text());
    assert!(!log.has("film"), "no text in the log");
    check_stores(&server_state, &[&state]);
}

#[test]
fn at_a_limit_of_the_server_the_gateway_rests_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_with(&dir.path().join("server"), |options| {
        options.limits.allowances.answers = "1/day".parse().unwrap();
    });
    let gateway = Gateway::start(&server, &dir.path().join("client"), |options, _| {
        (options.stock, options.lengths) = (1, vec![8]);
    });
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
    always("the keeper asks no more", Duration::from_secs(5), || {
        refused() == before
    });
    let reply = post(address, &body);
    assert_eq!(reply.status, 429, "{}", reply.body);
    assert!(reply.error().contains("1 answer a day"), "{}", reply.body);
    let after = reply.head.split("retry-after: ").nth(1).unwrap();
    let after: u64 = after.lines().next().unwrap().parse().unwrap();
    assert!((1..=24 * 3600).contains(&after) && after != 2, "{after}");
    assert_eq!(get(address, "/healthz").status, 200);
    assert!(trouble().contains("1 answer a day"));
}

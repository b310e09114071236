//! Whatever callers send: it is answered, and the gateway lives on.

use primer::Zeroizing;
use primer_testkit::TEXTS;
use primer_testkit::files::random_qa;
use primer_testkit::gateway::Gateway;
use primer_testkit::http::{get, post, receive, send};
use primer_testkit::log::Log;
use primer_testkit::server::Server;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

#[test]
fn bad_input_is_answered_and_the_gateway_lives_on() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::start());
    let server = Server::start(&dir.path().join("server"));
    let gateway = Gateway::start(&server, &dir.path().join("client"), |options, _| {
        (options.stock, options.queue, options.workers) = (0, 2, 1);
        options.access.token = Some(Zeroizing::new("sesame".to_owned()));
    });
    let address = gateway.address.as_str();
    let bearer = "Authorization: Bearer sesame";
    let ask = |body: &[u8]| send(address, "POST", "/", &[bearer], body);

    for (body, words) in [
        (&b"{"[..], "the body is not a request"),
        (b"{\"text\": \"a\"}", "missing field `inputs`"),
        (b"{\"inputs\": []}", "empty list"),
        (b"{\"inputs\": 7}", "text-classification"),
        (
            b"{\"inputs\": {\"question\": \"a\", \"context\": \"b\"}}",
            "text-classification",
        ),
        (
            b"{\"inputs\": \"a\", \"parameters\": {\"temperature\": 1}}",
            "temperature",
        ),
        (
            b"{\"inputs\": \"a\", \"parameters\": {\"top_k\": 0}}",
            "top_k",
        ),
        (b"{\"inputs\": \"\"}", "the text is empty"),
        (b"\xff\xfe", "the body is not a request"),
    ] {
        let reply = ask(body);
        assert_eq!(reply.status, 400, "{}", reply.body);
        assert!(reply.error().contains(words), "{words}: {}", reply.body);
    }
    let nested = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    assert_eq!(ask(&nested).status, 400);
    // A caller that sends it all first finds an answer; one that asks first need not send it.
    let reply = ask(&vec![b' '; 10 << 20]);
    assert_eq!(reply.status, 413);
    assert!(reply.error().contains("1048576 bytes"));
    let head =
        format!("POST / HTTP/1.1\r\nHost: {address}\r\n{bearer}\r\nContent-Length: 10485760\r\n");
    let mut first = TcpStream::connect(address).unwrap();
    write!(first, "{head}Expect: 100-continue\r\n\r\n").unwrap();
    assert_eq!(receive(first).status, 413);
    // A body that ends too soon.
    let mut broken = TcpStream::connect(address).unwrap();
    write!(broken, "{head}\r\n{{\"inputs\"").unwrap();
    broken.shutdown(Shutdown::Write).unwrap();
    let _ = broken.read_to_end(&mut Vec::new());
    let many = json!({"inputs": ["a", "b", "c"]}).to_string();
    assert_eq!(ask(many.as_bytes()).status, 413);

    let good = json!({"inputs": TEXTS[0].0}).to_string();
    let with = |headers: &[&str]| send(address, "POST", "/", headers, good.as_bytes());
    assert_eq!(with(&[]).status, 401);
    assert_eq!(with(&["Authorization: Bearer sesam"]).status, 401);
    assert_eq!(get(address, "/status").status, 401);
    assert_eq!(with(&[bearer, "Host: evil.example"]).status, 403);
    assert_eq!(with(&[bearer, "Origin: http://evil.example"]).status, 403);
    assert_eq!(send(address, "GET", "/nowhere", &[bearer], b"").status, 404);
    let reply = send(address, "PUT", "/", &[bearer], b"");
    assert_eq!(reply.status, 405);
    assert!(
        reply.head.contains("allow: GET, HEAD, POST"),
        "{}",
        reply.head
    );
    let reply = send(address, "POST", "/models/other", &[bearer], good.as_bytes());
    assert_eq!(reply.status, 404);
    assert!(reply.error().contains("sst2-demo"), "{}", reply.body);

    // One worker and room for two: of eight at once some are turned away, the others are answered.
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| with(&[bearer]).status))
            .collect();
        asked.into_iter().map(|a| a.join().unwrap()).collect()
    });
    assert!(
        statuses.contains(&200) && statuses.contains(&429),
        "{statuses:?}"
    );
    assert!(
        statuses.iter().all(|s| [200, 429].contains(s)),
        "{statuses:?}"
    );
    assert!(!log.has("panicked"), "{}", log.text());
}

#[test]
fn an_input_of_another_task_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let model = random_qa(dir.path());
    let server = Server::start_with(&dir.path().join("server"), |options| {
        options.model = Some(model.into());
        options.limits.tokens = 32;
    });
    let gateway = Gateway::start(&server, &dir.path().join("client"), |options, _| {
        options.stock = 0;
    });
    let address = gateway.address.as_str();
    assert_eq!(get(address, "/status").json()["task"], "question-answering");
    for body in [
        json!({"inputs": TEXTS[0].0}),
        json!({"inputs": {"question": "who ?"}}),
        json!({"inputs": {"question": "who ?", "context": 7}}),
        json!({"inputs": {"question": "who ?", "context": "she", "more": "x"}}),
        json!({"inputs": {"question": "who ?", "context": "she"}, "parameters": {"top_k": 2}}),
    ] {
        let reply = post(address, &body);
        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
    }
    let said = post(address, &json!({"inputs": TEXTS[0].0})).error();
    assert!(said.contains("question-answering"), "{said}");
    let body = json!({"inputs": {"question": "a film", "context": "a warm , funny film"}});
    let found = post(address, &body);
    assert_eq!(found.status, 200, "{}", found.body);
    let found = found.json();
    for key in ["answer", "score", "start", "end"] {
        assert!(found.get(key).is_some(), "{found}");
    }
}

//! The gateway as services and people meet it: Hugging Face's JSON, a stock, bad input, a server
//! that goes away.

use crate::process::{Server, TEXTS, check_stores, client, eventually, fails, primer, write};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// What came back.
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    fn error(&self) -> String {
        self.json()["error"].as_str().expect("an error").to_owned()
    }

    fn meta(&self) -> Value {
        let line = self
            .head
            .lines()
            .find_map(|l| l.strip_prefix("x-primer-meta: "));
        serde_json::from_str(line.expect("the header")).unwrap()
    }
}

/// One request on a connection of its own.
fn send(address: &str, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Reply {
    let mut socket = TcpStream::connect(address).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|line| line.starts_with("Host:")) {
        head += &format!("Host: {address}\r\n");
    }
    for line in headers {
        head += &format!("{line}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    socket.write_all(head.as_bytes()).unwrap();
    // A body that is too long is refused before all of it was taken.
    let _ = socket.write_all(body);
    let mut reply = Vec::new();
    let _ = socket.read_to_end(&mut reply);
    let reply = String::from_utf8(reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").expect("an answer");
    Reply {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

fn post(address: &str, body: &Value) -> Reply {
    send(address, "POST", "/", &[], body.to_string().as_bytes())
}

fn get(address: &str, path: &str) -> Reply {
    send(address, "GET", path, &[], b"")
}

/// Starts a gateway and waits until it listens.
fn gateway(server: &Server, state: &Path, args: &[&str]) -> Server {
    let mut command = client("gateway", server, state);
    command
        .args(["--json", "--listen", "127.0.0.1:0"])
        .args(args);
    Server::spawn(command, state)
}

/// Prepared bundles of a length.
fn stock(address: &str, tokens: u64) -> u64 {
    let told = get(address, "/status").json();
    let levels = told["stock"].as_array().unwrap().iter();
    let level = levels.clone().find(|level| level["tokens"] == tokens);
    level.map_or(0, |level| level["have"].as_u64().unwrap())
}

#[test]
fn a_stock_answers_in_hugging_faces_shapes() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let server = Server::start(&server_state, &[]);
    let gateway = gateway(&server, &state, &["--stock", "3", "--lengths", "8"]);
    let address = gateway.address.as_str();
    eventually("a full stock", || stock(address, 8) == 3);

    let reply = post(address, &json!({"inputs": TEXTS[0].0}));
    assert_eq!(reply.status, 200, "{}", reply.body);
    let labels = reply.json();
    assert_eq!(
        labels[0][0]["label"], TEXTS[0].1,
        "best first, in a list of one: {labels}"
    );
    assert_eq!(labels[0].as_array().unwrap().len(), 2);
    let sum: f64 = (0..2)
        .map(|i| labels[0][i]["score"].as_f64().unwrap())
        .sum();
    assert!((sum - 1.0).abs() < 1e-9);
    let meta = reply.meta();
    assert_eq!(meta["prepared_ahead"], true);
    assert_eq!(
        (meta["offline_s"].as_f64(), &meta["in_range"]),
        (Some(0.0), &json!(true))
    );
    assert!(meta["bytes"]["online_up"].as_u64().unwrap() > 0);
    assert!(meta.get("server_saw").is_none(), "a header stays short");

    let model = "/models/sst2-demo%20(embedded)";
    assert_eq!(
        send(address, "POST", model, &[], b"{}").status,
        404,
        "names are taken as they are"
    );
    let told = get(address, "/status").json();
    assert_eq!(
        (&told["task"], &told["token"]),
        (&json!("text-classification"), &json!(false))
    );

    // Two texts, the best label each, and what each cost; what the server saw differs in each
    // place.
    let texts: Vec<&str> = TEXTS[..2].iter().map(|t| t.0).collect();
    let options = json!({"top_k": 1});
    let body = json!({"inputs": texts, "parameters": options, "options": {"meta": true}});
    let told = post(address, &body).json();
    for (index, (_, label)) in TEXTS[..2].iter().enumerate() {
        let output = &told["output"][index];
        assert_eq!(
            (output.as_array().unwrap().len(), &output[0]["label"]),
            (1, &json!(label))
        );
    }
    let saw = |i: usize| told["meta"][i]["server_saw"].as_array().unwrap().clone();
    assert!(saw(0).len() > 40 && saw(0).iter().zip(saw(1)).all(|(a, b)| *a != b));
    eventually("the stock filling up again", || stock(address, 8) == 3);

    // A longer text than there is a stock for: prepared now, and kept in stock from then on.
    let long = "one of the best films of the year , and of many years before it";
    let reply = post(address, &json!({"inputs": {"text": long}}));
    assert_eq!(reply.meta()["prepared_ahead"], false);
    let tokens = reply.meta()["tokens"].as_u64().unwrap();
    assert!(tokens > 8);
    // The other length may be counted or filled up at this moment, so both are waited for.
    eventually("a stock of both lengths", || {
        stock(address, tokens) == 3 && stock(address, 8) == 3
    });

    let numbers = get(address, "/metrics").body;
    for line in [
        "primer_gateway_answers_total 4",
        "primer_gateway_answers_unprepared_total 1",
        "primer_gateway_stock{tokens=\"8\"} 3",
        "# EOF",
    ] {
        assert!(numbers.lines().any(|l| l == line), "{line}\n{numbers}");
    }
    let page = send(address, "GET", "/", &["Accept: text/html"], b"");
    assert!(page.head.contains("text/html") && page.body.contains("Ask privately"));
    assert!(
        page.head
            .to_lowercase()
            .contains("content-security-policy: default-src 'none'")
    );
    for path in ["/page.js", "/page.css"] {
        assert_eq!(get(address, path).status, 200, "{path}");
    }

    // A stop in good order: the answer under way arrives.
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| post(address, &json!({"inputs": TEXTS[1].0})));
        eventually("the question", || {
            let told = get(address, "/metrics").body;
            told.contains("answers_total 5") || told.contains("waiting 1") || asked.is_finished()
        });
        gateway.signal("TERM");
        asked.join().unwrap()
    });
    assert_eq!(
        (answer.status, &answer.json()[0][0]["label"]),
        (200, &json!(TEXTS[1].1))
    );
    assert!(gateway.wait().success());
    check_stores(&server_state, &[&state]);
}

#[test]
fn bad_input_is_answered_and_the_gateway_lives_on() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"), &[]);
    let state = dir.path().join("client");
    let token = write(dir.path(), "token", "sesame\n");
    let args = ["--stock", "0", "--queue", "2", "--workers", "1"];
    let gateway = gateway(
        &server,
        &state,
        &[&args[..], &["--gateway-token-file", &token]].concat(),
    );
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
    let reply = ask(&vec![b' '; 10 << 20]);
    assert_eq!(reply.status, 413);
    assert!(reply.error().contains("1048576 bytes"));
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
    assert_eq!(send(address, "PUT", "/", &[bearer], b"").status, 405);
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
    assert!(!gateway.log().contains("panicked"), "{}", gateway.log());
}

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

    let _server = Server::start_on(&listen, &server_state, &[]);
    eventually("an answer", || post(address, &body).status == 200);
    assert_eq!(get(address, "/healthz").status, 200);
    check_stores(&server_state, &[&state]);
}

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
    crate::process::signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// `cargo test --release -p primer-cli --test program latency -- --ignored --nocapture`
#[test]
#[ignore = "measures; needs a quiet machine"]
fn latency_of_a_stock_against_the_online_phase() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("server"), &[]);
    let state = dir.path().join("client");
    let gateway = gateway(&server, &state, &["--stock", "32", "--lengths", "16"]);
    let address = gateway.address.as_str();
    eventually("a full stock", || stock(address, 16) == 32);
    let body = json!({"inputs": TEXTS[0].0});
    post(address, &body);
    let asked = || {
        let started = Instant::now();
        let reply = post(address, &body);
        let (whole, meta) = (started.elapsed().as_secs_f64(), reply.meta());
        (
            whole,
            meta["online_s"].as_f64().unwrap(),
            meta["prepared_ahead"] == true,
        )
    };
    let mut alone: Vec<_> = (0..12).map(|_| asked()).collect();
    let median = |values: &mut Vec<(f64, f64, bool)>, of: fn(&(f64, f64, bool)) -> f64| {
        values.sort_by(|a, b| of(a).total_cmp(&of(b)));
        of(&values[values.len() / 2])
    };
    assert!(alone.iter().all(|(_, _, ahead)| *ahead));
    let (whole, online) = (median(&mut alone, |a| a.0), median(&mut alone, |a| a.1));
    println!(
        "median of 12: {:.1} ms of which online {:.1} ms",
        whole * 1e3,
        online * 1e3
    );
    assert!(whole <= 1.2 * online, "{whole} against {online}");
    let started = Instant::now();
    let mut together: Vec<_> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| (0..8).map(|_| asked()).collect::<Vec<_>>()))
            .collect();
        callers
            .into_iter()
            .flat_map(|c| c.join().unwrap())
            .collect()
    });
    let seconds = started.elapsed().as_secs_f64();
    let ahead = together.iter().filter(|(_, _, ahead)| *ahead).count();
    let whole = median(&mut together, |a| a.0);
    println!(
        "8 callers, 64 questions in {seconds:.1} s, median {:.1} ms, {ahead} from stock",
        whole * 1e3
    );
    let started = Instant::now();
    while stock(address, 16) < 32 {
        std::thread::sleep(Duration::from_millis(200));
        assert!(started.elapsed() < Duration::from_secs(120));
    }
    println!(
        "the stock of 32 was full again after {:.1} s",
        started.elapsed().as_secs_f64()
    );
}

//! Answers in Hugging Face's shapes, a stock, many callers, a page.

use primer_testkit::TEXTS;
use primer_testkit::gateway::{Gateway, asking, stock};
use primer_testkit::http::{Reply, get, post, send};
use primer_testkit::server::Server;
use primer_testkit::stores::check_stores;
use primer_testkit::wait::eventually;
use serde_json::json;

#[test]
fn a_stock_answers_in_hugging_faces_shapes() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let server = Server::start(&server_state);
    let gateway = Gateway::start(&server, &state, |options, _| {
        (options.stock, options.lengths) = (3, vec![8]);
    });
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

    // The model's name is part of a path, with or without an owner before it.
    for (name, status) in [
        ("sst2-demo%20(embedded)", 200),
        ("me/sst2-demo%20%28embedded%29", 200),
        ("sst2-demo", 404),
    ] {
        let body = json!({"inputs": TEXTS[1].0}).to_string();
        let path = format!("/models/{name}");
        let reply = send(address, "POST", &path, &[], body.as_bytes());
        assert_eq!(reply.status, status, "{name}: {}", reply.body);
    }
    eventually("a full stock again", || stock(address, 8) == 3);
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
        "primer_gateway_answers_total 6",
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

    let head = send(address, "HEAD", "/healthz", &[], b"");
    assert_eq!((head.status, head.body.as_str()), (200, ""));

    // A stop in good order: the answer under way arrives. It is one that nothing was prepared for,
    // so that it takes a while.
    let long = format!("{long} , and before that");
    let answer = std::thread::scope(|scope| {
        let asked = scope.spawn(|| post(address, &json!({"inputs": format!("{long} {long}")})));
        eventually("the question", || {
            assert!(!asked.is_finished(), "answered too soon for this test");
            asking(address) == 1
        });
        gateway.shutdown_handle().shut_down();
        asked.join().unwrap()
    });
    assert_eq!(
        (answer.status, &answer.json()[0][0]["label"]),
        (200, &json!("positive"))
    );
    assert_eq!(answer.meta()["prepared_ahead"], false);
    gateway.stop();
    server.stop();
    check_stores(&server_state, &[&state]);
}

#[test]
fn a_stock_runs_dry_under_many_callers_and_fills_again() {
    let dir = tempfile::tempdir().unwrap();
    let (server_state, state) = (dir.path().join("server"), dir.path().join("client"));
    let server = Server::start(&server_state);
    let gateway = Gateway::start(&server, &state, |options, _| {
        (options.stock, options.lengths) = (2, vec![8]);
    });
    let address = gateway.address.as_str();
    eventually("a full stock", || stock(address, 8) == 2);
    let replies: Vec<_> = std::thread::scope(|scope| {
        let ask = |caller: usize| post(address, &json!({"inputs": TEXTS[caller % 2].0}));
        let callers: Vec<_> = (0..8)
            .map(|caller| scope.spawn(move || ask(caller)))
            .collect();
        callers.into_iter().map(|c| c.join().unwrap()).collect()
    });
    for (caller, reply) in replies.iter().enumerate() {
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(reply.json()[0][0]["label"], TEXTS[caller % 2].1);
    }
    // Two were there; whatever the keeper made meanwhile, some had to wait for theirs.
    let ahead = |reply: &&Reply| reply.meta()["prepared_ahead"] == true;
    let ahead = replies.iter().filter(ahead).count();
    assert!((2..8).contains(&ahead), "{ahead} of 8 were prepared ahead");
    eventually("a full stock again", || stock(address, 8) == 2);
    let reply = post(address, &json!({"inputs": TEXTS[0].0}));
    assert_eq!(reply.meta()["prepared_ahead"], true);
    gateway.stop();
    server.stop();
    check_stores(&server_state, &[&state]);
}

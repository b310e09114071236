//! Requests as browsers, and others, make them.

use super::request::{self, Method};
use super::*;
use primer_wire::Receive;
use std::io;

/// Gives what it has, a piece at a time.
struct Pieces<'b>(&'b [u8], usize);

impl Receive for Pieces<'_> {
    fn receive(&mut self, out: &mut [u8], _: Option<Duration>) -> io::Result<usize> {
        let count = self.1.min(out.len()).min(self.0.len());
        out[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

/// Reads the head of a request; the status if it is refused.
fn read(bytes: &[u8]) -> Result<Head, String> {
    let head = request::read(&mut Pieces(bytes, 7), HEAD);
    let head = head.map_err(|error| error.kind().to_string())?;
    head.map_err(|refused| status(&refused))
}

fn status(answer: &Answer<'_>) -> String {
    text(answer)["HTTP/1.1 ".len()..][..3].to_owned()
}

fn text(answer: &Answer<'_>) -> String {
    let mut bytes = Vec::new();
    answer.write(&mut bytes, true).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn web(address: &str, origins: &[&str]) -> (tempfile::TempDir, Web) {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("index.html", "a page");
    write("client.js", "let it = be;");
    write("client.js.gz", "smaller");
    write(".secret", "not a page");
    std::fs::create_dir(dir.path().join("more")).unwrap();
    write("more/index.html", "more");
    let web = Web {
        site: Site::read(dir.path()).unwrap(),
        origins: origins.iter().map(|origin| (*origin).to_owned()).collect(),
        tls: None,
        address: address.parse().unwrap(),
    };
    (dir, web)
}

/// Asks for a path with some headers; the status, and what the answer says.
fn ask(web: &Web, path: &str, headers: &str) -> (String, String) {
    let bytes = format!("GET {path} HTTP/1.1\r\nHost: localhost:7480\r\n{headers}\r\n");
    let head = read(bytes.as_bytes()).unwrap();
    match head.find(web) {
        Ok(Found::File(file)) => {
            let answer = Answer::file(file, &head);
            (status(&answer), text(&answer))
        }
        Ok(Found::Socket(key)) => ("101".into(), key),
        Err(refused) => (status(&refused), text(&refused)),
    }
}

const UPGRADE: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: a-key\r\n";

#[test]
fn files_are_those_of_the_directory_and_isolate_the_page() {
    let (_dir, web) = web("127.0.0.1:7480", &[]);
    let (status, page) = ask(&web, "/", "");
    assert_eq!(status, "200");
    assert!(page.ends_with("\r\n\r\na page"));
    for header in [
        "Content-Type: text/html; charset=utf-8",
        "Content-Length: 6",
        "Cross-Origin-Opener-Policy: same-origin",
        "Cross-Origin-Embedder-Policy: require-corp",
        "X-Content-Type-Options: nosniff",
        "script-src 'self' 'wasm-unsafe-eval'",
    ] {
        assert!(page.contains(header), "{header}");
    }
    assert!(ask(&web, "/more/?query", "").1.ends_with("more"));
    for path in [
        "/.secret",
        "/nothing",
        "/../index.html",
        "/more/../index.html",
        "/client.js.gz",
        "/%69ndex.html",
        "index.html",
        "/more",
    ] {
        assert_eq!(ask(&web, path, "").0, "404", "{path}");
    }
}

#[test]
fn a_file_is_compressed_for_those_who_take_it_and_sent_once() {
    let (_dir, web) = web("127.0.0.1:7480", &[]);
    let (_, plain) = ask(&web, "/client.js", "");
    assert!(plain.ends_with("let it = be;") && !plain.contains("Content-Encoding"));
    let (_, packed) = ask(&web, "/client.js", "Accept-Encoding: br;q=1, GZIP\r\n");
    assert!(packed.ends_with("smaller") && packed.contains("Content-Encoding: gzip"));
    let tag = plain.lines().find_map(|line| line.strip_prefix("ETag: "));
    let known = format!("If-None-Match: {}\r\n", tag.unwrap());
    let (status, again) = ask(&web, "/client.js", &known);
    assert_eq!(status, "304");
    assert!(again.ends_with("\r\n\r\n") && !again.contains("Content-Length"));
    assert_eq!(
        ask(&web, "/client.js", "If-None-Match: \"other\"\r\n").0,
        "200"
    );
}

#[test]
fn sockets_are_for_our_own_page_and_for_those_that_are_named() {
    let (_dir, web) = web("127.0.0.1:7480", &["https://elsewhere.example"]);
    let with = |origin: &str| format!("{UPGRADE}Origin: {origin}\r\n");
    for origin in ["http://localhost:7480", "https://elsewhere.example"] {
        assert_eq!(
            ask(&web, "/ws", &with(origin)),
            ("101".into(), "a-key".into())
        );
    }
    for origin in [
        "http://localhost:7481",
        "http://evil.example",
        "https://elsewhere.example.evil",
        "https://sub.elsewhere.example",
        "null",
        "",
    ] {
        assert_eq!(ask(&web, "/ws", &with(origin)).0, "403", "{origin}");
    }
    // No browser leaves its origin out.
    assert_eq!(ask(&web, "/ws", UPGRADE).0, "403");
    let own = "Origin: http://localhost:7480\r\n";
    for without in [
        "Upgrade: websocket\r\n",
        "Sec-WebSocket-Version: 13\r\n",
        "Sec-WebSocket-Key: a-key\r\n",
    ] {
        let headers = UPGRADE.replace(without, "") + own;
        assert_eq!(ask(&web, "/ws", &headers).0, "426", "{without}");
    }
    let other = UPGRADE.replace("Version: 13", "Version: 8") + own;
    assert_eq!(ask(&web, "/ws", &other).0, "426");
}

#[test]
fn a_port_on_this_machine_answers_what_names_this_machine() {
    let (_dir, here) = web("127.0.0.1:7480", &[]);
    let (_other, there) = web("192.0.2.1:7480", &[]);
    for (host, local) in [
        ("localhost:7480", true),
        ("127.0.0.1", true),
        ("[::1]:7480", true),
        ("rebound.example:7480", false),
        ("127.0.0.1.example", false),
    ] {
        let bytes = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let head = read(bytes.as_bytes()).unwrap();
        assert_eq!(head.find(&here).is_ok(), local, "{host}");
        assert!(head.find(&there).is_ok());
        let refused = head.find(&here).err();
        assert!(refused.is_none_or(|refused| status(&refused) == "421"));
    }
}

#[test]
fn heads_are_read_in_pieces_and_bounded() {
    let head = read(b"HEAD /a?b HTTP/1.1\r\nHOST: x\r\n\r\n").unwrap();
    assert_eq!(
        (head.method, &*head.path, &*head.host),
        (Method::Head, "/a", "x")
    );
    assert_eq!(read(b"POST / HTTP/1.1\r\n\r\n").err().unwrap(), "405");
    assert_eq!(read(b"GET / HTTP/9\r\n\r\n").err().unwrap(), "400");
    assert_eq!(read(b"\x16\x03\x01 TLS\r\n\r\n").err().unwrap(), "400");
    let twice = b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n";
    assert_eq!(read(twice).err().unwrap(), "400");
    let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(20_000));
    assert_eq!(read(long.as_bytes()).err().unwrap(), "431");
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(65));
    assert_eq!(read(many.as_bytes()).err().unwrap(), "400");
    let cut = io::ErrorKind::UnexpectedEof.to_string();
    assert_eq!(read(b"GET / HTTP/1.1\r\nHost: a").err().unwrap(), cut);
}

#[test]
fn what_came_behind_a_head_is_kept() {
    let bytes = b"GET /ws HTTP/1.1\r\n\r\nframes";
    let head = request::read(&mut Pieces(bytes, 100), HEAD).unwrap();
    let head = head.unwrap_or_else(|_| panic!("a request"));
    assert_eq!(head.behind, b"frames");
}

#[test]
fn a_directory_that_is_no_page_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let read = || Site::read(dir.path()).err().unwrap().to_string();
    assert!(read().contains("index.html"), "{}", read());
    assert!(Site::read(&dir.path().join("missing")).is_err());
}

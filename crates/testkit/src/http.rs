//! Plain HTTP as a test speaks it: one request on a connection of its own.

use crate::wait::eventually;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What came back.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Everything in front of the body.
    pub head: String,
    /// The body.
    pub body: String,
}

impl Reply {
    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    /// Returns the reason that a gateway gives for an error.
    pub fn error(&self) -> String {
        self.json()["error"].as_str().expect("an error").to_owned()
    }

    /// Returns what a gateway says of an answer's cost.
    pub fn meta(&self) -> Value {
        let mut lines = self.head.lines();
        let line = lines.find_map(|line| line.strip_prefix("x-primer-meta: "));
        serde_json::from_str(line.expect("the header")).unwrap()
    }
}

/// Sends a request and returns the answer.
pub fn send(address: &str, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Reply {
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
    socket.write_all(body).unwrap();
    receive(socket)
}

/// Returns the rest of a connection as an answer.
pub fn receive(mut socket: TcpStream) -> Reply {
    let mut reply = String::new();
    socket.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").expect("an answer");
    Reply {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// Asks for a page.
pub fn get(address: &str, path: &str) -> Reply {
    send(address, "GET", path, &[], b"")
}

/// Sends a JSON object.
pub fn post(address: &str, body: &Value) -> Reply {
    send(address, "POST", "/", &[], body.to_string().as_bytes())
}

/// A server's port of health and metrics.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Where it listens.
    pub address: String,
}

impl Metrics {
    /// Returns a page with its head.
    pub fn page(&self, path: &str) -> String {
        let Reply { head, body, .. } = get(&self.address, path);
        format!("{head}\r\n\r\n{body}")
    }

    /// Returns a page, which must come within a second.
    pub fn prompt_page(&self, path: &str) -> String {
        let started = Instant::now();
        let page = self.page(path);
        let took = started.elapsed();
        assert!(took < Duration::from_secs(1), "{path} took {took:?}");
        page
    }

    /// Returns a number.
    pub fn number(&self, name: &str) -> f64 {
        let page = self.page("/metrics");
        let start = format!("{name} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap_or_else(|| panic!("no {name} in {page}"))
            .parse()
            .unwrap()
    }

    /// Waits until a number has come to a value. The server counts after it has sent, so a client
    /// may be done before what it did is counted.
    pub fn counts(&self, name: &str, value: f64) {
        eventually(&format!("{name} = {value}"), || self.number(name) == value);
    }
}

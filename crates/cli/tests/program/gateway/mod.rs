//! The gateway as services and people meet it: Hugging Face's JSON, a stock, bad input, a server
//! that goes away.

mod answers;
mod input;
mod latency;
mod trouble;

use crate::process::{Server, client};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

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
    socket.write_all(body).unwrap();
    receive(socket)
}

/// The rest of a connection as an answer.
fn receive(mut socket: TcpStream) -> Reply {
    let mut reply = String::new();
    socket.read_to_string(&mut reply).unwrap();
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

/// Questions that are asked at this moment.
fn asking(address: &str) -> u64 {
    get(address, "/status").json()["asking"].as_u64().unwrap()
}

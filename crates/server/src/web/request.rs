//! The head of a request, as far as it is looked at.

use super::answer::Answer;
use primer_net::websocket::VERSION;
use primer_wire::Receive;
use std::io;
use std::time::{Duration, Instant};

/// The longest head.
const MOST_BYTES: usize = 16 << 10;
/// The most headers.
const MOST_HEADERS: usize = 64;

/// What a request may ask by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    Get,
    Head,
}

impl Method {
    /// Tells whether an answer has a body.
    pub(super) fn has_body(self) -> bool {
        self == Self::Get
    }
}

/// The head of a request.
pub(super) struct Head {
    pub(super) method: Method,
    /// Without its query.
    pub(super) path: String,
    pub(super) host: String,
    pub(super) origin: Option<String>,
    /// Whether the caller takes a body that is compressed by gzip.
    pub(super) takes_gzip: bool,
    /// What the caller has of the file already.
    pub(super) known: Option<String>,
    upgrade: bool,
    key: Option<String>,
    version: Option<String>,
    /// What was read behind the head.
    pub(super) behind: Vec<u8>,
}

impl Head {
    /// Returns the key of a request for a WebSocket.
    pub(super) fn upgrade(&self) -> Option<&str> {
        let right = self.upgrade && self.version.as_deref() == Some(VERSION);
        self.key
            .as_deref()
            .filter(|_| right && self.method == Method::Get)
    }
}

/// Reads the head of a request, or says why it is refused.
pub(super) fn read(
    input: &mut impl Receive,
    time: Duration,
) -> io::Result<Result<Head, Answer<'static>>> {
    let deadline = Instant::now() + time;
    let (mut bytes, mut count) = (vec![0; MOST_BYTES], 0);
    loop {
        let patience = deadline.saturating_duration_since(Instant::now());
        match input.receive(&mut bytes[count..], Some(patience))? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => count += more,
        }
        match parse(&bytes[..count]) {
            Ok(None) if count == MOST_BYTES => {
                let status = "431 Request Header Fields Too Large";
                return Ok(Err(Answer::refuse(status, "the head is too long")));
            }
            Ok(None) => {}
            Ok(Some(head)) => return Ok(Ok(head)),
            Err(refused) => return Ok(Err(refused)),
        }
    }
}

/// Parses a head, if all of it is there.
fn parse(bytes: &[u8]) -> Result<Option<Head>, Answer<'static>> {
    let bad = || Answer::refuse("400 Bad Request", "this is not a request that can be read");
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(bad()),
    };
    let method = match request.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        _ => {
            let status = "405 Method Not Allowed";
            return Err(Answer::refuse(
                status,
                "only GET and HEAD are answered here",
            ));
        }
    };
    let path = request.path.ok_or_else(bad)?;
    let (path, _query) = path.split_once('?').unwrap_or((path, ""));
    let header = |name: &str| {
        let mut named = (request.headers.iter()).filter(|h| h.name.eq_ignore_ascii_case(name));
        let value = named.next().map(|h| std::str::from_utf8(h.value));
        match (value, named.next()) {
            (None, _) => Ok(None),
            (Some(Ok(value)), None) => Ok(Some(value.trim().to_owned())),
            // What stands twice could be read in two ways.
            _ => Err(bad()),
        }
    };
    let lists = |value: Option<String>, word: &str| {
        let value = value.unwrap_or_default();
        let mut words = value
            .split(',')
            .map(|w| w.split(';').next().unwrap_or_default().trim());
        words.any(|w| w.eq_ignore_ascii_case(word))
    };
    Ok(Some(Head {
        method,
        path: path.to_owned(),
        host: header("host")?.unwrap_or_default(),
        origin: header("origin")?,
        takes_gzip: lists(header("accept-encoding")?, "gzip"),
        known: header("if-none-match")?,
        upgrade: lists(header("connection")?, "upgrade") && lists(header("upgrade")?, "websocket"),
        key: header("sec-websocket-key")?,
        version: header("sec-websocket-version")?,
        behind: bytes[length..].to_vec(),
    }))
}

//! What is answered: a status, headers, perhaps a file.

use super::request::Head;
use super::site::File;
use std::io::{self, Write};

/// Isolates the page, so that its workers may share memory, and keeps it from loading anything from
/// elsewhere. Scripts are files of the site; `wasm-unsafe-eval` lets them compile the client. A
/// page may connect elsewhere, since its visitor can name another server.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; \
                      img-src 'self'; worker-src 'self'; connect-src 'self' wss:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// An answer.
pub(super) struct Answer<'w> {
    status: &'static str,
    headers: Vec<(&'static str, String)>,
    body: &'w [u8],
}

impl<'w> Answer<'w> {
    /// Says no.
    pub(super) fn refuse(status: &'static str, why: &'static str) -> Self {
        let kind = "text/plain; charset=utf-8".to_owned();
        Self {
            status,
            headers: vec![("Content-Type", kind), ("Cache-Control", "no-store".into())],
            body: why.as_bytes(),
        }
    }

    /// Turns the connection into a WebSocket.
    pub(super) fn switch(accept: &str) -> Self {
        Self {
            status: "101 Switching Protocols",
            headers: vec![
                ("Upgrade", "websocket".into()),
                ("Connection", "Upgrade".into()),
                ("Sec-WebSocket-Accept", accept.into()),
            ],
            body: &[],
        }
    }

    /// Sends a file, unless the caller has it.
    pub(super) fn file(file: &'w File, head: &Head) -> Self {
        let known = head.known.as_deref() == Some(&file.tag);
        let gzip = file.gzip.as_deref().filter(|_| head.takes_gzip);
        let mut headers = vec![
            ("Content-Type", file.kind.to_owned()),
            ("ETag", file.tag.clone()),
            // Asked for again each time, and answered in a line if nothing changed: a page and a
            // client that do not belong together would be worse.
            ("Cache-Control", "no-cache".into()),
            ("Vary", "Accept-Encoding".into()),
            ("Content-Security-Policy", POLICY.into()),
            ("Cross-Origin-Opener-Policy", "same-origin".into()),
            ("Cross-Origin-Embedder-Policy", "require-corp".into()),
            ("Cross-Origin-Resource-Policy", "same-origin".into()),
            ("X-Content-Type-Options", "nosniff".into()),
            ("Referrer-Policy", "no-referrer".into()),
        ];
        if gzip.is_some() {
            headers.push(("Content-Encoding", "gzip".into()));
        }
        Self {
            status: if known { "304 Not Modified" } else { "200 OK" },
            headers,
            body: match known {
                true => &[],
                false => gzip.unwrap_or(&file.bytes),
            },
        }
    }

    /// Writes it, with or without its body.
    pub(super) fn write(&self, output: &mut impl Write, body: bool) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {}\r\n", self.status);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        // One of them goes on, and another says nothing of a body.
        if !self.status.starts_with("101") {
            head += "Connection: close\r\n";
            if !self.status.starts_with("304") {
                head += &format!("Content-Length: {}\r\n", self.body.len());
            }
        }
        head += "\r\n";
        output.write_all(head.as_bytes())?;
        match body {
            true => output.write_all(self.body),
            false => Ok(()),
        }
    }
}

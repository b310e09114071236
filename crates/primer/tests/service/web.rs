//! A client over a WebSocket, as a page has it: prepares and asks through the port for browsers.

use primer::service::ServiceError;
use primer::{ClientOptions, WebOptions};
use primer_client::{Client, Dial, Dialled, HangUp, Parts, ShutDown};
use primer_testkit::TEXTS;
use primer_testkit::server::Server;
use primer_wire::{Channel, Receive, Transport};
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::time::Duration;
use tungstenite::client::IntoClientRequest;
use tungstenite::http::StatusCode;
use tungstenite::protocol::Role;
use tungstenite::{Error, HandshakeError, Message, WebSocket};

const PATIENCE: Duration = Duration::from_secs(120);

fn serve(dir: &Path) -> (Server, String) {
    let page = dir.join("page");
    std::fs::create_dir(&page).unwrap();
    std::fs::write(page.join("index.html"), "a page").unwrap();
    let server = Server::start_with(&dir.join("server"), |options| {
        options.web = Some(WebOptions {
            dir: page,
            listen: "127.0.0.1:0".into(),
            origins: Vec::new(),
            secure: false,
        });
    });
    let url = server.web.clone().unwrap();
    (server, url)
}

/// Opens the WebSocket of a server's page as a page of some origin.
fn open(url: &str, origin: &str) -> Result<TcpStream, Box<Error>> {
    let place = url.strip_prefix("http://").unwrap();
    let stream = TcpStream::connect(place.trim_end_matches('/')).unwrap();
    let request = format!("ws://{place}ws").into_client_request();
    let mut request = request.unwrap();
    let origin = origin.trim_end_matches('/').parse().unwrap();
    request.headers_mut().insert("Origin", origin);
    let kept = stream.try_clone().unwrap();
    match tungstenite::client(request, stream) {
        Ok(_) => Ok(kept),
        Err(HandshakeError::Failure(error)) => Err(Box::new(error)),
        Err(HandshakeError::Interrupted(_)) => unreachable!("the stream blocks"),
    }
}

struct Sockets;

impl Dial for Sockets {
    fn dial(&mut self, address: &str, hang_up: &HangUp) -> Result<Dialled, ServiceError> {
        let stream = open(address, address).unwrap();
        let line = hang_up.connected(Line(stream.try_clone().unwrap()))?;
        let channel = Channel::new(Line(stream));
        Ok(Dialled { channel, line })
    }
}

struct Line(TcpStream);

impl ShutDown for Line {
    fn shut_down(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Transport for Line {
    type Sender = Sender;
    type Receiver = Receiver;

    fn timeout(&self) -> Option<Duration> {
        Some(PATIENCE)
    }

    fn split(self) -> (Sender, Receiver) {
        let far = |stream| WebSocket::from_raw_socket(stream, Role::Client, None);
        let output = far(self.0.try_clone().unwrap());
        let (input, left) = (far(self.0), Vec::new());
        (Sender(output), Receiver { input, left })
    }
}

struct Sender(WebSocket<TcpStream>);

impl Write for Sender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let message = Message::binary(bytes.to_vec());
        self.0.send(message).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // The peer may be gone.
        let _ = self.0.close(None).and_then(|()| self.0.flush());
    }
}

struct Receiver {
    input: WebSocket<TcpStream>,
    left: Vec<u8>,
}

impl Receive for Receiver {
    fn receive(&mut self, out: &mut [u8], patience: Option<Duration>) -> io::Result<usize> {
        if self.left.is_empty() {
            self.input.get_ref().set_read_timeout(patience)?;
            match self.input.read() {
                Ok(Message::Binary(bytes)) => self.left = bytes.to_vec(),
                Ok(Message::Close(_)) | Err(Error::ConnectionClosed) => return Ok(0),
                Ok(other) => return Err(io::Error::new(ErrorKind::InvalidData, other.to_string())),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        let count = out.len().min(self.left.len());
        out[..count].copy_from_slice(&self.left[..count]);
        self.left.drain(..count);
        Ok(count)
    }
}

#[test]
fn a_page_is_a_client_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let (server, url) = serve(dir.path());
    let parts = Parts::in_memory(Sockets, 1 << 30);
    let options = ClientOptions {
        state: Some("/dev/null".into()),
        ..ClientOptions::default()
    };
    let mut client = Client::connect_with(&url, options, parts, |_| ()).unwrap();
    client.prepare(8, 1).unwrap();
    let (text, label) = TEXTS[0];
    let found = client.classify(text).unwrap();
    assert!(found.cost.prepared_ahead);
    assert_eq!(found.label, label);
    let mut usual = server.client(&dir.path().join("client"));
    let expected = usual.classify(text).unwrap();
    for (a, b) in found.logits.iter().zip(&expected.logits) {
        assert!((a - b).abs() < 0.05, "{a} {b}");
    }
    client.close();
    usual.close();
    server.stop();
}

#[test]
fn a_page_of_another_origin_is_refused_before_it_is_a_client() {
    let dir = tempfile::tempdir().unwrap();
    let (server, url) = serve(dir.path());
    let refused = open(&url, "http://elsewhere.example").err().unwrap();
    let Error::Http(answer) = *refused else {
        panic!("{refused}");
    };
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    assert!(open(&url, &url).is_ok());
    server.stop();
}

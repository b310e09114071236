//! As much of HTTP as fetching a file takes: one GET with a range, over TCP or TLS, blocking.
//!
//! hyper answers requests elsewhere in this project; asking for one file, on the thread that waits
//! for it, takes neither a runtime nor a pool. Certificates of `https` are checked against the
//! system's authorities; what is fetched is compared with its hashes by the caller in any case.

use crate::HangUp;
use crate::hangup::ShutDown;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest head of an answer.
const MAX_HEAD: usize = 16 << 10;
/// Header lines of an answer.
const MAX_LINES: usize = 64;
/// How often one is sent elsewhere.
const MAX_REDIRECTS: usize = 5;

/// Both directions of a connection.
trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// Where a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Url {
    secure: bool,
    host: String,
    port: u16,
    /// With what is asked of it, and a slash at its beginning.
    path: String,
}

impl Url {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not an address such as https://host/path");
        let (secure, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(wrong()),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong())?)
            }
            _ => (authority, if secure { 443 } else { 80 }),
        };
        let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || host.contains('@') || !plain(host) || !plain(path) {
            return Err(wrong());
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self {
            secure,
            host: host.to_owned(),
            port,
            path: format!("{slash}{path}"),
        })
    }

    /// Returns the host as names are looked up: an address of IPv6 without its brackets.
    fn bare_host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Returns where an answer sends one.
    fn redirected(&self, location: &str) -> Result<Self, String> {
        let path = match location {
            whole if whole.contains("://") => return Self::parse(whole),
            other if other.starts_with("//") => {
                let scheme = if self.secure { "https:" } else { "http:" };
                return Self::parse(&format!("{scheme}{other}"));
            }
            absolute if absolute.starts_with('/') => absolute.to_owned(),
            beside => {
                let dir = self.path.split('?').next().unwrap_or_default();
                let dir = dir.rfind('/').map_or("", |end| &dir[..end]);
                format!("{dir}/{beside}")
            }
        };
        let whole = Self {
            path,
            ..self.clone()
        };
        Self::parse(&whole.to_string())
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}{}", self.host, self.port, self.path)
    }
}

/// What an answer's head says.
struct Head {
    status: u16,
    location: Option<String>,
    /// Where the body begins in the file.
    start: Option<u64>,
    chunked: bool,
}

/// Asks for a file from a byte on; what is returned reads from there. A hang-up ends it.
pub(super) fn get(
    url: &str,
    from: u64,
    timeout: Duration,
    hang_up: &HangUp,
) -> Result<Box<dyn Read>, String> {
    get_trusting(url, from, timeout, hang_up, system_roots)
}

/// Does the same with authorities of the caller's choice, which are asked for if there is TLS.
fn get_trusting(
    url: &str,
    from: u64,
    timeout: Duration,
    hang_up: &HangUp,
    roots: impl Fn() -> RootCertStore,
) -> Result<Box<dyn Read>, String> {
    let mut url = Url::parse(url)?;
    for _ in 0..=MAX_REDIRECTS {
        let socket = connect(&url, timeout, hang_up)?;
        let mut stream: Box<dyn Stream> = match url.secure {
            false => Box::new(socket),
            true => Box::new(StreamOwned::new(secured(url.bare_host(), roots())?, socket)),
        };
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: primer/{}\r\nRange: bytes={from}-\r\n\
             Accept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n",
            url.path,
            url.host,
            url.port,
            env!("CARGO_PKG_VERSION")
        );
        let sent = stream.write_all(request.as_bytes());
        sent.and_then(|()| stream.flush()).map_err(told)?;
        let head = head(&mut stream)?;
        let skipped = match (head.status, head.start, head.location) {
            (301 | 302 | 303 | 307 | 308, _, Some(location)) => {
                url = url.redirected(&location)?;
                continue;
            }
            (_, _, _) if head.chunked => {
                return Err("it is sent in pieces of unknown length, which is not taken".into());
            }
            (206, Some(start), _) if start == from => 0,
            // Ranges are not known there: all of it comes.
            (200, _, _) => from,
            (status, _, _) => return Err(format!("it answers with status {status}")),
        };
        let skip = io::copy(&mut (&mut stream).take(skipped), &mut io::sink());
        skip.map_err(told)?;
        return Ok(Box::new(stream));
    }
    Err(format!("it redirects more than {MAX_REDIRECTS} times"))
}

fn told(error: io::Error) -> String {
    error.to_string()
}

/// A socket that a hang-up can break.
struct Socket {
    stream: TcpStream,
    /// What a hang-up breaks, as long as it is here.
    _watched: Arc<dyn ShutDown>,
}

impl Read for Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.stream.read(out)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn connect(url: &Url, timeout: Duration, hang_up: &HangUp) -> Result<Socket, String> {
    let deadline = Instant::now() + timeout;
    let mut last = "the name has no address".to_owned();
    for address in (url.bare_host(), url.port)
        .to_socket_addrs()
        .map_err(told)?
    {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let stream = match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => stream,
            Err(error) => {
                last = told(error);
                continue;
            }
        };
        stream.set_read_timeout(Some(timeout)).map_err(told)?;
        stream.set_write_timeout(Some(timeout)).map_err(told)?;
        let twin = stream.try_clone().map_err(told)?;
        let watched = hang_up.connected(twin).map_err(|error| error.to_string())?;
        return Ok(Socket {
            stream,
            _watched: watched,
        });
    }
    Err(last)
}

/// Returns the authorities that the system trusts.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Begins TLS with a host that one of the authorities vouches for.
fn secured(host: &str, roots: RootCertStore) -> Result<ClientConnection, String> {
    if roots.is_empty() {
        return Err("this system has no certificates of authorities".into());
    }
    let told = |error: rustls::Error| error.to_string();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().map_err(told)?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    ClientConnection::new(Arc::new(config), name).map_err(told)
}

/// Reads the head of an answer, and not a byte more.
fn head(stream: &mut dyn Stream) -> Result<Head, String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).map_err(told)?;
        bytes.push(byte[0]);
        if bytes.len() > MAX_HEAD {
            return Err(format!("its answer begins with more than {MAX_HEAD} bytes"));
        }
    }
    let mut lines = [httparse::EMPTY_HEADER; MAX_LINES];
    let mut answer = httparse::Response::new(&mut lines);
    let parsed = answer.parse(&bytes);
    parsed.map_err(|error| format!("its answer is not HTTP ({error})"))?;
    let value = |name: &str| {
        let line = answer.headers.iter();
        let mut line = line.filter(|line| line.name.eq_ignore_ascii_case(name));
        line.next()
            .and_then(|line| std::str::from_utf8(line.value).ok())
    };
    let range = value("content-range").and_then(|range| range.trim().strip_prefix("bytes "));
    let start = range.and_then(|range| range.split('-').next()?.parse().ok());
    Ok(Head {
        status: answer.code.unwrap_or(0),
        location: value("location").map(str::to_owned),
        start,
        chunked: value("transfer-encoding").is_some(),
    })
}

#[cfg(test)]
mod tests;

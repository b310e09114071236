//! Two parties in one process: the helper that runs every two-party test and measurement.
//!
//! Each party is a closure that gets its end of a channel. Both run in threads; a party that fails
//! or panics drops its end, which ends the other one too. What is reported is the *first* failure:
//! the other is usually only its echo ("the peer disappeared").

use crate::channel::{Channel, Options};
use crate::error::{NetError, Result};
use crate::tls::{Identity, TlsClient, TlsServer, Trust};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What connects two parties in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Bounded pipes in memory.
    Memory,
    /// A TCP connection over loopback.
    Tcp,
    /// TLS over a TCP connection over loopback; the right party is the server.
    Tls,
}

impl Transport {
    /// All transports.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Tcp, Self::Tls];
}

/// Options for tests: a protocol that blocks is reported after half a minute.
pub fn test_options() -> Options {
    Options {
        timeout: Some(Duration::from_secs(30)),
        ..Options::default()
    }
}

/// Runs both parties over memory.
///
/// # Errors
/// The first failure of either.
///
/// # Panics
/// If a party panics.
pub fn run_pair<A: Send, B: Send, E: Send + From<NetError>>(
    left: impl FnOnce(&mut Channel) -> std::result::Result<A, E> + Send,
    right: impl FnOnce(&mut Channel) -> std::result::Result<B, E> + Send,
) -> std::result::Result<(A, B), E> {
    run_pair_over(Transport::Memory, &test_options(), left, right)
}

/// Runs both parties over a transport.
///
/// # Errors
/// The first failure of either.
///
/// # Panics
/// If a party panics.
pub fn run_pair_over<A: Send, B: Send, E: Send + From<NetError>>(
    transport: Transport,
    options: &Options,
    left: impl FnOnce(&mut Channel) -> std::result::Result<A, E> + Send,
    right: impl FnOnce(&mut Channel) -> std::result::Result<B, E> + Send,
) -> std::result::Result<(A, B), E> {
    let ends = connect(transport, options)?;
    // The order in which the parties fail; success leaves it alone.
    let failures = AtomicUsize::new(0);
    let rank = |failed: bool| match failed {
        true => failures.fetch_add(1, Ordering::SeqCst),
        false => usize::MAX,
    };
    let ((a, first_a), (b, first_b)) = run_parties(
        ends,
        |channel| {
            let result = left(channel);
            let rank = rank(result.is_err());
            (result, rank)
        },
        |channel| {
            let result = right(channel);
            let rank = rank(result.is_err());
            (result, rank)
        },
    );
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        (Err(a), Err(b)) => Err(if first_a < first_b { a } else { b }),
    }
}

/// Runs both parties over given ends and returns what each returned, whatever it is.
///
/// # Panics
/// If a party panics: with the panic that came first.
pub fn run_parties<A: Send, B: Send>(
    ends: (Channel, Channel),
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    let panics = AtomicUsize::new(0);
    let (left_end, right_end) = ends;
    let (a, b) = std::thread::scope(|scope| {
        let panics = &panics;
        let right = scope.spawn(move || party(right_end, right, panics));
        let a = party(left_end, left, panics);
        (a, right.join().expect("panics were caught inside"))
    });
    match (a, b) {
        (Ok(a), Ok(b)) => (a, b),
        (Err((_, panic)), Ok(_)) | (Ok(_), Err((_, panic))) => resume_unwind(panic),
        (Err((rank_a, a)), Err((rank_b, b))) => resume_unwind(if rank_a < rank_b { a } else { b }),
    }
}

type Panic = (usize, Box<dyn std::any::Any + Send>);

fn party<T>(
    mut channel: Channel,
    run: impl FnOnce(&mut Channel) -> T,
    panics: &AtomicUsize,
) -> std::result::Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(|| {
        let result = run(&mut channel);
        // A party that ends with a send has said its last word: let it be heard.
        let _ = channel.flush();
        result
    }))
    .map_err(|panic| (panics.fetch_add(1, Ordering::SeqCst), panic))
    // The channel is dropped here, after the rank was taken: the peer's echo ranks second.
}

/// Two connected ends in this process.
///
/// # Errors
/// [`NetError`] if loopback sockets cannot be opened.
pub fn connect(transport: Transport, options: &Options) -> Result<(Channel, Channel)> {
    match transport {
        Transport::Memory => Ok(Channel::memory_pair(options)),
        Transport::Tcp => {
            let (left, right) = loopback().map_err(loopback_error)?;
            Ok((Channel::tcp(left, options)?, Channel::tcp(right, options)?))
        }
        Transport::Tls => {
            let (left, right) = loopback().map_err(loopback_error)?;
            let identity = Identity::self_signed(&["localhost".into()])?;
            let server = TlsServer::new(&identity)?;
            let client = TlsClient::new(Trust::Pinned(identity.fingerprint()))?;
            std::thread::scope(|scope| {
                let accepting = scope.spawn(|| Channel::tls_accept(right, &server, options));
                let left = Channel::tls_connect(left, &client, options)?;
                let right = accepting.join().expect("accepting does not panic")?;
                Ok((left, right))
            })
        }
    }
}

fn loopback_error(source: io::Error) -> NetError {
    NetError::Io {
        direction: crate::error::Direction::Send,
        source,
    }
}

fn loopback() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let left = TcpStream::connect(listener.local_addr()?)?;
    let (right, _) = listener.accept()?;
    Ok((left, right))
}

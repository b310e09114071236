//! A client of the test's own: it speaks TLS and then whatever the test wants.

use primer::service::message::{Greeting, Reception, Refusal, Reply, Request};
use primer::service::{ServiceError, VERSION};
use primer_net::tls::{TlsClient, Trust};
use primer_testkit::server::Server;
use primer_wire::{Channel, Options};
use std::net::TcpStream;
use std::time::Duration;

/// Connects to a server at an address.
fn channel(server: &Server, address: &str) -> Channel {
    let socket = TcpStream::connect(address).unwrap();
    let tls = TlsClient::new(Trust::Pinned(server.fingerprint)).unwrap();
    let options = Options {
        timeout: Some(Duration::from_secs(30)),
        ..Options::default()
    };
    primer_net::tls_connect(socket, &tls, &options).unwrap()
}

/// Connects to a server at an address and says a greeting. Returns the channel, and what the server
/// said to it.
pub(crate) fn greet_as(
    (server, address): (&Server, &str),
    version: u16,
    pseudonym: [u8; 32],
) -> (Channel, Result<(), ServiceError>) {
    let mut channel = channel(server, address);
    let greeting = Greeting {
        version,
        pseudonym,
        token: None,
    };
    greeting.send(&mut channel).unwrap();
    let card = Reception::receive(&mut channel).map(|_| ());
    (channel, card)
}

/// Connects as a client with a pseudonym, which must be welcome.
pub(crate) fn welcomed(at: (&Server, &str), pseudonym: [u8; 32]) -> Channel {
    let (channel, card) = greet_as(at, VERSION, pseudonym);
    card.unwrap();
    channel
}

/// Sends a request, which must be refused, and returns why it was.
pub(crate) fn refusal(channel: &mut Channel, request: Request) -> Refusal {
    request.send(channel).unwrap();
    match Reply::receive(channel) {
        Err(ServiceError::Refused(refusal)) => refusal,
        Err(error) => panic!("{error}"),
        Ok(reply) => panic!("{reply:?}"),
    }
}

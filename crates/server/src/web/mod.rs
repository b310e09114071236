//! Browsers: a port that serves the page with the client in it, and that client's connection.
//!
//! A browser cannot open the port of other clients. So this one speaks HTTP: a `GET` of a file of
//! the [site](site), or of `/ws`, which turns into a WebSocket and from there on is a client like
//! any other: the same places, limits, tokens, time-outs and metrics ([`connection`] serves both).
//! Connections arrive at the [gate](super::gate) before a byte of them is read.
//!
//! * A connection has one request. Its head is bounded in bytes and, by the gate, in time.
//! * Files are read once, when the server starts: no path of a request reaches the disk.
//! * Headers isolate the page (`answer`): the client in it needs memory that its workers share.
//! * A page of another origin is refused its WebSocket unless the operator named the origin, and a
//!   port on this machine alone only answers requests that name this machine.
//!
//! Without a certificate from outside it is plain HTTP: what a browser says to a certificate of the
//! server's own making would teach people to click warnings away. The WebSocket then needs a proxy
//! that encrypts in front, except on this machine, which browsers take for secure.

mod answer;
mod request;
mod site;

pub(super) use site::Site;

use super::gate::{ConnectionSlot, Progress};
use super::{Shared, connection};
use answer::Answer;
use primer_net::tls::TlsServer;
use primer_net::websocket::{Facts, WebSocket, accepts};
use primer_wire::{Channel, NetError, Transport};
use request::Head;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long the head of a request may take; the gate's time for a handshake bounds all of it.
const HEAD: Duration = Duration::from_secs(10);

/// What a server offers to browsers.
pub(super) struct Web {
    pub(super) site: Site,
    /// Origins of pages elsewhere that may connect.
    pub(super) origins: Vec<String>,
    /// The certificate that browsers check; plain HTTP without one.
    pub(super) tls: Option<TlsServer>,
    pub(super) address: SocketAddr,
}

impl Web {
    /// Returns what a browser is told to open.
    pub(super) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address)
    }
}

/// Serves one connection of a browser.
pub(super) fn serve(shared: &Shared, socket: TcpStream, slot: &ConnectionSlot) {
    let Some(web) = &shared.web else {
        return;
    };
    let peer = socket.peer_addr().map(|peer| peer.to_string());
    let peer = peer.unwrap_or_default();
    let timeout = shared.channel_options().timeout;
    let served = match &web.tls {
        None => primer_net::plain(socket, timeout)
            .and_then(|transport| answer(shared, web, slot, &peer, transport)),
        Some(tls) => primer_net::secured(socket, tls, timeout)
            .and_then(|transport| answer(shared, web, slot, &peer, transport)),
    };
    if let Err(error) = served {
        tracing::debug!(connection = slot.number(), peer, %error, "a browser's request failed");
    }
}

/// Reads the request and answers it.
fn answer<T: Transport>(
    shared: &Shared,
    web: &Web,
    slot: &ConnectionSlot,
    peer: &str,
    transport: T,
) -> Result<(), NetError> {
    slot.progress(Progress::Secured);
    let facts = Facts::of(&transport);
    let (mut output, mut input) = transport.split();
    let failed = |source| NetError::Io {
        direction: primer_wire::Direction::Receive,
        source,
    };
    let head = match request::read(&mut input, HEAD).map_err(failed)? {
        Ok(head) => head,
        Err(refused) => return say(&mut output, &refused, false),
    };
    match head.find(web) {
        Ok(Found::File(file)) => {
            // A visitor with a slow line may take longer than a handshake.
            slot.allow(shared.limits.idle);
            let answer = Answer::file(file, &head);
            say(&mut output, &answer, head.method.has_body())
        }
        Ok(Found::Socket(key)) => {
            let Head { behind, .. } = head;
            say(&mut output, &Answer::switch(&accepts(&key)), false)?;
            let socket = WebSocket::<T>::new(facts, (output, input), behind);
            connection::serve(shared, slot, peer, || Ok(Channel::new(socket)));
            Ok(())
        }
        Err(refused) => say(&mut output, &refused, head.method.has_body()),
    }
}

/// What a request asks for.
enum Found<'w> {
    File(&'w site::File),
    /// A WebSocket, with the key to be answered.
    Socket(String),
}

fn say(output: &mut impl Write, answer: &Answer<'_>, body: bool) -> Result<(), NetError> {
    let written = answer.write(output, body).and_then(|()| output.flush());
    written.map_err(|source| NetError::Io {
        direction: primer_wire::Direction::Send,
        source,
    })
}

impl Head {
    /// Finds what is asked for, or why not.
    fn find<'w>(&self, web: &'w Web) -> Result<Found<'w>, Answer<'w>> {
        if web.address.ip().is_loopback() && !primer_http::is_this_machine(&self.host) {
            return Err(Answer::refuse(
                "421 Misdirected Request",
                "the Host header does not name this machine",
            ));
        }
        if self.path != "/ws" {
            let file = web.site.find(&self.path);
            return file
                .map(Found::File)
                .ok_or_else(|| Answer::refuse("404 Not Found", "there is no such page"));
        }
        let Some(key) = self.upgrade() else {
            return Err(Answer::refuse(
                "426 Upgrade Required",
                "this is for WebSockets of version 13",
            ));
        };
        let own = self.origin.as_ref().is_some_and(|origin| {
            let page = origin.split_once("://").map(|(_, host)| host);
            page == Some(&*self.host)
        });
        let listed = (self.origin.as_ref()).is_some_and(|origin| web.origins.contains(origin));
        if !own && !listed {
            return Err(Answer::refuse(
                "403 Forbidden",
                "a page of this origin may not connect here",
            ));
        }
        Ok(Found::Socket(key.to_owned()))
    }
}

#[cfg(test)]
mod tests;

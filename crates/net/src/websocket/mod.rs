//! A WebSocket as a transport: the server's end, for clients that run in a browser.
//!
//! A browser opens no sockets. What it has are WebSockets, which begin as a request of HTTP and go
//! on as frames. This module takes a connection over once its request has been read and answered
//! ([`accepts`] has the answer's key): every write becomes one binary frame, and what arrives in
//! binary frames is one stream of bytes, whatever their lengths. Channels put their own frames
//! and limits on top, so a frame's length announces nothing here and none is held in memory.
//!
//! A ping is answered, a pong is passed over, a close is the end of the stream. Text, frames that a
//! browser did not mask and reserved bits are errors: no client of this program sends them. Frames
//! are coded by `tungstenite`; its own connection is one object for both directions, but a channel
//! reads in one thread while it writes in another, so the halves are ours.

mod reader;
mod writer;

use primer_wire::peer::Agreed;
use primer_wire::{Recorder, Transport};
use reader::Reader;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tungstenite::handshake::derive_accept_key;
use writer::{Output, Writer};

/// The only version of WebSockets that browsers speak.
pub const VERSION: &str = "13";

/// Returns what a server answers to a client's `Sec-WebSocket-Key`, which shows that it understood
/// the request.
pub fn accepts(key: &str) -> String {
    derive_accept_key(key.as_bytes())
}

/// A WebSocket over a connection whose request has been answered.
pub struct WebSocket<T: Transport> {
    timeout: Option<Duration>,
    recorder: Recorder,
    agreed: Option<Agreed>,
    output: T::Sender,
    input: T::Receiver,
    /// What was read behind the request.
    behind: Vec<u8>,
}

impl<T: Transport> WebSocket<T> {
    /// Takes over the halves of a connection, and what was read of it behind the request.
    pub fn new(facts: Facts, (output, input): (T::Sender, T::Receiver), behind: Vec<u8>) -> Self {
        let Facts {
            timeout,
            recorder,
            agreed,
        } = facts;
        Self {
            timeout,
            recorder,
            agreed,
            output,
            input,
            behind,
        }
    }
}

/// What is known of a transport before it is separated into halves.
pub struct Facts {
    timeout: Option<Duration>,
    recorder: Recorder,
    agreed: Option<Agreed>,
}

impl Facts {
    /// Notes what a transport says of itself.
    pub fn of(transport: &impl Transport) -> Self {
        Self {
            timeout: transport.timeout(),
            recorder: transport.recorder(),
            agreed: transport.agreed(),
        }
    }
}

impl<T: Transport> Transport for WebSocket<T> {
    type Sender = Writer<T::Sender>;
    type Receiver = Reader<T::Sender, T::Receiver>;

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    fn agreed(&self) -> Option<Agreed> {
        self.agreed.clone()
    }

    fn split(self) -> (Self::Sender, Self::Receiver) {
        let output = Arc::new(Mutex::new(Output::new(self.output)));
        let reader = Reader::new(self.input, Arc::clone(&output), self.behind);
        (Writer::new(output), reader)
    }
}

#[cfg(test)]
mod tests;

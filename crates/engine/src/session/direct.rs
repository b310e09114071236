//! Sessions of two parties with no service around them: measurements and tests.
//!
//! The client says in a message of its own what it would say in a request of the service. Nothing
//! is refused in words, since both parties are started by one command; a server that has no program
//! to offer ends the session.

use super::{ClientSession, Nonce, ServerSession, fresh_nonce};
use crate::error::Result;
use crate::program::Program;
use primer_hint::published::Published;
use primer_ring::prg::Prg;
use primer_wire::Channel;
use primer_wire::kind::protocol::HELLO;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
struct Hello {
    tokens: u32,
    nonce: Nonce,
}

/// Asks for a session and opens it.
///
/// # Errors
/// As [`ClientSession::open`].
pub fn open(
    channel: &mut Channel,
    tokens: usize,
    hint: Arc<Published>,
    mut rng: Prg,
) -> Result<ClientSession> {
    let nonce = fresh_nonce(&mut rng);
    let hello = Hello {
        tokens: tokens as u32,
        nonce,
    };
    {
        let _phase = channel.phase("setup");
        channel.send_value(HELLO, &hello)?;
    }
    ClientSession::open(channel, tokens, &nonce, hint, rng)
}

/// Waits until a session is asked for and accepts it; `offer` gives the program for a number of
/// tokens.
///
/// # Errors
/// What `offer` returns, and as [`ServerSession::accept`].
pub fn accept(
    channel: &mut Channel,
    offer: impl FnOnce(usize) -> Result<Program>,
    rng: Prg,
) -> Result<ServerSession> {
    let hello: Hello = {
        let _phase = channel.phase("setup");
        channel.recv_value(HELLO, 64)?
    };
    let program = offer(hello.tokens as usize)?;
    ServerSession::accept(channel, program, &hello.nonce, rng)
}

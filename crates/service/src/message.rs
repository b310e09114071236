//! The messages of the service, each with the bytes that it may take.
//!
//! A decoded message is a valid one: [`Greeting::receive`], [`Reception::receive`] and their kin
//! check every length and every character before the value is used. Texts that a peer chooses
//! (labels, names, reasons) hold no control characters, so that printing them cannot move a cursor
//! or forge a line.
//!
//! `greeting` has the first words of both, `card` what a server offers, `refusal` why it says no,
//! `request` what is asked and answered afterwards, `tokenizer` the files that a client needs
//! first, `hint` what it needs before it prepares, `role` what replicas can share among them.

mod card;
mod greeting;
mod hint;
mod name;
mod refusal;
mod request;
mod role;
mod tokenizer;

pub use card::Card;
pub use greeting::{Greeting, Reception};
pub use hint::{
    MAX_CHUNKS, receive_hint_chunk, receive_hint_index, send_hint_chunk, send_hint_index,
};
pub use primer_store::{Counted, Exhausted};
pub use refusal::Refusal;
pub use request::{HeldBundle, Reply, Request, bundle_of, receive_spent, send_spent};
pub use role::ServerRole;
pub use tokenizer::{TokenizerFiles, receive_tokenizer, send_tokenizer};

use super::ServiceError;
use primer_wire::Channel;
use primer_wire::kind::service::{
    GREETING, HINT_CHUNK, HINT_INDEX, RECEPTION, REPLY, REQUEST, SPENT, TOKENIZER,
};

/// The longest access token.
pub const MAX_TOKEN: usize = 256;
const MAX_GREETING: usize = 64 + MAX_TOKEN;
const MAX_RECEPTION: usize = 1 << 20;
const MAX_REQUEST: usize = 96;
/// Bundles that one listing names.
pub const MAX_LISTING: usize = 1 << 16;
const MAX_REPLY: usize = 64 + MAX_LISTING * 24;
/// The longest tokenizer that a client accepts: XLM-R's, written with indentation, has 17 MB.
pub const MAX_TOKENIZER: usize = 20 << 20;
const MAX_NAME: usize = 256;
const MAX_BUCKETS: usize = 64;

fn nonsense<T>(what: String) -> Result<T, ServiceError> {
    Err(ServiceError::Nonsense { what })
}

fn check_name(what: &str, name: &str) -> Result<(), ServiceError> {
    if name.len() > MAX_NAME || name.chars().any(char::is_control) {
        return nonsense(format!("a {what} that is too long or not printable"));
    }
    Ok(())
}

/// Makes a text that passes as a name in a message, as near to the given one as may be.
pub fn printable(text: &str) -> String {
    let mut name: String = text.chars().filter(|c| !c.is_control()).collect();
    while name.len() > MAX_NAME {
        name.pop();
    }
    name
}

/// Receives one message whose kind is the first byte and whose payload is the rest, as the peer's
/// bytes would be: for fuzzing. Tells whether it was accepted.
#[doc(hidden)]
pub fn decode_any(bytes: &[u8]) -> bool {
    let Some((&kind, payload)) = bytes.split_first() else {
        return false;
    };
    let options = primer_wire::Options {
        capacity: payload.len() + 64,
        ..primer_wire::Options::default()
    };
    let (mut peer, mut channel) = Channel::memory_pair(&options);
    let kinds = [GREETING, RECEPTION, REQUEST, REPLY, SPENT];
    let kind = kinds[usize::from(kind) % kinds.len()];
    if peer
        .send(kind, payload)
        .and_then(|()| peer.flush())
        .is_err()
    {
        return false;
    }
    drop(peer);
    match kind {
        GREETING => Greeting::receive(&mut channel).is_ok(),
        RECEPTION => Reception::receive(&mut channel).is_ok(),
        REQUEST => Request::receive(&mut channel).is_ok(),
        REPLY => Reply::receive(&mut channel).is_ok(),
        _ => receive_spent(&mut channel).is_ok(),
    }
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

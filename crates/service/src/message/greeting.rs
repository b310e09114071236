//! The first words: who comes, and how it is received.

use super::card::Card;
use super::refusal::{Refusal, refused};
use super::{GREETING, MAX_GREETING, MAX_RECEPTION, RECEPTION};
use crate::ServiceError;
use primer_wire::Channel;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

/// What a client says first.
pub struct Greeting {
    /// The service version that it speaks.
    pub version: u16,
    /// Who it is to this server.
    pub pseudonym: [u8; 32],
    /// What admits it.
    pub token: Option<Zeroizing<String>>,
}

#[derive(Serialize, Deserialize)]
struct WireGreeting {
    version: u16,
    pseudonym: [u8; 32],
    token: Option<String>,
}

impl Drop for WireGreeting {
    fn drop(&mut self) {
        self.token.zeroize();
    }
}

impl Greeting {
    /// Sends it.
    ///
    /// # Errors
    /// If the channel fails.
    pub fn send(self, channel: &mut Channel) -> Result<(), ServiceError> {
        let wire = WireGreeting {
            version: self.version,
            pseudonym: self.pseudonym,
            token: self.token.map(|t| t.to_string()),
        };
        channel.send_value(GREETING, &wire)?;
        Ok(channel.flush()?)
    }

    /// Receives one.
    ///
    /// # Errors
    /// If there is none, or it is too long.
    pub fn receive(channel: &mut Channel) -> Result<Self, ServiceError> {
        let mut wire: WireGreeting = channel.recv_value(GREETING, MAX_GREETING)?;
        Ok(Self {
            version: wire.version,
            pseudonym: wire.pseudonym,
            token: wire.token.take().map(Zeroizing::new),
        })
    }
}

/// How a server receives a client.
#[derive(Serialize, Deserialize)]
pub enum Reception {
    /// Welcome.
    Card(Box<Card>),
    /// Not now, or not you.
    Refused(Refusal),
}

impl Reception {
    /// Sends it.
    ///
    /// # Errors
    /// If the channel fails.
    pub fn send(&self, channel: &mut Channel) -> Result<(), ServiceError> {
        channel.send_value(RECEPTION, self)?;
        Ok(channel.flush()?)
    }

    /// Receives the card.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] with the server's reason, [`ServiceError::Nonsense`] for a card
    /// beyond all bounds.
    pub fn receive(channel: &mut Channel) -> Result<Card, ServiceError> {
        match channel.recv_value(RECEPTION, MAX_RECEPTION)? {
            Self::Card(card) => card.check().map(|()| *card),
            Self::Refused(refusal) => Err(refused(refusal)),
        }
    }
}

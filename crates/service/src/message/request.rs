//! What is asked for and answered once a client is inside.

use super::refusal::{Refusal, refused};
use super::{MAX_LISTING, MAX_REPLY, MAX_REQUEST, REPLY, REQUEST, SPENT, name, nonsense};
use crate::{BundleId, ServiceError};
use primer_engine::session::Nonce;
use primer_wire::Channel;
use serde::{Deserialize, Serialize};

/// Returns the name of a bundle of a batch, given that of the first one.
pub fn bundle_of(first: BundleId, index: usize) -> BundleId {
    if index == 0 {
        return first;
    }
    let mut hasher = blake3::Hasher::new_derive_key("primer 2026 bundle of a batch");
    hasher.update(first.as_bytes());
    hasher.update(&(index as u64).to_le_bytes());
    let mut id = [0; 16];
    hasher.finalize_xof().fill(&mut id);
    BundleId::from_bytes(id)
}

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The tokenizer's files.
    Tokenizer,
    /// The offline phase, of some bundles together.
    Prepare {
        /// The name of the first bundle to be; [`bundle_of`] names the others.
        #[serde(with = "name")]
        id: BundleId,
        /// The padded length.
        tokens: u32,
        /// How many bundles: a number that the card would choose.
        bundles: u32,
        /// The client's nonce if a session is to be opened for this length; none if the one that
        /// the connection has is for it.
        session: Option<Nonce>,
    },
    /// The online phase with a bundle.
    Infer {
        /// The bundle.
        #[serde(with = "name")]
        id: BundleId,
        /// The program that the client prepared it for.
        fingerprint: [u8; 32],
    },
    /// Names of this client's bundles.
    List,
    /// A bundle is not needed any more.
    Forget(#[serde(with = "name")] BundleId),
    /// The end.
    Bye,
    /// The hashes of the hint's chunks.
    HintIndex,
    /// Some chunks of the hint, one after the other.
    HintChunks {
        /// The number of the first, from 0.
        first: u32,
        /// How many, at most [`MAX_CHUNKS`](super::MAX_CHUNKS).
        count: u32,
    },
}

impl Request {
    /// Sends it.
    ///
    /// # Errors
    /// If the channel fails.
    pub fn send(self, channel: &mut Channel) -> Result<(), ServiceError> {
        channel.send_value(REQUEST, &self)?;
        Ok(channel.flush()?)
    }

    /// Receives one.
    ///
    /// # Errors
    /// If there is none.
    pub fn receive(channel: &mut Channel) -> Result<Self, ServiceError> {
        Ok(channel.recv_value(REQUEST, MAX_REQUEST)?)
    }
}

/// One of a client's bundles on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBundle {
    /// Its name.
    #[serde(with = "name")]
    pub id: BundleId,
    /// Seconds since it was made.
    pub age: u32,
}

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The offline phase begins. If a session was asked for, it is opened first.
    Go,
    /// The server's half of a bundle is on its disk.
    Committed,
    /// The server has its half and waits for the client to spend its own.
    Ready,
    /// The server has spent its half: the online phase begins.
    Agreed,
    /// Bundles of this client.
    Listing(Vec<HeldBundle>),
    /// Done.
    Done,
    /// No.
    Refused(Refusal),
    /// What was asked for of the hint follows.
    Hint,
}

impl Reply {
    /// Sends it.
    ///
    /// # Errors
    /// If the channel fails.
    pub fn send(&self, channel: &mut Channel) -> Result<(), ServiceError> {
        channel.send_value(REPLY, self)?;
        Ok(channel.flush()?)
    }

    /// Receives one that is not a refusal.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] with the server's reason.
    pub fn receive(channel: &mut Channel) -> Result<Self, ServiceError> {
        match channel.recv_value(REPLY, MAX_REPLY)? {
            Self::Refused(refusal) => Err(refused(refusal)),
            Self::Listing(list) if list.len() > MAX_LISTING => {
                nonsense(format!("a list of {} bundles", list.len()))
            }
            reply => Ok(reply),
        }
    }

    /// Makes an error for a reply out of place.
    pub fn out_of_place<T>(&self) -> Result<T, ServiceError> {
        let name = match self {
            Self::Go => "go",
            Self::Committed => "committed",
            Self::Ready => "ready",
            Self::Agreed => "agreed",
            Self::Listing(_) => "a list",
            Self::Done => "done",
            Self::Refused(_) => "a refusal",
            Self::Hint => "a hint",
        };
        nonsense(format!("an unexpected {name:?}"))
    }
}

/// Tells the server that the client's half is spent, or that there is none.
///
/// # Errors
/// If the channel fails.
pub fn send_spent(channel: &mut Channel, spent: bool) -> Result<(), ServiceError> {
    channel.send(SPENT, &[u8::from(spent)])?;
    Ok(channel.flush()?)
}

/// Waits until the client's half is spent; tells whether it is.
///
/// # Errors
/// If the client says something else.
pub fn receive_spent(channel: &mut Channel) -> Result<bool, ServiceError> {
    let mut spent = [0];
    channel.recv_exact(SPENT, &mut spent)?;
    match spent {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => nonsense(format!("{other} where only yes or no makes sense")),
    }
}

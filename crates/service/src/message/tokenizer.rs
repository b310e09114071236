//! The tokenizer's files, on their way from the server to the client.

use super::card::Card;
use super::{TOKENIZER, nonsense};
use crate::ServiceError;
use primer_wire::Channel;
use serde::{Deserialize, Serialize};

/// The files of a tokenizer, as Hugging Face writes them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenizerFiles {
    /// `tokenizer.json`, or `vocab.txt`.
    pub main: Vec<u8>,
    /// Whether `main` is `tokenizer.json`.
    pub json: bool,
    /// `tokenizer_config.json`.
    pub config: Option<Vec<u8>>,
}

impl TokenizerFiles {
    /// Joins all to one string of bytes, to be hashed, sent and kept.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(&self.texts()).expect("texts are JSON")
    }

    fn texts(&self) -> (String, bool, Option<String>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            text(&self.main),
            self.json,
            self.config.as_deref().map(text),
        )
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// [`ServiceError::Nonsense`] if it is something else.
    pub fn decode(bytes: &[u8]) -> Result<Self, ServiceError> {
        let (main, json, config): (String, bool, Option<String>) = serde_json::from_slice(bytes)
            .map_err(|error| ServiceError::Nonsense {
                what: format!("a tokenizer that cannot be read ({error})"),
            })?;
        Ok(Self {
            main: main.into_bytes(),
            json,
            config: config.map(String::into_bytes),
        })
    }
}

/// Sends an encoded tokenizer.
///
/// # Errors
/// If the channel fails.
pub fn send_tokenizer(channel: &mut Channel, encoded: &[u8]) -> Result<(), ServiceError> {
    channel.send(TOKENIZER, encoded)?;
    Ok(channel.flush()?)
}

/// Receives the encoded tokenizer that a card announced.
///
/// # Errors
/// [`ServiceError::Nonsense`] if it is another one.
pub fn receive_tokenizer(channel: &mut Channel, card: &Card) -> Result<Vec<u8>, ServiceError> {
    let (hash, length) = card.tokenizer;
    let mut bytes = vec![0; length as usize];
    channel.recv_exact(TOKENIZER, &mut bytes)?;
    if *blake3::hash(&bytes).as_bytes() != hash {
        return nonsense("a tokenizer that its card does not announce".into());
    }
    Ok(bytes)
}

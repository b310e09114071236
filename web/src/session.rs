//! What JavaScript calls. Answers are JSON, errors are sentences.

use crate::line::Sockets;
use crate::{files, host, told};
use primer_client::{Classification, Client, ClientOptions};
use primer_plan::shape::Head;
use primer_wire::clock::unix_now;
use serde_json::{Value, json};
use wasm_bindgen::prelude::{JsError, wasm_bindgen};
use zeroize::Zeroizing;

/// A client of one server.
#[wasm_bindgen]
pub struct Session {
    client: Client,
}

#[wasm_bindgen]
impl Session {
    /// Connects to a server at the address of its WebSocket.
    ///
    /// # Errors
    /// In words, as those of all that follow: if the server cannot be reached or refuses.
    pub fn connect(url: &str, token: Option<String>) -> Result<Session, JsError> {
        host::prepare();
        let options = ClientOptions {
            token: token.map(Zeroizing::new),
            // There is one thread.
            threads: Some(1),
            ..ClientOptions::default()
        };
        let parts = files::parts(Sockets)?;
        parts.bundles.delete_expired(unix_now())?;
        let client = Client::connect_with(url, options, parts, |event| told::tell(&event))?;
        Ok(Self { client })
    }

    /// Tells what the server offers.
    pub fn card(&self) -> String {
        let card = self.client.card();
        let card = json!({
            "model": card.model,
            "does": card.head.about(),
            "classifies": matches!(card.head, Head::Classify { .. }),
            "pairs": card.types > 1,
            "labels": card.head.labels(),
            "lengths": card.buckets,
            "hint_bytes": card.hint.bytes,
        });
        card.to_string()
    }

    /// Tells how many answers are prepared, by padded length.
    ///
    /// # Errors
    /// If that cannot be read.
    pub fn prepared(&self) -> Result<String, JsError> {
        Ok(serde_json::to_string(&self.client.prepared()?)?)
    }

    /// Prepares some answers ahead, for texts of up to so many tokens.
    ///
    /// # Errors
    /// What was finished before is kept.
    pub fn prepare(&mut self, tokens: usize, count: usize) -> Result<(), JsError> {
        self.client.prepare(tokens, count)?;
        Ok(())
    }

    /// Finds the label of a text, or of a pair of texts.
    ///
    /// # Errors
    /// If the model has none, or the server went away for good.
    pub fn classify(&mut self, text: &str, pair: Option<String>) -> Result<String, JsError> {
        let found = match pair {
            Some(pair) => self.client.classify_pair(text, &pair)?,
            None => self.client.classify(text)?,
        };
        Ok(self.answer(&found).to_string())
    }

    /// Leaves in good order.
    pub fn close(self) {
        self.client.close();
    }
}

impl Session {
    /// Returns an answer with what the server saw of it, and what it cost.
    fn answer(&self, found: &Classification) -> Value {
        let labels = self.client.card().head.labels().unwrap_or_default();
        let scores = labels.iter().zip(&found.scores);
        let scores: Vec<_> = scores
            .map(|(label, score)| json!({ "label": label, "score": score }))
            .collect();
        let shown = self.client.shown();
        let shown: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({
            "label": found.label,
            "score": found.score,
            "scores": scores,
            "logits": found.logits,
            "removed": found.removed,
            "in_range": found.in_range,
            "shown": shown,
            "cost": found.cost,
        })
    }
}

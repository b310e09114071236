//! The model, encoded for each length that is in use.
//!
//! Encoded weights are large (gigabytes for BERT-base), and one encoding serves every client of a
//! length. It is made when the first client asks; others that ask meanwhile wait for the same one.
//! Only a few lengths are kept, the least recently used goes first; sessions that still use it keep
//! it alive until they end.

use crate::service::ServiceError;
use primer_model::quantise::IntModel;
use primer_protocol::server::ServerModel;
use primer_protocol::{Program, Reveal, Scheme, cost};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The model encoded for one length.
pub(crate) struct Built {
    pub(crate) program: Program,
    /// What a stored bundle must have been made for: this program and these weights.
    pub(crate) binding: [u8; 32],
    /// Bytes of the server's half of a bundle.
    pub(crate) stored: u64,
    pub(crate) model: ServerModel,
}

type Slot = Arc<Mutex<Option<Arc<Built>>>>;

/// All lengths of a model.
pub(crate) struct Models {
    model: Arc<IntModel>,
    scheme: Scheme,
    reveal: Reveal,
    keep: usize,
    /// The most recently used length is the last.
    slots: Mutex<Vec<(usize, Slot)>>,
}

impl Models {
    pub(crate) fn new(model: Arc<IntModel>, scheme: Scheme, reveal: Reveal, keep: usize) -> Self {
        Self {
            model,
            scheme,
            reveal,
            keep: keep.max(1),
            slots: Mutex::default(),
        }
    }

    pub(crate) fn program(&self, tokens: usize) -> Result<Program, ServiceError> {
        Ok(Program::of(&self.model, self.scheme, tokens, self.reveal)?)
    }

    /// The model for a length, made if it is not there.
    pub(crate) fn get(&self, tokens: usize) -> Result<Arc<Built>, ServiceError> {
        let slot = self.slot(tokens);
        let mut built = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(built) = &*built {
            return Ok(Arc::clone(built));
        }
        let started = Instant::now();
        let program = self.program(tokens)?;
        let mut hasher = blake3::Hasher::new_derive_key("primer 2026 bundle binding");
        hasher.update(program.fingerprint());
        hasher.update(self.model.source());
        let made = Arc::new(Built {
            binding: *hasher.finalize().as_bytes(),
            stored: cost::stored(&program).server,
            model: ServerModel::new(Arc::clone(&self.model), &program)?,
            program,
        });
        tracing::info!(
            tokens,
            seconds = started.elapsed().as_secs_f64(),
            "encoded the weights for a length"
        );
        *built = Some(Arc::clone(&made));
        Ok(made)
    }

    fn slot(&self, tokens: usize) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let found = slots.iter().position(|(length, _)| *length == tokens);
        let entry = match found {
            Some(index) => slots.remove(index),
            None => (tokens, Slot::default()),
        };
        let slot = Arc::clone(&entry.1);
        slots.push(entry);
        if slots.len() > self.keep {
            let (length, _) = slots.remove(0);
            tracing::info!(tokens = length, "let go of the weights for a length");
        }
        slot
    }
}

//! What a server offers: its card, as far as the model and the limits say it.

use super::Limits;
use crate::source::Model;
use primer_engine::Reveal;
use primer_hint::published::Identity;
use primer_plan::shape::Head;
use primer_service::ServiceError;
use primer_service::message::{Card, MAX_TOKENIZER, printable};
use primer_text::BUCKETS;

/// Tells generations of weights apart, and nothing else about them: the key is the server's secret.
pub(super) fn generation(key_pem: &str, digest: &[u8; 32]) -> [u8; 16] {
    let key = blake3::derive_key("primer 2026 model generation", key_pem.as_bytes());
    let hash = blake3::keyed_hash(&key, digest);
    hash.as_bytes()[..16].try_into().expect("sixteen of 32")
}

/// Says what the model, its hint and the limits say; the rest is the caller's.
pub(super) fn card(
    model: &Model,
    hint: &Identity,
    limits: &Limits,
    tokenizer: &[u8],
) -> Result<Card, ServiceError> {
    if tokenizer.len() > MAX_TOKENIZER {
        return Err(ServiceError::Options(format!(
            "the tokenizer has {} bytes, clients accept {MAX_TOKENIZER}",
            tokenizer.len()
        )));
    }
    let largest = model.max_tokens().min(limits.tokens);
    let mut buckets: Vec<u32> = BUCKETS
        .into_iter()
        .filter(|b| *b <= largest)
        .map(|b| b as u32)
        .collect();
    if buckets.last().is_none_or(|b| (*b as usize) < largest) {
        buckets.push(largest as u32);
    }
    let mut head = model.shape.head.clone();
    if let Head::Classify { labels, .. } | Head::Tokens { labels } = &mut head {
        labels
            .iter_mut()
            .for_each(|label| *label = printable(label));
    }
    Ok(Card {
        model: printable(&model.short_name()),
        generation: [0; 16],
        family: model.shape.family,
        head,
        vocab: model.shape.vocab as u32,
        types: model.shape.types as u32,
        buckets,
        reveal: Reveal::Outputs,
        answer_bits: Vec::new(),
        tokenizer: (*blake3::hash(tokenizer).as_bytes(), tokenizer.len() as u32),
        max_stored: limits.stored_per_client,
        hint: *hint,
        idle_seconds: limits.idle.as_secs() as u32,
    })
}

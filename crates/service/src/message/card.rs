//! What a server offers.

use super::{MAX_BUCKETS, MAX_TOKENIZER, check_name, nonsense};
use crate::ServiceError;
use crate::hints::MAX_HINT;
use primer_engine::{Reveal, bundles_together};
use primer_hint::params::hint_bytes;
use primer_hint::published::Identity;
use primer_plan::shape::{Family, Head};
use serde::{Deserialize, Serialize};

/// Bits of all answers by bundles that are prepared together, at most.
///
/// A client that deviates can bend answers to carry the secret that hides their products of two
/// secrets, 8,192 ternary coefficients. With this many bits, 2,261 coefficients, there is still
/// ring LWE in 5,931 dimensions with 150 bits of modulus, about 128 bits
/// (`docs/protocol/strangers.md`, section 4).
const MOST_ANSWER_BITS: u32 = 3_584;

/// Bits of that secret.
const SECRET_BITS: u32 = 12_984;

/// What a server offers: everything public about its model, and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The model's name, as its operator calls it.
    pub model: String,
    /// Tells two sets of weights apart without saying anything about them: material prepared under
    /// one generation is of no use under another.
    pub generation: [u8; 16],
    /// Which encoder it is.
    pub family: Family,
    /// What stands on top of the encoder, with the names of the labels.
    pub head: Head,
    /// Entries of the vocabulary.
    pub vocab: u32,
    /// Token types: two or more can tell the texts of a pair apart; none are not looked at.
    pub types: u32,
    /// The padded lengths on offer, ascending; the last is the largest number of tokens.
    pub buckets: Vec<u32>,
    /// What the client learns.
    pub reveal: Reveal,
    /// How many bits an answer can carry at most at each length on offer, even to a client that
    /// cheats.
    pub answer_bits: Vec<u32>,
    /// The tokenizer's hash and length.
    pub tokenizer: ([u8; 32], u32),
    /// The hint that bundles are prepared with.
    pub hint: Identity,
    /// Bytes that the server keeps for one client.
    pub max_stored: u64,
    /// Seconds that the server waits for the next request.
    pub idle_seconds: u32,
}

impl Card {
    /// Returns the largest number of tokens.
    pub fn max_tokens(&self) -> usize {
        self.buckets.last().map_or(0, |b| *b as usize)
    }

    /// Returns how many bundles of a padded length are best prepared in one go when `wanted` are.
    ///
    /// Bundles that are prepared together share a secret of the server's, so the bits of all their
    /// answers are kept to `MOST_ANSWER_BITS`, unless one answer has more than the secret itself.
    pub fn batch(&self, tokens: usize, wanted: usize) -> usize {
        let one_hot = (self.vocab + self.types) as usize;
        let most = match self.bits_at(tokens) {
            Some(bits @ 1..SECRET_BITS) => (MOST_ANSWER_BITS / bits).max(1) as usize,
            _ => usize::MAX,
        };
        bundles_together((tokens, one_hot), wanted.min(most))
    }

    /// Returns how many bits an answer of a padded length can carry, if it is on offer.
    pub fn bits_at(&self, tokens: usize) -> Option<u32> {
        let mut each = self.buckets.iter().zip(&self.answer_bits);
        let found = each.find(|(bucket, _)| **bucket as usize == tokens);
        found.map(|(_, bits)| *bits)
    }

    /// Returns the smallest padded length on offer for a number of tokens.
    pub fn bucket(&self, tokens: usize) -> Option<usize> {
        let fits = |b: &&u32| **b as usize >= tokens;
        self.buckets.iter().find(fits).map(|b| *b as usize)
    }

    pub(super) fn check(&self) -> Result<(), ServiceError> {
        check_name("model name", &self.model)?;
        if let Some(labels) = self.head.labels() {
            if labels.is_empty() || labels.len() > 4096 {
                return nonsense(format!("a card with {} labels", labels.len()));
            }
            for label in labels {
                check_name("label", label)?;
            }
        }
        let ascending = self.buckets.windows(2).all(|w| w[0] < w[1]);
        let lengths = self.buckets.len();
        if lengths == 0 || lengths > MAX_BUCKETS || !ascending || self.buckets[0] == 0 {
            return nonsense(format!("a card with {lengths} lengths that do not ascend"));
        }
        if self.answer_bits.len() != lengths {
            let told = self.answer_bits.len();
            return nonsense(format!(
                "a card with bits of {told} answers for {lengths} lengths"
            ));
        }
        if self.max_tokens() > 512 || self.vocab == 0 || self.vocab > 1 << 20 {
            return nonsense(format!(
                "a card with {} tokens and a vocabulary of {}",
                self.max_tokens(),
                self.vocab
            ));
        }
        if self.tokenizer.1 as usize > MAX_TOKENIZER {
            return nonsense(format!(
                "a card with a tokenizer of {} bytes",
                self.tokenizer.1
            ));
        }
        // A hint consists of the hints of groups of outputs.
        let bytes = self.hint.bytes;
        match bytes > 0 && bytes <= MAX_HINT && bytes.is_multiple_of(hint_bytes(1) as u64) {
            true => Ok(()),
            false => nonsense(format!("a card with a hint of {bytes} bytes")),
        }
    }
}

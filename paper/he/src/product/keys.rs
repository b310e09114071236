//! Which keys products need, and both parties' keys.
//!
//! A product names its parameter set and the rotations it makes, if any. A session adds up the
//! needs of all its products: the sets in the order in which they first appear, the rotations of
//! each set once. Both parties derive the same needs from the plan, so every message is known
//! before it comes:
//!
//! ```text
//! for each set   client -> server   the public key, an encryption of zero
//!                                   the rotation keys, if the set has any rotations
//! ```
//!
//! The client keeps one secret for each set. The server keeps what it got, and the memory for
//! working with it.

use super::Product;
use crate::error::HeError;
use crate::evaluate::Evaluator;
use crate::keys::{GaloisKeys, centre};
use crate::params::{FINGERPRINT_BYTES, Params, row};
use primer_rlwe::error::HeError as Common;
use primer_rlwe::keys::{PublicKey, SecretKey};
use primer_rlwe::wire::{expect_length, hex};
use rand_core::CryptoRng;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The keys that some products need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyNeeds {
    sets: Vec<SetNeeds>,
}

/// The keys that some products need of one parameter set.
#[derive(Clone, PartialEq, Eq)]
pub struct SetNeeds {
    params: Arc<Params>,
    rotations: BTreeSet<i32>,
}

impl KeyNeeds {
    /// Adds what a product needs.
    pub fn add(&mut self, product: &Product) {
        let params = product.method().params();
        let found = self.sets.iter().position(|set| set.params == *params);
        let index = found.unwrap_or_else(|| {
            self.sets.push(SetNeeds {
                params: params.clone(),
                rotations: BTreeSet::new(),
            });
            self.sets.len() - 1
        });
        let row = row(params) as i32;
        let steps = product.rotations().iter().map(|&r| centre(r, row));
        let steps = steps.filter(|&r| r != 0);
        self.sets[index].rotations.extend(steps);
    }

    /// Returns the parameter sets, in the order in which products named them first.
    pub fn sets(&self) -> &[SetNeeds] {
        &self.sets
    }

    /// Returns the fingerprints of the parameter sets, in order.
    pub fn fingerprints(&self) -> impl Iterator<Item = &[u8; FINGERPRINT_BYTES]> {
        self.sets.iter().map(|set| set.params.fingerprint())
    }
}

impl<'a> Extend<&'a Product> for KeyNeeds {
    fn extend<I: IntoIterator<Item = &'a Product>>(&mut self, products: I) {
        products.into_iter().for_each(|product| self.add(product));
    }
}

impl<'a> FromIterator<&'a Product> for KeyNeeds {
    fn from_iter<I: IntoIterator<Item = &'a Product>>(products: I) -> Self {
        let mut needs = Self::default();
        needs.extend(products);
        needs
    }
}

impl SetNeeds {
    /// Returns the parameters.
    pub fn params(&self) -> &Arc<Params> {
        &self.params
    }

    /// Returns the rotations in rising order, each once, as numbers of slots between half a row to
    /// the right (negative) and to the left.
    pub fn rotations(&self) -> impl ExactSizeIterator<Item = i32> {
        self.rotations.iter().copied()
    }

    /// Counts the bytes of the public key.
    pub fn public_len(&self) -> u64 {
        PublicKey::wire_len(&self.params) as u64
    }

    /// Counts the bytes of the rotation keys; no message, if there are none.
    pub fn rotations_len(&self) -> Option<u64> {
        let count = self.rotations.len();
        (count > 0).then(|| GaloisKeys::wire_len(&self.params, count) as u64)
    }
}

impl fmt::Debug for SetNeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = hex(self.params.fingerprint());
        write!(f, "set {set}, rotations {:?}", self.rotations)
    }
}

/// Which of a set's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// The public key.
    Public,
    /// The rotation keys.
    Rotations,
}

/// The client's secrets, one for each parameter set. Wiped when dropped.
pub struct ClientKeys {
    needs: KeyNeeds,
    secrets: Vec<SecretKey>,
}

impl ClientKeys {
    /// Draws fresh secrets for the products of a session.
    pub fn generate(needs: &KeyNeeds, rng: &mut impl CryptoRng) -> Self {
        let secret = |set: &SetNeeds| SecretKey::generate(&set.params, rng);
        Self {
            needs: needs.clone(),
            secrets: needs.sets.iter().map(secret).collect(),
        }
    }

    /// Makes what the server needs and hands it over, message by message, in the order in which
    /// [`ServerKeys::receive`] asks for it.
    ///
    /// # Errors
    /// Those of `send`.
    pub fn publish<E>(
        &self,
        rng: &mut impl CryptoRng,
        mut send: impl FnMut(KeyKind, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for (set, secret) in self.needs.sets.iter().zip(&self.secrets) {
            let public = PublicKey::generate(secret, rng);
            send(KeyKind::Public, &public.to_bytes())?;
            if !set.rotations.is_empty() {
                let keys = GaloisKeys::generate(secret, set.rotations(), rng);
                send(KeyKind::Rotations, &keys.to_bytes())?;
            }
        }
        Ok(())
    }

    /// Returns the secret of a parameter set.
    pub(super) fn secret(&self, params: &Params) -> Result<&SecretKey, HeError> {
        let found = self
            .secrets
            .iter()
            .find(|secret| **secret.params() == *params);
        found.ok_or_else(|| missing(params))
    }
}

/// A client's public keys with the memory for working on its ciphertexts, for each parameter set.
pub struct ServerKeys {
    evaluators: Vec<Evaluator>,
}

impl ServerKeys {
    /// Reads what [`ClientKeys::publish`] sends. `receive` is told which message comes and how many
    /// bytes it has, so that nothing has to be allocated on the client's word.
    ///
    /// # Errors
    /// Those of `receive`; [`HeError`] if a message is not what was announced or a key is missing.
    pub fn receive<E: From<HeError>>(
        needs: &KeyNeeds,
        mut receive: impl FnMut(KeyKind, u64) -> Result<Vec<u8>, E>,
    ) -> Result<Self, E> {
        let mut evaluators = Vec::with_capacity(needs.sets.len());
        for set in &needs.sets {
            let bytes = receive(KeyKind::Public, set.public_len())?;
            let public = PublicKey::from_bytes(&set.params, &bytes).map_err(HeError::from)?;
            let rotations = match set.rotations_len() {
                Some(len) => {
                    let bytes = receive(KeyKind::Rotations, len)?;
                    expect_length(&bytes, len as usize).map_err(HeError::from)?;
                    GaloisKeys::from_bytes(&set.params, &bytes).map_err(HeError::from)?
                }
                None => GaloisKeys::none(&set.params),
            };
            // As many as are needed, so exactly those.
            for steps in set.rotations() {
                rotations.get(steps)?;
            }
            evaluators.push(Evaluator::new(public, rotations)?);
        }
        Ok(Self { evaluators })
    }

    /// Returns what works with the keys of a parameter set, if it has those of some rotations.
    pub(super) fn evaluator(
        &mut self,
        params: &Params,
        rotations: &[i32],
    ) -> Result<&mut Evaluator, HeError> {
        let mut evaluators = self.evaluators.iter_mut();
        let found = evaluators.find(|evaluator| **evaluator.params() == *params);
        let evaluator = found.ok_or_else(|| missing(params))?;
        for &steps in rotations {
            evaluator.galois.get(steps)?;
        }
        Ok(evaluator)
    }
}

fn missing(params: &Params) -> HeError {
    let set = hex(params.fingerprint());
    Common::MissingSet { set }.into()
}

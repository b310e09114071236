//! Which keys products need, and both parties' keys.
//!
//! A product names its parameter set. A session adds up the needs of all its products: the sets in
//! the order in which they first appear. Both parties derive the same needs from the plan, so every
//! message is known before it comes: for each set the client sends its public key, an encryption of
//! zero.
//!
//! The client keeps one secret for each set. The server keeps what it got, and the memory for
//! working with it.

use super::Product;
use crate::error::HeError;
use crate::keys::{PublicKey, SecretKey};
use crate::params::{FINGERPRINT_BYTES, Params};
use crate::split::Workspace;
use crate::wire::hex;
use rand_core::CryptoRng;
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
}

impl KeyNeeds {
    /// Adds what a product needs.
    pub fn add(&mut self, product: &Product) {
        let set = SetNeeds {
            params: product.params.clone(),
        };
        if !self.sets.contains(&set) {
            self.sets.push(set);
        }
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

    /// Counts the bytes of the public key.
    pub fn public_len(&self) -> u64 {
        PublicKey::wire_len(&self.params) as u64
    }
}

impl fmt::Debug for SetNeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set {}", hex(self.params.fingerprint()))
    }
}

/// The client's secrets, one for each parameter set. Wiped when dropped.
pub struct ClientKeys {
    secrets: Vec<SecretKey>,
    threads: usize,
}

impl ClientKeys {
    /// Draws fresh secrets for the products of a session.
    pub fn generate(needs: &KeyNeeds, rng: &mut impl CryptoRng) -> Self {
        let secret = |set: &SetNeeds| SecretKey::generate(&set.params, rng);
        Self {
            secrets: needs.sets.iter().map(secret).collect(),
            threads: 1,
        }
    }

    /// Lets one query or answer be worked on by some threads, each with memory of its own; by
    /// one, unless this is called.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
    }

    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    /// Makes the public keys that the server needs and hands them over, one by one, in the order in
    /// which [`ServerKeys::receive`] asks for them.
    ///
    /// # Errors
    /// Those of `send`.
    pub fn publish<E>(
        &self,
        rng: &mut impl CryptoRng,
        mut send: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for secret in &self.secrets {
            send(&PublicKey::generate(secret, rng).to_bytes())?;
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
    sets: Vec<SetKeys>,
}

/// The same for one parameter set.
pub(super) struct SetKeys {
    pub(super) public: PublicKey,
    pub(super) work: Workspace,
}

impl ServerKeys {
    /// Reads what [`ClientKeys::publish`] sends. `receive` is told how many bytes the next message
    /// has, so that nothing has to be allocated on the client's word.
    ///
    /// # Errors
    /// Those of `receive`; [`HeError`] if a message is not what was announced.
    pub fn receive<E: From<HeError>>(
        needs: &KeyNeeds,
        mut receive: impl FnMut(u64) -> Result<Vec<u8>, E>,
    ) -> Result<Self, E> {
        let sets = needs.sets.iter().map(|set| {
            let bytes = receive(set.public_len())?;
            Ok(SetKeys {
                public: PublicKey::from_bytes(&set.params, &bytes)?,
                work: Workspace::default(),
            })
        });
        Ok(Self {
            sets: sets.collect::<Result<_, E>>()?,
        })
    }

    /// Lets one product be worked on by some threads, each with memory of its own; by one,
    /// unless this is called.
    pub fn set_threads(&mut self, threads: usize) {
        for set in &mut self.sets {
            set.work.set_threads(threads);
        }
    }

    /// Returns the keys of a parameter set.
    pub(super) fn set(&mut self, params: &Params) -> Result<&mut SetKeys, HeError> {
        let found = self
            .sets
            .iter_mut()
            .find(|set| *set.public.params == *params);
        found.ok_or_else(|| missing(params))
    }
}

fn missing(params: &Params) -> HeError {
    HeError::MissingSet {
        set: hex(params.fingerprint()),
    }
}

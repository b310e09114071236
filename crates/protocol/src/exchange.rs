//! Encrypted masks and answers on the channel.
//!
//! All homomorphic work is a list of *exchanges*: the client sends some of its masks, encrypted,
//! and gets one answer. It sends each mask once for each [`Query`] that asks for it; exchanges with
//! the same query of the same mask share it. Both sides derive all of it from the program, so
//! nothing is negotiated.

use crate::error::Result;
use crate::kinds::{ANSWER, ENCRYPTED};
use crate::masks::Masks;
use crate::share::Share;
use primer_he::product::{ClientKeys, EncodedWeights, Product, Query, Received, ServerKeys};
use primer_net::Channel;
use primer_plan::graph::ValueId;
use primer_ring::prg::Prg;
use std::collections::{HashMap, HashSet};

/// Whose mask: of a value, or of the one-hot input.
pub(crate) type Owner = Option<ValueId>;

/// Masks that go up and one answer that comes down.
pub(crate) struct Exchange {
    pub(crate) product: Product,
    /// Whose mask each of the product's queries encrypts.
    owners: Vec<Owner>,
}

impl Exchange {
    /// For a product that reads these masks.
    pub(crate) fn new(product: Product, owners: impl Into<Vec<Owner>>) -> Self {
        let owners = owners.into();
        assert_eq!(
            product.queries().len(),
            owners.len(),
            "a mask for each query"
        );
        Self { product, owners }
    }

    /// The masks that it reads, each with the query that encrypts it.
    pub(crate) fn offers(&self) -> impl Iterator<Item = (Owner, &Query)> {
        self.owners.iter().copied().zip(self.product.queries())
    }
}

/// The client's side: encrypts and decrypts.
pub(crate) struct Asker<'a> {
    keys: &'a ClientKeys,
    sent: HashSet<(Owner, Query)>,
}

impl<'a> Asker<'a> {
    pub(crate) fn new(keys: &'a ClientKeys) -> Self {
        Self {
            keys,
            sent: HashSet::new(),
        }
    }

    /// Sends the masks of an exchange, unless that was done before.
    pub(crate) fn offer(
        &mut self,
        channel: &mut Channel,
        exchange: &Exchange,
        masks: &mut Masks,
        rng: &mut Prg,
    ) -> Result<()> {
        for (owner, query) in exchange.offers() {
            if self.sent.insert((owner, query.clone())) {
                let encrypted = query.encrypt(self.keys, &masks.of(owner), rng)?;
                channel.send(ENCRYPTED, &encrypted)?;
            }
        }
        Ok(())
    }

    /// Receives and decrypts an answer.
    pub(crate) fn answer(&self, channel: &mut Channel, exchange: &Exchange) -> Result<Share> {
        let mut bytes = vec![0; exchange.product.answer_len() as usize];
        channel.recv_exact(ANSWER, &mut bytes)?;
        Ok(exchange.product.decrypt(self.keys, &bytes)?.into())
    }
}

/// The server's side: computes on what the client encrypted.
pub(crate) struct Answerer<'a> {
    keys: &'a mut ServerKeys,
    received: HashMap<(Owner, Query), Received>,
}

impl<'a> Answerer<'a> {
    pub(crate) fn new(keys: &'a mut ServerKeys) -> Self {
        Self {
            keys,
            received: HashMap::new(),
        }
    }

    /// Receives the masks of an exchange that are not here already.
    pub(crate) fn accept(&mut self, channel: &mut Channel, exchange: &Exchange) -> Result<()> {
        for (owner, query) in exchange.offers() {
            let key = (owner, query.clone());
            if self.received.contains_key(&key) {
                continue;
            }
            let mut bytes = vec![0; query.wire_len() as usize];
            channel.recv_exact(ENCRYPTED, &mut bytes)?;
            self.received.insert(key, query.read(&bytes)?);
        }
        Ok(())
    }

    /// The answer to an exchange whose masks were accepted, as bytes.
    pub(crate) fn answer(
        &mut self,
        exchange: &Exchange,
        weights: &EncodedWeights,
        mask: &Share,
        rng: &mut Prg,
    ) -> Result<Vec<u8>> {
        let received = exchange.offers().map(|(owner, query)| {
            let found = self.received.get(&(owner, query.clone()));
            found.expect("accepted before it is used")
        });
        let received: Vec<&Received> = received.collect();
        Ok((exchange.product).answer(self.keys, &received, weights, mask, rng)?)
    }

    /// Sends an answer.
    pub(crate) fn reply(&self, channel: &mut Channel, answer: &[u8]) -> Result<()> {
        Ok(channel.send(ANSWER, answer)?)
    }

    /// Forgets the masks of a value that nothing reads any more.
    pub(crate) fn forget(&mut self, owner: Owner) {
        self.received.retain(|(of, _), _| *of != owner);
    }
}

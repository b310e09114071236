//! Encrypted masks and answers on the channel.
//!
//! All homomorphic work is a list of *exchanges*: the client sends some of its masks, encrypted,
//! and gets one answer. It sends each mask once for each [`Query`] that asks for it; exchanges with
//! the same query of the same mask share it. Both sides derive all of it from the program, so
//! nothing is negotiated.

use crate::error::Result;
use crate::masks::Masks;
use primer_engine::share::Share;
use primer_paper_he::product::{ClientKeys, EncodedWeights, Product, Query, Received, ServerKeys};
use primer_plan::graph::ValueId;
use primer_ring::prg::Prg;
use primer_wire::Channel;
use primer_wire::kind::protocol::{ANSWER, ENCRYPTED};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whose mask: of a value, or of the one-hot input.
pub(crate) type Owner = Option<ValueId>;

/// Masks that go up and one answer that comes down.
pub(crate) struct Exchange {
    pub(crate) product: Product,
    /// Whose mask each of the product's queries encrypts.
    masks: Vec<Owner>,
}

impl Exchange {
    /// Makes one of a product and the masks that it reads.
    pub(crate) fn new(product: Product, masks: Vec<Owner>) -> Self {
        assert_eq!(
            product.queries().len(),
            masks.len(),
            "a mask for each query"
        );
        Self { product, masks }
    }

    /// Returns the masks that it reads, each with the query that encrypts it.
    pub(crate) fn offers(&self) -> impl Iterator<Item = (Owner, &Query)> {
        self.masks.iter().copied().zip(self.product.queries())
    }

    /// Counts the bytes of its masks and its answer, those of masks that another exchange shares
    /// included.
    pub(crate) fn bytes(&self) -> u64 {
        let masks = self.product.queries().iter().map(Query::wire_len);
        masks.sum::<u64>() + self.product.answer_len()
    }

    /// Returns the rows and columns of its answer.
    pub(crate) fn answer_size(&self) -> (usize, usize) {
        (self.product.rows(), self.product.cols())
    }
}

/// The client's side: encrypts and decrypts.
pub(crate) struct Requester<'a> {
    keys: &'a ClientKeys,
    sent: HashSet<(Owner, Query)>,
    /// Where answers are received.
    room: Vec<u8>,
}

impl<'a> Requester<'a> {
    pub(crate) fn new(keys: &'a ClientKeys) -> Self {
        Self {
            keys,
            sent: HashSet::new(),
            room: Vec::new(),
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
            if !self.sent.insert((owner, query.clone())) {
                continue;
            }
            let encrypted = query.encrypt(self.keys, &masks.of(owner), rng)?;
            channel.send(ENCRYPTED, &encrypted)?;
        }
        Ok(())
    }

    /// Receives and decrypts an answer.
    pub(crate) fn answer(&mut self, channel: &mut Channel, exchange: &Exchange) -> Result<Share> {
        let len = exchange.product.answer_len() as usize;
        if self.room.len() < len {
            self.room.resize(len, 0);
        }
        let bytes = &mut self.room[..len];
        channel.recv_exact(ANSWER, bytes)?;
        Ok(exchange.product.decrypt(self.keys, bytes)?.into())
    }
}

/// Bytes of buffers that are kept for the next messages.
const SPARE_BYTES: usize = 64 << 20;

/// Buffers of messages that were dealt with, for the next ones: memory that is given back to the
/// system has to be faulted in, and cleared, again. All that was in them has travelled.
#[derive(Clone, Default)]
pub(crate) struct Spare(Arc<Mutex<Vec<Vec<u8>>>>);

impl Spare {
    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a buffer of `len` bytes, with anything in it.
    fn take(&self, len: usize) -> Vec<u8> {
        let mut kept = self.lock();
        let fits = kept.iter().enumerate().filter(|(_, b)| b.len() >= len);
        let best = fits.min_by_key(|(_, b)| b.len()).map(|(at, _)| at);
        match best {
            None => vec![0; len],
            Some(at) => {
                let mut buffer = kept.swap_remove(at);
                buffer.truncate(len);
                buffer
            }
        }
    }

    /// Takes a buffer back, if there is not too much already.
    pub(crate) fn give(&self, buffer: Vec<u8>) {
        let mut kept = self.lock();
        if kept.iter().map(Vec::len).sum::<usize>() + buffer.len() <= SPARE_BYTES {
            kept.push(buffer);
        }
    }
}

/// The server's side, where masks come in.
#[derive(Default)]
pub(crate) struct Intake {
    seen: HashSet<(Owner, Query)>,
    pub(crate) spare: Spare,
}

/// The masks of an exchange as they came, each where the server did not have it already.
pub(crate) type Arrived = Vec<Option<Vec<u8>>>;

impl Intake {
    /// Receives the masks of an exchange that have not come before.
    pub(crate) fn accept(&mut self, channel: &mut Channel, exchange: &Exchange) -> Result<Arrived> {
        let mut arrived = Vec::new();
        for (owner, query) in exchange.offers() {
            let new = self.seen.insert((owner, query.clone()));
            arrived.push(match new {
                false => None,
                true => {
                    let mut bytes = self.spare.take(query.wire_len() as usize);
                    channel.recv_exact(ENCRYPTED, &mut bytes)?;
                    Some(bytes)
                }
            });
        }
        Ok(arrived)
    }
}

/// The server's side, where products are computed with what the client encrypted.
pub(crate) struct Answerer<'a> {
    keys: &'a mut ServerKeys,
    received: HashMap<(Owner, Query), Received>,
    spare: Spare,
}

impl<'a> Answerer<'a> {
    /// Answers with a session's keys. Buffers that were read go to `spare`.
    pub(crate) fn new(keys: &'a mut ServerKeys, spare: Spare) -> Self {
        Self {
            keys,
            received: HashMap::new(),
            spare,
        }
    }

    /// Reads the masks of an exchange.
    pub(crate) fn read(&mut self, exchange: &Exchange, arrived: Arrived) -> Result<()> {
        for ((owner, query), bytes) in exchange.offers().zip(arrived) {
            if let Some(bytes) = bytes {
                let key = (owner, query.clone());
                self.received.insert(key, query.read(&bytes)?);
                self.spare.give(bytes);
            }
        }
        Ok(())
    }

    /// Answers an exchange whose masks were read: as bytes.
    pub(crate) fn answer(
        &mut self,
        exchange: &Exchange,
        weights: &EncodedWeights,
        mask: &Share,
        rng: &mut Prg,
    ) -> Result<Vec<u8>> {
        let asked = exchange.offers().map(|(owner, query)| {
            let found = self.received.get(&(owner, query.clone()));
            found.expect("read before it is used")
        });
        let asked: Vec<&Received> = asked.collect();
        Ok((exchange.product).answer(self.keys, &asked, weights, mask, rng)?)
    }

    /// Forgets the masks of a value that nothing reads any more.
    pub(crate) fn forget(&mut self, owner: Owner) {
        self.received.retain(|(of, _), _| *of != owner);
    }
}

/// Sends an answer: the server.
pub(crate) fn reply(channel: &mut Channel, answer: &[u8]) -> Result<()> {
    channel.send(ANSWER, answer)?;
    Ok(channel.flush()?)
}

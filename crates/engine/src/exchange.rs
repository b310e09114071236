//! Encrypted masks and answers on the channel.
//!
//! All homomorphic work is a list of *exchanges*: the client sends some of its masks, encrypted,
//! and gets one answer. It sends each mask once for each [`Query`] that asks for it; exchanges with
//! the same query of the same mask share it. Both sides derive all of it from the program, so
//! nothing is negotiated.
//!
//! Bundles that are prepared together share exchanges: their masks are joined into one matrix, and
//! so are their answers. An answer is split: each bundle gets its part of either party's share.

use crate::error::Result;
use crate::masks::Masks;
use crate::share::Share;
use primer_plan::graph::ValueId;
use primer_ring::prg::Prg;
use primer_rlwe::product::{ClientKeys, EncodedWeights, Product, Query, Received, ServerKeys};
use primer_wire::Channel;
use primer_wire::kind::protocol::{ANSWER, ENCRYPTED};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whose mask: of a value, or of the one-hot input.
pub(crate) type Owner = Option<ValueId>;

/// Masks that go up and one answer that comes down, for one bundle or for several together.
pub(crate) struct Exchange {
    pub(crate) product: Product,
    /// What each of the product's queries encrypts.
    masks: Vec<Mask>,
    /// How the answers of bundles are joined.
    answer: Joined,
}

/// What of the client's is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MaskSource {
    /// Its mask of a value.
    Mask(ValueId),
    /// The second part of its share of a value that is lifted ([`crate::secrets`]).
    Second(ValueId),
}

impl MaskSource {
    /// Returns whose mask it is, or is a part of.
    pub(crate) fn owner(self) -> ValueId {
        match self {
            Self::Mask(id) | Self::Second(id) => id,
        }
    }
}

/// What is encrypted, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mask {
    pub(crate) source: MaskSource,
    /// The first rows of each bundle's.
    pub(crate) rows: usize,
    pub(crate) joined: Joined,
}

/// How matrices of bundles that are prepared together lie in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joined {
    /// On top of each other.
    Rows,
    /// Side by side.
    Columns,
}

impl Joined {
    /// Joins the first rows of all matrices.
    pub(crate) fn join(self, shares: &[&Share], rows: usize) -> Share {
        let cols = shares[0].cols();
        match self {
            Self::Rows => Share::from_fn(shares.len() * rows, cols, |r, c| {
                shares[r / rows].get(r % rows, c)
            }),
            Self::Columns => Share::from_fn(rows, shares.len() * cols, |r, c| {
                shares[c / cols].get(r, c % cols)
            }),
        }
    }

    /// Cuts a joined matrix into one for each bundle.
    fn apart(self, joined: Share, bundles: usize) -> Vec<Share> {
        if bundles == 1 {
            return vec![joined];
        }
        let part = |bundle| match self {
            Self::Rows => joined.row_block(bundle, joined.rows() / bundles),
            Self::Columns => joined.block(bundle, joined.cols() / bundles),
        };
        (0..bundles).map(part).collect()
    }
}

impl Exchange {
    /// Makes one of a product and the masks that it reads.
    pub(crate) fn new(product: Product, masks: Vec<Mask>, answer: Joined) -> Self {
        assert_eq!(
            product.queries().len(),
            masks.len(),
            "a mask for each query"
        );
        Self {
            product,
            masks,
            answer,
        }
    }

    /// Returns the masks that it reads, each with the query that encrypts it.
    pub(crate) fn offers(&self) -> impl Iterator<Item = (Mask, &Query)> {
        self.masks.iter().copied().zip(self.product.queries())
    }

    /// Counts the bytes of its masks and its answer, those of masks that another exchange shares
    /// included.
    pub(crate) fn bytes(&self) -> u64 {
        let masks = self.product.queries().iter().map(Query::wire_len);
        masks.sum::<u64>() + self.product.answer_len()
    }
}

/// The client's side: encrypts and decrypts.
pub(crate) struct Requester<'a> {
    keys: &'a ClientKeys,
    sent: HashSet<(MaskSource, Query)>,
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
        masks: &mut [Masks],
        rng: &mut Prg,
    ) -> Result<()> {
        for (mask, query) in exchange.offers() {
            if !self.sent.insert((mask.source, query.clone())) {
                continue;
            }
            let all: Vec<_> = masks.iter_mut().map(|m| m.of(mask.source)).collect();
            let encrypted = if let [one] = &all[..] {
                query.encrypt(self.keys, one, rng)?
            } else {
                let all: Vec<&Share> = all.iter().map(|share| &**share).collect();
                query.encrypt(self.keys, &mask.joined.join(&all, mask.rows), rng)?
            };
            channel.send(ENCRYPTED, &encrypted)?;
        }
        Ok(())
    }

    /// Receives and decrypts an answer, one for each bundle.
    pub(crate) fn answer(
        &mut self,
        channel: &mut Channel,
        exchange: &Exchange,
        bundles: usize,
    ) -> Result<Vec<Share>> {
        let len = exchange.product.answer_len() as usize;
        if self.room.len() < len {
            self.room.resize(len, 0);
        }
        let bytes = &mut self.room[..len];
        channel.recv_exact(ANSWER, bytes)?;
        let answer = exchange.product.decrypt(self.keys, bytes)?;
        Ok(exchange.answer.apart(answer.into(), bundles))
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
    seen: HashSet<(MaskSource, Query)>,
    pub(crate) spare: Spare,
}

/// The masks of an exchange as they came, each where the server did not have it already.
pub(crate) type Arrived = Vec<Option<Vec<u8>>>;

impl Intake {
    /// Receives the masks of an exchange that have not come before.
    pub(crate) fn accept(&mut self, channel: &mut Channel, exchange: &Exchange) -> Result<Arrived> {
        let mut arrived = Vec::new();
        for (mask, query) in exchange.offers() {
            let new = self.seen.insert((mask.source, query.clone()));
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
    received: HashMap<(MaskSource, Query), Received>,
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
        for ((mask, query), bytes) in exchange.offers().zip(arrived) {
            if let Some(bytes) = bytes {
                let key = (mask.source, query.clone());
                self.received.insert(key, query.read(&bytes)?);
                self.spare.give(bytes);
            }
        }
        Ok(())
    }

    /// Answers an exchange whose masks were read: the answer as bytes, and the server's share for
    /// each of some bundles.
    pub(crate) fn answer(
        &mut self,
        exchange: &Exchange,
        weights: &EncodedWeights,
        bundles: usize,
        rng: &mut Prg,
    ) -> Result<(Vec<u8>, Vec<Share>)> {
        let received = asked(&self.received, exchange);
        let (answer, share) = (exchange.product).split(self.keys, &received, weights, rng)?;
        Ok((answer, exchange.answer.apart(share.into(), bundles)))
    }

    /// Forgets the masks of a value that nothing reads any more.
    pub(crate) fn forget(&mut self, id: ValueId) {
        self.received.retain(|(of, _), _| of.owner() != id);
    }
}

/// Finds what an exchange's masks were read into.
fn asked<'a>(
    received: &'a HashMap<(MaskSource, Query), Received>,
    exchange: &Exchange,
) -> Vec<&'a Received> {
    let found = exchange.offers().map(|(mask, query)| {
        let found = received.get(&(mask.source, query.clone()));
        found.expect("read before it is used")
    });
    found.collect()
}

/// Sends an answer: the server.
pub(crate) fn reply(channel: &mut Channel, answer: &[u8]) -> Result<()> {
    channel.send(ANSWER, answer)?;
    Ok(channel.flush()?)
}

//! Requantisation: from a short ring back to Z_p, by one oblivious transfer for each element.
//!
//! After truncation the server holds `a` and the client `b` in `Z_2^m` with `v = a + b mod 2^m` signed, and
//! the plan left a guard bit: `-2^(m-2) <= v < 2^(m-2)`. The server adds `2^(m-2)` to `a`; then the sum
//! `u = v + 2^(m-2)` lies in `[0, 2^(m-1))`, its top bit is 0, and as integers
//!
//! ```text
//! a + b = u + w·2^m        w = msb(a) OR msb(b)
//! ```
//!
//! (both top bits 0: no wrap; both 1: a wrap; one of them 1: without a wrap `u` would have it too). So with
//! `α = msb(a)`, `β = msb(b)`, modulo p
//!
//! ```text
//! v - r = (a - 2^(m-2))  +  (b - β·2^m - r)  +  α·(β - 1)·2^m
//!         server            client: offset      bit of the server times a difference known to the client
//! ```
//!
//! because `α OR β = β + α·(1 - β)`. The last two terms are one transfer of [`primer_ot::product`]: `α` is known
//! online, the difference offline, and the offset carries the client's new mask `r`. Online a bit goes up to
//! the client and 41 bits come back: 5.25 bytes for each element.
//!
//! Who learns what: the client sees `α` under a one-time pad; the server gets `v - r`, uniform.

use crate::error::{Result, StopsError, expect_count};
use crate::job::Cost;
use primer_net::Channel;
use primer_ot::{
    Bits, CotReceiver, CotSender, ProductAnswering, ProductReceiver, ProductSender, ProductWaiting,
};
use primer_ring::modulus::{self, P};
use primer_ring::pack::{pack, packed_len, unpack};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

const NAME: &str = "requantisation";

/// Checks the ring: the sum needs a guard bit, and `2^m` has to be smaller than p.
fn check_ring(ring_bits: u32) -> Result<()> {
    if (3..=40).contains(&ring_bits) {
        Ok(())
    } else {
        Err(StopsError::Ring(ring_bits))
    }
}

/// What requantising `n` elements costs.
pub fn cost(n: usize) -> Cost {
    let offline = primer_ot::cost::product_offline(n, P);
    let online = primer_ot::cost::product_online(n, P);
    // Here the client is the sender of the transfers.
    Cost {
        offline_up: offline.from_sender,
        offline_down: offline.from_receiver,
        online_up: online.from_sender,
        online_down: online.from_receiver,
    }
}

/// Bytes of the stored material of `n` elements: the client's and the server's.
pub fn stored_len(n: usize) -> (u64, u64) {
    let packed = |values: u64| (values * u64::from(modulus::K)).div_ceil(8);
    let n = n as u64;
    (packed(2 * n) + packed(n), n.div_ceil(8) + packed(n))
}

/// The client's material. Spent by [`Self::finish`].
pub struct RequantiseClient {
    products: ProductSender,
    /// `b - β·2^m - r`.
    offsets: Zeroizing<Vec<u64>>,
}

/// A client that has the server's request and owes the answer.
pub struct RequantiseAnswering {
    products: ProductAnswering,
    offsets: Zeroizing<Vec<u64>>,
}

/// The server's material. Spent by [`Self::finish`].
pub struct RequantiseServer {
    products: ProductReceiver,
    ring_bits: u32,
}

/// A server that has asked and waits for the answer.
pub struct RequantiseWaiting {
    products: ProductWaiting,
    /// The server's part of the results.
    own: Zeroizing<Vec<u64>>,
}

impl RequantiseClient {
    /// Offline: for the client's ring shares and its new masks modulo p.
    ///
    /// # Errors
    /// [`StopsError`] of the channel and the transfers; [`StopsError::Count`] and [`StopsError::Ring`].
    pub fn prepare(
        channel: &mut Channel,
        cot: &mut CotSender,
        ring_bits: u32,
        shares: &[u64],
        masks: &[u64],
    ) -> Result<Self> {
        check_ring(ring_bits)?;
        expect_count(NAME, "masks", shares.len(), masks.len())?;
        let wrap = 1u64 << ring_bits;
        let top = |share: u64| (share >> (ring_bits - 1) & 1).wrapping_neg();
        let differences = shares.iter().map(|&b| modulus::neg(wrap & !top(b)));
        let differences = Zeroizing::new(differences.collect::<Vec<_>>());
        let offsets = shares.iter().zip(masks).map(|(&b, &r)| {
            let wrapped = modulus::sub(b & (wrap - 1), wrap & top(b));
            modulus::sub(wrapped, r)
        });
        let offsets = Zeroizing::new(offsets.collect());
        let products = ProductSender::prepare(cot, channel, &differences, P)?;
        Ok(Self { products, offsets })
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// The material as bytes, for storage that keeps it secret and spends it once.
    pub fn into_bytes(self) -> Zeroizing<Vec<u8>> {
        let products = self.products.into_bytes();
        // Reserved at once: a buffer that grows would leave copies behind.
        let (all, _) = stored_len(self.offsets.len());
        let mut bytes = Zeroizing::new(Vec::with_capacity(all as usize));
        bytes.extend_from_slice(&products);
        pack(self.offsets.iter().copied(), modulus::K, &mut bytes);
        bytes
    }

    /// Material for `n` elements from its bytes.
    ///
    /// # Errors
    /// [`StopsError::Encoded`] or [`StopsError::Ot`] if the bytes are not such material.
    pub fn from_bytes(bytes: &[u8], n: usize) -> Result<Self> {
        let wrong = |expected: u64| StopsError::Encoded {
            stop: NAME,
            expected,
            got: bytes.len() as u64,
        };
        // Counts beyond this could not be multiplied by a width.
        if n > bytes.len() {
            return Err(wrong(n as u64));
        }
        let (all, _) = stored_len(n);
        let tail = packed_len(n, modulus::K).expect("bounded by bytes in memory");
        if bytes.len() as u64 != all {
            return Err(wrong(all));
        }
        let (products, packed) = bytes.split_at(bytes.len() - tail);
        let mut offsets = Zeroizing::new(vec![0; n]);
        unpack(packed, modulus::K, P, &mut offsets).map_err(|_| wrong(all))?;
        Ok(Self {
            products: ProductSender::from_bytes(products, n, P)?,
            offsets,
        })
    }

    /// Online: answers the server. The client's shares are the masks it chose.
    ///
    /// # Errors
    /// [`StopsError`] of the channel.
    pub fn finish(self, channel: &mut Channel) -> Result<()> {
        self.listen(channel)?.answer(channel)
    }

    /// Online, first half: takes the server's request. Requests that are all taken before the first of them is answered
    /// take one round trip together.
    ///
    /// # Errors
    /// [`StopsError`] of the channel.
    pub fn listen(self, channel: &mut Channel) -> Result<RequantiseAnswering> {
        Ok(RequantiseAnswering {
            products: self.products.listen(channel)?,
            offsets: self.offsets,
        })
    }
}

impl RequantiseAnswering {
    /// Online, second half: answers the server.
    ///
    /// # Errors
    /// [`StopsError`] of the channel.
    pub fn answer(self, channel: &mut Channel) -> Result<()> {
        Ok(self.products.answer(channel, &self.offsets)?)
    }
}

impl RequantiseServer {
    /// Offline: for `n` elements of a ring.
    ///
    /// # Errors
    /// [`StopsError`] of the channel and the transfers; [`StopsError::Ring`].
    pub fn prepare(
        channel: &mut Channel,
        cot: &mut CotReceiver,
        ring_bits: u32,
        n: usize,
        rng: &mut impl CryptoRng,
    ) -> Result<Self> {
        check_ring(ring_bits)?;
        let products = ProductReceiver::prepare(cot, channel, rng, n, P)?;
        Ok(Self {
            products,
            ring_bits,
        })
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.products.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.products.is_empty()
    }

    /// The material as bytes, for storage that keeps it secret and spends it once.
    pub fn into_bytes(self) -> Zeroizing<Vec<u8>> {
        self.products.into_bytes()
    }

    /// Material for `n` elements of a ring from its bytes.
    ///
    /// # Errors
    /// [`StopsError::Ot`] if the bytes are not such material, [`StopsError::Ring`].
    pub fn from_bytes(bytes: &[u8], ring_bits: u32, n: usize) -> Result<Self> {
        check_ring(ring_bits)?;
        Ok(Self {
            products: ProductReceiver::from_bytes(bytes, n, P)?,
            ring_bits,
        })
    }

    /// Online: from the server's ring shares to its shares modulo p, `v - r`.
    ///
    /// # Errors
    /// [`StopsError`] of the channel; [`StopsError::Count`] if the shares are too many or too few.
    pub fn finish(self, channel: &mut Channel, shares: &[u64]) -> Result<Vec<u64>> {
        self.request(channel, shares)?.receive(channel)
    }

    /// Online, first half: asks with the server's ring shares.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn request(self, channel: &mut Channel, shares: &[u64]) -> Result<RequantiseWaiting> {
        expect_count(NAME, "shares", self.len(), shares.len())?;
        let m = self.ring_bits;
        let offset = 1u64 << (m - 2);
        let shifted = |share: u64| (share + offset) & ((1 << m) - 1);
        let choices = Bits::from_fn(shares.len(), |i| shifted(shares[i]) >> (m - 1) == 1);
        let own = shares.iter().map(|&a| modulus::sub(shifted(a), offset));
        Ok(RequantiseWaiting {
            own: Zeroizing::new(own.collect()),
            products: self.products.request(channel, &choices)?,
        })
    }
}

impl RequantiseWaiting {
    /// Online, second half: the server's shares modulo p, `v - r`.
    ///
    /// # Errors
    /// [`StopsError`] of the channel.
    pub fn receive(self, channel: &mut Channel) -> Result<Vec<u64>> {
        let products = self.products.receive(channel)?;
        let results = self.own.iter().zip(products.iter());
        Ok(results
            .map(|(&a, &product)| modulus::add(a, product))
            .collect())
    }
}

//! Late requantisation: where neither share is known offline.
//!
//! A product of two secrets ends with shares `S` of the server and `C` of the client, modulo p. The
//! server knows `S` before it speaks, the client knows `C` when it has received what the server
//! opened. To requantise by [`crate::requantise`], whose messages depend on the client's share, the
//! client would first have to share its part anew under a mask that it drew offline: a trip of its
//! own. Here it need not. Both parties truncate what they have, to `a` and `b`, and as there, with
//! `2^(m-2)` added to `a`,
//!
//! ```text
//! v  =  (a - 2^(m-2) - α·2^m)  +  (b - β·2^m)  +  α·β·2^m          α = msb(a),  β = msb(b)
//!       server                    client          the wrap that was taken off twice
//! ```
//!
//! because `α OR β = α + β - α·β`. Only `α·β` is missing, a product of two bits that come late
//! ([`primer_ot::bit_products`]): offline, shares of a product of random bits; online each party
//! sends its bit under its random one.
//!
//! ```text
//! offline    a transfer and a residue for each element, as for any requantisation
//! online     server -> client   e, its bits under pads                  1 bit
//!            client -> server   f, its bits under pads                  1 bit
//!                               b - β·2^m + 2^m·(its share of α·β) - r  41 bits
//! ```
//!
//! The server's message goes with what it opened for the product, so product and requantisation
//! take one round trip, and the 41 bits for sharing the product anew are saved.
//!
//! Who learns what: the client sees `e`, bits under a one-time pad; the server sees `f`, bits under
//! a one-time pad, and residues masked by `r`, which the client drew offline and uses nowhere else.
//! Each party truncates on its own, and this is correct for any pair of shares
//! ([`primer_ring::truncate`]), so it fails only where the other requantisation fails too: for
//! values outside the guard.

mod client;
mod server;

use crate::bytes::StoredBytes;
use crate::error::Result;
use crate::requantise::{check_ring, packed};
use crate::stop::{Stop, Turn};
use crate::transfers::Transfers;
use primer_ot::cost::{bit_product_offline_as, bit_product_online};
use primer_ring::modulus::P;
use primer_wire::PhaseBytes;
use primer_wire::frame::HEADER_BYTES;

/// Requantisation of some elements of a ring, of which both shares are known only online.
#[derive(Debug, Clone, Copy)]
pub struct LateRequantise {
    ring_bits: u32,
    elements: usize,
    transfers: Transfers,
}

impl LateRequantise {
    /// Makes a late requantisation of `elements` elements of a ring of `ring_bits` bits.
    ///
    /// # Errors
    /// [`crate::StopError::Ring`]: the sum needs a guard bit, and `2^m` has to be smaller than p.
    pub fn new(ring_bits: u32, elements: usize) -> Result<Self> {
        check_ring(ring_bits)?;
        Ok(Self {
            ring_bits,
            elements,
            transfers: Transfers::default(),
        })
    }

    /// Returns the same stop on transfers of other variants.
    #[must_use]
    pub fn over(self, transfers: impl Into<Transfers>) -> Self {
        let transfers = transfers.into();
        Self { transfers, ..self }
    }

    /// Returns `2^m` if `share` has its top bit set, else 0.
    fn wrap(&self, share: u64) -> u64 {
        (share >> (self.ring_bits - 1) & 1) << self.ring_bits
    }
}

impl Stop for LateRequantise {
    fn name(&self) -> &'static str {
        "late requantisation"
    }

    fn elements(&self) -> usize {
        self.elements
    }

    fn outputs(&self) -> usize {
        self.elements
    }

    fn is_late(&self) -> bool {
        true
    }

    fn bytes(&self) -> PhaseBytes {
        let offline = bit_product_offline_as(self.transfers.to_server, self.elements, P);
        let online = bit_product_online(self.elements);
        // The client is the sender of the transfers.
        PhaseBytes {
            offline_up: offline.from_sender,
            offline_down: offline.from_receiver,
            online_up: online.from_sender + HEADER_BYTES + packed(self.elements),
            online_down: online.from_receiver,
        }
    }

    /// Counts what each party keeps: its random bits and its shares of their products.
    fn stored(&self) -> StoredBytes {
        let bytes = (self.elements as u64).div_ceil(8) + packed(self.elements);
        StoredBytes {
            client: bytes,
            server: bytes,
        }
    }

    fn streams(&self) -> bool {
        false
    }

    /// Returns two messages: the server extends, the client correlates.
    fn turns(&self) -> Vec<Turn> {
        vec![Turn::Down, Turn::Up]
    }
}

//! Requantisation: from a short ring back to Z_p, by one oblivious transfer for each element.
//!
//! After truncation the server holds `a` and the client `b` in `Z_2^m` with `v = a + b mod 2^m`
//! signed, and the plan left a guard bit: `-2^(m-2) <= v < 2^(m-2)`. The server adds `2^(m-2)` to
//! `a`; then the sum `u = v + 2^(m-2)` lies in `[0, 2^(m-1))`, its top bit is 0, and as integers
//!
//! ```text
//! a + b = u + w·2^m        w = msb(a) OR msb(b)
//! ```
//!
//! (both top bits 0: no wrap; both 1: a wrap; one of them 1: a wrap, because without one the top
//! bit of `u` would be 1 too). So with `α = msb(a)`, `β = msb(b)`, modulo p
//!
//! ```text
//! v - r = (a - 2^(m-2))  +  (b - β·2^m - r)  +  α·(β - 1)·2^m
//!         server            client: offset      the server's bit times the client's difference
//! ```
//!
//! because `α OR β = β + α·(1 - β)`. The last two terms are one transfer of [`primer_ot::product`]:
//! `α` is known online, the difference is known offline, and the offset carries the client's new
//! mask `r`. Online a bit goes down to the client and 41 bits come back: 5.25 bytes for each
//! element.
//!
//! Who learns what: the client sees `α` under a one-time pad; the server gets `v - r`, uniform.

mod client;
mod server;

use crate::bytes::StoredBytes;
use crate::error::{Result, StopError};
use crate::stop::{Stop, Turn};
use crate::transfers::Transfers;
use primer_ot::cost::{product_offline_as, product_online};
use primer_ring::modulus::{self, P};
use primer_ring::truncate::Truncation;
use primer_wire::PhaseBytes;

/// Requantisation of some elements of a ring.
#[derive(Debug, Clone, Copy)]
pub struct Requantise {
    ring_bits: u32,
    elements: usize,
    transfers: Transfers,
}

impl Requantise {
    /// Makes a requantisation of `elements` elements of a ring of `ring_bits` bits.
    ///
    /// # Errors
    /// [`StopError::Ring`]: the sum needs a guard bit, and `2^m` has to be smaller than p.
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
}

/// Bits of the shortest ring: `u` has a top bit, a guard bit and one more.
pub(crate) const MIN_RING_BITS: u32 = 3;
/// Bits of the widest ring: `2^m` is smaller than p.
pub(crate) const MAX_RING_BITS: u32 = modulus::K - 1;
const _: () = assert!(1 << MAX_RING_BITS < P);
// Every ring that truncation may leave can be requantised.
const _: () = assert!(Truncation::MAX_RING_BITS <= MAX_RING_BITS);

/// Fails unless the sum has room for a guard bit and `2^m` is smaller than p.
pub(crate) fn check_ring(ring_bits: u32) -> Result<()> {
    match ring_bits {
        MIN_RING_BITS..=MAX_RING_BITS => Ok(()),
        _ => Err(StopError::Ring(ring_bits)),
    }
}

/// Returns the server's share of `v + 2^(m-2)`, and the offset `2^(m-2)`, with which the sum has
/// its top bit clear.
pub(crate) fn lifted(share: u64, ring_bits: u32) -> (u64, u64) {
    let offset = 1 << (ring_bits - 2);
    ((share + offset) & ((1 << ring_bits) - 1), offset)
}

/// Returns the number of bytes of `values` residues packed together.
pub(crate) fn packed(values: usize) -> u64 {
    (values as u64 * u64::from(modulus::K)).div_ceil(8)
}

impl Stop for Requantise {
    fn name(&self) -> &'static str {
        "requantisation"
    }

    fn elements(&self) -> usize {
        self.elements
    }

    fn outputs(&self) -> usize {
        self.elements
    }

    fn is_provisional(&self) -> bool {
        true
    }

    fn bytes(&self) -> PhaseBytes {
        let offline = product_offline_as(self.transfers.to_server, self.elements, P);
        let online = product_online(self.elements, P);
        // The client is the sender of the transfers.
        PhaseBytes {
            offline_up: offline.from_sender,
            offline_down: offline.from_receiver,
            online_up: online.from_sender,
            online_down: online.from_receiver,
        }
    }

    /// Counts what each party keeps: the client two residues of each transfer, one of which it will
    /// send; the server its random choices and what they obtained.
    fn stored(&self) -> StoredBytes {
        let n = self.elements;
        StoredBytes {
            client: packed(2 * n),
            server: (n as u64).div_ceil(8) + packed(n),
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

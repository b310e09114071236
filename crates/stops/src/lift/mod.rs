//! Lift: a requantisation in which the client sends nothing online.
//!
//! After a linear step the client knows its share `b` offline, and the server its share `a` when it
//! is about to speak. As in [`crate::late`], with `2^(m-2)` added to `a`,
//!
//! ```text
//! v  =  (a - 2^(m-2) - α·2^m)  +  (b - β·2^m)  +  α·β·2^m          α = msb(a),  β = msb(b)
//! ```
//!
//! and only `α·β` is missing. Here `β` is known offline, so offline the parties share `2^m·α'·β`
//! for a random bit `α'` that the server draws. The client chooses its share of it such that its
//! share of the result, if `α` turns out to be `α'`, is the mask `r0` that it drew for the value.
//!
//! ```text
//! offline    server -> client   random choices α', hidden in an extension
//!            client -> server   by transfer, for α' = 0:   w = b - β·2^m - r0
//!                                            for α' = 1:   w = b - r0           2 residues
//! online     server -> client   e = α ⊕ α'                                      1 bit
//!            server             x̂ = a - 2^(m-2) - α·2^m ± w              - if e is set
//!            client             r = r0, or if e is set  2·b - β·2^m - r0
//! ```
//!
//! `w` and `r0 - b + β·2^m` are the shares of `2^m·α'·β`, and `α·β = e·β + (1-2e)·α'·β`, so
//! `x̂ + r = v`. The server has its share before it speaks, the client when it has received `e`,
//! and nothing is answered.
//!
//! **Late by one bit.** The client's share is not the mask but `r = r0 + e·r1` with
//! `r1 = 2·(b - r0) - β·2^m`; both parts are known offline, and `e` is public once it is sent. A
//! product that reads the value is affine in `e`: what was prepared for `r0` and what was prepared
//! for `r1` are added up as `e` says. A linear step would need its weights times `r`, which are not
//! prepared; so only products of secrets read what is lifted.
//!
//! Who learns what: the client sees the extension, which hides `α'`, and `e`, which is `α` under a
//! one-time pad. The server gets the `w` that it chose, masked by `r0`, which the client drew for
//! this value alone; the other one is masked by the pad that the server lacks.

mod client;
mod server;

use crate::bytes::StoredBytes;
use crate::error::Result;
use crate::requantise::{check_ring, packed};
use crate::stop::{Stop, Turn};
use crate::transfers::Transfers;
use primer_ot::Bits;
use primer_ot::cost::extension_as;
use primer_ring::modulus;
use primer_wire::PhaseBytes;
use primer_wire::frame::HEADER_BYTES;
use zeroize::Zeroizing;

/// The lift of some elements of a ring.
#[derive(Debug, Clone, Copy)]
pub struct Lift {
    ring_bits: u32,
    elements: usize,
    transfers: Transfers,
}

impl Lift {
    /// Makes a lift of `elements` elements of a ring of `ring_bits` bits.
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
}

/// What a party has of a value that was lifted.
pub struct Lifted {
    /// The party's shares.
    pub shares: Zeroizing<Vec<u64>>,
    /// `e`: the elements whose client's share includes the second part as well. Both parties know
    /// it.
    pub turned: Bits,
}

/// Returns `r1`, by which the client's share of a lifted value differs from its mask `r0` if the
/// server says so. `share` is the client's share `b` in the ring, `mask` is `r0`.
pub fn second_part(ring_bits: u32, share: u64, mask: u64) -> u64 {
    let [wrapped, whole] = both(ring_bits, share);
    let twice = modulus::add(mask, mask);
    modulus::sub(modulus::add(wrapped, whole), twice)
}

/// Returns `b - β·2^m` and `b`.
fn both(ring_bits: u32, share: u64) -> [u64; 2] {
    let whole = share & ((1 << ring_bits) - 1);
    let wrap = (whole >> (ring_bits - 1)) << ring_bits;
    [modulus::sub(whole, wrap), whole]
}

impl Stop for Lift {
    fn name(&self) -> &'static str {
        "lift"
    }

    fn elements(&self) -> usize {
        self.elements
    }

    fn outputs(&self) -> usize {
        self.elements
    }

    fn is_lift(&self) -> bool {
        true
    }

    fn bytes(&self) -> PhaseBytes {
        let n = self.elements;
        // The client is the sender of the transfers.
        let extension = extension_as(self.transfers.to_server, n);
        PhaseBytes {
            offline_up: HEADER_BYTES + packed(2 * n),
            offline_down: extension.from_receiver,
            online_up: 0,
            online_down: HEADER_BYTES + (n as u64).div_ceil(8),
        }
    }

    /// Counts what each party keeps: the client its shares, `m` bits each; the server its random
    /// bits and what they chose.
    fn stored(&self) -> StoredBytes {
        let n = self.elements as u64;
        StoredBytes {
            client: (n * u64::from(self.ring_bits)).div_ceil(8),
            server: n.div_ceil(8) + packed(self.elements),
        }
    }

    fn streams(&self) -> bool {
        false
    }

    /// Returns two messages: the server extends, the client sends the messages to choose from.
    fn turns(&self) -> Vec<Turn> {
        vec![Turn::Down, Turn::Up]
    }
}

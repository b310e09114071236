//! Range flags: whether any value of an inference came near the end of its range.
//!
//! A look-up can tell for every element whether its index lies in the outermost cells of the table
//! ([`primer_plan::function::Lookup::edge`]). The flags are shared like everything else: the XOR of
//! the parties' bits is the flag. Collected over an inference they are two long strings that are
//! equal if and only if no flag is set. At the end the parties compare the parities of 40 random
//! subsets of them, in a garbled circuit that tells the client one bit ([`Comparison`]):
//!
//! ```text
//! offline    client -> server   columns: transfers with random choices c'
//!            server -> client   a nonce, the garbled circuit
//! online     client -> server   a seed of subsets; d = c ⊕ c', with c its parities     21 bytes
//!            server -> client   D_j ⊕ d_j·Δ for each of the client's parities,
//!                               the labels of its own                             1,280 bytes
//!            client             evaluates: whether all parities are equal
//! ```
//!
//! The seed goes up with the client's answer to the last stop that has flags, and the labels come
//! down before the server's next message: they take no trip of their own. Labels of bits that come
//! late are made as in [`crate::client_garbled`], with the parties' roles exchanged, and the
//! argument that they show nothing but themselves is the same.
//!
//! **What it tells.** If no flag is set, all parities are equal, and the client is told so. If one
//! is set, each parity differs with probability one half, independently, so all are equal, and the
//! client is not told of the flag, with probability 2^-40. The server receives the subsets after
//! all flags are fixed.
//!
//! **What it leaks.** One bit. A client that deviates may choose the subsets, and its own parities,
//! as it likes: it learns whether 40 parities of the server's shares, of its choice, are what it
//! guesses, and these shares are uniform except for what the client's own shares determine. The
//! server learns nothing: it receives a random seed and bits under a one-time pad.

mod comparison;

pub use comparison::{Comparison, PendingComparison};

use primer_ring::prg::{Prg, Seed};
use primer_ring::wipe::SecretBytes;
use rand_core::Rng;

/// The number of subsets that are compared.
pub const SUBSETS: u32 = 40;

/// A party's shares of flags, in the order of the elements. Wiped when dropped.
#[derive(Default)]
pub struct FlagShares {
    /// A byte for each, 0 or 1.
    bits: SecretBytes,
}

impl FlagShares {
    /// Makes room for `flags` shares: a buffer that grows would leave copies behind.
    pub fn with_capacity(flags: usize) -> Self {
        Self {
            bits: SecretBytes::with_capacity(flags),
        }
    }

    /// Adds the share of one more flag.
    pub fn push(&mut self, bit: bool) {
        self.bits.push(bit.into());
    }

    /// Adds the shares of another stop.
    pub fn append(&mut self, other: &Self) {
        self.bits.extend_from_slice(&other.bits);
    }

    /// Counts the flags so far.
    pub fn len(&self) -> usize {
        self.bits.len()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// Computes the parities of the subsets that `seed` stands for.
    fn parities(&self, seed: &Seed) -> u64 {
        let mut subsets = Prg::new(seed);
        let parities = self.bits.iter().fold(0, |parities, &bit| {
            parities ^ (subsets.next_u64() & u64::from(bit).wrapping_neg())
        });
        parities & ((1 << SUBSETS) - 1)
    }
}

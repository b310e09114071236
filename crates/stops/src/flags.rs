//! Range flags: whether any value of an inference came near the end of its range.
//!
//! A look-up can tell for every element whether its index lies in the outermost cells of the table
//! ([`primer_plan::function::Lookup::edge`]). The flags are shared like everything else: the XOR of
//! the parties' bits is the flag. Collected over an inference they are two long strings that are
//! equal if and only if no flag is set. At the end the parties compare them by 40 parities:
//!
//! ```text
//! client -> server   a seed that the server could not know                16 bytes
//! server -> client   for each of 40 random subsets, the parity of its bits  5 bytes
//! client             compares with the parities of its own bits
//! ```
//!
//! The seed goes up with the client's answer to the last stop that has flags, the parities come
//! down in front of whatever the server says next: they take no trip of their own.
//!
//! **What it tells.** If no flag is set, all parities are equal, and the client learns that and
//! nothing else: it could have computed the server's message itself. If one is set, each parity
//! differs with probability one half, independently, so the client is not told with probability
//! 2^-40. The server hears the subsets after all flags are fixed, from the party that wants to
//! know.
//!
//! **What it leaks.** If flags are set, the client learns the parities of 40 random subsets of
//! *which* ones: up to 40 bits about where in the network values were large. With few flags set it
//! may find out which elements they are, by trying. It learns no value, and nothing about elements
//! inside their range beyond that. The server learns nothing: it hears a random seed.

use crate::error::Result;
use primer_net::frame::HEADER_BYTES;
use primer_net::kind::flags::{PARITIES, SEED};
use primer_net::{Channel, PhaseBytes};
use primer_ring::prg::{Prg, SEED_BYTES, Seed};
use rand_core::Rng;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Subsets that are compared.
pub const SUBSETS: u32 = 40;
const BYTES: usize = SUBSETS as usize / 8;

/// What asking and answering send, frame headers included, for any number of flags.
pub const fn bytes() -> PhaseBytes {
    PhaseBytes {
        offline_up: 0,
        offline_down: 0,
        online_up: HEADER_BYTES + SEED_BYTES as u64,
        online_down: HEADER_BYTES + BYTES as u64,
    }
}

/// A party's shares of flags, in the order of the elements. Wiped when dropped.
#[derive(Default, Zeroize, ZeroizeOnDrop)]
pub struct FlagShares {
    /// A byte for each, 0 or 1.
    bits: Vec<u8>,
}

impl FlagShares {
    /// None yet, with room for so many: a buffer that grows would leave copies behind.
    pub fn with_capacity(flags: usize) -> Self {
        Self {
            bits: Vec::with_capacity(flags),
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

    /// Flags so far.
    pub fn len(&self) -> usize {
        self.bits.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    /// The parities of the subsets that a seed stands for.
    fn parities(&self, seed: &Seed) -> u64 {
        let mut subsets = Prg::new(seed);
        let parities = self.bits.iter().fold(0, |parities, &bit| {
            parities ^ (subsets.next_u64() & u64::from(bit).wrapping_neg())
        });
        parities & ((1 << SUBSETS) - 1)
    }

    /// The client asks, with subsets of its own choice. It sends the seed and expects the answer
    /// later.
    ///
    /// # Errors
    /// [`crate::StopsError`] of the channel.
    pub fn ask(self, channel: &mut Channel, rng: &mut Prg) -> Result<Asked> {
        let seed = rng.seed();
        channel.send(SEED, &seed)?;
        Ok(Asked {
            parities: self.parities(&seed),
        })
    }

    /// The server answers.
    ///
    /// # Errors
    /// [`crate::StopsError`] of the channel.
    pub fn answer(self, channel: &mut Channel) -> Result<()> {
        let mut seed = [0; SEED_BYTES];
        channel.recv_exact(SEED, &mut seed)?;
        let parities = self.parities(&seed).to_le_bytes();
        channel.send(PARITIES, &parities[..BYTES])?;
        Ok(channel.flush()?)
    }
}

/// A client that has asked.
pub struct Asked {
    parities: u64,
}

impl Asked {
    /// Whether no flag is set.
    ///
    /// # Errors
    /// [`crate::StopsError`] of the channel.
    pub fn receive(self, channel: &mut Channel) -> Result<bool> {
        let mut theirs = [0; 8];
        channel.recv_exact(PARITIES, &mut theirs[..BYTES])?;
        Ok(u64::from_le_bytes(theirs) == self.parities)
    }
}

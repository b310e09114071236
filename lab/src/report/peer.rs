//! Other systems that infer privately, as `lab/scripts/compare-peers` measures them on the same
//! machine.
//!
//! They are no [`Entrant`](crate::bench::Entrant): this program cannot run them. Their results have
//! the form that `primer bench --json` prints, with all seconds in the online phase, since neither
//! has another.

use std::str::FromStr;

/// A system that a reader might pick instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// SecretFlow's SPU under the protocol Cheetah.
    Spu,
    /// CrypTen, two parties and a dealer.
    CrypTen,
}

impl Peer {
    /// In the order of every table and picture.
    pub const ALL: [Self; 2] = [Self::Spu, Self::CrypTen];

    /// Returns its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spu => "spu",
            Self::CrypTen => "crypten",
        }
    }

    /// Returns its name for a reader.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Spu => "SPU (Cheetah)",
            Self::CrypTen => "CrypTen, with a dealer",
        }
    }

    /// Says in what it does another job than ours.
    pub const fn differs_in(self) -> &'static str {
        match self {
            Self::Spu => {
                "two parties that follow the protocol, as here; starts from embedded vectors, so \
                 without a private look-up of words; exponentials and reciprocals are approximated \
                 in rings of 64 bits; no offline phase"
            }
            Self::CrypTen => {
                "a third party deals correlated randomness and must not collude with either; its \
                 work is inside the parties' processes here and its messages are not counted; \
                 starts from embedded vectors; truncation may fail; no offline phase"
            }
        }
    }
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|peer| peer.name() == name);
        found.ok_or_else(|| format!("there is no other system `{name}` here"))
    }
}

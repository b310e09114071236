//! Which extension a state runs.

use crate::base::COUNT;

/// How correlated transfers are extended: how many bits of Δ are treated together, and whether the
/// receiver proves that it used one string of choices for all of them.
///
/// Bytes for each transfer are `16/k`, ciphers for each transfer `2^k/k` of what `k = 1` takes.
/// Both parties must run the same variant; if they do not, the set-up or the first extension fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    log: u32,
    checked: bool,
}

impl Variant {
    /// Ishai, Kilian, Nissim, Petrank: one bit at a time, 16 bytes for each transfer.
    pub const IKNP: Self = Self::unchecked(1);
    /// SoftSpokenOT with two bits at a time, 8 bytes for each transfer.
    pub const SOFT_2: Self = Self::unchecked(2);
    /// SoftSpokenOT with four bits at a time, 4 bytes for each transfer.
    pub const SOFT_4: Self = Self::unchecked(4);
    /// All of them, the checked ones last.
    pub const ALL: [Self; 6] = [
        Self::IKNP,
        Self::SOFT_2,
        Self::SOFT_4,
        Self::IKNP.checked(),
        Self::SOFT_2.checked(),
        Self::SOFT_4.checked(),
    ];

    const fn unchecked(log: u32) -> Self {
        Self {
            log,
            checked: false,
        }
    }

    /// Returns the same variant with the receiver's proofs that its trees are whole
    /// ([`crate::leaves`]) and its choices consistent ([`crate::check`]).
    pub const fn checked(self) -> Self {
        Self {
            checked: true,
            ..self
        }
    }

    /// Tells whether the receiver's choices are checked.
    pub const fn is_checked(self) -> bool {
        self.checked
    }

    /// Returns the number of bits of Δ that are treated together.
    pub const fn bits(self) -> usize {
        self.log as usize
    }

    /// Returns the number of leaves of a tree: the values of [`Self::bits`] bits.
    pub(crate) const fn leaves(self) -> usize {
        1 << self.log
    }

    /// Returns the number of trees of a state.
    pub(crate) const fn trees(self) -> usize {
        COUNT / self.bits()
    }
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let checked = if self.checked { ", checked" } else { "" };
        match self.log {
            1 => write!(f, "IKNP{checked}"),
            k => write!(f, "SoftSpoken k = {k}{checked}"),
        }
    }
}

impl Default for Variant {
    /// Returns the variant that constructors take when they are given none.
    fn default() -> Self {
        Self::IKNP
    }
}

//! What flows through a circuit under construction.

use std::ops::Not;

/// A wire of a circuit under construction, or its complement, or a constant.
///
/// Complements are free: they are a mark on the reference and never become a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bit(u32);

impl Bit {
    /// The constant 0.
    pub const ZERO: Self = Self(0);
    /// The constant 1.
    pub const ONE: Self = Self(1);

    /// Returns the constant of a truth value.
    pub const fn constant(value: bool) -> Self {
        Self(value as u32)
    }

    /// Returns the constant's value, if this is a constant.
    pub const fn as_constant(self) -> Option<bool> {
        if self.0 < 2 { Some(self.0 == 1) } else { None }
    }

    pub(super) const fn of_node(node: u32) -> Self {
        Self(node << 1)
    }

    pub(super) const fn node(self) -> u32 {
        self.0 >> 1
    }

    pub(super) const fn flipped(self) -> bool {
        self.0 & 1 == 1
    }

    /// Returns the complement if a public condition holds, and the bit itself otherwise.
    pub const fn flip(self, condition: bool) -> Self {
        Self(self.0 ^ condition as u32)
    }
}

impl Not for Bit {
    type Output = Self;

    fn not(self) -> Self {
        self.flip(true)
    }
}

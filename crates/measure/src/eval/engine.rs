//! What computes the answers of an evaluation.

use super::Comparator;
use crate::choice::Choice;

/// What computes the answers.
#[derive(Clone, Copy)]
pub enum Engine {
    /// Single precision.
    Float,
    /// The protocol's integers, in the clear.
    Fixed,
    /// The private protocol itself, both parties in this process.
    Secure,
    /// Something else, to be compared with.
    Comparator(&'static dyn Comparator),
}

impl Engine {
    /// Returns whether it computes with the protocol's integers.
    pub(super) const fn is_of_integers(self) -> bool {
        matches!(self, Self::Fixed | Self::Secure)
    }

    /// Returns whether it is the private protocol.
    pub(super) const fn is_private(self) -> bool {
        matches!(self, Self::Secure)
    }
}

impl Choice for Engine {
    const ALL: &'static [Self] = &[Self::Float, Self::Fixed, Self::Secure];

    fn name(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Fixed => "fixed",
            Self::Secure => "secure",
            Self::Comparator(comparator) => comparator.name(),
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Float => "Single precision",
            Self::Fixed => "The protocol's integers, in the clear",
            Self::Secure => "The private protocol itself, both parties in this process",
            Self::Comparator(comparator) => comparator.about(),
        }
    }
}

/// How fixed point truncates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncation {
    /// Rounded to nearest.
    Exact,
    /// The sum of two truncated random shares, as in the protocol.
    Shares,
}

impl Choice for Truncation {
    const ALL: &'static [Self] = &[Self::Exact, Self::Shares];

    fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Shares => "shares",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Exact => "Rounded to nearest",
            Self::Shares => "The sum of two truncated random shares, as in the protocol",
        }
    }
}

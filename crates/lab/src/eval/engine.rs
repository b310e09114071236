//! What computes the answers of an evaluation.

use crate::choice::Choice;
use primer_comparator_fhe::polynomials::Degrees as PolynomialDegrees;

/// What computes the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Single precision.
    Float,
    /// The protocol's integers, in the clear.
    Fixed,
    /// The private protocol itself, both parties in this process.
    Secure,
    /// Comparator: polynomials in place of the non-linear functions, computed in the clear.
    Fhe,
}

impl Choice for Engine {
    const ALL: &'static [Self] = &[Self::Float, Self::Fixed, Self::Secure, Self::Fhe];

    fn name(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Fixed => "fixed",
            Self::Secure => "secure",
            Self::Fhe => "fhe",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Float => "Single precision",
            Self::Fixed => "The protocol's integers, in the clear",
            Self::Secure => "The private protocol itself, both parties in this process",
            Self::Fhe => {
                "Comparator: polynomials in place of the non-linear functions, computed in the \
                 clear"
            }
        }
    }
}

/// How good the comparator's polynomials are, and so how deep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Degrees {
    /// What a shallow circuit allows.
    Low,
    /// The comparator's default.
    Middle,
    /// Twice the degrees of the default.
    High,
}

impl Degrees {
    pub(super) const fn polynomials(self) -> PolynomialDegrees {
        match self {
            Self::Low => PolynomialDegrees::LOW,
            Self::Middle => PolynomialDegrees::MIDDLE,
            Self::High => PolynomialDegrees::HIGH,
        }
    }
}

impl Choice for Degrees {
    const ALL: &'static [Self] = &[Self::Low, Self::Middle, Self::High];

    fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Middle => "middle",
            Self::High => "high",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Low => "What a shallow circuit allows",
            Self::Middle => "The comparator's default",
            Self::High => "Twice the degrees of the default",
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

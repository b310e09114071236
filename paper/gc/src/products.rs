//! Products without AND gates of their own.
//!
//! A product by the school method takes an AND gate for each pair of bits, and another to add it.
//! Here a number is written with digits ±1, which halves that: for the bits `y_i` of a number of
//! `b` bits put `n_i = NOT y_i` (for the sign of a signed one `n_i = y_i`) and `s_i = 1 - 2·n_i`.
//! Then
//!
//! ```text
//! 2·y = Σ s_i·2^i - 1          signed          2·y = Σ s_i·2^i + 2^b - 1          unsigned
//! s_i·x = (x XOR n_i) + n_i    two's complement: the XOR is free
//! 2·x·y = Σ 2^i·(x XOR n_i)  +  N  +  q·x        N = Σ n_i·2^i = constant - y,   q = -1 or 2^b - 1
//! ```
//!
//! So a product of `a` by `b` bits is `b` rows of `a` bits to be added, `a·b` AND gates, and of the
//! other two terms only sums over many products are needed: `Σ N` of a column of weights is a
//! number that the garbler knows and gives with the bias, `Σ x` of a row serves all columns; in a
//! product of two secrets, either sum serves a whole row of results. A row's sign is complemented
//! and made up for by a constant, as usual.

use crate::window::Window;

/// A factor whose bits are digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digits {
    pub(crate) bits: usize,
    pub(crate) signed: bool,
}

impl Digits {
    /// Returns what `x` has to be multiplied by before it is added.
    fn correction(self) -> i128 {
        if self.signed {
            -1
        } else {
            (1 << self.bits) - 1
        }
    }

    /// Returns `N + y`, a constant.
    fn complement(self) -> i128 {
        (1 << self.bits) - 1 - if self.signed { 1 << (self.bits - 1) } else { 0 }
    }

    /// Returns `N`, the sum of the `n_i`, of a number that is known.
    pub(crate) fn negatives(self, y: i64) -> i128 {
        self.complement() - i128::from(y)
    }
}

/// A sum of products `x·y`, doubled, in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Products {
    pub(crate) window: Window,
    /// Bits of `x`, which is signed.
    pub(crate) x: usize,
    pub(crate) y: Digits,
    /// Weight of a doubled product's lowest bit.
    pub(crate) at: u32,
}

impl Products {
    /// Returns the constant that makes up for the complemented signs of one product's rows.
    pub(crate) fn signs(self) -> i128 {
        -(((1 << self.y.bits) - 1) << (self.at as usize + self.x - 1))
    }

    /// Returns the sum of all constants of `count` products of two secrets.
    pub(crate) fn constants(self, count: usize) -> i128 {
        count as i128 * (self.signs() + (self.y.complement() << self.at))
    }

    /// Returns the sum over `x` that belongs to `count` products, with a constant.
    pub(crate) fn sum_of_x(self, count: usize, constant: i128) -> Sum {
        Sum {
            window: self.window,
            count,
            number: Digits {
                bits: self.x,
                signed: true,
            },
            factor: self.y.correction(),
            at: self.at,
            constant,
        }
    }

    /// Returns the sum over `y` that belongs to `count` products.
    pub(crate) fn sum_of_y(self, count: usize) -> Sum {
        Sum {
            window: self.window,
            count,
            number: self.y,
            factor: -1,
            at: self.at,
            constant: 0,
        }
    }
}

/// `factor·Σ x·2^at + constant`; the factor is -1 or one less than a power of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) window: Window,
    pub(crate) count: usize,
    pub(crate) number: Digits,
    pub(crate) factor: i128,
    pub(crate) at: u32,
    pub(crate) constant: i128,
}

//! Numbers as slices of bits, least significant first.
//!
//! A full adder costs one AND gate: `carry' = carry XOR (a XOR carry)(b XOR carry)`.

use super::{Bit, Builder};

impl Builder {
    /// Returns the sum and carry of three bits: one AND gate.
    pub fn full_adder(&mut self, a: Bit, b: Bit, c: Bit) -> (Bit, Bit) {
        let ac = self.xor(a, c);
        let bc = self.xor(b, c);
        let both = self.and(ac, bc);
        (self.xor(a, bc), self.xor(both, c))
    }

    /// Returns `a + b + carry` modulo `2^n`, and the carry out. The carry out is dropped for free.
    fn add_with(&mut self, a: &[Bit], b: &[Bit], mut carry: Bit) -> (Vec<Bit>, Bit) {
        assert_eq!(a.len(), b.len(), "an adder takes numbers of one length");
        let mut sum = Vec::with_capacity(a.len());
        for (&x, &y) in a.iter().zip(b) {
            let (s, c) = self.full_adder(x, y, carry);
            sum.push(s);
            carry = c;
        }
        (sum, carry)
    }

    /// Returns `a + b` modulo `2^n`: `n - 1` AND gates.
    pub fn add(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        self.add_with(a, b, Bit::ZERO).0
    }

    /// Returns `a + b` with its carry: `n` AND gates.
    pub fn add_carry(&mut self, a: &[Bit], b: &[Bit]) -> (Vec<Bit>, Bit) {
        self.add_with(a, b, Bit::ZERO)
    }

    /// Returns `a - b` modulo `2^n`: `n - 1` AND gates.
    pub fn subtract(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        let flipped: Vec<Bit> = b.iter().map(|&x| !x).collect();
        self.add_with(a, &flipped, Bit::ONE).0
    }

    /// Tells whether `a < b`, unsigned: `n` AND gates.
    pub fn less(&mut self, a: &[Bit], b: &[Bit]) -> Bit {
        assert_eq!(a.len(), b.len(), "a comparison takes numbers of one length");
        // The borrow of a - b: majority of (not a, b, borrow).
        let mut borrow = Bit::ZERO;
        for (&x, &y) in a.iter().zip(b) {
            borrow = self.full_adder(!x, y, borrow).1;
        }
        borrow
    }

    /// Chooses `b` if `select` else `a`, bit by bit: `n` AND gates.
    pub fn mux_number(&mut self, select: Bit, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        assert_eq!(
            a.len(),
            b.len(),
            "a choice is between numbers of one length"
        );
        let pairs = a.iter().zip(b);
        pairs.map(|(&x, &y)| self.mux(select, x, y)).collect()
    }

    /// Returns the larger of two unsigned numbers: `2n` AND gates.
    pub fn max(&mut self, a: &[Bit], b: &[Bit]) -> Vec<Bit> {
        let smaller = self.less(a, b);
        self.mux_number(smaller, a, b)
    }

    /// Tells whether any bit is set: `n - 1` AND gates.
    pub fn any(&mut self, bits: &[Bit]) -> Bit {
        bits.iter().fold(Bit::ZERO, |any, &b| self.or(any, b))
    }
}

/// The sum of many numbers, with carries saved instead of rippled.
///
/// Every full adder turns three bits of one weight into one bit of the same weight and one of the
/// next, so the whole sum costs about one AND gate for every bit added.
pub struct CarrySave {
    /// At most two bits of every weight.
    columns: Vec<Vec<Bit>>,
}

impl CarrySave {
    /// Makes an empty sum with enough bits for `largest`, the largest possible sum.
    pub fn new(largest: u64) -> Self {
        let width = (64 - largest.leading_zeros()) as usize;
        Self {
            columns: vec![Vec::new(); width],
        }
    }

    /// Adds a number.
    pub fn add(&mut self, b: &mut Builder, number: &[Bit]) {
        for (i, &bit) in number.iter().enumerate() {
            self.add_bit(b, i, bit);
        }
    }

    fn add_bit(&mut self, b: &mut Builder, mut i: usize, mut bit: Bit) {
        // Beyond the last column nothing but zeros can arrive.
        while bit != Bit::ZERO && i < self.columns.len() {
            let column = &mut self.columns[i];
            let &mut [x, y] = &mut column[..] else {
                column.push(bit);
                return;
            };
            column.clear();
            let (sum, carry) = b.full_adder(x, y, bit);
            column.push(sum);
            bit = carry;
            i += 1;
        }
    }

    /// Returns the sum, by one ripple over what is left.
    pub fn finish(self, b: &mut Builder) -> Vec<Bit> {
        let mut carry = Bit::ZERO;
        let columns = self.columns.iter();
        columns
            .map(|column| {
                let of = |i: usize| column.get(i).copied().unwrap_or(Bit::ZERO);
                let (sum, next) = b.full_adder(of(0), of(1), carry);
                carry = next;
                sum
            })
            .collect()
    }
}

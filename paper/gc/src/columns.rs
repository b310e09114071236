//! Sums of many numbers, column by column, their carries saved.
//!
//! A full adder turns three bits of one weight into one of it and one of the next, for one AND
//! gate: every bit that is added costs one gate, no matter what it is added to. A sum that grows
//! over many circuits passes from one to the next as *two* numbers. So that the circuit in the
//! middle is always the same, each column leaves with exactly two bits: a third is split off by a
//! half adder.

use primer_garble::circuit::{Bit, Builder};
use std::collections::VecDeque;

/// Bits by weight. Carries out of the last column are dropped: sums are modulo `2^width`.
pub(crate) struct Columns {
    columns: Vec<VecDeque<Bit>>,
}

impl Columns {
    /// Makes an empty sum.
    pub(crate) fn new(width: usize) -> Self {
        Self {
            columns: vec![VecDeque::with_capacity(4); width],
        }
    }

    /// Adds a bit of weight `2^column`; beyond the last column nothing is kept.
    pub(crate) fn push(&mut self, b: &mut Builder, mut column: usize, mut bit: Bit) {
        while column < self.columns.len() && bit != Bit::ZERO {
            self.columns[column].push_back(bit);
            if self.columns[column].len() < 4 {
                return;
            }
            bit = self.add(b, column);
            column += 1;
        }
    }

    /// Adds a number at an offset.
    pub(crate) fn number(&mut self, b: &mut Builder, at: usize, bits: &[Bit]) {
        for (i, &bit) in bits.iter().enumerate() {
            self.push(b, at + i, bit);
        }
    }

    /// Adds a public constant.
    pub(crate) fn constant(&mut self, b: &mut Builder, value: u64) {
        for i in 0..self.columns.len().min(64) {
            self.push(b, i, Bit::constant(value >> i & 1 == 1));
        }
    }

    /// Turns the three oldest bits of a column into one, and returns the carry.
    fn add(&mut self, b: &mut Builder, column: usize) -> Bit {
        let bits = &mut self.columns[column];
        let mut oldest = || bits.pop_front().unwrap_or(Bit::ZERO);
        let (sum, carry) = b.full_adder(oldest(), oldest(), oldest());
        bits.push_back(sum);
        carry
    }

    /// Returns two numbers with the same sum.
    pub(crate) fn into_two(mut self, b: &mut Builder) -> [Vec<Bit>; 2] {
        let last = self.columns.len().saturating_sub(1);
        for column in 0..self.columns.len() {
            let bits = &mut self.columns[column];
            if bits.len() == 3 && column < last {
                let x = bits.pop_front().unwrap_or(Bit::ZERO);
                let y = bits.pop_front().unwrap_or(Bit::ZERO);
                bits.push_back(b.xor(x, y));
                let carry = b.and(x, y);
                self.push(b, column + 1, carry);
            }
            // The last column has no carry, so its bits add up for free.
            while self.columns[column].len() > 2 {
                self.add(b, column);
            }
        }
        [0, 1].map(|i| {
            let columns = self.columns.iter();
            columns
                .map(|c| c.get(i).copied().unwrap_or(Bit::ZERO))
                .collect()
        })
    }

    /// Returns the sum as one number, its carries rippled: one AND gate for each column but the
    /// last.
    pub(crate) fn into_one(mut self, b: &mut Builder) -> Vec<Bit> {
        let mut sum = Vec::with_capacity(self.columns.len());
        for column in 0..self.columns.len() {
            while self.columns[column].len() > 1 {
                let carry = self.add(b, column);
                self.push(b, column + 1, carry);
            }
            sum.push(self.columns[column].front().copied().unwrap_or(Bit::ZERO));
        }
        sum
    }
}

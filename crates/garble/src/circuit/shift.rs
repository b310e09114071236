//! Shifts by a garbled amount, and the leading one of a number.

use super::{Bit, Builder};

/// Where the leading one of a number is.
pub struct LeadingOne {
    /// One bit for every position, of which at most one is set.
    pub one_hot: Vec<Bit>,
    /// Whether the number is zero.
    pub none: Bit,
}

impl Builder {
    /// Returns `value >> amount` for `amount` in `0..2^k`, keeping the width.
    ///
    /// One AND gate for each bit and level; bits shifted in are constants and fold away.
    pub fn shift_right(&mut self, value: &[Bit], amount: &[Bit]) -> Vec<Bit> {
        let mut now = value.to_vec();
        for (level, &select) in amount.iter().enumerate() {
            let distance = 1usize << level;
            now = (0..now.len())
                .map(|i| {
                    let from = now.get(i + distance).copied().unwrap_or(Bit::ZERO);
                    self.mux(select, now[i], from)
                })
                .collect();
        }
        now
    }

    /// Returns `value << distance` if `select`, else `value`, keeping the width.
    pub fn shift_left_if(&mut self, select: Bit, value: &[Bit], distance: usize) -> Vec<Bit> {
        (0..value.len())
            .map(|i| {
                let from = i.checked_sub(distance).map_or(Bit::ZERO, |j| value[j]);
                self.mux(select, value[i], from)
            })
            .collect()
    }

    /// Finds the leading one among the bits: one AND gate for each but the first.
    pub fn leading_one(&mut self, bits: &[Bit]) -> LeadingOne {
        let mut none = Bit::ONE;
        let mut one_hot = vec![Bit::ZERO; bits.len()];
        for i in (0..bits.len()).rev() {
            one_hot[i] = self.and(none, bits[i]);
            none = self.xor(none, one_hot[i]);
        }
        LeadingOne { one_hot, none }
    }

    /// Returns the number of a one-hot position, free: `Σ one_hot[i]·label(i)`.
    pub fn encode(
        &mut self,
        one_hot: &[Bit],
        width: u32,
        label: impl Fn(usize) -> u32,
    ) -> Vec<Bit> {
        (0..width)
            .map(|w| {
                let set = (0..one_hot.len()).filter(|&i| label(i) >> w & 1 == 1);
                let set: Vec<Bit> = set.map(|i| one_hot[i]).collect();
                self.sum(set)
            })
            .collect()
    }
}

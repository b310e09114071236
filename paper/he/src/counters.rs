//! Counts of what an operation did: the cost that does not depend on the machine.

use std::ops::AddAssign;

/// Homomorphic operations of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Rotations in all.
    pub rotations: usize,
    /// Of these, rotations of an input whose digits were shared (hoisted).
    pub hoisted: usize,
    /// Products of a ciphertext with a plaintext.
    pub products: usize,
    /// Ciphertexts read.
    pub inputs: usize,
    /// Ciphertexts answered.
    pub answers: usize,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.rotations += other.rotations;
        self.hoisted += other.hoisted;
        self.products += other.products;
        self.inputs += other.inputs;
        self.answers += other.answers;
    }
}

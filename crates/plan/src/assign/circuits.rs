//! Scales of functions that circuits compute, in any design: roots, summaries, the tangent.

use super::{AssignError, Assigner};
use crate::function::{Activation, Function, Gelu, InverseRoot, Tanh};
use crate::graph::{Op, ValueId};
use crate::scales::Scale;
use crate::shape::Head;
use primer_ring::modulus::K;
use primer_ring::truncate::Truncation;

/// Ring of a sum of squares.
const SQUARES_RING: u32 = 22;
/// Fractional bits of an activation's input and of its output.
const ACTIVATION_FRACTION: i32 = 8;
const ACTIVATION_OUTPUT_FRACTION: i32 = 10;
/// Fractional bits of the hyperbolic tangent's input.
const TANH_FRACTION: i32 = 10;

impl Assigner<'_> {
    /// Returns the bits of the ring that holds a value with `fraction` fractional bits.
    fn ring_for(&self, id: ValueId, fraction: i32, at_least: u32) -> Result<u32, AssignError> {
        let range = self.wide(id).max(1.0);
        let bits = (1 + fraction + range.log2().ceil() as i32) as u32;
        if bits > Truncation::MAX_RING_BITS {
            return Err(self.too_wide(id, range, Truncation::MAX_RING_BITS));
        }
        Ok(bits.max(at_least))
    }

    /// Gives the stop of step `index` the hyperbolic tangent.
    pub(super) fn tanh(&mut self, index: usize, input: ValueId) -> Result<Scale, AssignError> {
        let ring_bits = self.ring_for(input, TANH_FRACTION, 16)?;
        self.accumulator(input, ring_bits, TANH_FRACTION);
        Ok(self.leave(index, Function::Tanh(Tanh::new(ring_bits, TANH_FRACTION))))
    }

    /// Returns the activation of a summary that does not use the hyperbolic tangent.
    pub(super) fn summary(&self) -> Activation {
        let Head::Classify { summary, .. } = self.graph.shape.head else {
            unreachable!("a classifier has a summary");
        };
        let activation = summary.activation();
        activation.expect("the tangent is a stop of its own")
    }

    /// Gives the stop of step `index` an activation that a circuit computes.
    ///
    /// # Errors
    /// [`AssignError::TooWide`] if its input does not fit.
    pub fn activation(
        &mut self,
        index: usize,
        input: ValueId,
        activation: Activation,
    ) -> Result<Scale, AssignError> {
        let ring_bits = self.ring_for(input, ACTIVATION_FRACTION, 12)?;
        self.accumulator(input, ring_bits, ACTIVATION_FRACTION);
        let function = match activation {
            Activation::Relu => Function::Relu {
                ring_bits,
                fraction: ACTIVATION_FRACTION,
            },
            gelu @ (Activation::GeluErf | Activation::GeluTanh) => Function::Gelu(Gelu::new(
                gelu,
                ring_bits,
                ACTIVATION_FRACTION,
                ACTIVATION_OUTPUT_FRACTION,
            )),
        };
        Ok(self.leave(index, function))
    }

    /// Gives the stop of step `index` the root of a sum of squares.
    pub(super) fn inverse_root(
        &mut self,
        index: usize,
        squares: ValueId,
    ) -> Result<Scale, AssignError> {
        let Op::SquareSum { input: centred, .. } = self.graph.maker(squares).op else {
            unreachable!("a root is taken of a sum of squares");
        };
        let doubled = 2 * self.fraction(centred);
        let fraction = self.design.squares_fraction(self, squares);
        if fraction < doubled {
            return Err(self.too_wide(squares, self.wide(squares), K));
        }
        let ring_fraction = fraction - (K - SQUARES_RING) as i32;
        self.accumulator(squares, SQUARES_RING, ring_fraction);
        // With v = integer / 2^ring_fraction the sum of d squares, 1/σ = √d / √v.
        let width = self.graph.value(centred).cols as f64;
        let scale = (width * f64::from(ring_fraction).exp2()).sqrt();
        let root = InverseRoot::new(SQUARES_RING, scale);
        Ok(self.leave(index, Function::InverseRoot(root)))
    }
}

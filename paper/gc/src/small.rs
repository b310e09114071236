//! A shape that is small enough to be run.

use primer_model::synthetic::bert_shape;
use primer_plan::shape::Shape;

/// Tokens of the small shape.
pub const SMALL_TOKENS: usize = 8;

/// Returns one layer of width 32 with two heads and a hundred words: all kinds of steps, in 25
/// million AND gates.
pub fn small_shape() -> Shape {
    Shape {
        vocab: 100,
        positions: 16,
        ..bert_shape(1, 32, 2)
    }
}

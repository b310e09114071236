//! Models with random weights, for measuring: any shape, no files.

use crate::load::tensors::{Checkpoint, wanted};
use primer_plan::function::Activation;
use primer_plan::shape::{Family, Head, Shape};
use primer_ring::prg::{Prg, Seed};
use rand_core::Rng;
use std::collections::HashMap;

/// Standard deviation of the weights, as BERT is initialised.
const DEVIATION: f64 = 0.02;

/// Returns the shape of a BERT with `layers` layers of width `hidden`, otherwise like BERT-base.
pub fn bert_shape(layers: usize, hidden: usize, heads: usize) -> Shape {
    Shape {
        family: Family::Bert,
        layers,
        hidden,
        embedding: hidden,
        heads,
        ffn: 4 * hidden,
        vocab: 30_522,
        positions: 512,
        types: 2,
        activation: Activation::GeluErf,
        epsilon: 1e-12,
        head: Head::classify(vec!["LABEL_0".into(), "LABEL_1".into()]),
    }
}

/// Makes a checkpoint with weights as they are before training: the same for the same seed.
///
/// # Panics
/// If the shape is not usable.
pub fn checkpoint(shape: &Shape, seed: &Seed) -> Checkpoint {
    shape
        .validate()
        .expect("a synthetic model has a usable shape");
    let mut rng = Prg::new(seed);
    let mut tensors = HashMap::new();
    for (name, dims) in wanted(shape) {
        let count = dims.iter().product();
        let values = if name.ends_with("LayerNorm.weight") {
            (0..count)
                .map(|_| (1.0 + DEVIATION * normal(&mut rng)) as f32)
                .collect()
        } else {
            (0..count)
                .map(|_| (DEVIATION * normal(&mut rng)) as f32)
                .collect()
        };
        tensors.insert(name, values);
    }
    Checkpoint::from_tensors(shape, tensors)
}

/// Draws an almost normal number: the sum of twelve uniform ones.
fn normal(rng: &mut Prg) -> f64 {
    let mut sum = -6.0;
    for _ in 0..6 {
        let x = rng.next_u64();
        sum += (x as u32 as f64 + (x >> 32) as f64) / 4_294_967_296.0;
    }
    sum
}

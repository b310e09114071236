//! The speed of the float reference, compared with its matrix products alone.

use crate::float::{self, NoObserver};
use crate::fold::FloatWeights;
use primer_plan::graph::{Graph, Op};
use primer_ring::gemm::{self, Layout};
use primer_text::Input;
use std::time::Instant;

/// Speed of the float reference on one thread.
#[derive(Debug, Clone, Copy)]
pub struct FloatSpeed {
    /// Seconds of one inference, the best of the runs.
    pub seconds: f64,
    /// Seconds of its matrix products alone, the best of the runs.
    pub products_seconds: f64,
    /// Floating-point operations of the matrix products.
    pub operations: f64,
}

impl FloatSpeed {
    /// Returns the speed of a whole inference in billions of operations per second.
    pub fn gflops(&self) -> f64 {
        self.operations / self.seconds * 1e-9
    }

    /// Returns the part of the products' own speed that a whole inference reaches.
    pub fn ratio(&self) -> f64 {
        self.products_seconds / self.seconds
    }
}

/// Lists the sizes of all matrix products of an inference: rows, inner dimension, columns.
fn products(graph: &Graph) -> Vec<(usize, usize, usize)> {
    let shape = &graph.shape;
    let (n, dh) = (graph.tokens, shape.head_size());
    let mut sizes = Vec::new();
    for step in &graph.steps {
        let out = graph.value(step.output());
        match &step.op {
            Op::Linear { terms, .. } => {
                let weight = graph.weight(terms[0].weight);
                sizes.push((out.rows, weight.rows, out.cols));
            }
            Op::MergedScores { weight, .. } => {
                let weight = graph.weight(*weight);
                sizes.push((n, weight.rows, weight.cols));
                sizes.extend((0..shape.heads).map(|_| (n, weight.rows, n)));
            }
            Op::Scores { .. } => sizes.extend((0..shape.heads).map(|_| (n, dh, n))),
            Op::Mix { .. } => sizes.extend((0..shape.heads).map(|_| (n, n, dh))),
            _ => {}
        }
    }
    sizes
}

/// Measures a model on an input of arbitrary tokens, interleaved with its products alone.
///
/// # Panics
/// If the model does not take that many tokens.
pub fn float_speed(weights: &FloatWeights, tokens: usize, runs: usize) -> FloatSpeed {
    let graph = weights.graph(tokens);
    let input = Input {
        ids: (0..tokens)
            .map(|t| (t * 37 % weights.shape.vocab) as u32)
            .collect(),
        types: vec![0; tokens],
        length: tokens,
        removed: 0,
        second: vec![None; tokens],
    };
    let sizes = products(&graph);
    let operations = sizes
        .iter()
        .map(|&(m, k, n)| 2.0 * (m * k * n) as f64)
        .sum();
    // Every product gets its own right operand: weights do not stay in the cache between layers.
    let left: Vec<f32> = vec![0.5; sizes.iter().map(|s| s.0 * s.1).max().unwrap_or(0)];
    let right: Vec<Vec<f32>> = sizes.iter().map(|s| vec![0.25; s.1 * s.2]).collect();
    let mut out = vec![0.0; sizes.iter().map(|s| s.0 * s.2).max().unwrap_or(0)];
    let mut speed = FloatSpeed {
        seconds: f64::INFINITY,
        products_seconds: f64::INFINITY,
        operations,
    };
    for _ in 0..runs.max(1) {
        let started = Instant::now();
        std::hint::black_box(float::run(&graph, weights, &input, &mut NoObserver));
        speed.seconds = speed.seconds.min(started.elapsed().as_secs_f64());
        let started = Instant::now();
        for (&(m, k, n), right) in sizes.iter().zip(&right) {
            gemm::f32(
                &left,
                Layout::rows(m, k),
                right,
                Layout::rows(k, n),
                &mut out,
            );
            std::hint::black_box(&mut out);
        }
        speed.products_seconds = speed.products_seconds.min(started.elapsed().as_secs_f64());
    }
    speed
}

//! A model's weights as these graphs have them.
//!
//! **Positions.** They are taken out of the embedding table.
//!
//! **Queries and keys merged.** The [crate](crate) derives the relation. On the folded weights of
//! a head, `A` and `a` of the queries, `B` and `b` of the keys:
//!
//! ```text
//! W = A·Bᵀ     features by features, what the scores need of both projections
//! u = B·a      one row, what the query's bias means to each key
//! ```
//!
//! `b` does not matter: it adds the same to a whole row of scores. The products are formed in
//! double precision and rounded once. Everything else is shared with the given model, not copied.

use crate::Form;
use primer_model::fold::{FloatWeight, FloatWeights};
use primer_plan::graph::WeightKind;
use primer_plan::role::{LinearMap, WeightKey};
use primer_plan::shape::Shape;
use primer_ring::gemm::{self, Layout};
use primer_ring::matrix::Matrix;
use std::collections::HashMap;
use std::sync::Arc;

impl Form {
    /// Makes the weights of this graph from a model's, as they were folded.
    ///
    /// # Panics
    /// If they were rewritten before.
    pub fn weights(self, folded: &FloatWeights) -> FloatWeights {
        let shape = &folded.shape;
        let graph = folded.graph(1);
        assert!(
            graph.positions_are_rows(),
            "weights that were rewritten are not rewritten again"
        );
        let keys = graph.weights.iter().map(|w| w.key());
        let mut made: HashMap<WeightKey, Arc<FloatWeight>> =
            keys.zip(folded.all().iter().map(Arc::clone)).collect();
        part_positions(shape, &mut made);
        if self == Self::Merged {
            for layer in 0..shape.layers {
                let (weight, bias) = merge(shape, layer, &made);
                let key = |kind| key(layer, LinearMap::Scores, kind);
                made.insert(key(WeightKind::Dense), Arc::new(weight));
                made.insert(key(WeightKind::Bias), Arc::new(bias));
            }
        }
        folded.rewritten(self.design(), made)
    }
}

/// Separates the positions from the embedding table.
fn part_positions(shape: &Shape, made: &mut HashMap<WeightKey, Arc<FloatWeight>>) {
    let FloatWeight::Dense(joined) = &*made[&EMBEDDING] else {
        unreachable!("folding checks the kinds");
    };
    let (rows, cols) = (shape.one_hot(), joined.cols());
    let (table, positions) = joined.data().split_at(rows * cols);
    let table = Matrix::from_vec(rows, cols, table.to_vec());
    let positions = Matrix::from_vec(shape.positions, cols, positions.to_vec());
    made.insert(EMBEDDING, Arc::new(FloatWeight::Dense(table)));
    made.insert(POSITIONS, Arc::new(FloatWeight::Bias(positions)));
}

/// The embedding table.
const EMBEDDING: WeightKey = WeightKey {
    layer: None,
    map: LinearMap::Embedding,
    kind: WeightKind::Dense,
};
/// The positions.
const POSITIONS: WeightKey = WeightKey {
    kind: WeightKind::Bias,
    ..EMBEDDING
};

/// Returns a dense weight or a bias in double precision.
fn matrix(
    layer: usize,
    map: LinearMap,
    kind: WeightKind,
    weights: &HashMap<WeightKey, Arc<FloatWeight>>,
) -> Matrix<f64> {
    match &*weights[&key(layer, map, kind)] {
        FloatWeight::Dense(m) | FloatWeight::Bias(m) => m.map(|v| f64::from(*v)),
        FloatWeight::Diagonal { .. } => unreachable!("folding checks the kinds"),
    }
}

const fn key(layer: usize, map: LinearMap, kind: WeightKind) -> WeightKey {
    WeightKey {
        layer: Some(layer),
        map,
        kind,
    }
}

/// Computes the merged matrices of all heads side by side, and their biases.
fn merge(
    shape: &Shape,
    layer: usize,
    weights: &HashMap<WeightKey, Arc<FloatWeight>>,
) -> (FloatWeight, FloatWeight) {
    let of = |map, kind| matrix(layer, map, kind, weights);
    let query = of(LinearMap::Query, WeightKind::Dense);
    let bias = of(LinearMap::Query, WeightKind::Bias);
    let key = of(LinearMap::Key, WeightKind::Dense);
    let (d, width) = (shape.hidden, shape.head_size());
    let at = Layout::columns_of(d, width, d);
    let mut merged = Matrix::<f32>::zeros(d, shape.heads * d);
    let mut row = Matrix::<f32>::zeros(1, shape.heads * d);
    let mut product = vec![0.0; d * d];
    for h in 0..shape.heads {
        let (a, b) = (&query.data()[h * width..], &key.data()[h * width..]);
        gemm::f64(a, at, b, at.transposed(), &mut product);
        for r in 0..d {
            let into = merged.row_mut(r)[h * d..][..d].iter_mut();
            into.zip(&product[r * d..])
                .for_each(|(m, v)| *m = *v as f32);
        }
        let a = Layout::columns_of(1, width, d).transposed();
        gemm::f64(b, at, &bias.data()[h * width..], a, &mut product[..d]);
        let into = row.row_mut(0)[h * d..][..d].iter_mut();
        into.zip(&product).for_each(|(u, v)| *u = *v as f32);
    }
    (FloatWeight::Dense(merged), FloatWeight::Bias(row))
}

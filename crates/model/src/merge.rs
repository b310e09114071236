//! The weights of the graphs that compute the same ([`Form`]).
//!
//! **Looked up.** Positions become rows of the embedding table.
//!
//! **Queries and keys merged.** `primer_plan::encoder` derives the relation. On the folded weights
//! of a head, `A` and `a` of the queries, `B` and `b` of the keys:
//!
//! ```text
//! W = A·Bᵀ     features by features, what the scores need of both projections
//! u = B·a      one row, what the query's bias means to each key
//! ```
//!
//! `b` does not matter: it adds the same to a whole row of scores. The products are formed in
//! double precision and rounded once. Everything else is shared with the given model, not copied.

use crate::fold::{FloatWeight, FloatWeights};
use primer_plan::graph::{Form, WeightKind};
use primer_plan::role::{LinearMap, WeightKey};
use primer_plan::shape::Shape;
use primer_ring::gemm::{self, Layout};
use primer_ring::matrix::Matrix;
use std::collections::HashMap;
use std::sync::Arc;

impl FloatWeights {
    /// Makes the same model for a graph of the given form.
    ///
    /// # Panics
    /// If queries and keys are requested from a model in which they are already merged.
    #[must_use]
    pub fn with_form(&self, form: Form) -> Self {
        let graph = self.graph(1);
        let keys = graph.weights.iter().map(|w| w.key());
        let mut made: HashMap<WeightKey, Arc<FloatWeight>> =
            keys.zip(self.all().iter().map(Arc::clone)).collect();
        match (self.form(), form) {
            (Form::LookedUp, Form::Separate | Form::Merged) => self.part_positions(&mut made),
            (Form::Separate, Form::LookedUp) => join_positions(&mut made),
            _ => {}
        }
        match (self.form(), form) {
            (Form::Separate | Form::LookedUp, Form::Merged) => {
                for layer in 0..self.shape.layers {
                    let (weight, bias) = merge(&self.shape, layer, &made);
                    let key = |kind| key(layer, LinearMap::Scores, kind);
                    made.insert(key(WeightKind::Dense), Arc::new(weight));
                    made.insert(key(WeightKind::Bias), Arc::new(bias));
                }
            }
            (Form::Merged, Form::Separate | Form::LookedUp) => {
                panic!("merged projections cannot be taken apart")
            }
            (Form::Merged, Form::Merged)
            | (Form::Separate | Form::LookedUp, Form::Separate | Form::LookedUp) => {}
        }
        self.rewritten(form, made)
    }

    /// Separates the positions from the embedding table.
    fn part_positions(&self, made: &mut HashMap<WeightKey, Arc<FloatWeight>>) {
        let FloatWeight::Dense(joined) = &*made[&EMBEDDING] else {
            unreachable!("folding checks the kinds");
        };
        let (rows, cols) = (self.shape.one_hot(), joined.cols());
        let (table, positions) = joined.data().split_at(rows * cols);
        let table = Matrix::from_vec(rows, cols, table.to_vec());
        let positions = Matrix::from_vec(self.shape.positions, cols, positions.to_vec());
        made.insert(EMBEDDING, Arc::new(FloatWeight::Dense(table)));
        made.insert(POSITIONS, Arc::new(FloatWeight::Bias(positions)));
    }
}

/// The embedding table.
const EMBEDDING: WeightKey = WeightKey {
    layer: None,
    map: LinearMap::Embedding,
    kind: WeightKind::Dense,
};
/// The positions, where they are not rows of the table.
const POSITIONS: WeightKey = WeightKey {
    kind: WeightKind::Bias,
    ..EMBEDDING
};

/// Puts the positions below the embedding table.
fn join_positions(made: &mut HashMap<WeightKey, Arc<FloatWeight>>) {
    let (table, positions) = (&*made[&EMBEDDING], made.get(&POSITIONS).map(|m| &**m));
    let (FloatWeight::Dense(table), Some(FloatWeight::Bias(positions))) = (table, positions) else {
        unreachable!("folding checks the kinds");
    };
    let rows = table.rows() + positions.rows();
    let data = [table.data(), positions.data()].concat();
    let joined = Matrix::from_vec(rows, table.cols(), data);
    made.insert(EMBEDDING, Arc::new(FloatWeight::Dense(joined)));
    made.remove(&POSITIONS);
}

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

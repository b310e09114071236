//! Integer weights.

use crate::calibrate::Calibrated;
use crate::fold::{Digest, FloatWeight, FloatWeights};
use primer_plan::design::Design;
use primer_plan::graph::{Graph, Op, Weight, WeightId};
use primer_plan::plan::{Plan, PlanError};
use primer_plan::role::LinearMap;
use primer_plan::scales::{Scales, WEIGHT_BITS, WeightScale};
use primer_plan::shape::Shape;
use primer_plan::weights::{IntWeight, ModelWeights};
use primer_ring::fixed::{Format, exp2};
use primer_ring::matrix::{Matrix, Packed};
use std::sync::OnceLock;

/// A model ready for fixed point: its public numbers and its integer weights.
pub struct IntModel {
    design: &'static dyn Design,
    shape: Shape,
    scales: Scales,
    source: Digest,
    weights: Vec<IntWeight>,
    /// By weight, made on first use.
    packed: Vec<OnceLock<Packed>>,
}

impl IntModel {
    /// Joins parts that were checked to belong together.
    pub(crate) fn from_parts(
        design: &'static dyn Design,
        (shape, scales): (Shape, Scales),
        source: Digest,
        weights: Vec<IntWeight>,
    ) -> Self {
        Self {
            design,
            shape,
            scales,
            source,
            packed: weights.iter().map(|_| OnceLock::new()).collect(),
            weights,
        }
    }

    /// Quantises a model's weights at its scales, features in the order that the scales are for.
    ///
    /// # Errors
    /// [`PlanError`] if the scales do not belong to the model.
    pub fn quantise(weights: &FloatWeights, calibrated: Calibrated) -> Result<Self, PlanError> {
        let Calibrated { scales, order } = calibrated;
        let plan = Plan::by(weights.design(), &weights.shape, 1, scales)?;
        let graph = plan.graph();
        let ints = graph.weight_ids().map(|id| {
            let ints = quantise(&plan, id, &weights.all()[id.index()]);
            match graph.weight(id).layer.and_then(|layer| order.get(layer)) {
                Some(order) => reordered(graph.weight(id), ints, order),
                None => ints,
            }
        });
        let ints = ints.collect();
        Ok(Self::from_parts(
            weights.design(),
            (weights.shape.clone(), plan.scales().clone()),
            weights.digest(),
            ints,
        ))
    }

    /// Returns the digest of the float weights that these integers were made from.
    pub const fn source(&self) -> &Digest {
        &self.source
    }

    /// Returns the model's shape.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the model's scales.
    pub const fn scales(&self) -> &Scales {
        &self.scales
    }

    /// Returns the weights in the graph's order.
    pub fn weights(&self) -> &[IntWeight] {
        &self.weights
    }

    /// Compiles the plan for a number of tokens.
    ///
    /// # Errors
    /// [`PlanError::Tokens`] if the model does not take that many.
    pub fn plan(&self, tokens: usize) -> Result<Plan, PlanError> {
        Plan::by(self.design, &self.shape, tokens, self.scales.clone())
    }
}

impl ModelWeights for IntModel {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn scales(&self) -> &Scales {
        &self.scales
    }

    fn weights(&self) -> &[IntWeight] {
        &self.weights
    }

    fn packed(&self, id: WeightId) -> &Packed {
        self.packed[id.index()].get_or_init(|| match &self.weights[id.index()] {
            IntWeight::Dense(matrix) => Packed::new(matrix),
            _ => unreachable!("a checked model has a matrix here"),
        })
    }
}

/// Puts the features of a layer's wide part in another order: the columns of the map that makes
/// them, and the rows of the map that reads them.
fn reordered(weight: &Weight, ints: IntWeight, order: &[usize]) -> IntWeight {
    match (weight.map, ints) {
        (LinearMap::Intermediate, IntWeight::Dense(m)) => {
            IntWeight::Dense(Matrix::from_fn(m.rows(), m.cols(), |r, c| {
                m.get(r, order[c])
            }))
        }
        (LinearMap::Intermediate, IntWeight::Bias(m)) => {
            IntWeight::Bias(Matrix::from_fn(1, m.cols(), |_, c| m.get(0, order[c])))
        }
        (LinearMap::Output, IntWeight::Dense(m)) => {
            IntWeight::Dense(Matrix::from_fn(m.rows(), m.cols(), |r, c| {
                m.get(order[r], c)
            }))
        }
        (_, ints) => ints,
    }
}

/// Returns the fractional bits of the sum that a bias is added to.
pub(crate) fn bias_fraction(plan: &Plan, id: WeightId) -> i32 {
    let graph: &Graph = plan.graph();
    let fraction = graph.steps.iter().find_map(|step| match &step.op {
        Op::Embed {
            positions, output, ..
        } if *positions == Some(id) => Some(plan.scale(*output).fraction()),
        Op::Linear { bias, output, .. } if *bias == id => Some(plan.scale(*output).fraction()),
        Op::MergedScores {
            input,
            weight,
            bias,
            ..
        } if *bias == id => Some(plan.merged_fraction(*input, *weight)),
        _ => None,
    });
    fraction.expect("every bias is added somewhere")
}

fn quantise(plan: &Plan, id: WeightId, weight: &FloatWeight) -> IntWeight {
    let short = |values: &[f32], fraction: i32| -> Vec<i16> {
        let format = Format {
            bits: WEIGHT_BITS,
            fraction,
        };
        values
            .iter()
            .map(|v| format.quantise(f64::from(*v)) as i16)
            .collect()
    };
    match (weight, plan.weight_scale(id)) {
        (FloatWeight::Dense(m), WeightScale::Dense { fraction }) => IntWeight::Dense(
            Matrix::from_vec(m.rows(), m.cols(), short(m.data(), fraction)),
        ),
        (FloatWeight::Diagonal { gain, mean }, WeightScale::Diagonal { gain: g, mean: h }) => {
            IntWeight::Diagonal {
                gain: short(gain, g),
                mean: short(mean, h),
            }
        }
        (FloatWeight::Bias(m), WeightScale::Bias) => {
            let unit = exp2(bias_fraction(plan, id));
            IntWeight::Bias(m.map(|v| (f64::from(*v) * unit).round() as i64))
        }
        _ => unreachable!("a checked plan scales every weight by its kind"),
    }
}

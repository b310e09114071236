//! The scales that the weights before a polynomial carry for it, so that its numbers lie in `[-1,
//! 1]` at no cost.

use crate::chebyshev::Chebyshev;
use crate::polynomials::{HeadSoftmax, Polynomials, Softmax};
use primer_plan::graph::{Graph, Op, StopFunction, ValueId};

/// Returns the factor of a number when its interval becomes `[-1, 1]`.
pub(crate) fn slope(polynomial: &Chebyshev) -> f64 {
    let (low, high) = polynomial.interval();
    2.0 / (high - low)
}

/// Returns the factor of LayerNorm's input with which the sum of its squares only lacks an offset.
pub(crate) fn root_gain(polynomial: &Chebyshev) -> f64 {
    slope(polynomial).sqrt()
}

/// Returns the factor of a head's exponentials at the start with which their sum only lacks an
/// offset.
pub(crate) fn start_gain(head: &HeadSoftmax, squarings: usize) -> f64 {
    let power = f64::from(1u32 << squarings);
    slope(&head.reciprocal).powf(power.recip())
}

/// How a value goes into its polynomial.
#[derive(Clone)]
pub(crate) struct Into {
    /// What it is multiplied with; for queries one factor for each head, and none for heads that
    /// are padding.
    gains: Vec<f64>,
    /// What is added.
    pub(crate) shift: f64,
}

impl Into {
    /// Returns the factor of a feature that belongs to a head.
    pub(crate) fn gain(&self, head: usize) -> f64 {
        match self.gains[..] {
            [one] => one,
            _ => self.gains.get(head).copied().unwrap_or(0.0),
        }
    }
}

/// Returns factor and offset of every value that a linear map makes for a polynomial.
pub(crate) fn scales(graph: &Graph, polynomials: &Polynomials) -> Vec<[Into; 2]> {
    let one = |gain: f64, shift: f64| Into {
        gains: vec![gain],
        shift,
    };
    let mut into = vec![[one(1.0, 0.0), one(1.0, 0.0)]; graph.values.len()];
    let behind = |fixed: ValueId| graph.accumulator_of(fixed).index();
    for step in &graph.steps {
        match step.op {
            Op::Stop {
                function, input, ..
            } => match function {
                StopFunction::Requantise | StopFunction::Softmax => {}
                StopFunction::Activation | StopFunction::Tanh => {
                    let polynomials = polynomials.plain(input.index()).each_ref();
                    into[input.index()] = polynomials.map(|p| one(slope(p), p.normalise(0.0)));
                }
                StopFunction::InverseRoot => {
                    let Op::SquareSum { input: centred, .. } = graph.maker(input).op else {
                        unreachable!("a root is taken of a sum of squares")
                    };
                    let polynomials = polynomials.plain(input.index()).each_ref();
                    into[behind(centred)] = polynomials.map(|p| one(root_gain(p), 0.0));
                }
                StopFunction::CoarseMaximum
                | StopFunction::Power
                | StopFunction::Reciprocal
                | StopFunction::Summary => unreachable!("the comparator has whole functions"),
            },
            Op::Scores { query, output, .. } => {
                let softmax = polynomials.softmax(output.index());
                let factor = Softmax::factor(softmax.squarings);
                let squarings = softmax.squarings;
                let gain = |head: &HeadSoftmax| factor * start_gain(head, squarings);
                into[behind(query)] = softmax.heads.each_ref().map(|heads| Into {
                    gains: heads.iter().map(gain).collect(),
                    shift: 0.0,
                });
            }
            _ => {}
        }
    }
    into
}

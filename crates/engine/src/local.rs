//! Steps that each party does alone: linear maps with public coefficients, on its own share.
//!
//! Both parties apply the same map to their shares; constants are added by the server. Nothing is
//! said and nothing is kept: the client's share of the result is known offline, because those of
//! what goes in are.

use crate::share::{Share, power};
use primer_plan::graph::{Op, Step, ValueId};
use primer_plan::plan::{ExponentMap, Plan};
use primer_ring::modulus;
use std::ops::Deref;

/// A map that each party applies alone.
pub(crate) enum Local {
    /// The exponents of softmax: scores where their heads are placed, or minus what they are
    /// measured against, padded keys far below.
    Exponents {
        scores: ValueId,
        reference: ValueId,
        tokens: usize,
        /// Of each head.
        heads: Vec<ExponentMap>,
    },
    /// The sum of every row, shifted.
    RowSum { input: ValueId, shift: u32 },
    /// One for every token before the padding, zero behind it.
    Kept,
}

/// Who applies a map: constants are added once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Party {
    Client,
    Server,
}

impl Local {
    /// Reads it off a step; none unless it is local.
    pub(crate) fn of(plan: &Plan, step: &Step) -> Option<Self> {
        let shift = |input: ValueId, output| plan.shift(plan.scale(input).fraction(), output);
        match step.op {
            Op::Exponents {
                scores,
                reference,
                output,
            } => Some(Self::Exponents {
                scores,
                reference,
                tokens: plan.graph().tokens,
                heads: (0..plan.graph().shape.heads)
                    .map(|head| plan.exponent_map(head, scores, output))
                    .collect(),
            }),
            Op::RowSum { input, output } => Some(Self::RowSum {
                input,
                shift: shift(input, output),
            }),
            Op::Kept { .. } => Some(Self::Kept),
            _ => None,
        }
    }

    /// Computes a party's share of the result, from its shares of the values and of the padding.
    pub(crate) fn apply<S: Deref<Target = Share>>(
        &self,
        party: Party,
        mut get: impl FnMut(ValueId) -> S,
        padding: &Share,
    ) -> Share {
        match self {
            Self::Exponents {
                scores,
                reference,
                tokens,
                heads,
            } => {
                let measures = |map: &ExponentMap| matches!(map, ExponentMap::Measured { .. });
                let reference = heads.iter().any(measures).then(|| get(*reference));
                let scores = get(*scores);
                let constant = |constant: i64| match party {
                    Party::Client => 0,
                    Party::Server => modulus::from_signed(constant),
                };
                let mut share = Share::zeros(scores.rows(), scores.cols());
                // Rows of references are those of measured heads.
                let mut measured = 0;
                for r in 0..scores.rows() {
                    let map = heads[r / tokens];
                    for (c, out) in share.row_mut(r).iter_mut().enumerate() {
                        let score = scores.get(r, c);
                        *out = match (map, &reference) {
                            (
                                ExponentMap::Placed {
                                    shift,
                                    constant: of,
                                },
                                _,
                            ) => modulus::add(modulus::mul(score, power(shift)), constant(of)),
                            (
                                ExponentMap::Measured {
                                    unit_bits,
                                    mask,
                                    constant: of,
                                    shift,
                                },
                                Some(reference),
                            ) => {
                                let mask = modulus::from_signed(mask);
                                let padded = modulus::mul(mask, padding.get(0, c));
                                let below = reference.get(measured, c);
                                let below = modulus::mul(power(unit_bits), below);
                                let below = modulus::add(padded, below);
                                let score = modulus::add(score, constant(of));
                                modulus::mul(modulus::sub(score, below), power(shift))
                            }
                            (ExponentMap::Measured { .. }, None) => {
                                unreachable!("there is a reference for measured heads")
                            }
                        };
                    }
                    measured += usize::from(measures(&map));
                }
                share
            }
            Self::RowSum { input, shift } => {
                let input = get(*input);
                let mut share = Share::from_fn(input.rows(), 1, |r, _| {
                    input.row(r).iter().fold(0, |sum, v| modulus::add(sum, *v))
                });
                share.shift(*shift);
                share
            }
            Self::Kept => kept(party, padding),
        }
    }
}

/// Computes a party's share of what is not padding. The client's is known without the steps before
/// it: products read it, and they are prepared before anything is mapped.
pub(crate) fn kept(party: Party, padding: &Share) -> Share {
    let one = match party {
        Party::Client => 0,
        Party::Server => 1,
    };
    Share::from_fn(padding.cols(), 1, |t, _| {
        modulus::sub(one, padding.get(0, t))
    })
}

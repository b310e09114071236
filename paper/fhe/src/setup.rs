//! What both parties derive from public facts: parameters, keys, messages and the count of
//! operations.
//!
//! Shape, tokens and degrees of the polynomials fix the whole computation. Its depth fixes the
//! levels, and with the security table the ring; the rotations that occur are those that get a key,
//! and no others.

use crate::arithmetic::{Count, Counting};
use crate::chebyshev::Chebyshev;
use crate::ckks::params::{BASE, MAX_DIGITS, MAX_SPECIAL, Params, SECURITY_TABLE, special_primes};
use crate::error::FheError;
use crate::packing::{Packed, capacity};
use crate::polynomials::{Degrees, HeadSoftmax, Polynomial, Polynomials, Softmax};
use crate::walk::{Inputs, PackedWalk, input_width};
use primer_paper_plan::Form;
use primer_plan::graph::{Graph, Op, StopFunction};
use primer_plan::shape::{Head, Shape, Summary};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bits of a prime, at most.
const PRIME_BITS: usize = 30;

impl Polynomials {
    /// Makes polynomials of the right degrees that are all zero, for counting only.
    pub fn counted(graph: &Graph, degrees: &Degrees) -> Self {
        let zero = |degree: usize| Chebyshev::new(-1.0, 1.0, vec![0.0; degree + 1]);
        let plain = |degree: usize| Some(Polynomial::Plain([zero(degree), zero(degree)]));
        let mut by_value = vec![None; graph.values.len()];
        for step in &graph.steps {
            let Op::Stop {
                function, input, ..
            } = step.op
            else {
                continue;
            };
            by_value[input.index()] = match function {
                StopFunction::Requantise => None,
                StopFunction::CoarseMaximum | StopFunction::Power | StopFunction::Reciprocal => {
                    unreachable!("the comparator has whole functions")
                }
                StopFunction::Summary => unreachable!("the comparator has BERT's classifiers"),
                StopFunction::Activation => plain(degrees.activation),
                StopFunction::InverseRoot => plain(degrees.root),
                StopFunction::Tanh => plain(degrees.tanh),
                StopFunction::Softmax => {
                    let head = || HeadSoftmax {
                        shift: 0.0,
                        reciprocal: zero(degrees.reciprocal),
                    };
                    let heads = || (0..graph.shape.heads).map(|_| head()).collect();
                    Some(Polynomial::Softmax(Softmax {
                        squarings: degrees.squarings,
                        heads: [heads(), heads()],
                    }))
                }
            };
        }
        Self {
            degrees: *degrees,
            by_value,
        }
    }
}

/// The operations of an inference, counted without doing them.
pub struct Counted {
    /// Levels from the client's ciphertexts to the answer.
    pub depth: usize,
    /// Operations by step and level.
    pub count: Count,
    /// Rotations that need a key.
    pub rotations: BTreeSet<i32>,
    /// Ciphertexts that the client sends.
    pub ciphertexts: usize,
}

impl Counted {
    /// Counts an inference of a classifier over some tokens, in vectors of `slots` numbers.
    ///
    /// # Errors
    /// [`FheError::Head`] if the model is no classifier, [`FheError::Range`] if it is too wide for
    /// such vectors or has more labels than one holds.
    pub fn of(
        shape: &Shape,
        tokens: usize,
        degrees: &Degrees,
        slots: usize,
    ) -> Result<Self, FheError> {
        let Head::Classify {
            labels,
            summary: Summary::Tanh,
            ..
        } = &shape.head
        else {
            return Err(FheError::Head);
        };
        if shape.types == 0 || shape.is_projected() {
            return Err(FheError::Head);
        }
        let tokens = tokens.next_power_of_two();
        let most = capacity(slots, tokens);
        let heads = shape.heads.next_power_of_two() * shape.head_size().next_power_of_two();
        let width = heads.max(shape.hidden.next_power_of_two());
        if tokens > shape.max_tokens() {
            return Err(FheError::Range {
                what: "the number of tokens, rounded up to a power of two,",
                value: tokens,
                max: shape.max_tokens(),
            });
        }
        if width > most {
            return Err(FheError::Range {
                what: "the padded width of a token",
                value: width,
                max: most,
            });
        }
        // The answer is one ciphertext.
        if labels.len() > most {
            return Err(FheError::Range {
                what: "the number of labels",
                value: labels.len(),
                max: most,
            });
        }
        let graph = Form::Separate.graph(shape, tokens);
        let polynomials = Polynomials::counted(&graph, degrees);
        let parts = input_width(shape).div_ceil(most);
        let walk = |top: usize| {
            let mut counting = Counting::new(slots);
            let inputs = Inputs {
                rows: Packed {
                    width: input_width(shape),
                    parts: vec![top; parts],
                },
                mask: top,
            };
            let bottom = PackedWalk::new(&mut counting, &graph, None, &polynomials).run(&inputs);
            (counting, bottom)
        };
        // More levels than any model has, to find out how many it takes.
        const PLENTY: usize = 1 << 20;
        let depth = PLENTY - walk(PLENTY).1;
        let (counting, _) = walk(depth);
        Ok(Self {
            depth,
            count: counting.count,
            rotations: counting.rotations,
            ciphertexts: parts + 1,
        })
    }
}

/// Returns the fewest digits of key switching with which some levels stay within a modulus.
pub fn fitting_digits(levels: usize, bits: usize, most: usize) -> Option<usize> {
    (2..=most).find(|&digits| PRIME_BITS * (levels + BASE + special_primes(levels, digits)) <= bits)
}

/// All that the parties derive without a message.
pub struct Setup {
    /// The graph, over a power of two of tokens.
    pub graph: Graph,
    /// The smallest secure parameters that are deep enough.
    pub params: Arc<Params>,
    /// What the server will do.
    pub counted: Counted,
}

impl Setup {
    /// Makes the set-up of a classifier over some tokens.
    ///
    /// # Errors
    /// [`FheError::TooDeep`] if no parameters in the security table have that many levels;
    /// otherwise as [`Counted::of`].
    pub fn new(shape: &Shape, tokens: usize, degrees: &Degrees) -> Result<Self, FheError> {
        let mut deepest = (0, 0);
        for (degree, bits) in SECURITY_TABLE {
            let counted = Counted::of(shape, tokens, degrees, degree / 2)?;
            let depth = counted.depth;
            deepest = (depth, bits as usize / PRIME_BITS - BASE);
            let digits = fitting_digits(depth, bits as usize, MAX_DIGITS)
                .filter(|&digits| special_primes(depth, digits) <= MAX_SPECIAL);
            if let Some(digits) = digits {
                return Ok(Self {
                    graph: Form::Separate.graph(shape, tokens.next_power_of_two()),
                    params: Params::new(degree, depth, digits)?,
                    counted,
                });
            }
        }
        Err(FheError::TooDeep {
            depth: deepest.0,
            levels: deepest.1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_model::synthetic;

    #[test]
    fn labels_fit_one_answer() {
        let counted = |labels: usize| {
            let shape = Shape {
                head: Head::classify((0..labels).map(|i| i.to_string()).collect()),
                vocab: 126,
                positions: 16,
                ..synthetic::bert_shape(1, 32, 2)
            };
            Counted::of(&shape, 8, &Degrees::MIDDLE, 1 << 10).map(|counted| counted.ciphertexts)
        };
        let most = capacity(1 << 10, 8);
        assert_eq!(counted(most), counted(2));
        let error = counted(most + 1).unwrap_err().to_string();
        assert!(error.starts_with("the number of labels is"), "{error}");
    }
}

//! Evaluation in the clear: what a circuit means.
//!
//! Sixty-four instances at a time, one in each bit of a word. Tests compare every stop with the
//! plan's functions through this interpreter, and the garbled run with it.

use crate::circuit::{Circuit, Op, Party};

/// Instances evaluated together.
pub const CLEAR_LANES: usize = 64;

/// The results of up to [`CLEAR_LANES`] instances.
pub struct Clear {
    /// Arithmetic outputs, one array of instances for each.
    pub outputs: Vec<[u64; CLEAR_LANES]>,
    /// Revealed bits in order, an instance in each bit.
    pub revealed: Vec<u64>,
    /// Bits that a garbled run keeps as labels, in order, an instance in each bit.
    pub kept: Vec<u64>,
}

/// Evaluates a circuit on input words: bit `l` of `garbler[i]` is input `i` of instance `l`.
///
/// # Panics
/// If a party does not have as many inputs as the circuit.
pub fn evaluate(circuit: &Circuit, garbler: &[u64], evaluator: &[u64]) -> Clear {
    assert_eq!(garbler.len(), circuit.inputs(Party::Garbler));
    assert_eq!(evaluator.len(), circuit.inputs(Party::Evaluator));
    let modulus = circuit.modulus();
    let mut slots = vec![0u64; circuit.slots()];
    let mut outputs: Vec<_> = (circuit.constants.iter())
        .map(|&c| [c; CLEAR_LANES])
        .collect();
    let (mut revealed, mut kept) = (Vec::new(), Vec::new());
    let spread = |flip: bool| if flip { u64::MAX } else { 0 };
    for op in &circuit.ops {
        match *op {
            Op::Input { dst, party, index } => {
                let words = match party {
                    Party::Garbler => garbler,
                    Party::Evaluator => evaluator,
                };
                slots[dst as usize] = words[index as usize];
            }
            Op::Xor { dst, a, b } => slots[dst as usize] = slots[a as usize] ^ slots[b as usize],
            Op::Sum { dst, first, count } => {
                let terms = &circuit.sources[first as usize..][..count as usize];
                slots[dst as usize] = terms.iter().fold(0, |s, &t| s ^ slots[t as usize]);
            }
            Op::And {
                dst,
                a,
                b,
                flip_a,
                flip_b,
            } => {
                let x = slots[a as usize] ^ spread(flip_a);
                let y = slots[b as usize] ^ spread(flip_b);
                slots[dst as usize] = x & y;
            }
            Op::Project { a, output, weight } => {
                let word = slots[a as usize];
                let weight = circuit.weights[weight as usize];
                for (l, out) in outputs[output as usize].iter_mut().enumerate() {
                    *out = modulus.add(*out, weight & spread(word >> l & 1 == 1));
                }
            }
            Op::Reveal { a, flip } => revealed.push(slots[a as usize] ^ spread(flip)),
            // In the order of construction, as compiled.
            Op::Keep { a, flip, .. } => kept.push(slots[a as usize] ^ spread(flip)),
        }
    }
    Clear {
        outputs,
        revealed,
        kept,
    }
}

//! What the client learns at the end, and how many bits of the server's that can carry.
//!
//! A client that does not follow the protocol can move any value of a network by errors of its
//! choice, and so have the outputs depend on what it likes: weights, say. What bounds it is that
//! there is a limited number of answers. Everything else that a client is sent is padded by fresh
//! randomness of the server's, so a spent bundle tells at most the logarithm of their number:
//!
//! | revealed | bits |
//! |---|---|
//! | outputs | for each element the bits of the ring that its last stop reads (below) |
//! | labels | for each row `ceil(log2 labels)`: a position, and nothing else |
//! | range flags, if the program has any | one more: in range or not |
//!
//! The server's share of an output follows from an element of the ring that the last stop reads,
//! and from what the client knows. The elements are those of the padded length: a client can ask
//! for answers about padding, too. Two logits in a ring of 21 bits are 43 bits, their label is 2.

use crate::program::Program;
use primer_plan::graph::{Op, ValueId};
use primer_plan::plan::Plan;
use primer_ring::modulus::K;
use serde::{Deserialize, Serialize};

/// What the client learns at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reveal {
    /// The outputs of the plan: logits, spans or the encoder's values.
    Outputs,
    /// Of a classification, the position of the largest logit and nothing else; of a
    /// classification of tokens, that of each token.
    Label,
}

/// What range flags tell.
const FLAG_BITS: u64 = 1;

impl Program {
    /// Returns how many bits an answer can carry, no matter what the client does.
    pub fn answer_bits(&self) -> u64 {
        self.flag_bits() + output_bits(self.plan(), self.reveal())
    }

    /// Returns how many of them are the range flags'.
    pub fn flag_bits(&self) -> u64 {
        match self.flags() {
            0 => 0,
            _ => FLAG_BITS,
        }
    }
}

/// Returns how many bits the outputs of a plan can carry, or their labels.
pub fn output_bits(plan: &Plan, reveal: Reveal) -> u64 {
    let bits = |id: &ValueId| {
        let value = plan.graph().value(*id);
        let (rows, cols) = (value.rows as u64, value.cols);
        match reveal {
            Reveal::Outputs => rows * cols as u64 * u64::from(width(plan, *id)),
            // A position is shown in the logarithm's bits, none if there is only one.
            Reveal::Label => rows * u64::from(cols.next_power_of_two().ilog2()),
        }
    };
    plan.graph().outputs.iter().map(bits).sum()
}

/// Counts the bits of an output's element.
fn width(plan: &Plan, id: ValueId) -> u32 {
    let mut steps = plan.graph().steps.iter();
    match steps.find(|step| step.output() == id).map(|step| &step.op) {
        Some(Op::Stop { input, .. }) => plan.truncation(*input).ring_bits(),
        // A residue as it is.
        _ => K,
    }
}

//! The columns in which a linear step adds up.
//!
//! The plan's accumulator has `K` bits, of which a stop reads the top ones: ring value
//! `r = (x + 2^(s-1)) >> s`, rounding to nearest. Sums here are of *twice* the accumulator (see
//! `spec`), so the stop reads bits from `s + 1` on and the rounding is `2^s`. Two ends of that
//! number need not exist:
//!
//! * above what the stop reads, since carries only go up. A requantisation moreover promises that
//!   its result has a bit less than the ring, and products rely on that. (Results that the client
//!   learns keep the bit: it costs nothing there, and their reader can see whether the promise was
//!   kept.)
//! * below the lowest bit of any product. A bias reaches further down, but nothing is there to be
//!   added to it.

use primer_plan::graph::{Graph, Op, StopFunction, ValueId};
use primer_plan::plan::Plan;

/// Columns of a doubled accumulator, and what is read of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// The weight of the first column.
    pub(crate) low: u32,
    /// Columns.
    pub(crate) width: usize,
    /// The first bit that is read: `s + 1`.
    read: u32,
}

impl Window {
    /// Returns the window of an accumulator whose lowest product is at `lowest`.
    pub(crate) fn of(plan: &Plan, output: ValueId, lowest: u32) -> Self {
        let truncation = plan.truncation(output);
        let read = truncation.shift() + 1;
        let low = lowest.min(read);
        let bits = truncation.ring_bits() - u32::from(loses_a_bit(plan.graph(), output));
        Self {
            low,
            width: (read + bits - low) as usize,
            read,
        }
    }

    #[cfg(test)]
    pub(crate) const fn for_tests(low: u32, width: usize, read: u32) -> Self {
        Self { low, width, read }
    }

    /// Returns the number of bits that are read.
    pub(crate) fn bits(self) -> usize {
        self.width - self.skipped()
    }

    /// Returns the number of columns in front of those that are read.
    pub(crate) fn skipped(self) -> usize {
        (self.read - self.low) as usize
    }

    /// Returns what makes the truncation round to nearest.
    pub(crate) fn rounding(self) -> i128 {
        1 << (self.read - 1)
    }

    /// Returns the column of a weight that is in the window.
    pub(crate) fn column(self, weight: u32) -> usize {
        (weight - self.low) as usize
    }

    /// Cuts a number to how it appears in the window.
    pub(crate) fn cut(self, number: i128) -> u64 {
        ((number >> self.low) as u64) & ((1 << self.width) - 1)
    }
}

/// Tells whether an accumulator is requantised to be multiplied.
fn loses_a_bit(graph: &Graph, accumulator: ValueId) -> bool {
    graph.readers(accumulator).any(|step| match step.op {
        Op::Stop {
            function: StopFunction::Requantise,
            output,
            ..
        } => !graph.outputs.contains(&output),
        _ => false,
    })
}

/// Returns the bits of a result that the client learns: those of its function, or of the ring if it
/// is only requantised.
pub(crate) fn result_bits(plan: &Plan, result: ValueId) -> usize {
    let bits = match plan.graph().maker(result).op {
        Op::Stop {
            function: StopFunction::Requantise,
            input,
            ..
        } => Some(plan.truncation(input).ring_bits()),
        _ => plan.scale(result).format().map(|format| format.bits),
    };
    bits.expect("a checked plan reveals fixed values") as usize
}

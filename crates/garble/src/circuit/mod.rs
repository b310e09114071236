//! Circuits: built once, then read by every interpreter.
//!
//! A [`Circuit`] is a straight list of operations on numbered *slots*. Each slot holds one wire of
//! each of the instances that run side by side; slots are reused as soon as a wire is dead, so the
//! working set stays in the inner caches. The same list is evaluated in the clear
//! ([`crate::clear`]), counted ([`Circuit::cost`]), garbled ([`crate::garbler`]) and evaluated
//! ([`crate::evaluator`]); since they read one list, they cannot disagree about the order of
//! gates, keys or rows.
//!
//! The list is cut into *segments* of bounded size. A segment is what the garbler holds in memory
//! before it leaves, and what the evaluator reads at a time.

mod arithmetic;
mod bit;
mod builder;
mod compile;
mod division;
mod modulus;
mod monomials;
#[cfg(test)]
mod pinned;
mod shift;
mod table;

pub use arithmetic::CarrySave;
pub use bit::Bit;
pub use builder::{Builder, OutputId, Party};
pub use modulus::Modulus;
pub use shift::LeadingOne;

use primer_ring::pack::packed_len;

/// Instances that run side by side: the lanes of every slot.
pub const LANES: usize = 8;

/// One step of a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// Brings in an input wire.
    Input { dst: u32, party: Party, index: u32 },
    /// `dst = a XOR b`.
    Xor { dst: u32, a: u32, b: u32 },
    /// `dst` = XOR of the slots `sources[first..first + count]`.
    Sum { dst: u32, first: u32, count: u32 },
    /// `dst = (a XOR flip_a) AND (b XOR flip_b)`.
    And {
        dst: u32,
        a: u32,
        b: u32,
        flip_a: bool,
        flip_b: bool,
    },
    /// Adds `weights[weight] · a` to an output.
    Project { a: u32, output: u32, weight: u32 },
    /// Shows `a XOR flip` to the evaluator.
    Reveal { a: u32, flip: bool },
    /// The labels of `a XOR flip` leave as a kept output.
    Keep { a: u32, flip: bool, output: u32 },
}

/// A piece of the list, small enough to be held in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) ops: std::ops::Range<usize>,
    pub(crate) and_gates: usize,
    pub(crate) projections: usize,
    pub(crate) reveals: usize,
}

impl Segment {
    /// Returns the byte counts of the segment's rows for `lanes` instances: tables, projections,
    /// decoding bits.
    pub(crate) fn bytes(&self, lanes: usize, modulus: Modulus) -> SegmentBytes {
        let packed = |n, w| packed_len(n, w).expect("segments are bounded");
        SegmentBytes {
            tables: 32 * self.and_gates * lanes,
            rows: packed(self.projections * lanes, modulus.width()),
            decoding: packed(self.reveals * lanes, 1),
        }
    }
}

/// How the bytes of a segment divide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentBytes {
    pub(crate) tables: usize,
    pub(crate) rows: usize,
    pub(crate) decoding: usize,
}

impl SegmentBytes {
    pub(crate) const fn total(self) -> usize {
        self.tables + self.rows + self.decoding
    }
}

/// What one instance of a circuit costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitCost {
    /// AND gates: 32 bytes each.
    pub and_gates: usize,
    /// XOR gates (of two inputs), free except for their time.
    pub xor_gates: usize,
    /// Projection gates: one element of the modulus each.
    pub projections: usize,
    /// Bits shown to the evaluator: one bit each.
    pub reveals: usize,
    /// Bits that leave as labels: no bytes.
    pub kept: usize,
    /// Input bits of the garbler.
    pub garbler_inputs: usize,
    /// Input bits of the evaluator.
    pub evaluator_inputs: usize,
    /// Arithmetic outputs.
    pub outputs: usize,
}

/// A circuit ready to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circuit {
    pub(crate) ops: Vec<Op>,
    pub(crate) sources: Vec<u32>,
    pub(crate) weights: Vec<u64>,
    pub(crate) constants: Vec<u64>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) slots: usize,
    modulus: Modulus,
    cost: CircuitCost,
}

impl Circuit {
    /// Returns the group of its arithmetic outputs.
    pub const fn modulus(&self) -> Modulus {
        self.modulus
    }

    /// Returns its cost per instance.
    pub const fn cost(&self) -> CircuitCost {
        self.cost
    }

    /// Returns the largest number of wires that are alive at once.
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the number of input bits of a party.
    pub const fn inputs(&self, party: Party) -> usize {
        match party {
            Party::Garbler => self.cost.garbler_inputs,
            Party::Evaluator => self.cost.evaluator_inputs,
        }
    }

    /// Returns the number of bytes of the garbled material of `instances` instances, or `None` if
    /// that overflows.
    pub fn garbled_len(&self, instances: u64) -> Option<u64> {
        let of = |lanes: usize| -> u64 {
            let bytes = |s: &Segment| s.bytes(lanes, self.modulus).total() as u64;
            self.segments.iter().map(bytes).sum()
        };
        let full = of(LANES).checked_mul(instances / LANES as u64)?;
        full.checked_add(of((instances % LANES as u64) as usize))
    }
}

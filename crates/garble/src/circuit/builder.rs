//! Building a circuit: gates with constants folded and common subexpressions merged.
//!
//! Only AND gates cost anything when garbled, so every rule here serves to reduce their number: a
//! gate with a constant or with the same input twice disappears, and a gate that already exists is
//! not built again.
//!
//! Every wire is an XOR of *atoms*, the inputs and the outputs of AND gates. Atoms have
//! random-looking 128-bit fingerprints, and the fingerprint of an XOR is the XOR of theirs. Wires
//! with equal fingerprints are one wire, however they were built, and a wire with fingerprint 0 is
//! the constant 0. So no gate is garbled for what is known to be constant. (Labels that several
//! wires or several instances have in common are no danger: the hash separates instances,
//! `docs/garbling.md`.)
//! 0. So no gate is garbled for what is known to be constant. (Labels that several wires or several
//! instances have in common are no danger: the hash separates instances, `docs/garbling.md`.)

use super::division::Divided;
use super::{Bit, Circuit, Modulus, compile};
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::rc::Rc;

/// Whose input a wire is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// Makes the garbled circuit: the server.
    Garbler,
    /// Evaluates it: the client.
    Evaluator,
}

/// A node of the graph. Node 0 is the constant 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Zero,
    Input { party: Party, index: u32 },
    Xor(u32, u32),
    And(Bit, Bit),
}

/// Something that leaves the circuit, at its place in the order of construction.
#[derive(Debug, Clone, Copy)]
pub(super) enum Exit {
    Project { node: u32, output: u32, weight: u64 },
    Reveal { bit: Bit },
    Keep { bit: Bit },
}

/// A circuit under construction.
///
/// Nodes are evaluated in the order of construction, so building things close to where they are
/// used keeps few wires alive at a time.
pub struct Builder {
    pub(super) nodes: Vec<Node>,
    /// The fingerprint of every node.
    prints: Vec<u128>,
    by_print: HashMap<u128, u32, FixedState>,
    ands: HashMap<(Bit, Bit), Bit, FixedState>,
    /// Tables that were used so far; a circuit has two or three.
    pub(super) tables: Vec<Rc<Divided>>,
    /// Exits with the number of nodes that existed before them.
    pub(super) exits: Vec<(u32, Exit)>,
    pub(super) inputs: [u32; 2],
    pub(super) modulus: Modulus,
    /// The constant part of each output.
    pub(super) constants: Vec<u64>,
    pub(super) reveals: u32,
    pub(super) kept: u32,
}

/// The handle of an arithmetic output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputId(u32);

impl Builder {
    /// Makes an empty circuit whose arithmetic outputs are shares of `modulus`.
    pub fn new(modulus: Modulus) -> Self {
        Self {
            nodes: vec![Node::Zero],
            prints: vec![0],
            by_print: HashMap::from_iter([(0, 0)]),
            ands: HashMap::default(),
            tables: Vec::new(),
            exits: Vec::new(),
            inputs: [0; 2],
            modulus,
            constants: Vec::new(),
            reveals: 0,
            kept: 0,
        }
    }

    /// Adds `count` further input bits of a party.
    pub fn inputs(&mut self, party: Party, count: u32) -> Vec<Bit> {
        let first = self.inputs[party as usize];
        self.inputs[party as usize] += count;
        (first..first + count)
            .map(|index| self.atom(Node::Input { party, index }))
            .collect()
    }

    fn push(&mut self, node: Node, print: u128) -> Bit {
        let id = u32::try_from(self.nodes.len()).expect("a circuit has fewer than 2^31 nodes");
        assert!(id < 1 << 31, "a circuit has fewer than 2^31 nodes");
        self.nodes.push(node);
        self.prints.push(print);
        self.by_print.insert(print, id);
        Bit::of_node(id)
    }

    fn atom(&mut self, node: Node) -> Bit {
        let print = fingerprint(self.nodes.len() as u64);
        self.push(node, print)
    }

    /// Returns the exclusive or: free.
    pub fn xor(&mut self, a: Bit, b: Bit) -> Bit {
        if a.as_constant().is_some() {
            return b.flip(a.flipped());
        }
        let print = self.prints[a.node() as usize] ^ self.prints[b.node() as usize];
        let plain = match self.by_print.get(&print) {
            Some(&id) => Bit::of_node(id),
            None => self.push(Node::Xor(a.node(), b.node()), print),
        };
        plain.flip(a.flipped() != b.flipped())
    }

    /// Returns the exclusive or of any number of bits.
    pub fn sum(&mut self, bits: impl IntoIterator<Item = Bit>) -> Bit {
        bits.into_iter().fold(Bit::ZERO, |s, b| self.xor(s, b))
    }

    /// Returns the conjunction: the only gate that is garbled.
    pub fn and(&mut self, a: Bit, b: Bit) -> Bit {
        let (a, b) = (a.min(b), a.max(b));
        if a == Bit::ZERO || a == !b {
            Bit::ZERO
        } else if a == Bit::ONE || a == b {
            b
        } else if let Some(&known) = self.ands.get(&(a, b)) {
            known
        } else {
            let new = self.atom(Node::And(a, b));
            self.ands.insert((a, b), new);
            new
        }
    }

    /// Returns the disjunction: one AND gate.
    pub fn or(&mut self, a: Bit, b: Bit) -> Bit {
        !self.and(!a, !b)
    }

    /// Chooses `b` if `select` else `a`: one AND gate.
    pub fn mux(&mut self, select: Bit, a: Bit, b: Bit) -> Bit {
        let difference = self.xor(a, b);
        let change = self.and(select, difference);
        self.xor(a, change)
    }

    /// Makes a new arithmetic output, initially zero.
    pub fn output(&mut self) -> OutputId {
        self.constants.push(0);
        OutputId(u32::try_from(self.constants.len() - 1).expect("outputs can be counted"))
    }

    /// Adds a public constant to an output.
    pub fn add_constant(&mut self, output: OutputId, value: i64) {
        let slot = &mut self.constants[output.0 as usize];
        *slot = self.modulus.add(*slot, self.modulus.residue(value));
    }

    /// Adds `weight · bit` to an output, by one projection gate; the weight is a residue.
    pub fn project_residue(&mut self, output: OutputId, bit: Bit, weight: u64) {
        let weight = self.modulus.reduce(weight);
        let constant = &mut self.constants[output.0 as usize];
        // w·(1 - b) = w + (-w)·b: complements are free here too.
        let weight = if bit.flipped() {
            *constant = self.modulus.add(*constant, weight);
            self.modulus.neg(weight)
        } else {
            weight
        };
        if bit.node() != 0 && weight != 0 {
            self.exits.push((
                self.nodes.len() as u32,
                Exit::Project {
                    node: bit.node(),
                    output: output.0,
                    weight,
                },
            ));
        }
    }

    /// Adds `weight · bit` to an output, by one projection gate.
    pub fn project(&mut self, output: OutputId, bit: Bit, weight: i64) {
        let weight = self.modulus.residue(weight);
        self.project_residue(output, bit, weight);
    }

    /// Adds an unsigned number times a weight to an output.
    pub fn project_number(&mut self, output: OutputId, bits: &[Bit], weight: i64) {
        for (i, &bit) in bits.iter().enumerate() {
            self.project(output, bit, weight << i);
        }
    }

    /// Shows a bit to the evaluator.
    pub fn reveal(&mut self, bit: Bit) {
        self.exits
            .push((self.nodes.len() as u32, Exit::Reveal { bit }));
        self.reveals += 1;
    }

    /// Keeps a bit as labels: both parties hold theirs and may give it to another circuit.
    ///
    /// # Panics
    /// If the bit is a constant: a constant has no labels.
    pub fn keep(&mut self, bit: Bit) {
        assert!(bit.as_constant().is_none(), "a constant has no labels");
        self.exits
            .push((self.nodes.len() as u32, Exit::Keep { bit }));
        self.kept += 1;
    }

    /// Counts the AND gates built so far, used or not.
    pub fn and_gates(&self) -> usize {
        self.nodes
            .iter()
            .filter(|n| matches!(n, Node::And(..)))
            .count()
    }

    /// Returns the finished circuit: unused gates are dropped and wires placed in reusable slots.
    pub fn finish(self) -> Circuit {
        compile::compile(&self)
    }
}

/// Returns the fingerprint of an atom: two steps of the SplitMix64 finaliser, fixed so that both
/// parties build the same circuit.
const fn fingerprint(id: u64) -> u128 {
    const fn mix(mut z: u64) -> u64 {
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    let low = mix(id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let high = mix(low ^ 0x6a09_e667_f3bc_c908);
    (high as u128) << 64 | low as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_and_repetitions_fold() {
        let mut b = Builder::new(Modulus::Prime);
        let x = b.inputs(Party::Garbler, 3);
        assert_eq!(b.and(x[0], Bit::ZERO), Bit::ZERO);
        assert_eq!(b.and(Bit::ONE, !x[0]), !x[0]);
        assert_eq!(b.and(x[1], x[1]), x[1]);
        assert_eq!(b.and(x[1], !x[1]), Bit::ZERO);
        assert_eq!(b.or(x[1], !x[1]), Bit::ONE);
        assert_eq!(b.xor(x[2], !x[2]), Bit::ONE);
        let once = b.and(x[0], !x[1]);
        assert_eq!(b.and(!x[1], x[0]), once);
        assert_eq!(b.and_gates(), 1);
    }

    #[test]
    fn empty_sums_are_constants_however_they_are_built() {
        let mut b = Builder::new(Modulus::Prime);
        let x = b.inputs(Party::Evaluator, 3);
        let xy = b.xor(x[0], x[1]);
        let yz = b.xor(!x[1], x[2]);
        let xz = b.xor(x[0], x[2]);
        let sum = b.sum([xy, yz, xz]);
        assert_eq!(sum, Bit::ONE);
        // Equal sums are one wire.
        let nodes = b.nodes.len();
        assert_eq!(b.xor(xy, yz), !xz);
        assert_eq!(b.xor(xy, x[1]), x[0]);
        assert_eq!(b.nodes.len(), nodes);
    }

    #[test]
    fn unused_gates_are_dropped() {
        let mut b = Builder::new(Modulus::Prime);
        let x = b.inputs(Party::Garbler, 4);
        let used = b.and(x[0], x[1]);
        b.and(x[2], x[3]);
        let out = b.output();
        b.project(out, used, 3);
        b.project(out, Bit::ONE, 4);
        let circuit = b.finish();
        let cost = circuit.cost();
        assert_eq!(
            (cost.and_gates, cost.projections, cost.garbler_inputs),
            (1, 1, 4)
        );
        assert_eq!(circuit.constants, [4]);
    }
}

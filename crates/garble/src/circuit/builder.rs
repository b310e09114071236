//! Building a circuit: gates with constants folded and common subexpressions merged.
//!
//! Only AND gates cost anything when garbled, so every rule here serves to have fewer of them:
//! a gate with a constant or with the same input twice disappears, and a gate that already
//! exists is not built again.

use super::table::KnownTables;
use super::{Bit, Circuit, Modulus, compile};
use std::collections::HashMap;

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
}

/// A circuit under construction.
///
/// Nodes are evaluated in the order of construction, so building things close to where they are
/// used keeps few wires alive at a time.
pub struct Builder {
    pub(super) nodes: Vec<Node>,
    known: HashMap<Node, u32>,
    pub(super) tables: KnownTables,
    /// Exits with the number of nodes that existed before them.
    pub(super) exits: Vec<(u32, Exit)>,
    pub(super) inputs: [u32; 2],
    pub(super) modulus: Modulus,
    /// The constant part of each output.
    pub(super) constants: Vec<u64>,
    pub(super) reveals: u32,
}

/// The handle of an arithmetic output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputId(u32);

impl Builder {
    /// An empty circuit whose arithmetic outputs are shares of `modulus`.
    pub fn new(modulus: Modulus) -> Self {
        Self {
            nodes: vec![Node::Zero],
            known: HashMap::new(),
            tables: KnownTables::new(),
            exits: Vec::new(),
            inputs: [0; 2],
            modulus,
            constants: Vec::new(),
            reveals: 0,
        }
    }

    /// `count` further input bits of a party.
    pub fn inputs(&mut self, party: Party, count: u32) -> Vec<Bit> {
        let first = self.inputs[party as usize];
        self.inputs[party as usize] += count;
        (first..first + count)
            .map(|index| self.node(Node::Input { party, index }))
            .collect()
    }

    fn node(&mut self, node: Node) -> Bit {
        if let Some(&id) = self.known.get(&node) {
            return Bit::of_node(id);
        }
        let id = u32::try_from(self.nodes.len()).expect("a circuit has fewer than 2^31 nodes");
        assert!(id < 1 << 31, "a circuit has fewer than 2^31 nodes");
        self.nodes.push(node);
        self.known.insert(node, id);
        Bit::of_node(id)
    }

    /// Exclusive or: free.
    pub fn xor(&mut self, a: Bit, b: Bit) -> Bit {
        let flip = a.flipped() != b.flipped();
        let (lo, hi) = (a.node().min(b.node()), a.node().max(b.node()));
        let plain = if lo == hi {
            Bit::ZERO
        } else if lo == 0 {
            Bit::of_node(hi)
        } else {
            self.node(Node::Xor(lo, hi))
        };
        plain.flip(flip)
    }

    /// Exclusive or of any number of bits.
    pub fn sum(&mut self, bits: impl IntoIterator<Item = Bit>) -> Bit {
        bits.into_iter().fold(Bit::ZERO, |s, b| self.xor(s, b))
    }

    /// Conjunction: the only gate that is garbled.
    pub fn and(&mut self, a: Bit, b: Bit) -> Bit {
        let (a, b) = (a.min(b), a.max(b));
        if a == Bit::ZERO || a == !b {
            Bit::ZERO
        } else if a == Bit::ONE || a == b {
            b
        } else {
            self.node(Node::And(a, b))
        }
    }

    /// Disjunction: one AND gate.
    pub fn or(&mut self, a: Bit, b: Bit) -> Bit {
        !self.and(!a, !b)
    }

    /// `b` if `select` else `a`: one AND gate.
    pub fn mux(&mut self, select: Bit, a: Bit, b: Bit) -> Bit {
        let difference = self.xor(a, b);
        let change = self.and(select, difference);
        self.xor(a, change)
    }

    /// A new arithmetic output, so far zero.
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

    /// AND gates built so far, used or not.
    pub fn and_gates(&self) -> usize {
        self.nodes
            .iter()
            .filter(|n| matches!(n, Node::And(..)))
            .count()
    }

    /// The finished circuit: unused gates dropped, wires placed in reusable slots.
    pub fn finish(self) -> Circuit {
        compile::compile(&self)
    }
}

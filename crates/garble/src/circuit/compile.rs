//! From a graph to a list of operations on slots.
//!
//! Three passes: mark what is used, list the operations (a tree of XORs whose inner nodes have no
//! other use becomes one sum, so that they never touch memory), and give every wire a slot that is
//! free from its last use on.

use super::builder::{Builder, Exit, Node};
use super::{Circuit, CircuitCost, Op, Party, Segment};

/// The number of AND gates or projections at which a segment ends: 128 KiB of tables for eight
/// instances, and a few times as many operations.
const SEGMENT_GATES: usize = 512;

const NONE: u32 = u32::MAX;

pub(super) fn compile(builder: &Builder) -> Circuit {
    let uses = Uses::of(builder);
    let listed = List::of(builder, &uses);
    let (ops, slots) = allocate(listed.ops, &listed.sources, builder.nodes.len());
    let segments = cut(&ops);
    let total = |f: fn(&Segment) -> usize| segments.iter().map(f).sum();
    let cost = CircuitCost {
        and_gates: total(|s| s.and_gates),
        xor_gates: ops.iter().map(xor_gates).sum(),
        projections: total(|s| s.projections),
        reveals: total(|s| s.reveals),
        kept: builder.kept as usize,
        garbler_inputs: builder.inputs[Party::Garbler as usize] as usize,
        evaluator_inputs: builder.inputs[Party::Evaluator as usize] as usize,
        outputs: builder.constants.len(),
    };
    Circuit {
        ops,
        sources: slots.sources,
        weights: listed.weights,
        constants: builder.constants.clone(),
        segments,
        slots: slots.count,
        modulus: builder.modulus,
        cost,
    }
}

const fn xor_gates(op: &Op) -> usize {
    match op {
        Op::Xor { .. } => 1,
        Op::Sum { count, .. } => (*count as usize).saturating_sub(1),
        _ => 0,
    }
}

/// How often each node is used, and whether its only use is an XOR.
struct Uses {
    count: Vec<u32>,
    by_xor: Vec<bool>,
}

impl Uses {
    fn of(builder: &Builder) -> Self {
        let n = builder.nodes.len();
        let mut uses = Self {
            count: vec![0; n],
            by_xor: vec![false; n],
        };
        for (_, exit) in &builder.exits {
            let node = match exit {
                Exit::Project { node, .. } => *node,
                Exit::Reveal { bit } | Exit::Keep { bit } => bit.node(),
            };
            uses.count[node as usize] += 1;
        }
        // Nodes only refer to earlier ones, so when going backwards every use is seen before the
        // node.
        for id in (0..n).rev() {
            if uses.count[id] == 0 {
                continue;
            }
            match builder.nodes[id] {
                Node::Xor(a, b) => {
                    for s in [a, b] {
                        uses.count[s as usize] += 1;
                        uses.by_xor[s as usize] = true;
                    }
                }
                Node::And(a, b) => {
                    uses.count[a.node() as usize] += 1;
                    uses.count[b.node() as usize] += 1;
                }
                Node::Zero | Node::Input { .. } => {}
            }
        }
        uses
    }

    /// Tells whether a node is an XOR that only feeds another XOR: it is added up there.
    fn absorbed(&self, builder: &Builder, id: u32) -> bool {
        let i = id as usize;
        matches!(builder.nodes[i], Node::Xor(..)) && self.count[i] == 1 && self.by_xor[i]
    }
}

/// Operations whose operands are still node numbers.
struct List {
    ops: Vec<Op>,
    sources: Vec<u32>,
    weights: Vec<u64>,
    entered: Vec<bool>,
    kept: u32,
}

impl List {
    fn of(builder: &Builder, uses: &Uses) -> Self {
        let mut list = Self {
            ops: Vec::new(),
            sources: Vec::new(),
            weights: Vec::new(),
            entered: vec![false; builder.nodes.len()],
            kept: 0,
        };
        let mut exits = builder.exits.iter().peekable();
        for id in 0..=builder.nodes.len() as u32 {
            while let Some((_, exit)) = exits.next_if(|(at, _)| *at == id) {
                list.exit(builder, exit);
            }
            let node = builder.nodes.get(id as usize);
            if let Some(node) = node
                && uses.count[id as usize] > 0
                && !uses.absorbed(builder, id)
            {
                list.node(builder, uses, id, *node);
            }
        }
        list
    }

    /// Lists an input right before its first use.
    fn enter(&mut self, builder: &Builder, id: u32) {
        if let Node::Input { party, index } = builder.nodes[id as usize]
            && !std::mem::replace(&mut self.entered[id as usize], true)
        {
            self.ops.push(Op::Input {
                dst: id,
                party,
                index,
            });
        }
    }

    fn node(&mut self, builder: &Builder, uses: &Uses, id: u32, node: Node) {
        match node {
            Node::Zero | Node::Input { .. } => {}
            Node::And(a, b) => {
                self.enter(builder, a.node());
                self.enter(builder, b.node());
                self.ops.push(Op::And {
                    dst: id,
                    a: a.node(),
                    b: b.node(),
                    flip_a: a.flipped(),
                    flip_b: b.flipped(),
                });
            }
            Node::Xor(a, b) => {
                let first = self.sources.len();
                let mut open = vec![a, b];
                while let Some(s) = open.pop() {
                    if uses.absorbed(builder, s) {
                        let Node::Xor(x, y) = builder.nodes[s as usize] else {
                            unreachable!("only XORs are absorbed")
                        };
                        open.extend([x, y]);
                    } else {
                        self.enter(builder, s);
                        self.sources.push(s);
                    }
                }
                self.cancel(first);
                match self.sources[first..] {
                    [a, b] => {
                        self.sources.truncate(first);
                        self.ops.push(Op::Xor { dst: id, a, b });
                    }
                    _ => self.ops.push(Op::Sum {
                        dst: id,
                        first: first as u32,
                        count: (self.sources.len() - first) as u32,
                    }),
                }
            }
        }
    }

    /// Cancels equal terms of a sum in pairs.
    fn cancel(&mut self, first: usize) {
        let mut terms = self.sources.split_off(first);
        terms.sort_unstable();
        for run in terms.chunk_by(|a, b| a == b) {
            if run.len() % 2 == 1 {
                self.sources.push(run[0]);
            }
        }
    }

    fn exit(&mut self, builder: &Builder, exit: &Exit) {
        match *exit {
            Exit::Project {
                node,
                output,
                weight,
            } => {
                self.enter(builder, node);
                self.ops.push(Op::Project {
                    a: node,
                    output,
                    weight: self.weights.len() as u32,
                });
                self.weights.push(weight);
            }
            Exit::Reveal { bit } => {
                self.enter(builder, bit.node());
                self.ops.push(Op::Reveal {
                    a: bit.node(),
                    flip: bit.flipped(),
                });
            }
            Exit::Keep { bit } => {
                self.enter(builder, bit.node());
                self.ops.push(Op::Keep {
                    a: bit.node(),
                    flip: bit.flipped(),
                    output: self.kept,
                });
                self.kept += 1;
            }
        }
    }
}

struct Slots {
    count: usize,
    sources: Vec<u32>,
}

/// Returns the slots that an operation reads, as mutable references.
fn operands<'a>(
    op: &'a mut Op,
    sources: &'a mut [u32],
) -> ([Option<&'a mut u32>; 2], &'a mut [u32]) {
    match op {
        Op::Input { .. } => ([None, None], &mut []),
        Op::Xor { a, b, .. } | Op::And { a, b, .. } => ([Some(a), Some(b)], &mut []),
        Op::Sum { first, count, .. } => (
            [None, None],
            &mut sources[*first as usize..][..*count as usize],
        ),
        Op::Project { a, .. } | Op::Reveal { a, .. } | Op::Keep { a, .. } => {
            ([Some(a), None], &mut [])
        }
    }
}

fn destination(op: &mut Op) -> Option<&mut u32> {
    match op {
        Op::Input { dst, .. } | Op::Xor { dst, .. } | Op::Sum { dst, .. } | Op::And { dst, .. } => {
            Some(dst)
        }
        Op::Project { .. } | Op::Reveal { .. } | Op::Keep { .. } => None,
    }
}

/// Replaces node numbers by slots. The constant 0, if it is ever read, keeps slot 0 for itself.
fn allocate(mut ops: Vec<Op>, sources: &[u32], nodes: usize) -> (Vec<Op>, Slots) {
    let mut sources = sources.to_vec();
    let mut last_use = vec![0u32; nodes];
    for (i, op) in ops.iter_mut().enumerate() {
        let (pair, many) = operands(op, &mut sources);
        for s in pair.into_iter().flatten().chain(many) {
            last_use[*s as usize] = i as u32;
        }
    }
    let mut slot_of = vec![NONE; nodes];
    slot_of[0] = 0;
    let mut count = 1;
    let mut free: Vec<u32> = Vec::new();
    for (i, op) in ops.iter_mut().enumerate() {
        // A destination may take the slot of an operand that dies here: operands are read first.
        let (pair, many) = operands(op, &mut sources);
        for s in pair.into_iter().flatten().chain(many) {
            let node = std::mem::replace(s, slot_of[*s as usize]);
            if node != 0 && last_use[node as usize] == i as u32 {
                free.push(*s);
            }
        }
        if let Some(dst) = destination(op) {
            let slot = free.pop().unwrap_or_else(|| {
                count += 1;
                count - 1
            });
            slot_of[*dst as usize] = slot;
            *dst = slot;
        }
    }
    let slots = Slots {
        count: count as usize,
        sources,
    };
    (ops, slots)
}

fn cut(ops: &[Op]) -> Vec<Segment> {
    let empty = |start| Segment {
        ops: start..start,
        and_gates: 0,
        projections: 0,
        reveals: 0,
    };
    let mut segments = Vec::new();
    let mut now = empty(0);
    for (i, op) in ops.iter().enumerate() {
        match op {
            Op::And { .. } => now.and_gates += 1,
            Op::Project { .. } => now.projections += 1,
            Op::Reveal { .. } => now.reveals += 1,
            _ => {}
        }
        now.ops.end = i + 1;
        if now.and_gates.max(now.projections).max(now.reveals) == SEGMENT_GATES {
            segments.push(std::mem::replace(&mut now, empty(i + 1)));
        }
    }
    if !now.ops.is_empty() {
        segments.push(now);
    }
    segments
}

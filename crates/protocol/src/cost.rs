//! What one inference sends, counted from the program alone.
//!
//! Every message has a length that follows from the plan and the scheme, so its bytes can be told before
//! anything runs. So can its place among the others: going through them in the client's order, a round trip is
//! each one that the client hears after it has said something. A test compares both with the channel's meter.

use crate::chgs::Sizes;
use crate::error::Result;
use crate::homomorphic::{Exchange, Offer, Owner};
use crate::program::{Form, Program};
use crate::scheme::{Prepared, Products, Reveal};
use crate::stored;
use crate::work::Work;
use primer_he::packing::matrix::{EncryptedAnswer, EncryptedMatrix};
use primer_net::frame::HEADER_BYTES;
use primer_plan::graph::ValueId;
use primer_ring::modulus::K;
use primer_stops::{Cost, requantise};
use std::collections::HashSet;

/// What some steps of an inference cost, frame headers included, the handshake not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Bytes by phase and direction.
    pub bytes: Cost,
    /// Round trips online, those of preparing included if that is done online.
    pub rounds_online: u64,
    /// AND gates that are garbled.
    pub and_gates: u64,
}

/// What an inference costs: its layers, and the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// Embedding, head and answer.
    pub outside: Part,
    /// All layers together.
    pub layers: Part,
}

impl Parts {
    /// All of it.
    pub fn total(&self) -> Part {
        let mut bytes = self.outside.bytes;
        bytes += self.layers.bytes;
        Part {
            bytes,
            rounds_online: self.outside.rounds_online + self.layers.rounds_online,
            and_gates: self.outside.and_gates + self.layers.and_gates,
        }
    }
}

/// Bytes of one inference without the handshake, frame headers included.
///
/// # Errors
/// As [`parts`].
pub fn inference(program: &Program) -> Result<Cost> {
    Ok(parts(program)?.total().bytes)
}

/// What one inference costs.
///
/// # Errors
/// [`crate::ProtocolError`] if the plan does not fit the homomorphic parameters.
pub fn parts(program: &Program) -> Result<Parts> {
    let graph = program.plan().graph();
    let mut count = Count {
        program,
        offered: HashSet::new(),
        opened: HashSet::new(),
        owes: false,
        // The masked input goes first.
        spoken: true,
    };
    let mut parts = Parts::default();
    let inputs = graph.tokens * (graph.shape.vocab + graph.shape.types);
    parts.outside.bytes.online_up += residues(inputs) + residues(graph.tokens);
    for (index, step) in graph.steps.iter().enumerate() {
        let part = match step.layer {
            Some(_) => &mut parts.layers,
            None => &mut parts.outside,
        };
        count.step(index, part)?;
    }
    if program.reveal() == Reveal::Outputs {
        let outputs = graph.outputs.iter().map(|id| residues(count.size(*id)));
        parts.outside.bytes.online_down += outputs.sum::<u64>();
        count.hear(&mut parts.outside);
    }
    if program.scheme().prepared() == Prepared::Online {
        for Part { bytes, .. } in [&mut parts.outside, &mut parts.layers] {
            bytes.online_up += std::mem::take(&mut bytes.offline_up);
            bytes.online_down += std::mem::take(&mut bytes.offline_down);
        }
    }
    Ok(parts)
}

/// Bytes that one prepared inference takes in each party's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// The client's bundle.
    pub client: u64,
    /// The server's.
    pub server: u64,
}

/// What a bundle takes in a store.
pub fn stored(program: &Program) -> Stored {
    let graph = program.plan().graph();
    let header = stored::HEADER_BYTES;
    let (mut client, mut server) = (header, header);
    if program.scheme().prepared() == Prepared::Online {
        return Stored { client, server };
    }
    for (index, step) in graph.steps.iter().enumerate() {
        let kept = program.work(index).kept(graph, step);
        let bytes = |sizes: Vec<(usize, usize)>| -> u64 {
            let lengths = sizes.iter().map(|(r, c)| stored::share_len(*r, *c));
            lengths.sum()
        };
        (client, server) = (client + bytes(kept.client), server + bytes(kept.server));
        match program.work(index) {
            Work::Linear(_) | Work::Product(_) | Work::Merged(_) => {}
            Work::Requantise(input) => {
                let value = graph.value(*input);
                let (ours, theirs) = requantise::stored_len(value.rows * value.cols);
                (client, server) = (client + ours, server + theirs);
            }
            Work::Garbled(_, job) | Work::Argmax(_, job) => {
                client += job.stored_len();
                server += job.server_stored_len();
            }
        }
    }
    Stored { client, server }
}

/// A message of packed residues.
fn residues(count: usize) -> u64 {
    HEADER_BYTES + (count as u64 * u64::from(K)).div_ceil(8)
}

struct Count<'a> {
    program: &'a Program,
    /// Encrypted masks that the server has.
    offered: HashSet<(Owner, Form)>,
    /// Values that were opened.
    opened: HashSet<ValueId>,
    /// Whether the client has requests of requantisations that it has not answered yet.
    owes: bool,
    /// Whether the client has said something since it last heard something, online.
    spoken: bool,
}

impl Count<'_> {
    fn size(&self, id: ValueId) -> usize {
        let value = self.program.plan().graph().value(id);
        value.rows * value.cols
    }

    /// Whether preparing a step is a part of the online phase.
    fn online(&self) -> bool {
        self.program.scheme().prepared() == Prepared::Online
    }

    /// Online, a message of the client's.
    fn say(&mut self) {
        self.spoken = true;
    }

    /// Online, a message of the server's.
    fn hear(&mut self, part: &mut Part) {
        part.rounds_online += u64::from(std::mem::take(&mut self.spoken));
    }

    fn step(&mut self, index: usize, part: &mut Part) -> Result<()> {
        let program = self.program;
        for (_, exchange) in program.exchanges(index..index + 1)? {
            self.exchange(&exchange, part)?;
        }
        match program.work(index) {
            Work::Linear(_) => {}
            Work::Product(factors) => {
                if program.scheme().products() == Products::Opened {
                    for id in factors.values() {
                        self.opened(id, part);
                    }
                }
                self.reshared(index, part);
            }
            Work::Merged(merged) => {
                self.opened(merged.input, part);
                let (rows, cols) = Sizes::of(program.plan().graph()).image();
                part.bytes.online_down += residues(rows * cols);
                self.hear(part);
                self.reshared(index, part);
            }
            Work::Requantise(input) => {
                part.bytes += requantise::cost(self.size(*input));
                if self.online() {
                    // The server extends, the client correlates.
                    self.hear(part);
                    self.say();
                }
                self.hear(part);
                self.owes = true;
            }
            Work::Garbled(_, job) | Work::Argmax(_, job) => {
                part.bytes += job.cost();
                part.and_gates += (job.stop().circuit().cost().and_gates * job.instances()) as u64;
                if self.online() {
                    // For each chunk, the client's choices and then the circuits.
                    for _ in job.chunks() {
                        self.say();
                        self.hear(part);
                    }
                }
                self.hear(part);
                if job.outputs() > 0 {
                    self.say();
                }
            }
        }
        // What is prepared online is answered at once.
        if (self.online() || program.settled_after(index)) && std::mem::take(&mut self.owes) {
            self.say();
        }
        Ok(())
    }

    /// The server opens a value, unless it did so before.
    fn opened(&mut self, id: ValueId, part: &mut Part) {
        if self.opened.insert(id) {
            part.bytes.online_down += residues(self.size(id));
            self.hear(part);
        }
    }

    /// The client sends its share of a step's result anew.
    fn reshared(&mut self, index: usize, part: &mut Part) {
        let output = self.program.step(index).output();
        part.bytes.online_up += residues(self.size(output));
        self.say();
    }

    /// Encrypted masks that were not sent before, and the answer.
    fn exchange(&mut self, exchange: &Exchange, part: &mut Part) -> Result<()> {
        let params = self.program.params();
        for Offer { owner, form, cols } in &exchange.offers {
            if self.offered.insert((*owner, *form)) {
                let (layout, chunks) = self.program.packing(*form, *cols)?;
                let length = EncryptedMatrix::wire_len(params, &layout, &chunks);
                part.bytes.offline_up += HEADER_BYTES + length as u64;
                if self.online() {
                    self.say();
                }
            }
        }
        let length = EncryptedAnswer::wire_len(params, &exchange.layout, &exchange.chunks);
        part.bytes.offline_down += HEADER_BYTES + length as u64;
        if self.online() {
            self.hear(part);
        }
        Ok(())
    }
}

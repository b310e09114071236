//! What one inference sends, counted from the program alone.
//!
//! Every message has a length that follows from the plan and the scheme, so its bytes can be told before
//! anything runs. A test compares them with the channel's meter.

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
    /// Round trips online of a program that is prepared offline.
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
        under_way: false,
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
        // The last stop ends with a message of the client's, and then it waits.
        parts.outside.rounds_online += 1;
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
    /// Whether the round trip of a requantisation is open to others.
    under_way: bool,
}

impl Count<'_> {
    fn size(&self, id: ValueId) -> usize {
        let value = self.program.plan().graph().value(id);
        value.rows * value.cols
    }

    fn step(&mut self, index: usize, part: &mut Part) -> Result<()> {
        let program = self.program;
        for (_, exchange) in program.exchanges(index..index + 1)? {
            self.exchange(&exchange, &mut part.bytes)?;
        }
        match program.work(index) {
            Work::Linear(_) => {
                self.under_way &= !program.settled_after(index);
                return Ok(());
            }
            Work::Product(factors) => {
                if program.scheme().products() == Products::Opened {
                    let fresh = factors.values().filter(|id| self.opened.insert(*id));
                    let fresh: Vec<ValueId> = fresh.collect();
                    let sizes = fresh.into_iter().map(|id| residues(self.size(id)));
                    part.bytes.online_down += sizes.sum::<u64>();
                }
                part.bytes.online_up += residues(self.size(program.step(index).output()));
            }
            Work::Merged(merged) => {
                if self.opened.insert(merged.input) {
                    part.bytes.online_down += residues(self.size(merged.input));
                }
                let (rows, cols) = Sizes::of(program.plan().graph()).image();
                part.bytes.online_down += residues(rows * cols);
                part.bytes.online_up += residues(self.size(program.step(index).output()));
            }
            Work::Requantise(input) => {
                part.bytes += requantise::cost(self.size(*input));
                let shared = std::mem::replace(&mut self.under_way, !program.settled_after(index));
                part.rounds_online += u64::from(!shared);
                return Ok(());
            }
            Work::Garbled(_, job) | Work::Argmax(_, job) => {
                part.bytes += job.cost();
                part.and_gates += (job.stop().circuit().cost().and_gates * job.instances()) as u64;
            }
        }
        part.rounds_online += 1;
        Ok(())
    }

    /// Encrypted masks that were not sent before, and the answer.
    fn exchange(&mut self, exchange: &Exchange, bytes: &mut Cost) -> Result<()> {
        let params = self.program.params();
        for Offer { owner, form, cols } in &exchange.offers {
            if self.offered.insert((*owner, *form)) {
                let (layout, chunks) = self.program.packing(*form, *cols)?;
                let length = EncryptedMatrix::wire_len(params, &layout, &chunks);
                bytes.offline_up += HEADER_BYTES + length as u64;
            }
        }
        let length = EncryptedAnswer::wire_len(params, &exchange.layout, &exchange.chunks);
        bytes.offline_down += HEADER_BYTES + length as u64;
        Ok(())
    }
}

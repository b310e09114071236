//! What one inference sends, counted from the program alone.
//!
//! Every message has a length that follows from the plan and the scheme, so its bytes can be told before
//! anything runs. A test compares them with the channel's meter.

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

/// Bytes of one inference without the handshake, frame headers included.
///
/// # Errors
/// [`crate::ProtocolError`] if the plan does not fit the homomorphic parameters.
pub fn inference(program: &Program) -> Result<Cost> {
    let plan = program.plan();
    let graph = plan.graph();
    let mut count = Count {
        program,
        cost: Cost::default(),
        offered: HashSet::new(),
    };
    let mut opened = HashSet::new();
    let size = |id: ValueId| graph.value(id).rows * graph.value(id).cols;
    let inputs = graph.tokens * (graph.shape.vocab + graph.shape.types);
    count.cost.online_up += residues(inputs) + residues(graph.tokens);
    for (_, exchange) in program.exchanges(0..graph.steps.len())? {
        count.exchange(&exchange)?;
    }
    for (index, step) in graph.steps.iter().enumerate() {
        match program.work(index) {
            Work::Linear(_) => {}
            Work::Product(factors) => {
                if program.scheme().products() == Products::Opened {
                    let fresh = factors.values().filter(|id| opened.insert(*id));
                    count.cost.online_down += fresh.map(|id| residues(size(id))).sum::<u64>();
                }
                count.cost.online_up += residues(size(step.output()));
            }
            Work::Requantise(input) => count.add(&requantise::cost(size(*input))),
            Work::Garbled(_, job) | Work::Argmax(_, job) => count.add(&job.cost()),
        }
    }
    if program.reveal() == Reveal::Outputs {
        let outputs = graph.outputs.iter().map(|id| residues(size(*id)));
        count.cost.online_down += outputs.sum::<u64>();
    }
    let mut cost = count.cost;
    if program.scheme().prepared() == Prepared::Online {
        cost.online_up += std::mem::take(&mut cost.offline_up);
        cost.online_down += std::mem::take(&mut cost.offline_down);
    }
    Ok(cost)
}

/// Round trips of the online phase: one for each product of secrets and each stop, and the answer, which comes
/// with the last of them unless that ends with a message of the client's.
pub fn rounds_online(program: &Program) -> u64 {
    let steps = 0..program.plan().graph().steps.len();
    let interactive = steps.filter(|index| !matches!(program.work(*index), Work::Linear(_)));
    interactive.count() as u64 + u64::from(program.reveal() == Reveal::Outputs)
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
        match program.work(index) {
            Work::Linear(_) => {}
            Work::Product(_) => {
                let value = graph.value(step.output());
                client += stored::share_len(value.rows, value.cols);
            }
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

/// AND gates that one inference garbles.
pub fn and_gates(program: &Program) -> u64 {
    let works = (0..program.plan().graph().steps.len()).map(|index| program.work(index));
    let gates = works.map(|work| match work {
        Work::Garbled(_, job) | Work::Argmax(_, job) => {
            (job.stop().circuit().cost().and_gates * job.instances()) as u64
        }
        _ => 0,
    });
    gates.sum()
}

/// A message of packed residues.
fn residues(count: usize) -> u64 {
    HEADER_BYTES + (count as u64 * u64::from(K)).div_ceil(8)
}

struct Count<'a> {
    program: &'a Program,
    cost: Cost,
    offered: HashSet<(Owner, Form)>,
}

impl Count<'_> {
    /// Encrypted masks that were not sent before, and the answer.
    fn exchange(&mut self, exchange: &Exchange) -> Result<()> {
        let params = self.program.params();
        for Offer { owner, form, cols } in &exchange.offers {
            if self.offered.insert((*owner, *form)) {
                let (layout, chunks) = self.program.packing(*form, *cols)?;
                let bytes = EncryptedMatrix::wire_len(params, &layout, &chunks);
                self.cost.offline_up += HEADER_BYTES + bytes as u64;
            }
        }
        let bytes = EncryptedAnswer::wire_len(params, &exchange.layout, &exchange.chunks);
        self.cost.offline_down += HEADER_BYTES + bytes as u64;
        Ok(())
    }

    fn add(&mut self, cost: &Cost) {
        self.cost.offline_up += cost.offline_up;
        self.cost.offline_down += cost.offline_down;
        self.cost.online_up += cost.online_up;
        self.cost.online_down += cost.online_down;
    }
}

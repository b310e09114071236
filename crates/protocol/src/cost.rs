//! What one inference sends, counted from the program alone.
//!
//! Every message has a length that follows from the plan and the scheme, so its bytes can be told before
//! anything runs. A test compares them with the channel's meter.

use crate::error::Result;
use crate::fhgs::Factors;
use crate::hgs;
use crate::homomorphic::Owner;
use crate::scheme::{Form, Prepared, Program};
use crate::stop;
use primer_he::packing::layout::{Chunks, Layout};
use primer_he::packing::matrix::{EncryptedAnswer, EncryptedMatrix};
use primer_net::frame::HEADER_BYTES;
use primer_plan::graph::{Op, ValueId};
use primer_plan::plan::Plan;
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
    for (index, step) in graph.steps.iter().enumerate() {
        let output = step.output();
        if let Op::Stop { input, .. } = step.op {
            let value = graph.value(input);
            let cost = match plan.function(index) {
                None => requantise::cost(value.rows * value.cols),
                Some(function) => stop::job(function, value.rows, value.cols)?.cost(),
            };
            count.add(&cost);
        } else if let Some(factors) = Factors::of(step) {
            let (offered, answers) = factors.messages(program)?;
            for (id, form, cols) in offered {
                count.offer(Some(id), form, cols)?;
            }
            answers.iter().for_each(|answer| count.answer(answer));
            let fresh = factors.values().filter(|id| opened.insert(*id));
            count.cost.online_down += fresh.map(|id| residues(size(id))).sum::<u64>();
            count.cost.online_up += residues(size(output));
        } else if let Some((terms, _)) = hgs::terms(plan, step) {
            let (form, cols) = (hgs::form(graph, output), graph.value(output).cols);
            for term in terms {
                count.offer(term.owner, form, term.cols)?;
                let (layout, _) = program.packing(form, cols)?;
                count.answer(&(layout, Chunks::even(&layout, cols)));
            }
        }
    }
    let outputs = graph.outputs.iter().map(|id| residues(size(*id)));
    count.cost.online_down += outputs.sum::<u64>();
    let mut cost = count.cost;
    if program.scheme().prepared() == Prepared::Online {
        cost.online_up += std::mem::take(&mut cost.offline_up);
        cost.online_down += std::mem::take(&mut cost.offline_down);
    }
    Ok(cost)
}

/// AND gates that one inference garbles.
///
/// # Errors
/// [`crate::ProtocolError`] if a stop of the plan cannot be built.
pub fn and_gates(plan: &Plan) -> Result<u64> {
    let mut gates = 0;
    for (index, step) in plan.graph().steps.iter().enumerate() {
        let (Op::Stop { input, .. }, Some(function)) = (&step.op, plan.function(index)) else {
            continue;
        };
        let value = plan.graph().value(*input);
        let job = stop::job(function, value.rows, value.cols)?;
        gates += (job.stop().circuit().cost().and_gates * job.instances()) as u64;
    }
    Ok(gates)
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
    /// An encrypted mask, if it was not sent before.
    fn offer(&mut self, owner: Owner, form: Form, cols: usize) -> Result<()> {
        if self.offered.insert((owner, form)) {
            let (layout, chunks) = self.program.packing(form, cols)?;
            let bytes = EncryptedMatrix::wire_len(self.program.params(), &layout, &chunks);
            self.cost.offline_up += HEADER_BYTES + bytes as u64;
        }
        Ok(())
    }

    fn answer(&mut self, (layout, chunks): &(Layout, Chunks)) {
        let bytes = EncryptedAnswer::wire_len(self.program.params(), layout, chunks);
        self.cost.offline_down += HEADER_BYTES + bytes as u64;
    }

    fn add(&mut self, cost: &Cost) {
        self.cost.offline_up += cost.offline_up;
        self.cost.offline_down += cost.offline_down;
        self.cost.online_up += cost.online_up;
        self.cost.online_down += cost.online_down;
    }
}

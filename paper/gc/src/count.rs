//! What an inference costs, counted from the plan alone: exact, and without running anything.

use crate::error::Result;
use crate::garbled_step::{GarbledStep, Program, Use};
use crate::inputs::input_bits;
use crate::window::result_bits;
use primer_garble::LABEL_BYTES;
use primer_ot::cost::extension;
use primer_plan::graph::{PaperStep, ValueId};
use primer_plan::plan::Plan;
use primer_wire::PhaseBytes;
use primer_wire::frame::HEADER_BYTES;
use std::collections::BTreeMap;

/// Some steps of an inference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Part {
    /// AND gates.
    pub and_gates: u64,
    /// Input bits of the garbler: weights, biases, corrections.
    pub garbler_inputs: u64,
    /// Bytes of frames that carry garbled steps, headers included: offline, to the client.
    pub garbled_bytes: u64,
}

impl Part {
    fn add(&mut self, other: Self) {
        self.and_gates += other.and_gates;
        self.garbler_inputs += other.garbler_inputs;
        self.garbled_bytes += other.garbled_bytes;
    }
}

/// The cost of one inference, without the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// By step, and whether it belongs to a layer.
    parts: BTreeMap<(PaperStep, bool), Part>,
    /// Input bits of the evaluator: tokens, types, padding. Each is a transfer.
    pub evaluator_inputs: u64,
    /// Bits that the client learns.
    pub output_bits: u64,
    /// Bytes by phase and direction, frame headers included.
    pub bytes: PhaseBytes,
    /// Frames offline, to the client.
    frames: u64,
    /// Round trips offline.
    pub rounds_offline: u64,
    /// Round trips online.
    pub rounds_online: u64,
}

impl Count {
    /// Counts a plan of any size: circuits are built once and multiplied.
    ///
    /// # Errors
    /// [`crate::GcError`] if the plan has no circuit.
    pub fn of(plan: &Plan) -> Result<Self> {
        Ok(Self::of_program(&Program::new(plan)?))
    }

    pub(crate) fn of_program(program: &Program) -> Self {
        let graph = program.plan().graph();
        let inputs = input_bits(graph);
        let output_bits = outputs(program).map(|(_, bits)| bits as u64).sum::<u64>();
        let mut parts: BTreeMap<_, Part> = BTreeMap::new();
        for (index, step) in graph.steps.iter().enumerate() {
            let place = (step.paper, step.layer.is_some());
            parts.entry(place).or_default().add(of_step(program, index));
        }
        let steps = 0..graph.steps.len();
        let garbled_steps = steps.filter(|i| stream_bytes(program, *i) > 0).count();
        let garbled = parts.values().map(|p| p.garbled_bytes).sum::<u64>();
        Self {
            parts,
            evaluator_inputs: inputs as u64,
            output_bits,
            bytes: PhaseBytes {
                offline_up: extension(inputs).from_receiver,
                offline_down: HEADER_BYTES + BEGIN_BYTES as u64 + garbled,
                online_up: HEADER_BYTES + inputs.div_ceil(8) as u64,
                online_down: 2 * HEADER_BYTES
                    + (inputs * LABEL_BYTES) as u64
                    + output_bits.div_ceil(8),
            },
            frames: 1 + garbled_steps as u64,
            rounds_offline: 1,
            rounds_online: 1,
        }
    }

    /// Returns the bytes that the client keeps in a file between the phases: what it received, and
    /// its transfers.
    pub fn stored(&self) -> u64 {
        let transfers =
            self.evaluator_inputs.div_ceil(8) + self.evaluator_inputs * LABEL_BYTES as u64;
        transfers + self.bytes.offline_down - HEADER_BYTES * self.frames
    }

    /// Returns the cost of one step of the paper's table.
    pub fn step(&self, step: PaperStep) -> Part {
        let mut part = self.in_layers(step);
        part.add(self.outside_layers(step));
        part
    }

    /// Returns the cost of one step in all layers.
    pub fn in_layers(&self, step: PaperStep) -> Part {
        self.parts.get(&(step, true)).copied().unwrap_or_default()
    }

    /// Returns the cost of one step before and after the layers.
    pub fn outside_layers(&self, step: PaperStep) -> Part {
        self.parts.get(&(step, false)).copied().unwrap_or_default()
    }

    /// Returns the cost of all steps.
    pub fn total(&self) -> Part {
        let mut total = Part::default();
        self.parts.values().for_each(|part| total.add(*part));
        total
    }
}

/// Bytes of the message in front of the garbled steps: the seed of the nonces and the zero wire's
/// label.
pub(crate) const BEGIN_BYTES: usize = 2 * LABEL_BYTES;

/// Lists the outputs, each with its number of bits.
pub(crate) fn outputs(program: &Program) -> impl Iterator<Item = (ValueId, usize)> {
    let graph = program.plan().graph();
    graph.outputs.iter().map(move |id| {
        let value = graph.value(*id);
        (
            *id,
            value.rows * value.cols * result_bits(program.plan(), *id),
        )
    })
}

/// Returns the bytes that a step has in the stream.
pub(crate) fn stream_bytes(program: &Program, index: usize) -> u64 {
    let given = program.work(index).given();
    let labels: u64 = given.iter().map(|g| g.input_bits()).sum();
    let tables = uses(program, index).map(|u| {
        let once = u.circuit.garbled_len(u.instances as u64);
        once.expect("a checked plan can be counted") * u.links as u64
    });
    labels * LABEL_BYTES as u64 + tables.sum::<u64>()
}

fn uses(program: &Program, index: usize) -> impl Iterator<Item = Use<'_>> {
    let graph = program.plan().graph();
    let work: &GarbledStep = program.work(index);
    work.uses(graph, graph.steps[index].output()).into_iter()
}

fn of_step(program: &Program, index: usize) -> Part {
    let gates = uses(program, index).map(|u| {
        let runs = u.instances as u64 * u.links as u64;
        u.circuit.cost().and_gates as u64 * runs
    });
    let given = program.work(index).given();
    let bytes = stream_bytes(program, index);
    Part {
        and_gates: gates.sum(),
        garbler_inputs: given.iter().map(|g| g.input_bits()).sum(),
        // A step without bytes has no frame.
        garbled_bytes: bytes + if bytes > 0 { HEADER_BYTES } else { 0 },
    }
}

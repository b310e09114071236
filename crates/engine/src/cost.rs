//! What one inference sends, counted from the program alone.
//!
//! Every message has a length that follows from the plan, so its bytes can be told
//! before anything runs. So can its place among the others: going through them in the client's
//! order, a round trip is each one that the client hears after it has said something. A test
//! compares both with the channel's meter.

mod makeup;

pub use makeup::makeup;

use crate::batch::Exchanges;
use crate::compiled::{CompiledProduct, CompiledStep, CompiledStop};
use crate::error::Result;
use crate::exchange::{Exchange, MaskSource};
use crate::program::Program;
use crate::renewed;
use crate::reveal::Reveal;
use crate::stored;
use primer_hint::params::MESSAGE_BYTES;
use primer_plan::graph::{Step, ValueId};
use primer_ring::modulus::K;
use primer_rlwe::product::Query;
pub use primer_stops::StoredBytes;
use primer_stops::{Turn, TwoPartyStop};
use primer_wire::PhaseBytes;
use primer_wire::frame::HEADER_BYTES;
use std::collections::HashSet;

/// What some steps of an inference cost, frame headers included, the handshake not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Bytes by phase and direction.
    pub bytes: PhaseBytes,
    /// Round trips online.
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
    /// Adds up both.
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

/// Counts the bytes of one inference without the handshake, frame headers included.
pub fn inference(program: &Program) -> PhaseBytes {
    parts(program).total().bytes
}

/// Counts the bytes of preparing some bundles together, frame headers included, the handshake not.
///
/// # Errors
/// If that number is not prepared together.
pub fn preparation(program: &Program, bundles: usize) -> Result<PhaseBytes> {
    let all = parts_together(program, bundles)?.total().bytes;
    Ok(PhaseBytes {
        offline_up: all.offline_up,
        offline_down: all.offline_down,
        ..PhaseBytes::default()
    })
}

/// Counts what one inference costs.
pub fn parts(program: &Program) -> Parts {
    count(program, program.exchanges(), 1)
}

/// Counts what it costs to prepare some bundles together, and then one inference.
///
/// # Errors
/// If that number is not prepared together.
pub fn parts_together(program: &Program, bundles: usize) -> Result<Parts> {
    let exchanges = program.exchanges_for(bundles)?;
    Ok(count(program, &exchanges, bundles as u64))
}

fn count(program: &Program, exchanges: &Exchanges, bundles: u64) -> Parts {
    let graph = program.plan().graph();
    let mut count = Count::new(program, exchanges, bundles);
    let mut parts = Parts::default();
    let mut each = renewed::bytes();
    if let Some(comparison) = program.comparison() {
        each += comparison.bytes();
        parts.outside.and_gates += comparison.and_gates();
    }
    parts.outside.bytes += PhaseBytes {
        offline_up: bundles * each.offline_up,
        offline_down: bundles * each.offline_down,
        ..each
    };
    let sizes = program.bits();
    let inputs = HEADER_BYTES + sizes.bits_len() as u64 + matrix(sizes.residues());
    parts.outside.bytes.online_up += inputs + residues(graph.tokens);
    if program.counts_tokens() {
        parts.outside.bytes.online_up += HEADER_BYTES + graph.tokens.div_ceil(8) as u64;
    }
    for (index, step) in graph.steps.iter().enumerate() {
        let part = match step.layer {
            Some(_) => &mut parts.layers,
            None => &mut parts.outside,
        };
        count.step(index, part);
    }
    if program.reveal() == Reveal::Outputs {
        let outputs = graph.outputs.iter().map(|id| residues(count.size(*id)));
        parts.outside.bytes.online_down += outputs.sum::<u64>();
        count.turn(Turn::Down, &mut parts.outside);
    }
    parts
}

/// Counts what a bundle takes in each party's store.
pub fn stored(program: &Program) -> StoredBytes {
    let mut total = stored_of(program, |_| true);
    total += StoredBytes {
        client: stored::HEADER_BYTES,
        server: stored::HEADER_BYTES,
    };
    if let Some(comparison) = program.comparison() {
        total += comparison.stored();
    }
    total
}

/// Counts the bytes of a model's hint that belong to the layers.
pub fn hint_layers(program: &Program) -> u64 {
    let hints = program.hints();
    let of = |entry: usize| {
        let first = hints.readers()[entry].terms[0].step;
        let place = hints.contents().place(entry);
        program
            .step(first)
            .layer
            .map_or(0, |_| place.end - place.start)
    };
    (0..hints.readers().len()).map(of).sum()
}

/// Counts what of a bundle belongs to the layers.
pub fn stored_layers(program: &Program) -> StoredBytes {
    stored_of(program, |step| step.layer.is_some())
}

fn stored_of(program: &Program, counts: impl Fn(&Step) -> bool) -> StoredBytes {
    let graph = program.plan().graph();
    let mut total = StoredBytes::default();
    let bytes = |sizes: &[(usize, usize)]| -> u64 {
        let lengths = sizes.iter().map(|(r, c)| stored::share_len(*r, *c));
        lengths.sum()
    };
    let steps = graph.steps.iter().enumerate();
    for (index, _) in steps.filter(|(_, step)| counts(step)) {
        let compiled = program.compiled(index);
        let kept = program.kept(index);
        total += StoredBytes {
            client: bytes(&kept.client),
            server: bytes(&kept.server),
        };
        if let Some(compiled) = compiled.stop() {
            total += compiled.stop.stored();
        }
    }
    total
}

/// Counts the bytes of a message of packed residues.
fn residues(count: usize) -> u64 {
    HEADER_BYTES + (count as u64 * u64::from(K)).div_ceil(8)
}

/// Counts the bytes of a message of a matrix of residues.
fn matrix((rows, cols): (usize, usize)) -> u64 {
    residues(rows * cols)
}

struct Count<'a> {
    program: &'a Program,
    exchanges: &'a Exchanges,
    bundles: u64,
    /// Encrypted masks that the server has.
    offered: HashSet<(MaskSource, Query)>,
    /// Values that were opened.
    opened: HashSet<ValueId>,
    /// Range flags that the client has no share of yet; none if it has been told about all.
    flags_left: Option<usize>,
    /// Whether the client has requests that it has not answered yet.
    pending: bool,
    /// Whether the client has said something since it last heard something, online.
    spoken: bool,
}

impl<'a> Count<'a> {
    fn new(program: &'a Program, exchanges: &'a Exchanges, bundles: u64) -> Self {
        Self {
            program,
            exchanges,
            bundles,
            offered: HashSet::new(),
            opened: HashSet::new(),
            flags_left: Some(program.flags()).filter(|flags| *flags > 0),
            pending: false,
            // The masked input goes first.
            spoken: true,
        }
    }

    fn size(&self, id: ValueId) -> usize {
        let value = self.program.plan().graph().value(id);
        value.rows * value.cols
    }

    /// Counts a message, online.
    fn turn(&mut self, turn: Turn, part: &mut Part) {
        match turn {
            Turn::Up => self.spoken = true,
            Turn::Down => part.rounds_online += u64::from(std::mem::take(&mut self.spoken)),
        }
    }

    fn step(&mut self, index: usize, part: &mut Part) {
        self.messages(index, part);
        self.corrections(index, part);
        for exchange in self.exchanges.of_step(index) {
            self.exchange(exchange, part);
        }
        self.after_exchanges(index, part);
    }

    /// Counts the messages of values that a step is the first to read.
    fn messages(&self, index: usize, part: &mut Part) {
        let hints = self.program.hints();
        for entry in hints.first_read(&(index..index + 1)) {
            let rows = hints.rows(self.program, entry, self.bundles as usize);
            let message = HEADER_BYTES + MESSAGE_BYTES as u64;
            part.bytes.offline_up += rows.groups() as u64 * message;
        }
    }

    /// Counts what corrects the masks of inputs.
    fn corrections(&self, index: usize, part: &mut Part) {
        let embeds = self.program.step(index).inputs().is_empty();
        if let (CompiledStep::Linear(_), true) = (self.program.compiled(index), embeds) {
            let sizes = self.program.bits();
            part.bytes.offline_up += self.bundles * matrix(sizes.correction());
        }
    }

    fn after_exchanges(&mut self, index: usize, part: &mut Part) {
        let program = self.program;
        match program.compiled(index) {
            CompiledStep::Linear(_)
            | CompiledStep::Local(_)
            | CompiledStep::Joined
            | CompiledStep::Nothing => {}
            CompiledStep::Product(CompiledProduct { factors, stop }) => {
                for id in factors.opens() {
                    if self.opened.insert(id) {
                        self.down(self.size(id), part);
                    }
                }
                match stop {
                    Some(CompiledStop { stop, .. }) => self.stop(&**stop, part),
                    None => {
                        let output = program.step(index).output();
                        part.bytes.online_up += residues(self.size(output));
                        self.pending = true;
                    }
                }
            }
            CompiledStep::Stop(CompiledStop { stop, .. }) => self.stop(&**stop, part),
        }
        if program.settled_after(index) && std::mem::take(&mut self.pending) {
            self.turn(Turn::Up, part);
            if self.flags_left.take_if(|left| *left == 0).is_some() {
                self.turn(Turn::Down, part);
            }
        }
    }

    fn stop(&mut self, stop: &dyn TwoPartyStop, part: &mut Part) {
        let mut bytes = stop.bytes();
        bytes.offline_up *= self.bundles;
        bytes.offline_down *= self.bundles;
        part.bytes += bytes;
        part.and_gates += stop.and_gates();
        self.turn(Turn::Down, part);
        self.pending |= stop.outputs() > 0 && !stop.is_lift();
        self.flags_left = self.flags_left.map(|left| left - stop.flags());
    }

    /// Counts residues that the server opens.
    fn down(&mut self, elements: usize, part: &mut Part) {
        part.bytes.online_down += residues(elements);
        self.turn(Turn::Down, part);
    }

    /// Counts encrypted masks that were not sent before, and the answer.
    fn exchange(&mut self, exchange: &Exchange, part: &mut Part) {
        for (mask, query) in exchange.offers() {
            if self.offered.insert((mask.source, query.clone())) {
                part.bytes.offline_up += HEADER_BYTES + query.wire_len();
            }
        }
        part.bytes.offline_down += HEADER_BYTES + exchange.product.answer_len();
    }
}

//! What one inference sends, counted from the program alone.
//!
//! Every message has a length that follows from the plan and the scheme, so its bytes can be told
//! before anything runs. So can its place among the others: going through them in the client's
//! order, a round trip is each one that the client hears after it has said something. A test
//! compares both with the channel's meter.

use crate::compiled::{CompiledStep, CompiledStop};
use crate::exchange::{Exchange, Owner};
use crate::program::Program;
use crate::renewed;
use crate::scheme::When;
use crate::stored;
use primer_engine::Reveal;
pub use primer_engine::cost::{Part, Parts};
use primer_paper_he::product::Query;
use primer_plan::graph::{Step, ValueId};
use primer_ring::modulus::K;
pub use primer_stops::StoredBytes;
use primer_stops::{Turn, TwoPartyStop};
use primer_wire::PhaseBytes;
use primer_wire::frame::HEADER_BYTES;
use std::collections::HashSet;

/// Counts the bytes of one inference without the handshake, frame headers included.
pub fn inference(program: &Program) -> PhaseBytes {
    parts(program).total().bytes
}

/// Counts what one inference costs.
pub fn parts(program: &Program) -> Parts {
    let graph = program.plan().graph();
    let online = program.scheme().recipe().when == When::Online;
    let mut count = Count::new(program);
    let mut parts = Parts::default();
    if !online {
        parts.outside.bytes += renewed::bytes();
    }
    let inputs = matrix((graph.tokens, graph.one_hot()));
    parts.outside.bytes.online_up += inputs + residues(graph.tokens);
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
    if online {
        for Part { bytes, .. } in [&mut parts.outside, &mut parts.layers] {
            bytes.online_up += std::mem::take(&mut bytes.offline_up);
            bytes.online_down += std::mem::take(&mut bytes.offline_down);
        }
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
    total
}

/// Counts what of a bundle belongs to the layers.
pub fn stored_layers(program: &Program) -> StoredBytes {
    stored_of(program, |step| step.layer.is_some())
}

fn stored_of(program: &Program, counts: impl Fn(&Step) -> bool) -> StoredBytes {
    let graph = program.plan().graph();
    let mut total = StoredBytes::default();
    if program.scheme().recipe().when == When::Online {
        return total;
    }
    let bytes = |sizes: &[(usize, usize)]| -> u64 {
        let lengths = sizes.iter().map(|(r, c)| stored::share_len(*r, *c));
        lengths.sum()
    };
    let steps = graph.steps.iter().enumerate();
    for (index, _) in steps.filter(|(_, step)| counts(step)) {
        let kept = program.kept(index);
        total += StoredBytes {
            client: bytes(&kept.client),
            server: bytes(&kept.server),
        };
        if let Some(work) = program.compiled(index).stop() {
            total += work.stop.stored();
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
    /// Encrypted masks that the server has.
    offered: HashSet<(Owner, Query)>,
    /// Values that were opened.
    opened: HashSet<ValueId>,
    /// Whether the client has requests that it has not answered yet.
    pending: bool,
    /// Whether the client has said something since it last heard something, online.
    spoken: bool,
}

impl<'a> Count<'a> {
    fn new(program: &'a Program) -> Self {
        Self {
            program,
            offered: HashSet::new(),
            opened: HashSet::new(),
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

    /// Counts a message of a preparation, which may be a part of the online phase.
    fn preparing(&mut self, turn: Turn, part: &mut Part) {
        if self.program.scheme().recipe().when == When::Online {
            self.turn(turn, part);
        }
    }

    fn step(&mut self, index: usize, part: &mut Part) {
        for exchange in self.program.exchanges().of_step(index) {
            self.exchange(exchange, part);
        }
        self.after_exchanges(index, part);
    }

    fn after_exchanges(&mut self, index: usize, part: &mut Part) {
        let program = self.program;
        match program.compiled(index) {
            CompiledStep::Linear(_) | CompiledStep::Kept => {}
            CompiledStep::Product(product) => {
                for id in product.opens() {
                    if self.opened.insert(id) {
                        self.down(self.size(id), part);
                    }
                }
                if let Some(elements) = product.opens_besides(program.plan().graph()) {
                    self.down(elements, part);
                }
                let output = program.step(index).output();
                part.bytes.online_up += residues(self.size(output));
                self.pending = true;
            }
            CompiledStep::Stop(CompiledStop { stop, .. }) => self.stop(&**stop, part),
        }
        if program.settled_after(index) && std::mem::take(&mut self.pending) {
            self.turn(Turn::Up, part);
        }
    }

    fn stop(&mut self, stop: &dyn TwoPartyStop, part: &mut Part) {
        part.bytes += stop.bytes();
        part.and_gates += stop.and_gates();
        for turn in stop.turns() {
            self.preparing(turn, part);
        }
        self.turn(Turn::Down, part);
        self.pending |= stop.outputs() > 0;
    }

    /// Counts residues that the server opens.
    fn down(&mut self, elements: usize, part: &mut Part) {
        part.bytes.online_down += residues(elements);
        self.turn(Turn::Down, part);
    }

    /// Counts encrypted masks that were not sent before, and the answer.
    fn exchange(&mut self, exchange: &Exchange, part: &mut Part) {
        for (owner, query) in exchange.offers() {
            if self.offered.insert((owner, query.clone())) {
                part.bytes.offline_up += HEADER_BYTES + query.wire_len();
                self.preparing(Turn::Up, part);
            }
        }
        part.bytes.offline_down += HEADER_BYTES + exchange.product.answer_len();
        self.preparing(Turn::Down, part);
    }
}

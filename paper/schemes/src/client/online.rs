//! The client's online walk: its answers to what the server asks, from the text to the outputs.

use crate::client::Answer;
use crate::compiled::{CompiledStep, CompiledStop};
use crate::error::{ProtocolError, Result};
use crate::masks::Masks;
use crate::program::Program;
use crate::stored::{self, Material};
use primer_engine::Reveal;
use primer_engine::clock::Clock;
use primer_engine::share::Share;
use primer_plan::graph::{Graph, ValueId};
use primer_plan::times::Times;
use primer_ring::fixed::exp2;
use primer_ring::modulus::{self, K, P};
use primer_ring::pack::pack;
use primer_stops::{ClientStop, PendingAnswer};
use primer_text::Input;
use primer_wire::Channel;
use primer_wire::kind::protocol::{INPUT, OPENED, OUTPUT, PADDING, RESHARED};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::Read;
use std::ops::Range;

/// Bytes of the masked input that are kept for [`Answer::shown`].
const SHOWN: usize = 240;

/// What the client has yet to send to the server.
enum Pending {
    /// The answer of a stop.
    Stop(Box<dyn PendingAnswer>),
    /// Its share of a product, minus the mask.
    Share(Share),
}

/// One inference under way.
pub(crate) struct OnlineClient<'a> {
    pub(crate) program: &'a Program,
    pub(crate) masks: Masks,
    /// What the server opened.
    opened: HashMap<ValueId, Share>,
    /// What the server has asked for and that is not answered yet.
    pending: Vec<Pending>,
    /// What a stop has shown: positions of the largest logits.
    labels: Vec<usize>,
    shown: Vec<u8>,
    pub(super) clock: Clock,
}

impl<'a> OnlineClient<'a> {
    /// Sends the masked input.
    pub(super) fn send(
        channel: &mut Channel,
        program: &'a Program,
        masks: Masks,
        input: &Input,
        mut clock: Clock,
    ) -> Result<Self> {
        let _phase = channel.phase("online/embed");
        let rows = masks.apply(input);
        channel.send_residues(INPUT, K, rows.data().iter().copied())?;
        let mut shown = Vec::new();
        pack(rows.data().iter().take(SHOWN).copied(), K, &mut shown);
        shown.truncate(SHOWN);
        let padding = masks.apply_padding(input);
        channel.send_residues(PADDING, K, padding.data().iter().copied())?;
        channel.flush()?;
        clock.lap(program.step(0));
        Ok(Self {
            program,
            masks,
            opened: HashMap::new(),
            pending: Vec::new(),
            labels: Vec::new(),
            shown,
            clock,
        })
    }

    /// Runs the steps of a segment, whose material `source` gives.
    pub(super) fn segment(
        &mut self,
        channel: &mut Channel,
        steps: &Range<usize>,
        source: &mut dyn Read,
    ) -> Result<()> {
        let mut material = self.load(steps, source)?;
        for index in steps.clone() {
            let step = self.program.step(index);
            let _phase = channel.phase(&format!("online/{}", step.paper.name()));
            self.step(channel, index, &mut material, source)?;
            if self.program.settled_after(index) {
                self.settle(channel)?;
            }
            self.clock.lap(step);
        }
        self.masks.forget_before(steps.end);
        self.opened.clear();
        Ok(())
    }

    /// Reads what is stored of a segment, up to what streams, each step on its own time.
    fn load(&mut self, steps: &Range<usize>, source: &mut dyn Read) -> Result<Material> {
        let (program, clock) = (self.program, &mut self.clock);
        let mut material = Material::default();
        for index in steps.clone() {
            let step = program.step(index);
            let shares = stored::read_shares(source, &program.kept(index).client)?;
            material.shares.insert(index, shares);
            clock.lap(step);
        }
        for index in steps.clone() {
            if let Some(CompiledStop { stop, .. }) = program.compiled(index).stop()
                && !stop.streams()
            {
                let bytes = stored::read_bytes(source, stop.stored().client)?;
                material.stops.insert(index, bytes);
                clock.lap(program.step(index));
            }
        }
        Ok(material)
    }

    /// Answers what the server has asked for.
    fn settle(&mut self, channel: &mut Channel) -> Result<()> {
        for pending in self.pending.drain(..) {
            match pending {
                Pending::Stop(stop) => {
                    let shown = stop.answer(channel)?;
                    self.labels.extend(shown);
                }
                Pending::Share(share) => {
                    channel.send_residues(RESHARED, K, share.data().iter().copied())?;
                }
            }
        }
        Ok(channel.flush()?)
    }

    fn step(
        &mut self,
        channel: &mut Channel,
        index: usize,
        material: &mut Material,
        source: &mut dyn Read,
    ) -> Result<()> {
        let output = self.program.step(index).output();
        match self.program.compiled(index) {
            CompiledStep::Linear(_) | CompiledStep::Kept => Ok(()),
            CompiledStep::Product(product) => {
                let known = material.take_shares(index);
                let share = product.client_listen(channel, self, output, known)?;
                self.pending.push(Pending::Share(share));
                Ok(())
            }
            CompiledStep::Stop(work) if work.stop.streams() => self.listen(channel, work, source),
            CompiledStep::Stop(work) => {
                let stored = material.take_stop(index);
                self.listen(channel, work, &mut &stored[..])
            }
        }
    }

    /// Takes the server's request of a stop, whose answer is then pending.
    fn listen(
        &mut self,
        channel: &mut Channel,
        CompiledStop { output, stop, .. }: &CompiledStop,
        stored: &mut dyn Read,
    ) -> Result<()> {
        let mask = self.masks.of_stop(&**stop, *output);
        let pending = ClientStop::listen(&**stop, channel, stored, &[], mask.data())?;
        self.pending.push(Pending::Stop(pending));
        Ok(())
    }

    /// Takes what the server opens of some values, each once.
    pub(crate) fn hear_opened(&mut self, channel: &mut Channel, values: &[ValueId]) -> Result<()> {
        for &id in values {
            if let Entry::Vacant(place) = self.opened.entry(id) {
                let value = self.program.plan().graph().value(id);
                let mut difference = Share::zeros(value.rows, value.cols);
                channel.recv_residues(OPENED, K, P, difference.data_mut())?;
                place.insert(difference);
            }
        }
        Ok(())
    }

    /// Returns what the server opened of a value.
    pub(crate) fn opened(&self, id: ValueId) -> &Share {
        &self.opened[&id]
    }

    /// Takes the server's share of the outputs, unless only labels are revealed.
    pub(super) fn finish(mut self, channel: &mut Channel) -> Result<Answer> {
        let plan = self.program.plan();
        let graph = plan.graph();
        let _phase = channel.phase("online/others");
        let mut answer = Answer {
            integers: Vec::new(),
            reals: Vec::new(),
            labels: std::mem::take(&mut self.labels),
            in_range: None,
            shown: std::mem::take(&mut self.shown),
            times: Times::default(),
        };
        if self.program.reveal() == Reveal::Outputs {
            for &id in &graph.outputs {
                let mask = self.masks.get(id);
                let mut value = Share::zeros(mask.rows(), mask.cols());
                channel.recv_residues(OUTPUT, K, P, value.data_mut())?;
                value.add(&mask);
                let integers = value.map(|v| modulus::to_signed(*v));
                let unit = exp2(-plan.scale(id).fraction());
                answer.reals.push(integers.map(|v| *v as f64 * unit));
                answer.integers.push(integers);
            }
        }
        self.clock.lap(&graph.steps[graph.steps.len() - 1]);
        answer.times = self.clock.times();
        Ok(answer)
    }
}

/// Fails unless an input is what the plan takes.
pub(super) fn check_input(graph: &Graph, input: &Input) -> Result<()> {
    let check = |what, expected, found| {
        if expected == found {
            Ok(())
        } else {
            Err(ProtocolError::Input {
                what,
                expected,
                found,
            })
        }
    };
    check("tokens", graph.tokens, input.tokens())?;
    check("token types", graph.tokens, input.types.len())?;
    for (what, values, limit) in [
        ("as its largest token", &input.ids, graph.shape.vocab),
        ("as its largest token type", &input.types, graph.shape.types),
    ] {
        let largest = values.iter().copied().max().unwrap_or(0) as usize;
        // Types of a model that has none are not looked at.
        if limit > 0 && largest >= limit {
            return Err(ProtocolError::Input {
                what,
                expected: limit - 1,
                found: largest,
            });
        }
    }
    Ok(())
}

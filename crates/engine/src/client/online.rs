//! The client's online walk: its answers to what the server asks, from the text to the outputs.
//!
//! On the way it collects its shares of range flags. With its answer to the last stop that has any
//! it asks whether one is set, and hears that before anything else.

use crate::client::Answer;
use crate::clock::Clock;
use crate::compiled::{CompiledProduct, CompiledStep, CompiledStop};
use crate::error::{ProtocolError, Result};
use crate::flags::Flags;
use crate::masks::Masks;
use crate::program::Program;
use crate::reveal::Reveal;
use crate::secrets;
use crate::session::See;
use crate::share::Share;
use crate::stop;
use crate::stored::{self, Material};
use crate::times::Times;
use primer_ot::Bits;
use primer_plan::graph::{Graph, ValueId};
use primer_ring::fixed::exp2;
use primer_ring::matrix::Matrix;
use primer_ring::modulus::{self, K, P};
use primer_stops::{ClientStop, Lifted, PendingAnswer};
use primer_text::Input;
use primer_wire::Channel;
use primer_wire::kind::protocol::{OPENED, OUTPUT, RESHARED};
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
    /// Of values that were lifted, which elements were turned.
    turned: HashMap<ValueId, Bits>,
    /// What the server has asked for and that is not answered yet.
    pending: Vec<(ValueId, Pending)>,
    /// What a stop has shown: positions of the largest logits.
    labels: Vec<usize>,
    /// Its shares of range flags, until it has asked about all of them.
    flags: Option<Flags>,
    in_range: Option<bool>,
    see: &'a mut See<'a>,
    shown: Vec<u8>,
    /// Rows that are negated where the signs of embedded rows come off.
    negated: Vec<bool>,
    pub(super) clock: Clock,
}

impl<'a> OnlineClient<'a> {
    /// Sends the masked input.
    pub(super) fn send(
        channel: &mut Channel,
        program: &'a Program,
        (masks, flags): (Masks, Option<Flags>),
        input: &Input,
        see: &'a mut See<'a>,
        mut clock: Clock,
    ) -> Result<Self> {
        let _phase = channel.phase("online/embed");
        let said = masks.pad().apply(program.one(), input);
        said.send(channel)?;
        let (mut shown, negated) = (said.bits, said.negated);
        shown.truncate(SHOWN);
        masks.padding().of(input).send(channel, program)?;
        channel.flush()?;
        clock.lap(program.step(0));
        Ok(Self {
            program,
            masks,
            opened: HashMap::new(),
            turned: HashMap::new(),
            pending: Vec::new(),
            labels: Vec::new(),
            flags,
            in_range: None,
            see,
            shown,
            negated,
            clock,
        })
    }

    /// Returns which rows of a value are negated, where the signs of embedded rows come off.
    pub(crate) fn negated(&self, id: ValueId) -> &[bool] {
        match self.program.plan().graph().signed() {
            Some(signed) if signed.output == id => &self.negated,
            _ => &[],
        }
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
        self.turned.clear();
        Ok(())
    }

    /// Reads what is stored of a segment, up to what streams, each step on its own time.
    fn load(&mut self, steps: &Range<usize>, source: &mut dyn Read) -> Result<Material> {
        let (program, clock) = (self.program, &mut self.clock);
        let mut material = Material::default();
        for index in steps.clone() {
            let step = program.step(index);
            let mut shares = stored::read_shares(source, &program.kept(index).client)?;
            if let Some(compiled) = program.compiled(index).stop()
                && program.hinted(Some(compiled.output)).is_some()
            {
                let mask = shares.pop().expect("the mask is kept last");
                self.masks.insert(compiled.output, mask);
            }
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
        for (_, pending) in self.pending.drain(..) {
            match pending {
                Pending::Stop(mut stop) => {
                    if let Some(flags) = &mut self.flags {
                        flags.append(&stop.flags());
                    }
                    let shown = stop.answer(channel)?;
                    self.labels.extend(shown);
                }
                Pending::Share(share) => {
                    channel.send_residues(RESHARED, K, share.data().iter().copied())?;
                }
            }
        }
        match self.flags.take_if(|flags| flags.are_complete()) {
            None => channel.flush()?,
            Some(flags) => {
                let asked = flags.ask(channel, &mut self.masks.subsets())?;
                channel.flush()?;
                self.in_range = Some(asked.receive(channel)?);
            }
        }
        Ok(())
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
            CompiledStep::Linear(_)
            | CompiledStep::Local(_)
            | CompiledStep::Joined
            | CompiledStep::Nothing => Ok(()),
            CompiledStep::Product(CompiledProduct { factors, stop }) => {
                let known = material.take_shares(index);
                let (product, masked) = ((*factors, output), stop.is_none());
                let share = secrets::client_share(channel, self, product, known, masked)?;
                match stop {
                    None => {
                        self.pending.push((output, Pending::Share(share)));
                        Ok(())
                    }
                    Some(compiled) => {
                        let plan = self.program.plan();
                        let late = stop::truncated(plan, compiled.input, &share, &mut *self.see);
                        let stored = material.take_stop(index);
                        self.listen(channel, compiled, &late, &mut &stored[..])
                    }
                }
            }
            CompiledStep::Stop(compiled) if compiled.stop.streams() => {
                self.listen(channel, compiled, &[], source)
            }
            CompiledStep::Stop(compiled) => {
                let stored = material.take_stop(index);
                self.listen(channel, compiled, &[], &mut &stored[..])
            }
        }
    }

    /// Takes the server's request of a stop: the answer is pending, unless the value was lifted.
    fn listen(
        &mut self,
        channel: &mut Channel,
        CompiledStop { output, stop, .. }: &CompiledStop,
        late: &[u64],
        stored: &mut dyn Read,
    ) -> Result<()> {
        let mask = self.masks.of_stop(&**stop, *output);
        let mut pending = ClientStop::listen(&**stop, channel, stored, late, mask.data())?;
        match pending.lifted() {
            None => self.pending.push((*output, Pending::Stop(pending))),
            Some(Lifted { mut shares, turned }) => {
                let shares = std::mem::take(&mut *shares);
                let share = Matrix::from_vec(mask.rows(), mask.cols(), shares);
                self.masks.insert(*output, share.into());
                self.turned.insert(*output, turned);
            }
        }
        Ok(())
    }

    /// Takes what the server opens of some values, each once. Of a value that the client has yet to
    /// send an answer of, the server opens what it has without it.
    pub(crate) fn hear_opened(&mut self, channel: &mut Channel, values: &[ValueId]) -> Result<()> {
        for &id in values {
            if let Entry::Vacant(place) = self.opened.entry(id) {
                let value = self.program.plan().graph().value(id);
                let mut difference = Share::zeros(value.rows, value.cols);
                channel.recv_residues(OPENED, K, P, difference.data_mut())?;
                let pending = self.pending.iter().find(|(pending, _)| *pending == id);
                if let Some((_, Pending::Stop(stop))) = pending
                    && let Some(answers) = stop.answers()
                {
                    let both = difference.data_mut().iter_mut().zip(answers.iter());
                    both.for_each(|(difference, answer)| {
                        *difference = modulus::add(*difference, *answer);
                    });
                }
                place.insert(difference);
            }
        }
        Ok(())
    }

    /// Returns what the server opened of a value.
    pub(crate) fn opened(&self, id: ValueId) -> &Share {
        &self.opened[&id]
    }

    /// Returns which elements of a value were turned, if it was lifted.
    pub(crate) fn turned(&self, id: ValueId) -> Option<&Bits> {
        self.turned.get(&id)
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
            in_range: self.in_range,
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

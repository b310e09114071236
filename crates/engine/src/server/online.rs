//! The server's online walk: its shares of the values, from the masked input to the last one.
//!
//! On the way it collects its shares of range flags. Behind the answer of the last stop that has
//! any the client asks about them, and is told before anything else.

use crate::bits::Said;
use crate::clock::Clock;
use crate::compiled::{CompiledProduct, CompiledStep, CompiledStop};
use crate::error::Result;
use crate::flags::Flags;
use crate::linear;
use crate::local::Party;
use crate::padding::Padding;
use crate::program::Program;
use crate::reveal::Reveal;
use crate::secrets::{self, Factors};
use crate::seeds::{Seeds, Use};
use crate::server::ServerModel;
use crate::session::See;
use crate::share::Share;
use crate::stop;
use crate::stored::{self, Material};
use crate::times::Times;
use primer_ot::Bits;
use primer_plan::graph::ValueId;
use primer_ring::matrix::{Matrix, Scratch};
use primer_ring::modulus::{K, P};
use primer_stops::{AwaitedAnswer, Lifted, ServerStop};
use primer_wire::Channel;
use primer_wire::kind::protocol::{OPENED, OUTPUT, RESHARED};
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::ops::Range;

/// What the client has been asked for.
enum Awaited {
    /// The answer of a stop, and what is added to it.
    Stop(Box<dyn AwaitedAnswer>, Option<Share>),
    /// The client's part of a product, which is added to the server's.
    Share(Share),
    /// The same of a product that was asked for before its factors were answered: the server's
    /// part is computed when they are.
    Factors {
        factors: Factors,
        index: usize,
        kept: Vec<Share>,
    },
}

/// One inference under way.
pub(crate) struct OnlineServer<'a> {
    pub(crate) model: &'a ServerModel,
    program: &'a Program,
    pub(crate) seeds: Seeds,
    /// What it has of the client's tokens.
    pub(crate) input: Said,
    padding: Padding,
    /// The server's share of each value that something still reads.
    pub(crate) values: HashMap<ValueId, Share>,
    /// What was opened against its mask.
    opened: HashSet<ValueId>,
    /// Of values that were lifted, which elements were turned.
    turned: HashMap<ValueId, Bits>,
    /// What was asked for and is not answered yet.
    awaited: Vec<(ValueId, Awaited)>,
    /// Its shares of range flags, until the client has asked about all of them.
    flags: Option<Flags>,
    pub(crate) scratch: Scratch,
    see: &'a mut See<'a>,
    pub(super) clock: Clock,
}

impl<'a> OnlineServer<'a> {
    /// Takes the masked input.
    pub(super) fn receive(
        channel: &mut Channel,
        model: &'a ServerModel,
        (seeds, flags): (Seeds, Option<Flags>),
        see: &'a mut See<'a>,
        mut clock: Clock,
    ) -> Result<Self> {
        let program = model.program();
        let graph = program.plan().graph();
        let _phase = channel.phase("online/embed");
        let input = Said::receive(channel, program.bits())?;
        let padding = Padding::receive(channel, program)?;
        clock.lap(&graph.steps[0]);
        Ok(Self {
            model,
            program,
            seeds,
            input,
            padding,
            values: HashMap::new(),
            opened: HashSet::new(),
            turned: HashMap::new(),
            awaited: Vec::new(),
            flags,
            scratch: Scratch::default(),
            see,
            clock,
        })
    }

    /// Returns which rows of a value are negated, where the signs of embedded rows come off.
    pub(crate) fn negated(&self, id: ValueId) -> &[bool] {
        match self.program.plan().graph().signed() {
            Some(signed) if signed.output == id => &self.input.negated,
            _ => &[],
        }
    }

    /// Returns the server's share of a value.
    pub(crate) fn get(&self, id: ValueId) -> &Share {
        self.values.get(&id).expect("steps come in order")
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
            self.step(channel, index, &mut material)?;
            if self.program.settled_after(index) {
                self.settle(channel)?;
            }
            for read in step.inputs() {
                if self.program.last_uses()[read.index()] == index {
                    self.values.remove(&read);
                }
            }
            self.clock.lap(step);
        }
        self.turned.clear();
        Ok(())
    }

    /// Reads what is stored of a segment, each step on its own time.
    fn load(&mut self, steps: &Range<usize>, source: &mut dyn Read) -> Result<Material> {
        let (program, clock) = (self.program, &mut self.clock);
        let mut material = Material::default();
        for index in steps.clone() {
            let shares = stored::read_shares(source, &program.kept(index).server)?;
            material.shares.insert(index, shares);
            clock.lap(program.step(index));
        }
        for streams in [false, true] {
            for index in steps.clone() {
                if let Some(CompiledStop { stop, .. }) = program.compiled(index).stop()
                    && stop.streams() == streams
                {
                    let bytes = stored::read_bytes(source, stop.stored().server)?;
                    material.stops.insert(index, bytes);
                    clock.lap(program.step(index));
                }
            }
        }
        Ok(material)
    }

    /// Takes the answers to what was asked for.
    fn settle(&mut self, channel: &mut Channel) -> Result<()> {
        for (id, awaited) in std::mem::take(&mut self.awaited) {
            let share = match awaited {
                Awaited::Stop(waiting, part) => {
                    let (results, raised) = waiting.receive_flagged(channel)?;
                    if let Some(flags) = &mut self.flags {
                        flags.append(&raised);
                    }
                    // A stop that tells the client leaves nothing here.
                    if results.is_empty() {
                        continue;
                    }
                    let cols = self.program.plan().graph().value(id).cols;
                    // Some stops compute some rows only.
                    let results = Matrix::from_vec(results.len() / cols, cols, results);
                    let mut share = Share::from(results);
                    if let Some(part) = part {
                        share.add(&part);
                    }
                    share
                }
                Awaited::Share(part) => add_reshared(channel, part)?,
                Awaited::Factors {
                    factors,
                    index,
                    kept,
                } => add_reshared(channel, secrets::server_part(self, (factors, index), kept))?,
            };
            self.values.insert(id, share);
        }
        if let Some(flags) = self.flags.take_if(|flags| flags.are_complete()) {
            flags.answer(channel)?;
        }
        Ok(())
    }

    /// Runs a step: its result is there then, or is awaited.
    fn step(&mut self, channel: &mut Channel, index: usize, material: &mut Material) -> Result<()> {
        let output = self.program.step(index).output();
        match self.program.compiled(index) {
            CompiledStep::Linear(linear) => {
                let masks = material.take_share(index);
                let share = linear::server_online(self, linear, masks);
                (self.see)(output, &share);
                self.values.insert(output, share);
            }
            CompiledStep::Local(local) => {
                let share = local.apply(Party::Server, |id| self.get(id), &self.padding.residues);
                self.values.insert(output, share);
            }
            CompiledStep::Joined | CompiledStep::Nothing => {}
            CompiledStep::Product(CompiledProduct { factors, stop }) => {
                let (factors, kept) = (*factors, material.take_shares(index));
                let opens = factors.opens();
                let early = self.awaited.iter().any(|(id, _)| opens.contains(id));
                self.open(channel, &opens)?;
                if early {
                    let awaited = Awaited::Factors {
                        factors,
                        index,
                        kept,
                    };
                    self.awaited.push((output, awaited));
                    return Ok(());
                }
                let part = secrets::server_part(self, (factors, index), kept);
                match stop {
                    None => self.awaited.push((output, Awaited::Share(part))),
                    Some(compiled) => self.ask(channel, index, compiled, part, material)?,
                }
            }
            CompiledStep::Stop(compiled) => {
                let rows = self.program.plan().graph().value(compiled.input).rows;
                let share = self.get(compiled.input).first_rows(rows);
                self.ask(channel, index, compiled, share, material)?;
            }
        }
        Ok(())
    }

    /// Asks for what a stop makes of the server's share of its input: it is awaited, unless the
    /// value was lifted.
    fn ask(
        &mut self,
        channel: &mut Channel,
        index: usize,
        CompiledStop {
            input,
            output,
            stop,
        }: &CompiledStop,
        share: Share,
        material: &mut Material,
    ) -> Result<()> {
        let plan = self.program.plan();
        let share = stop::server_share(plan, index, *input, share, &self.padding);
        let stored = material.take_stop(index);
        let mut waiting = ServerStop::request(&**stop, channel, &mut &stored[..], &share.ring)?;
        channel.flush()?;
        match waiting.lifted() {
            None => self
                .awaited
                .push((*output, Awaited::Stop(waiting, share.part))),
            Some(Lifted { mut shares, turned }) => {
                let value = plan.graph().value(*output);
                let shares = std::mem::take(&mut *shares);
                let share = Matrix::from_vec(value.rows, value.cols, shares);
                self.values.insert(*output, share.into());
                self.turned.insert(*output, turned);
            }
        }
        Ok(())
    }

    /// Returns which elements of a value were turned, if it was lifted.
    pub(crate) fn turned(&self, id: ValueId) -> Option<&Bits> {
        self.turned.get(&id)
    }

    /// Returns the server's share of a value, or, if the client has not answered yet, what it has
    /// without the answer.
    fn provisional(&self, id: ValueId) -> Share {
        match self.awaited.iter().find(|(awaited, _)| *awaited == id) {
            Some((_, Awaited::Stop(waiting, _))) => {
                let value = self.program.plan().graph().value(id);
                let mut shares = waiting.provisional().expect("products wait for others");
                let shares = std::mem::take(&mut *shares);
                Matrix::from_vec(value.rows, value.cols, shares).into()
            }
            _ => {
                let share = self.get(id);
                share.first_rows(share.rows())
            }
        }
    }

    /// Opens the server's shares of some values against their masks, each once.
    pub(crate) fn open(&mut self, channel: &mut Channel, values: &[ValueId]) -> Result<()> {
        for &id in values {
            if self.opened.insert(id) {
                let mut difference = self.provisional(id);
                (self.see)(id, &difference);
                let (rows, cols) = (difference.rows(), difference.cols());
                difference.sub(&self.seeds.share(Use::Value(id), rows, cols));
                channel.send_residues(OPENED, K, difference.data().iter().copied())?;
            }
        }
        Ok(channel.flush()?)
    }

    /// Sends the server's share of the outputs, unless only labels are revealed.
    pub(super) fn finish(mut self, channel: &mut Channel) -> Result<Times> {
        let graph = self.program.plan().graph();
        let _phase = channel.phase("online/others");
        if self.program.reveal() == Reveal::Outputs {
            for id in &graph.outputs {
                let share = self.get(*id).data().iter().copied();
                channel.send_residues(OUTPUT, K, share)?;
            }
        }
        channel.flush()?;
        self.clock.lap(&graph.steps[graph.steps.len() - 1]);
        Ok(self.clock.times())
    }
}

/// Adds the client's part of a product to the server's.
fn add_reshared(channel: &mut Channel, mut part: Share) -> Result<Share> {
    let mut reshared = Share::zeros(part.rows(), part.cols());
    channel.recv_residues(RESHARED, K, P, reshared.data_mut())?;
    part.add(&reshared);
    Ok(part)
}

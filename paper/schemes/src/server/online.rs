//! The server's online walk: its shares of the values, from the masked input to the last one.

use crate::compiled::{CompiledStep, CompiledStop};
use crate::error::Result;
use crate::hgs;
use crate::linear;
use crate::masks;
use crate::program::Program;
use crate::seeds::{Seeds, Use};
use crate::server::ServerModel;
use crate::stop;
use crate::stored::{self, Material};
use primer_engine::Reveal;
use primer_engine::clock::Clock;
use primer_engine::share::Share;
use primer_plan::graph::ValueId;
use primer_plan::times::Times;
use primer_ring::matrix::{Matrix, Scratch};
use primer_ring::modulus::{K, P};
use primer_stops::{AwaitedAnswer, ServerStop};
use primer_wire::Channel;
use primer_wire::kind::protocol::{INPUT, OPENED, OUTPUT, PADDING, RESHARED};
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::ops::Range;

/// What the client has been asked for.
enum Awaited {
    /// The answer of a stop.
    Stop(Box<dyn AwaitedAnswer>),
    /// The client's part of a product, which is added to the server's.
    Share(Share),
}

/// One inference under way.
pub(crate) struct OnlineServer<'a> {
    pub(crate) model: &'a ServerModel,
    program: &'a Program,
    pub(crate) seeds: Seeds,
    /// The one-hot rows, masked.
    pub(crate) input: Share,
    padding: Share,
    /// The server's share of each value that something still reads.
    pub(crate) values: HashMap<ValueId, Share>,
    /// What was opened against its mask.
    opened: HashSet<ValueId>,
    /// What was asked for and is not answered yet.
    awaited: Vec<(ValueId, Awaited)>,
    pub(crate) scratch: Scratch,
    pub(super) clock: Clock,
}

impl<'a> OnlineServer<'a> {
    /// Takes the masked input.
    pub(super) fn receive(
        channel: &mut Channel,
        model: &'a ServerModel,
        seeds: Seeds,
        mut clock: Clock,
    ) -> Result<Self> {
        let program = model.program();
        let graph = program.plan().graph();
        let _phase = channel.phase("online/embed");
        let mut input = Share::zeros(graph.tokens, graph.one_hot());
        channel.recv_residues(INPUT, K, P, input.data_mut())?;
        let mut padding = Share::zeros(1, graph.tokens);
        channel.recv_residues(PADDING, K, P, padding.data_mut())?;
        clock.lap(&graph.steps[0]);
        Ok(Self {
            model,
            program,
            seeds,
            input,
            padding,
            values: HashMap::new(),
            opened: HashSet::new(),
            awaited: Vec::new(),
            scratch: Scratch::default(),
            clock,
        })
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
                Awaited::Stop(waiting) => {
                    let (results, _) = waiting.receive_flagged(channel)?;
                    // A stop that tells the client leaves nothing here.
                    if results.is_empty() {
                        continue;
                    }
                    let cols = self.program.plan().graph().value(id).cols;
                    Share::from(Matrix::from_vec(results.len() / cols, cols, results))
                }
                Awaited::Share(mut part) => {
                    let mut reshared = Share::zeros(part.rows(), part.cols());
                    channel.recv_residues(RESHARED, K, P, reshared.data_mut())?;
                    part.add(&reshared);
                    part
                }
            };
            self.values.insert(id, share);
        }
        Ok(())
    }

    /// Runs a step: its result is there then, or is awaited.
    fn step(&mut self, channel: &mut Channel, index: usize, material: &mut Material) -> Result<()> {
        let output = self.program.step(index).output();
        match self.program.compiled(index) {
            CompiledStep::Linear(linear) => {
                let plan = self.program.plan();
                let masks = hgs::server_share(plan, linear, (index, output), &self.seeds);
                let share = linear::server_online(self, linear, masks);
                self.values.insert(output, share);
            }
            CompiledStep::Kept => {
                self.values.insert(output, masks::kept(1, &self.padding));
            }
            CompiledStep::Product(product) => {
                let kept = material.take_shares(index);
                let part = product.server_request(channel, self, index, kept)?;
                self.awaited.push((output, Awaited::Share(part)));
            }
            CompiledStep::Stop(work) => {
                let rows = self.program.plan().graph().value(work.input).rows;
                let share = self.get(work.input).first_rows(rows);
                self.ask(channel, index, work, share, material)?;
            }
        }
        Ok(())
    }

    /// Asks for what a stop makes of the server's share of its input.
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
        let waiting = ServerStop::request(&**stop, channel, &mut &stored[..], &share)?;
        channel.flush()?;
        self.awaited.push((*output, Awaited::Stop(waiting)));
        Ok(())
    }

    /// Opens the server's shares of some values against their masks, each once.
    pub(crate) fn open(&mut self, channel: &mut Channel, values: &[ValueId]) -> Result<()> {
        for &id in values {
            if self.opened.insert(id) {
                let share = self.get(id);
                let (rows, cols) = (share.rows(), share.cols());
                let mut difference = share.first_rows(rows);
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

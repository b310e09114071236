//! The client's part in preparing a bundle, in the order of [`crate::flow`].
//!
//! Within a segment, first the answers of its products, then the stops whose material is small,
//! then those whose material streams to the bundle as it comes: in that order a segment can be read
//! back. So what is held in memory is the shares and the masks of one segment and the next.

use crate::compiled::{CompiledStep, CompiledStop};
use crate::error::Result;
use crate::exchange::Requester;
use crate::flow::{Act, Flow, Planned};
use crate::hgs;
use crate::masks::Masks;
use crate::program::Program;
use crate::renewed::ClientTransfers;
use crate::session::{ClientSession, See};
use crate::stop;
use crate::stored::Keeping;
use primer_engine::clock::Clock;
use primer_engine::share::Share;
use primer_ring::prg::Prg;
use primer_stops::ClientStop;
use primer_wire::Channel;
use std::io::Write;
use std::ops::Range;

/// A session's tools at work on a bundle.
pub(super) struct Preparation<'a> {
    program: &'a Program,
    requester: Requester<'a>,
    transfers: &'a mut ClientTransfers,
    rng: &'a mut Prg,
    see: &'a mut See<'static>,
    keeping: Keeping,
}

impl<'a> Preparation<'a> {
    /// Puts a session to work on a bundle with transfers of its own, or with the session's.
    pub(super) fn new(
        session: &'a mut ClientSession,
        program: &'a Program,
        transfers: Option<&'a mut ClientTransfers>,
    ) -> Self {
        Self {
            program,
            requester: Requester::new(&session.keys),
            transfers: transfers.unwrap_or(&mut session.roots),
            rng: &mut session.rng,
            see: &mut *session.see,
            keeping: Keeping::default(),
        }
    }

    /// Prepares some segments.
    pub(super) fn run(
        &mut self,
        channel: &mut Channel,
        segments: &[Range<usize>],
        masks: &mut Masks,
        sink: &mut dyn Write,
        clock: &mut Clock,
    ) -> Result<()> {
        let program = self.program;
        let when = program.scheme().recipe().when;
        let flow = Flow::new(program.exchanges(), segments, when);
        // The answers to the step at hand.
        let mut answers = Vec::new();
        for act in flow.acts() {
            match act {
                Act::Offer(range) => {
                    for &Planned {
                        index, exchange, ..
                    } in flow.exchanges(range)
                    {
                        let _phase = program.preparing(channel, index);
                        self.requester.offer(channel, exchange, masks, self.rng)?;
                        clock.lap(program.step(index));
                    }
                }
                Act::Answer(range) => {
                    for planned in flow.exchanges(range) {
                        self.answer(channel, planned, &mut answers, masks)?;
                        clock.lap(program.step(planned.index));
                    }
                }
                Act::Stops(steps) => self.stops(channel, steps, masks, sink, clock)?,
            }
        }
        Ok(())
    }

    /// Takes an answer; after the last one of a step, its result.
    fn answer(
        &mut self,
        channel: &mut Channel,
        planned: &Planned<'_>,
        answers: &mut Vec<Share>,
        masks: &mut Masks,
    ) -> Result<()> {
        let _phase = self.program.preparing(channel, planned.index);
        answers.push(self.requester.answer(channel, planned.exchange)?);
        if planned.last {
            self.finish(planned.index, std::mem::take(answers), masks);
        }
        Ok(())
    }

    /// Writes what is kept of a segment, then prepares its stops.
    fn stops(
        &mut self,
        channel: &mut Channel,
        steps: &Range<usize>,
        masks: &mut Masks,
        sink: &mut dyn Write,
        clock: &mut Clock,
    ) -> Result<()> {
        let program = self.program;
        for index in steps.clone() {
            self.keeping.write(index, sink)?;
        }
        for streams in [false, true] {
            for index in steps.clone() {
                let Some(work) = program.compiled(index).stop() else {
                    continue;
                };
                if work.stop.streams() == streams {
                    let _phase = program.preparing(channel, index);
                    self.stop(channel, index, work, masks, sink)?;
                    clock.lap(program.step(index));
                }
            }
        }
        masks.forget_before(steps.end);
        Ok(())
    }

    /// Makes a step's answers into the client's share of its result, or into what is known of it
    /// offline.
    fn finish(&mut self, index: usize, answers: Vec<Share>, masks: &mut Masks) {
        match self.program.compiled(index) {
            CompiledStep::Linear(linear) => {
                let share = hgs::client_offline(linear, answers);
                masks.insert(self.program.step(index).output(), share);
            }
            CompiledStep::Product(product) => {
                let graph = self.program.plan().graph();
                for known in product.client_offline(graph, masks, answers) {
                    self.keeping.push(index, known);
                }
            }
            CompiledStep::Kept | CompiledStep::Stop(_) => {
                unreachable!("only products have exchanges")
            }
        }
    }

    fn stop(
        &mut self,
        channel: &mut Channel,
        index: usize,
        CompiledStop {
            input,
            output,
            stop,
        }: &CompiledStop,
        masks: &mut Masks,
        sink: &mut dyn Write,
    ) -> Result<()> {
        let share = stop::client_share(self.program, index, *input, masks, self.see);
        let mask = masks.of_stop(&**stop, *output);
        let mut tools = self.transfers.tools(channel, self.rng);
        Ok(ClientStop::prepare(
            &**stop,
            &mut tools,
            &share,
            mask.data(),
            sink,
        )?)
    }
}

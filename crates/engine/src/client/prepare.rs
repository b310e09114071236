//! The client's part in preparing bundles, in the order of [`crate::flow`].
//!
//! Within a segment, first the messages and answers of its products, then the stops whose material
//! is small, then those whose material streams to the bundle as it comes: in that order a segment
//! can be read back. What silent steps leave with the client is computed when their messages have
//! left: exchanges of the same segment may encrypt what follows from it. So what is held in memory
//! is the shares and the masks of one segment and the next.

use crate::batch::Exchanges;
use crate::clock::Clock;
use crate::compiled::{CompiledStep, CompiledStop};
use crate::error::Result;
use crate::exchange::Requester;
use crate::flow::{Act, Flow, Planned};
use crate::local::Party;
use crate::masks::Masks;
use crate::program::Program;
use crate::renewed::ClientTransfers;
use crate::secrets;
use crate::session::{ClientSession, See};
use crate::share::Share;
use crate::silent::ClientSecrets;
use crate::stop::{self, RingShare};
use crate::stored::Keeping;
use primer_ring::prg::Prg;
use primer_stops::ClientStop;
use primer_wire::Channel;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

/// A session's tools at work on bundles that are prepared together.
pub(super) struct Preparation<'a> {
    program: &'a Program,
    exchanges: Arc<Exchanges>,
    requester: Requester<'a>,
    /// Of each bundle.
    transfers: &'a mut [ClientTransfers],
    rng: &'a mut Prg,
    see: &'a mut See<'a>,
    secrets: ClientSecrets<'a>,
    /// Of each bundle.
    keeping: Vec<Keeping>,
}

impl<'a> Preparation<'a> {
    /// Puts a session to work on bundles with transfers of their own.
    pub(super) fn new(
        session: &'a mut ClientSession,
        program: &'a Program,
        secrets: ClientSecrets<'a>,
        transfers: &'a mut [ClientTransfers],
    ) -> Result<Self> {
        let bundles = transfers.len();
        Ok(Self {
            program,
            exchanges: program.exchanges_for(bundles)?,
            requester: Requester::new(&session.keys),
            transfers,
            rng: &mut session.rng,
            see: &mut *session.see,
            secrets,
            keeping: (0..bundles).map(|_| Keeping::default()).collect(),
        })
    }

    /// Prepares all segments.
    pub(super) fn run(
        &mut self,
        channel: &mut Channel,
        masks: &mut [Masks],
        sinks: &mut [&mut (dyn Write + Send)],
        clock: &mut Clock,
    ) -> Result<()> {
        let (program, exchanges) = (self.program, Arc::clone(&self.exchanges));
        let flow = Flow::new(&exchanges, program.hints(), program.segments());
        // Of each bundle, the answers to the step at hand.
        let mut answers: Vec<Vec<Share>> = masks.iter().map(|_| Vec::new()).collect();
        for act in flow.acts() {
            match act {
                Act::Messages(entries) => self.messages(channel, entries, masks, clock)?,
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
                Act::Stops(steps) => self.stops(channel, steps, masks, sinks, clock)?,
            }
        }
        Ok(())
    }

    /// Takes an answer; after the last one of a step, its result.
    fn answer(
        &mut self,
        channel: &mut Channel,
        planned: &Planned<'_>,
        answers: &mut [Vec<Share>],
        masks: &mut [Masks],
    ) -> Result<()> {
        let _phase = self.program.preparing(channel, planned.index);
        let answer = (self.requester).answer(channel, planned.exchange, masks.len())?;
        for (answers, answer) in answers.iter_mut().zip(answer) {
            answers.push(answer);
        }
        if planned.last {
            for (bundle, (masks, answers)) in masks.iter_mut().zip(answers).enumerate() {
                self.finish((planned.index, bundle), std::mem::take(answers), masks);
            }
        }
        Ok(())
    }

    /// Sends the messages of some values, and what corrects the masks of inputs; then computes what
    /// silent steps that read them leave with the client.
    fn messages(
        &mut self,
        channel: &mut Channel,
        entries: &Range<usize>,
        masks: &mut [Masks],
        clock: &mut Clock,
    ) -> Result<()> {
        let (program, secrets) = (self.program, &mut self.secrets);
        for entry in entries.clone() {
            let index = secrets.first_reader(entry);
            let _phase = program.preparing(channel, index);
            secrets.send(channel, entry)?;
            if program.hinted(None) == Some(entry) {
                for (mask, masks) in secrets.masks(entry).into_iter().zip(&*masks) {
                    masks.pad().correct(channel, program.one(), mask)?;
                }
            }
            clock.lap(program.step(index));
        }
        // The server computes its own part meanwhile.
        channel.flush()?;
        for entry in entries.clone() {
            secrets.multiply(entry, masks, &mut *self.see)?;
            clock.lap(program.step(secrets.first_reader(entry)));
        }
        Ok(())
    }

    /// Computes the masks of values that a segment makes and silent steps read.
    fn give_masks(&mut self, steps: &Range<usize>, masks: &mut [Masks], clock: &mut Clock) {
        let (program, secrets) = (self.program, &self.secrets);
        for index in steps.clone() {
            let Some(&CompiledStop { input, output, .. }) = program.compiled(index).stop() else {
                continue;
            };
            if let Some(entry) = program.hinted(Some(output)) {
                let given = secrets.masks(entry).into_iter();
                for ((mask, masks), keeping) in given.zip(&mut *masks).zip(&mut self.keeping) {
                    let kept = stop::client_mask(program, index, &mask, || masks.get(input));
                    keeping.push(index, kept);
                    masks.insert(output, mask);
                }
                clock.lap(program.step(index));
            }
        }
    }

    /// Does what each party does alone in a segment, then prepares its stops.
    fn stops(
        &mut self,
        channel: &mut Channel,
        steps: &Range<usize>,
        masks: &mut [Masks],
        sinks: &mut [&mut (dyn Write + Send)],
        clock: &mut Clock,
    ) -> Result<()> {
        let program = self.program;
        self.give_masks(steps, masks, clock);
        for index in steps.clone() {
            for (keeping, sink) in self.keeping.iter_mut().zip(sinks.iter_mut()) {
                keeping.write(index, sink)?;
            }
        }
        for index in steps.clone() {
            if let CompiledStep::Local(local) = program.compiled(index) {
                for masks in masks.iter_mut() {
                    let padding = masks.padding();
                    let share = local.apply(Party::Client, |id| masks.get(id), &padding.residues);
                    masks.insert(program.step(index).output(), share);
                }
            }
        }
        for streams in [false, true] {
            for index in steps.clone() {
                let Some(compiled) = program.compiled(index).stop() else {
                    continue;
                };
                if compiled.stop.streams() == streams {
                    let _phase = program.preparing(channel, index);
                    for (bundle, sink) in sinks.iter_mut().enumerate() {
                        let place = (index, bundle);
                        self.stop(channel, place, compiled, &mut masks[bundle], sink)?;
                    }
                    clock.lap(program.step(index));
                }
            }
        }
        for masks in masks {
            masks.forget_before(steps.end);
        }
        Ok(())
    }

    /// Makes a step's answers into what is known offline of the client's share of its result.
    fn finish(&mut self, (index, bundle): (usize, usize), answers: Vec<Share>, masks: &mut Masks) {
        let CompiledStep::Product(compiled) = self.program.compiled(index) else {
            unreachable!("only products of secrets have exchanges");
        };
        let graph = self.program.plan().graph();
        for known in secrets::client_offline(graph, compiled.factors, masks, answers) {
            self.keeping[bundle].push(index, known);
        }
    }

    fn stop(
        &mut self,
        channel: &mut Channel,
        (index, bundle): (usize, usize),
        CompiledStop {
            input,
            output,
            stop,
        }: &CompiledStop,
        masks: &mut Masks,
        sink: &mut dyn Write,
    ) -> Result<()> {
        let share = match stop.is_late() {
            true => RingShare::default(),
            false => stop::client_share(self.program, index, *input, masks, &mut *self.see),
        };
        let mask = masks.of_stop(&**stop, *output);
        let mut tools = self.transfers[bundle].tools(channel, self.rng);
        let stop = &**stop;
        let signed = self.program.plan().graph().signed();
        let signed = signed.filter(|signed| signed.factor == *output);
        match signed {
            Some(_) => {
                let signs = masks.pad().signs();
                ClientStop::prepare_signed(stop, &mut tools, mask.data(), &signs, sink)?;
            }
            None => ClientStop::prepare(stop, &mut tools, &share, mask.data(), sink)?,
        }
        Ok(())
    }
}

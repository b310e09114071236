//! The server's part in preparing bundles, in the order of [`crate::flow`].
//!
//! A thread is started that has the channel: it takes masks in, sends answers and prepares stops.
//! The caller's thread computes the answers (`products.rs`): it asks for nearly all of the memory,
//! and the system keeps that ready for the thread that had it before. If either fails, so does all
//! of it, with the error that came first in the order of messages.

use crate::batch::Exchanges;
use crate::bits;
use crate::clock::Clock;
use crate::compiled::CompiledStep;
use crate::error::Result;
use crate::exchange::{Answerer, Intake, reply};
use crate::flow::{Act, Flow, Planned};
use crate::program::Program;
use crate::renewed::ServerTransfers;
use crate::secrets;
use crate::seeds::Seeds;
use crate::server::ServerModel;
use crate::server::products::{Answered, Computed, ProductJob, Products};
use crate::session::ServerSession;
use crate::share::Share;
use crate::silent::{self, ServerProducts};
use crate::stored::Keeping;
use primer_ring::prg::Prg;
use primer_stops::ServerStop;
use primer_wire::Channel;
use std::collections::VecDeque;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

/// A session's tools at work on bundles that are prepared together.
pub(super) struct Preparation<'a> {
    model: &'a ServerModel,
    exchanges: Arc<Exchanges>,
    bundles: usize,
    threads: usize,
    intake: Intake,
    answerer: Answerer<'a>,
    tools: Tools<'a>,
}

/// What stops are prepared with.
struct Tools<'a> {
    program: &'a Program,
    /// Of each bundle.
    transfers: &'a mut [ServerTransfers],
    rng: &'a mut Prg,
}

impl<'a> Preparation<'a> {
    /// Puts a session to work on bundles with transfers of their own.
    pub(super) fn new(
        session: &'a mut ServerSession,
        model: &'a ServerModel,
        transfers: &'a mut [ServerTransfers],
    ) -> Result<Self> {
        let bundles = transfers.len();
        let intake = Intake::default();
        Ok(Self {
            model,
            exchanges: model.program().exchanges_for(bundles)?,
            bundles,
            threads: session.threads,
            answerer: Answerer::new(&mut session.keys, intake.spare.clone()),
            intake,
            tools: Tools {
                program: model.program(),
                transfers,
                rng: &mut session.rng,
            },
        })
    }

    /// Prepares all segments of the bundles that have these seeds, and writes each to its sink.
    pub(super) fn run(
        &mut self,
        channel: &mut Channel,
        seeds: &[Seeds],
        sinks: &mut [&mut (dyn Write + Send)],
        clock: &mut Clock,
    ) -> Result<()> {
        let Self {
            model,
            exchanges,
            bundles: count,
            threads,
            intake,
            answerer,
            tools,
        } = self;
        let program = model.program();
        let flow = Flow::new(exchanges, program.hints(), program.segments());
        let multipliers = model.multipliers()?;
        let products = Products {
            model,
            answerer,
            silent: ServerProducts::new(program, multipliers, (*count, *threads)),
            seeds,
            rng: tools.rng.fork(),
        };
        std::thread::scope(|scope| {
            // Bounded by the flow: the masks and answers of two groups.
            let (asks, asked) = mpsc::channel();
            let (done, computed) = mpsc::channel();
            let keeping = (0..*count).map(|_| Keeping::default()).collect();
            let mut driver = Driver {
                channel,
                intake,
                asks,
                computed,
                answers: VecDeque::new(),
                keeping,
                tools,
                shares: seeds.iter().map(|_| Vec::new()).collect(),
                sinks,
                clock,
            };
            let flow = &flow;
            let driving = scope.spawn(move || {
                let done = flow.acts().iter().try_for_each(|act| driver.act(flow, act));
                done.and_then(|()| Ok(driver.channel.flush()?))
            });
            // Ends when the driver asks no more, whether it is done or has failed.
            products.work(&asked, &done);
            match driving.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

/// Everything but the products.
struct Driver<'a, 't, 's> {
    channel: &'a mut Channel,
    intake: &'a mut Intake,
    asks: Sender<ProductJob<'a>>,
    computed: Receiver<Result<Computed>>,
    /// Answers that were computed and not sent yet.
    answers: VecDeque<Answered>,
    /// Of each bundle.
    keeping: Vec<Keeping>,
    tools: &'a mut Tools<'t>,
    /// Where the material of each bundle goes.
    sinks: &'a mut [&'s mut (dyn Write + Send)],
    /// Of each bundle, the server's shares of the step at hand.
    shares: Vec<Vec<Share>>,
    clock: &'a mut Clock,
}

impl<'a> Driver<'a, '_, '_> {
    fn act(&mut self, flow: &Flow<'a>, act: &Act) -> Result<()> {
        match act {
            Act::Messages(entries) => self.messages(entries)?,
            Act::Offer(range) => {
                for planned in flow.exchanges(range) {
                    let _phase = self.tools.program.preparing(self.channel, planned.index);
                    let arrived = self.intake.accept(self.channel, planned.exchange)?;
                    self.ask(ProductJob::Exchange(*planned, arrived));
                    self.lap(planned.index);
                }
            }
            Act::Answer(range) => {
                for planned in flow.exchanges(range) {
                    let Answered { bytes, shares } = loop {
                        match self.answers.pop_front() {
                            Some(answer) => break answer,
                            None => self.hear()?,
                        }
                    };
                    self.answer(planned, &bytes, shares)?;
                    self.intake.spare.give(bytes);
                    self.lap(planned.index);
                }
            }
            Act::Stops(steps) => self.stops(steps)?,
        }
        Ok(())
    }

    /// Has something computed. If the products do not hear it, they have failed, and why is the
    /// next thing to be heard.
    fn ask(&self, asked: ProductJob<'a>) {
        let _ = self.asks.send(asked);
    }

    /// Waits for the next thing that is computed.
    fn hear(&mut self) -> Result<()> {
        match self.computed.recv().expect("every question is answered")? {
            Computed::Answer(answer) => self.answers.push_back(answer),
            Computed::Shares(steps) => {
                for (index, shares) in steps {
                    for (keeping, share) in self.keeping.iter_mut().zip(shares) {
                        keeping.push(index, share);
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes in the messages of some values, and what corrects the masks of inputs.
    fn messages(&mut self, entries: &Range<usize>) -> Result<()> {
        let program = self.tools.program;
        let hints = program.hints();
        for entry in entries.clone() {
            let index = hints.readers()[entry].terms[0].step;
            let _phase = program.preparing(self.channel, index);
            let rows = hints.rows(program, entry, self.keeping.len());
            let messages = silent::receive(self.channel, rows)?;
            let corrections = match program.hinted(None) == Some(entry) {
                true => {
                    bits::receive_corrections(self.channel, program.bits(), self.keeping.len())?
                }
                false => Vec::new(),
            };
            self.ask(ProductJob::Messages {
                entry,
                messages,
                corrections,
            });
            self.lap(index);
        }
        Ok(())
    }

    fn lap(&mut self, index: usize) {
        self.clock.lap(self.tools.program.step(index));
    }

    /// Sends an answer, and keeps what there is to keep of its step.
    fn answer(&mut self, planned: &Planned<'_>, answer: &[u8], shares: Vec<Share>) -> Result<()> {
        let (program, index) = (self.tools.program, planned.index);
        let _phase = program.preparing(self.channel, index);
        reply(self.channel, answer)?;
        for (all, share) in self.shares.iter_mut().zip(shares) {
            all.push(share);
        }
        if let (true, CompiledStep::Product(compiled)) = (planned.last, program.compiled(index)) {
            let graph = program.plan().graph();
            for (keeping, shares) in self.keeping.iter_mut().zip(&mut self.shares) {
                let shares = std::mem::take(shares);
                for share in secrets::server_offline(graph, compiled.factors, shares) {
                    keeping.push(index, share);
                }
            }
        }
        Ok(())
    }

    /// Writes what is kept of a segment, then prepares its stops: those whose material is small,
    /// then those whose material streams.
    fn stops(&mut self, steps: &Range<usize>) -> Result<()> {
        let program = self.tools.program;
        for index in steps.clone() {
            // Silent steps are computed beside all that came before.
            let kept = program.kept(index).server.len();
            while self.keeping[0].count(index) < kept {
                self.hear()?;
            }
            let sinks = self.sinks.iter_mut();
            for (keeping, sink) in self.keeping.iter_mut().zip(sinks) {
                keeping.write(index, sink)?;
            }
        }
        for streams in [false, true] {
            for index in steps.clone() {
                let Some(compiled) = program.compiled(index).stop() else {
                    continue;
                };
                if compiled.stop.streams() != streams {
                    continue;
                }
                let _phase = program.preparing(self.channel, index);
                let sinks = self.sinks.iter_mut();
                for (transfers, sink) in self.tools.transfers.iter_mut().zip(sinks) {
                    let mut tools = transfers.tools(self.channel, self.tools.rng);
                    ServerStop::prepare(&*compiled.stop, &mut tools, sink)?;
                }
                self.lap(index);
            }
        }
        Ok(())
    }
}

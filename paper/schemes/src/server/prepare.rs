//! The server's part in preparing a bundle, in the order of [`crate::flow`].
//!
//! A thread is started that has the channel: it takes masks in, sends answers and prepares stops.
//! The caller's thread computes the answers (`products.rs`): it asks for nearly all of the memory,
//! and the system keeps that ready for the thread that had it before. If either fails, so does all
//! of it, with the error that came first in the order of messages.

use crate::compiled::CompiledStep;
use crate::error::Result;
use crate::exchange::{Answerer, Intake, reply};
use crate::flow::{Act, Flow, Planned};
use crate::program::Program;
use crate::renewed::ServerTransfers;
use crate::seeds::Seeds;
use crate::server::ServerModel;
use crate::server::products::{ProductJob, Products, Values};
use crate::session::ServerSession;
use crate::stored::Keeping;
use primer_engine::clock::Clock;
use primer_ring::prg::Prg;
use primer_stops::ServerStop;
use primer_wire::Channel;
use std::io::Write;
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, Sender};

/// The bundle that is prepared.
pub(super) struct Bundle<'a> {
    pub(super) seeds: &'a Seeds,
    pub(super) values: &'a Values<'a>,
    /// Where its material goes.
    pub(super) sink: &'a mut (dyn Write + Send),
}

/// A session's tools at work on a bundle.
pub(super) struct Preparation<'a> {
    model: &'a ServerModel,
    intake: Intake,
    answerer: Answerer<'a>,
    tools: Tools<'a>,
}

/// What stops are prepared with.
struct Tools<'a> {
    program: &'a Program,
    transfers: &'a mut ServerTransfers,
    rng: &'a mut Prg,
}

impl<'a> Preparation<'a> {
    /// Puts a session to work on a bundle with transfers of its own, or with the session's.
    pub(super) fn new(
        session: &'a mut ServerSession,
        model: &'a ServerModel,
        transfers: Option<&'a mut ServerTransfers>,
    ) -> Self {
        let intake = Intake::default();
        Self {
            model,
            answerer: Answerer::new(&mut session.keys, intake.spare.clone()),
            intake,
            tools: Tools {
                program: model.program(),
                transfers: transfers.unwrap_or(&mut session.roots),
                rng: &mut session.rng,
            },
        }
    }

    /// Prepares some segments.
    pub(super) fn run(
        &mut self,
        channel: &mut Channel,
        segments: &[Range<usize>],
        bundle: Bundle<'_>,
        clock: &mut Clock,
    ) -> Result<()> {
        let Self {
            model,
            intake,
            answerer,
            tools,
        } = self;
        let program = model.program();
        let when = program.scheme().recipe().when;
        let flow = Flow::new(program.exchanges(), segments, when);
        let products = Products {
            model,
            encoded: model.encoded(),
            answerer,
            seeds: bundle.seeds,
            values: bundle.values,
            rng: tools.rng.fork(),
        };
        std::thread::scope(|scope| {
            // Bounded by the flow: the masks and answers of two groups.
            let (asks, asked) = mpsc::channel();
            let (done, computed) = mpsc::channel();
            let mut driver = Driver {
                channel,
                intake,
                asks,
                computed,
                keeping: Keeping::default(),
                tools,
                bundle,
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
struct Driver<'a, 't, 'b> {
    channel: &'a mut Channel,
    intake: &'a mut Intake,
    asks: Sender<ProductJob<'a>>,
    computed: Receiver<Result<Vec<u8>>>,
    keeping: Keeping,
    tools: &'a mut Tools<'t>,
    bundle: Bundle<'b>,
    clock: &'a mut Clock,
}

impl<'a> Driver<'a, '_, '_> {
    fn act(&mut self, flow: &Flow<'a>, act: &Act) -> Result<()> {
        match act {
            Act::Offer(range) => {
                for planned in flow.exchanges(range) {
                    let _phase = self.tools.program.preparing(self.channel, planned.index);
                    let arrived = self.intake.accept(self.channel, planned.exchange)?;
                    self.ask((*planned, arrived));
                    self.lap(planned.index);
                }
            }
            Act::Answer(range) => {
                for planned in flow.exchanges(range) {
                    let bytes = self.hear()?;
                    self.answer(planned, &bytes)?;
                    self.intake.spare.give(bytes);
                    self.lap(planned.index);
                }
            }
            Act::Stops(steps) => self.stops(steps)?,
        }
        Ok(())
    }

    /// Has an answer computed. If the products do not hear it, they have failed, and why is the
    /// next thing to be heard.
    fn ask(&self, asked: ProductJob<'a>) {
        let _ = self.asks.send(asked);
    }

    /// Waits for the next answer.
    fn hear(&mut self) -> Result<Vec<u8>> {
        self.computed.recv().expect("every question is answered")
    }

    fn lap(&mut self, index: usize) {
        self.clock.lap(self.tools.program.step(index));
    }

    /// Sends an answer, and keeps what there is to keep of its step.
    fn answer(&mut self, planned: &Planned<'_>, answer: &[u8]) -> Result<()> {
        let (program, index) = (self.tools.program, planned.index);
        let _phase = program.preparing(self.channel, index);
        reply(self.channel, answer)?;
        if let (true, CompiledStep::Product(product)) = (planned.last, program.compiled(index)) {
            let graph = program.plan().graph();
            let kept = product.server_offline(graph, index, self.bundle.seeds);
            if let Some(share) = kept {
                self.keeping.push(index, share);
            }
        }
        Ok(())
    }

    /// Writes what is kept of a segment, then prepares its stops: those whose material is small,
    /// then those whose material streams.
    fn stops(&mut self, steps: &Range<usize>) -> Result<()> {
        let program = self.tools.program;
        for index in steps.clone() {
            self.keeping.write(index, self.bundle.sink)?;
        }
        for streams in [false, true] {
            for index in steps.clone() {
                let Some(work) = program.compiled(index).stop() else {
                    continue;
                };
                if work.stop.streams() != streams {
                    continue;
                }
                let _phase = program.preparing(self.channel, index);
                let mut tools = self.tools.transfers.tools(self.channel, self.tools.rng);
                ServerStop::prepare(&*work.stop, &mut tools, self.bundle.sink)?;
                self.lap(index);
            }
        }
        Ok(())
    }
}

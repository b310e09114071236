//! The server's part in preparing a segment; the order is the client's (`client/prepare.rs`).

use crate::clock::Clock;
use crate::error::Result;
use crate::exchange::{Answerer, Exchange};
use crate::seeds::{Seeds, Use};
use crate::server::ServerModel;
use crate::server::model::Multiplier;
use crate::session::ServerSession;
use crate::share::Share;
use crate::stored;
use crate::work::Work;
use primer_net::Channel;
use primer_ot::{CotReceiver, CotSender};
use primer_plan::graph::ValueId;
use primer_ring::prg::Prg;
use primer_stops::{ServerStop, ServerTools};
use std::io::Write;
use std::ops::Range;

/// What a segment is prepared for, and what comes of it.
pub(super) struct Segment<'a> {
    pub(super) steps: &'a Range<usize>,
    pub(super) seeds: &'a Seeds,
    /// What products of secrets multiply the client's masks with: the masks that values will be
    /// opened with, or the server's shares themselves.
    pub(super) values: &'a dyn Fn(ValueId) -> Share,
    /// Where the material goes.
    pub(super) sink: &'a mut dyn Write,
}

/// A session's tools at work on one inference.
pub(super) struct Preparation<'a> {
    model: &'a ServerModel,
    answerer: Answerer<'a>,
    labels: &'a mut CotSender,
    transfers: &'a mut CotReceiver,
    rng: &'a mut Prg,
}

impl<'a> Preparation<'a> {
    pub(super) fn new(session: &'a mut ServerSession, model: &'a ServerModel) -> Self {
        Self {
            model,
            answerer: Answerer::new(&mut session.keys),
            labels: &mut session.labels,
            transfers: &mut session.transfers,
            rng: &mut session.rng,
        }
    }

    pub(super) fn segment(
        &mut self,
        channel: &mut Channel,
        segment: Segment<'_>,
        clock: &mut Clock,
    ) -> Result<()> {
        let Segment {
            steps,
            seeds,
            values,
            sink,
        } = segment;
        self.exchanges(channel, steps, (seeds, values), sink, clock)?;
        channel.flush()?;
        let program = self.model.program();
        for streams in [false, true] {
            for index in steps.clone() {
                let Some(work) = program.work(index).stop() else {
                    continue;
                };
                if work.stop.streams() != streams {
                    continue;
                }
                let phase = program.preparing(channel, index);
                let mut tools = ServerTools {
                    channel,
                    labels: self.labels,
                    transfers: self.transfers,
                    rng: self.rng,
                };
                ServerStop::prepare(&*work.stop, &mut tools, sink)?;
                drop(phase);
                clock.lap(program.step(index));
            }
        }
        Ok(())
    }

    fn exchanges(
        &mut self,
        channel: &mut Channel,
        steps: &Range<usize>,
        (seeds, values): (&Seeds, &dyn Fn(ValueId) -> Share),
        sink: &mut dyn Write,
        clock: &mut Clock,
    ) -> Result<()> {
        let program = self.model.program();
        let exchanges = program.exchanges_of(steps);
        let ahead = program.ahead();
        let mut accepted = 0;
        for (at, &(index, part, exchange)) in exchanges.iter().enumerate() {
            if accepted <= at {
                let _phase = program.preparing(channel, index);
                self.answerer.accept(channel, exchange)?;
                accepted += 1;
            }
            let answer = self.answer((index, part), exchange, seeds, values)?;
            // The client has sent these already and now waits for the answer.
            for &(next, _, exchange) in exchanges.iter().take(at + 1 + ahead).skip(accepted) {
                let _phase = program.preparing(channel, next);
                self.answerer.accept(channel, exchange)?;
                accepted += 1;
            }
            let _phase = program.preparing(channel, index);
            self.answerer.reply(channel, &answer)?;
            channel.flush()?;
            if exchanges
                .get(at + 1)
                .is_none_or(|(next, ..)| *next != index)
            {
                self.forget(index);
                if let Work::Product(product) = program.work(index) {
                    for share in product.server_offline(program.plan().graph(), index, seeds) {
                        stored::write_share(sink, &share)?;
                    }
                }
            }
            clock.lap(program.step(index));
        }
        Ok(())
    }

    /// One homomorphic answer.
    fn answer(
        &mut self,
        (index, part): (usize, usize),
        exchange: &Exchange,
        seeds: &Seeds,
        values: &dyn Fn(ValueId) -> Share,
    ) -> Result<Vec<u8>> {
        let product = &exchange.product;
        let what = Use::Answer { step: index, part };
        let mask = seeds.share(what, product.rows(), product.cols());
        let multiplier = match self.model.program().work(index) {
            Work::Linear(linear) => {
                Multiplier::OfModel(self.model.encoded(linear.terms[part].weight))
            }
            Work::Product(product) => {
                product.multiplier(self.model, (index, part), exchange, seeds, values)?
            }
            Work::Local(_) | Work::Stop(_) => unreachable!("only products have exchanges"),
        };
        (self.answerer).answer(exchange, &multiplier, &mask, self.rng)
    }

    /// Drops the encrypted masks that nothing reads after a step.
    fn forget(&mut self, index: usize) {
        let program = self.model.program();
        let inputs = program.step(index).inputs();
        if inputs.is_empty() {
            self.answerer.forget(None);
        }
        for read in inputs {
            if program.last_uses()[read.index()] == index {
                self.answerer.forget(Some(read));
            }
        }
    }
}

//! The server's part in preparing a segment; the order is the client's (`client/prepare.rs`).

use crate::clock::Clock;
use crate::error::Result;
use crate::exchange::{Answerer, Exchange};
use crate::seeds::{Seeds, Use};
use crate::server::ServerModel;
use crate::server::encoded::Encoded;
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
use std::sync::Arc;

/// What a segment of some bundles is prepared for, and what comes of it.
pub(super) struct Segment<'a, 's> {
    pub(super) steps: &'a Range<usize>,
    /// Of each bundle.
    pub(super) seeds: &'a [Seeds],
    /// What products of secrets multiply the client's masks with, by bundle: the masks that values
    /// will be opened with, or the server's shares themselves.
    pub(super) values: &'a dyn Fn(usize, ValueId) -> Share,
    /// Where the material of each bundle goes.
    pub(super) sinks: &'a mut [&'s mut (dyn Write + Send)],
}

/// A session's tools at work on bundles that are prepared together.
pub(super) struct Preparation<'a> {
    model: &'a ServerModel,
    encoded: Arc<Encoded>,
    answerer: Answerer<'a>,
    labels: &'a mut CotSender,
    transfers: &'a mut CotReceiver,
    rng: &'a mut Prg,
}

impl<'a> Preparation<'a> {
    pub(super) fn new(
        session: &'a mut ServerSession,
        model: &'a ServerModel,
        bundles: usize,
    ) -> Result<Self> {
        Ok(Self {
            model,
            encoded: model.encoded(bundles)?,
            answerer: Answerer::new(&mut session.keys),
            labels: &mut session.labels,
            transfers: &mut session.transfers,
            rng: &mut session.rng,
        })
    }

    pub(super) fn segment(
        &mut self,
        channel: &mut Channel,
        segment: Segment<'_, '_>,
        clock: &mut Clock,
    ) -> Result<()> {
        let Segment {
            steps,
            seeds,
            values,
            sinks,
        } = segment;
        self.exchanges(channel, steps, (seeds, values), sinks, clock)?;
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
                for sink in sinks.iter_mut() {
                    let mut tools = ServerTools {
                        channel,
                        labels: self.labels,
                        transfers: self.transfers,
                        rng: self.rng,
                    };
                    ServerStop::prepare(&*work.stop, &mut tools, sink)?;
                }
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
        (seeds, values): (&[Seeds], &dyn Fn(usize, ValueId) -> Share),
        sinks: &mut [&mut (dyn Write + Send)],
        clock: &mut Clock,
    ) -> Result<()> {
        let (program, encoded) = (self.model.program(), Arc::clone(&self.encoded));
        let exchanges = encoded.exchanges.of(steps);
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
                if let Work::Product(work) = program.work(index) {
                    let product = &work.product;
                    for (seeds, sink) in seeds.iter().zip(sinks.iter_mut()) {
                        for share in product.server_offline(program.plan().graph(), index, seeds) {
                            stored::write_share(sink, &share)?;
                        }
                    }
                }
            }
            clock.lap(program.step(index));
        }
        Ok(())
    }

    /// One homomorphic answer, to all bundles.
    fn answer(
        &mut self,
        (index, part): (usize, usize),
        exchange: &Exchange,
        seeds: &[Seeds],
        values: &dyn Fn(usize, ValueId) -> Share,
    ) -> Result<Vec<u8>> {
        let (rows, cols) = exchange.answer_size(seeds.len());
        let what = Use::Answer { step: index, part };
        let masks = seeds.iter().map(|seeds| seeds.share(what, rows, cols));
        let mask = exchange.answer_mask(masks.collect());
        let encoded = Arc::clone(&self.encoded);
        if let Some(weights) = encoded.of(index, part) {
            return (self.answerer).answer(exchange, weights, &mask, self.rng);
        }
        let Work::Product(work) = self.model.program().work(index) else {
            unreachable!("only products of secrets have weights of one inference");
        };
        let weights =
            (work.product).multiplier(self.model, (index, part), exchange, seeds, values)?;
        (self.answerer).answer(exchange, &weights, &mask, self.rng)
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

//! The server's products, in another thread than the channel.
//!
//! They need nothing but the client's encrypted masks, or its messages about them. So they are
//! computed while the channel is used for other things, in the order in which these came:
//! [`crate::flow`] says how far ahead.

use crate::bits;
use crate::compiled::CompiledStep;
use crate::error::Result;
use crate::exchange::{Answerer, Arrived};
use crate::flow::Planned;
use crate::secrets;
use crate::seeds::{Seeds, Use};
use crate::server::ServerModel;
use crate::share::Share;
use crate::silent::ServerProducts;
use primer_plan::graph::ValueId;
use primer_ring::prg::Prg;
use std::sync::mpsc::{Receiver, Sender};

/// What is to be computed.
pub(super) enum ProductJob<'a> {
    /// The answer of an exchange whose masks are here.
    Exchange(Planned<'a>, Arrived),
    /// The shares of silent steps, of the value of an entry whose messages are here.
    Messages {
        entry: usize,
        messages: Vec<Vec<u8>>,
        /// Of each bundle, if the value is the input.
        corrections: Vec<Share>,
    },
}

/// What was computed.
pub(super) enum Computed {
    /// The answer of an exchange.
    Answer(Answered),
    /// The server's shares of steps, for each bundle.
    Shares(Vec<(usize, Vec<Share>)>),
}

/// An answer.
pub(super) struct Answered {
    pub(super) bytes: Vec<u8>,
    /// What the server has of the product, for each bundle.
    pub(super) shares: Vec<Share>,
}

/// Computes answers.
pub(super) struct Products<'a, 'k> {
    pub(super) model: &'a ServerModel,
    pub(super) answerer: &'a mut Answerer<'k>,
    pub(super) silent: ServerProducts<'a>,
    /// Of each bundle.
    pub(super) seeds: &'a [Seeds],
    /// Drawn from here only.
    pub(super) rng: Prg,
}

impl Products<'_, '_> {
    /// Computes what is asked, in order, until the asking ends or something fails.
    pub(super) fn work(
        mut self,
        asked: &Receiver<ProductJob<'_>>,
        done: &Sender<Result<Computed>>,
    ) {
        for asked in asked {
            let computed = match asked {
                ProductJob::Exchange(planned, arrived) => {
                    self.answer(planned, arrived).map(Computed::Answer)
                }
                ProductJob::Messages {
                    entry,
                    messages,
                    corrections,
                } => {
                    let shares = self.silently(entry, &messages, &corrections);
                    shares.map(Computed::Shares)
                }
            };
            let failed = computed.is_err();
            if done.send(computed).is_err() || failed {
                return;
            }
        }
    }

    /// Computes the shares of silent steps that have all of their terms, for each bundle.
    fn silently(
        &mut self,
        entry: usize,
        messages: &[Vec<u8>],
        corrections: &[Share],
    ) -> Result<Vec<(usize, Vec<Share>)>> {
        let mut steps = self.silent.multiply(entry, messages)?;
        if corrections.is_empty() {
            return Ok(steps);
        }
        for (index, shares) in &mut steps {
            let CompiledStep::Linear(linear) = self.model.program().compiled(*index) else {
                unreachable!("only linear steps read by hints");
            };
            bits::correct(self.model, &linear.terms[0], corrections, shares);
        }
        Ok(steps)
    }

    /// Computes one homomorphic answer, to all bundles.
    fn answer(&mut self, planned: Planned<'_>, arrived: Arrived) -> Result<Answered> {
        let Planned {
            index,
            part,
            exchange,
            last,
        } = planned;
        self.answerer.read(exchange, arrived)?;
        let program = self.model.program();
        let CompiledStep::Product(compiled) = program.compiled(index) else {
            unreachable!("only products of secrets have exchanges");
        };
        let graph = program.plan().graph();
        // The masks that the values will be opened with.
        let opening = |seeds: &Seeds, id: ValueId| {
            let value = graph.value(id);
            seeds.share(Use::Value(id), value.rows, value.cols)
        };
        let factors = compiled.factors;
        let of = |seeds| (opening(seeds, factors.left), opening(seeds, factors.right));
        let masks: Vec<(Share, Share)> = self.seeds.iter().map(of).collect();
        let weights = secrets::multiplier(graph, factors, part, &masks, &exchange.product)?;
        let (bundles, rng) = (self.seeds.len(), &mut self.rng);
        let (bytes, shares) = self.answerer.answer(exchange, &weights, bundles, rng)?;
        if last {
            self.forget(index);
        }
        Ok(Answered { bytes, shares })
    }

    /// Drops the encrypted masks that nothing reads after a step.
    fn forget(&mut self, index: usize) {
        let program = self.model.program();
        for read in program.step(index).inputs() {
            if program.last_uses()[read.index()] == index {
                self.answerer.forget(read);
            }
        }
    }
}

//! The server's products, in another thread than the channel.
//!
//! They need nothing but the client's encrypted masks. So they are computed while the channel is
//! used for other things, in the order in which these came: [`crate::flow`] says how far ahead.

use crate::compiled::CompiledStep;
use crate::error::Result;
use crate::exchange::{Answerer, Arrived};
use crate::flow::Planned;
use crate::seeds::{Seeds, Use};
use crate::server::ServerModel;
use crate::server::encoded::Encoded;
use primer_engine::share::Share;
use primer_plan::graph::ValueId;
use primer_ring::prg::Prg;
use std::sync::mpsc::{Receiver, Sender};

/// What products of secrets multiply the client's masks with: the masks that values will be opened
/// with, or the server's shares themselves.
pub(super) type Values<'a> = dyn Fn(ValueId) -> Share + Sync + 'a;

/// An exchange that is to be answered, and its masks.
pub(super) type ProductJob<'a> = (Planned<'a>, Arrived);

/// Computes answers.
pub(super) struct Products<'a, 'k> {
    pub(super) model: &'a ServerModel,
    pub(super) encoded: &'a Encoded,
    pub(super) answerer: &'a mut Answerer<'k>,
    pub(super) seeds: &'a Seeds,
    pub(super) values: &'a Values<'a>,
    /// Drawn from here only.
    pub(super) rng: Prg,
}

impl Products<'_, '_> {
    /// Computes what is asked, in order, until the asking ends or something fails.
    pub(super) fn work(mut self, asked: &Receiver<ProductJob<'_>>, done: &Sender<Result<Vec<u8>>>) {
        for (planned, arrived) in asked {
            let answer = self.answer(planned, arrived);
            let failed = answer.is_err();
            if done.send(answer).is_err() || failed {
                return;
            }
        }
    }

    /// Computes one homomorphic answer.
    fn answer(&mut self, planned: Planned<'_>, arrived: Arrived) -> Result<Vec<u8>> {
        let Planned {
            index,
            part,
            exchange,
            last,
        } = planned;
        self.answerer.read(exchange, arrived)?;
        let made;
        let weights = if let Some(weights) = self.encoded.of(index, part) {
            weights
        } else {
            let CompiledStep::Product(product) = self.model.program().compiled(index) else {
                unreachable!("only products of secrets have weights of one inference");
            };
            let (model, at) = (self.model, (index, part));
            made = product.multiplier(model, at, exchange, self.seeds, self.values)?;
            &made
        };
        let (rows, cols) = exchange.answer_size();
        let what = Use::Answer { step: index, part };
        let mask = self.seeds.share(what, rows, cols);
        let bytes = (self.answerer).answer(exchange, weights, &mask, &mut self.rng)?;
        if last {
            self.forget(index);
        }
        Ok(bytes)
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

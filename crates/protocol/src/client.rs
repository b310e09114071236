//! The client: has the text, learns the answer.
//!
//! `prepare` walks the plan once with masks only and makes a [`ClientBundle`]; `infer` walks it
//! again with the text and consumes the bundle. Its share of every value is a mask that it drew, or a
//! linear image of masks, so it is known before there is a text.

use crate::error::{ProtocolError, Result};
use crate::fhgs::{self, ClientProduct, Factors};
use crate::hgs;
use crate::homomorphic::{Asker, Owner};
use crate::kinds::{INPUT, OUTPUT, PADDING};
use crate::scheme::{Form, Prepared, Program};
use crate::session::ClientSession;
use crate::share::Share;
use crate::spool::Storage;
use crate::stop::{self, ClientStop};
use crate::times::Times;
use primer_model::text::Input;
use primer_net::Channel;
use primer_ot::{CotReceiver, CotSender};
use primer_plan::graph::{Graph, Op, Step, ValueId};
use primer_ring::fixed::exp2;
use primer_ring::matrix::Matrix;
use primer_ring::modulus::{self, K, P};
use primer_ring::prg::Prg;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Offline material of one inference. [`ClientSession::infer`] takes it by value, so it cannot be spent
/// twice:
///
/// ```compile_fail,E0382
/// use primer_protocol::client::ClientBundle;
/// use primer_protocol::session::ClientSession;
/// # use primer_protocol::{ProtocolError, Storage};
/// # use primer_model::text::Input;
/// # use primer_net::Channel;
///
/// fn twice(
///     session: &mut ClientSession,
///     channel: &mut Channel,
///     bundle: ClientBundle,
///     input: &Input,
/// ) -> Result<(), ProtocolError> {
///     let storage = Storage::default();
///     session.infer(channel, bundle, input, &storage, &mut |_, _| ())?;
///     session.infer(channel, bundle, input, &storage, &mut |_, _| ())?;
///     Ok(())
/// }
/// ```
pub struct ClientBundle {
    masks: Masks,
    steps: Vec<Material>,
    /// Seconds of the offline phase.
    pub times: Times,
}

/// The client's own randomness: what its online messages are masked with.
pub(crate) struct Masks {
    /// Of the one-hot rows.
    pub(crate) input: Share,
    /// Of the padding, one for each key.
    pub(crate) padding: Share,
    /// The client's share of each value that something still reads.
    shares: HashMap<ValueId, Arc<Share>>,
}

/// What the client needs of a step online.
enum Material {
    /// A linear step: nothing.
    Nothing,
    /// A product of two secrets.
    Product(Factors, ClientProduct),
    /// A stop.
    Stop(ClientStop),
}

/// Sees the client's share of what goes into each stop; for tests that repeat a run in the clear.
pub type Witness<'a> = &'a mut dyn FnMut(ValueId, &Matrix<u64>);

/// The answer, in the order of the graph's outputs.
pub struct Answer {
    /// As integers at the plan's scales.
    pub integers: Vec<Matrix<i64>>,
    /// As real numbers.
    pub reals: Vec<Matrix<f64>>,
    /// Seconds of the online phase.
    pub times: Times,
}

impl ClientSession {
    /// Offline: makes the material of one inference together with the server.
    ///
    /// # Errors
    /// [`ProtocolError`] of whatever failed; nothing can be used then.
    pub fn prepare(
        &mut self,
        channel: &mut Channel,
        storage: &Storage,
        witness: Witness<'_>,
    ) -> Result<ClientBundle> {
        let program = self.program.clone();
        let graph = program.plan().graph();
        let mut bundle = ClientBundle {
            masks: Masks::draw(graph, &mut self.rng),
            steps: Vec::new(),
            times: Times::default(),
        };
        if program.scheme().prepared() == Prepared::Offline {
            let mut preparation = Preparation::new(self, &program, storage);
            for (index, step) in graph.steps.iter().enumerate() {
                let started = Instant::now();
                let _phase = channel.phase(&format!("offline/{}", step.paper.name()));
                let material = preparation.step(channel, index, &mut bundle.masks, witness)?;
                bundle.steps.push(material);
                bundle.times.add(step.paper, started);
            }
        }
        Ok(bundle)
    }

    /// Online: from a padded input to its answer.
    ///
    /// # Errors
    /// [`ProtocolError`] of whatever failed; the bundle is spent in any case.
    pub fn infer(
        &mut self,
        channel: &mut Channel,
        bundle: ClientBundle,
        input: &Input,
        storage: &Storage,
        witness: Witness<'_>,
    ) -> Result<Answer> {
        let program = self.program.clone();
        let (plan, graph) = (program.plan(), program.plan().graph());
        check_input(graph, input)?;
        let ClientBundle {
            mut masks, steps, ..
        } = bundle;
        let mut steps = steps.into_iter();
        let mut times = Times::default();
        let started = Instant::now();
        {
            let _phase = channel.phase("online/embed");
            let (rows, padding) = masks.apply(graph, input);
            channel.send_residues(INPUT, K, rows.data().iter().copied())?;
            channel.send_residues(PADDING, K, padding.data().iter().copied())?;
            channel.flush()?;
        }
        times.add(graph.steps[0].paper, started);
        let mut preparation = Preparation::new(self, &program, storage);
        let mut opened = HashMap::new();
        for (index, step) in graph.steps.iter().enumerate() {
            let started = Instant::now();
            let _phase = channel.phase(&format!("online/{}", step.paper.name()));
            let material = match steps.next() {
                Some(material) => material,
                None => preparation.step(channel, index, &mut masks, witness)?,
            };
            match material {
                Material::Nothing => {}
                Material::Product(factors, product) => {
                    let work = (factors, product);
                    fhgs::client_online(channel, plan, step.output(), work, &mut opened)?;
                }
                Material::Stop(stop) => stop::client_online(channel, stop)?,
            }
            times.add(step.paper, started);
        }
        let started = Instant::now();
        let _phase = channel.phase("online/others");
        let mut answer = Answer {
            integers: Vec::new(),
            reals: Vec::new(),
            times,
        };
        for &id in &graph.outputs {
            let mask = masks.get(id);
            let mut value = Share::zeros(mask.rows(), mask.cols());
            channel.recv_residues(OUTPUT, K, P, value.data_mut())?;
            value.add(mask);
            let integers = value.map(|v| modulus::to_signed(*v));
            let unit = exp2(-plan.scale(id).fraction());
            answer.reals.push(integers.map(|v| *v as f64 * unit));
            answer.integers.push(integers);
        }
        let last = graph.steps[graph.steps.len() - 1].paper;
        answer.times.add(last, started);
        Ok(answer)
    }
}

fn check_input(graph: &Graph, input: &Input) -> Result<()> {
    let check = |what, expected, found| {
        if expected == found {
            Ok(())
        } else {
            Err(ProtocolError::Input {
                what,
                expected,
                found,
            })
        }
    };
    check("tokens", graph.tokens, input.tokens())?;
    check("token types", graph.tokens, input.types.len())?;
    for (what, values, limit) in [
        ("as its largest token", &input.ids, graph.shape.vocab),
        ("as its largest token type", &input.types, graph.shape.types),
    ] {
        let largest = values.iter().copied().max().unwrap_or(0) as usize;
        if largest >= limit {
            return Err(ProtocolError::Input {
                what,
                expected: limit - 1,
                found: largest,
            });
        }
    }
    Ok(())
}

impl Masks {
    fn draw(graph: &Graph, rng: &mut Prg) -> Self {
        let columns = graph.shape.vocab + graph.shape.types;
        Self {
            input: Share::random(graph.tokens, columns, rng),
            padding: Share::random(1, graph.tokens, rng),
            shares: HashMap::new(),
        }
    }

    /// The client's share of a value.
    pub(crate) fn get(&self, id: ValueId) -> &Arc<Share> {
        self.shares.get(&id).expect("steps come in order")
    }

    /// The one-hot rows and the padding, less their masks: what the server gets of the text.
    fn apply(&self, graph: &Graph, input: &Input) -> (Share, Share) {
        let mut rows = self.input.first_rows(graph.tokens).negated();
        for t in 0..graph.tokens {
            let row = rows.row_mut(t);
            let (word, kind) = (input.ids[t] as usize, input.types[t] as usize);
            for hot in [word, graph.shape.vocab + kind] {
                row[hot] = modulus::add(row[hot], 1);
            }
        }
        let padding = Share::from_fn(1, graph.tokens, |_, t| {
            modulus::sub(u64::from(t >= input.length), self.padding.get(0, t))
        });
        (rows, padding)
    }

    /// Drops the shares that no later step reads.
    fn forget(&mut self, step: &Step, index: usize, last: &[usize]) {
        for read in step.inputs() {
            if last[read.index()] == index {
                self.shares.remove(&read);
            }
        }
    }
}

/// The client's part in preparing steps.
pub(crate) struct Preparation<'a> {
    pub(crate) program: &'a Program,
    pub(crate) asker: Asker<'a>,
    pub(crate) labels: &'a mut CotReceiver,
    pub(crate) transfers: &'a mut CotSender,
    pub(crate) rng: &'a mut Prg,
    pub(crate) storage: &'a Storage,
    last: Vec<usize>,
}

impl<'a> Preparation<'a> {
    fn new(session: &'a mut ClientSession, program: &'a Program, storage: &'a Storage) -> Self {
        Self {
            program,
            asker: Asker::new(program, &session.secret),
            labels: &mut session.labels,
            transfers: &mut session.transfers,
            rng: &mut session.rng,
            storage,
            last: program.plan().graph().last_uses(),
        }
    }

    fn step(
        &mut self,
        channel: &mut Channel,
        index: usize,
        masks: &mut Masks,
        witness: Witness<'_>,
    ) -> Result<Material> {
        let plan = self.program.plan();
        let step = &plan.graph().steps[index];
        let output = step.output();
        let (share, material) = if let Op::Stop { input, .. } = step.op {
            let values = (input, output);
            let (mask, stop) = stop::client_offline(self, channel, index, values, masks, witness)?;
            (mask, Material::Stop(stop))
        } else if let Some(factors) = Factors::of(step) {
            let (mask, product) = fhgs::client_offline(self, channel, factors, output, masks)?;
            (mask, Material::Product(factors, product))
        } else {
            let (terms, _) = hgs::terms(plan, step).expect("a step is linear, a product or a stop");
            let share = hgs::client_offline(self, channel, &terms, output, masks)?;
            (Arc::new(share), Material::Nothing)
        };
        masks.shares.insert(output, share);
        masks.forget(step, index, &self.last);
        Ok(material)
    }

    /// Sends a mask in a form, unless the server has it.
    pub(crate) fn offer(
        &mut self,
        channel: &mut Channel,
        owner: Owner,
        form: Form,
        mask: impl FnOnce() -> Share,
    ) -> Result<()> {
        self.asker.offer(channel, self.rng, owner, form, mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::tests::looks_uniform;
    use primer_model::synthetic::bert_shape;

    /// What the server gets of a fixed text, over many runs.
    fn views(masks: impl Fn(&Graph, &mut Prg) -> Masks) -> (Vec<u64>, Vec<u64>) {
        let mut shape = bert_shape(1, 16, 2);
        shape.vocab = 6;
        let graph = Graph::bert(&shape, 2);
        let input = Input {
            ids: vec![3, 0],
            types: vec![1, 0],
            length: 1,
            removed: 0,
            second: vec![None; 2],
        };
        let mut rng = Prg::new(&[5; 16]);
        let (mut rows, mut padding) = (Vec::new(), Vec::new());
        for _ in 0..4000 {
            let (row, pad) = masks(&graph, &mut rng).apply(&graph, &input);
            // A hot and a cold element.
            rows.extend([row.get(0, 3), row.get(1, 5)]);
            padding.extend(pad.data());
        }
        (rows, padding)
    }

    #[test]
    fn the_server_sees_uniform_inputs() {
        let (rows, padding) = views(Masks::draw);
        assert!(looks_uniform(&rows));
        assert!(looks_uniform(&padding));
    }

    #[test]
    fn inputs_without_masks_are_not_uniform() {
        let (rows, padding) = views(|graph, rng| {
            let mut masks = Masks::draw(graph, rng);
            masks.input.data_mut().fill(0);
            masks.padding.data_mut().fill(0);
            masks
        });
        assert!(!looks_uniform(&rows));
        assert!(!looks_uniform(&padding));
    }
}

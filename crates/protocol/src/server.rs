//! The server: has the weights, learns nothing but the length bucket.
//!
//! `prepare` walks the plan with the client's encrypted masks and makes a [`ServerBundle`]; `infer` walks
//! it again with the masked input, in the clear but for the stops, and consumes the bundle.

use crate::error::Result;
use crate::fhgs::{self, Factors};
use crate::hgs;
use crate::homomorphic::Answerer;
use crate::kinds::{INPUT, OUTPUT, PADDING};
use crate::scheme::{Prepared, Program};
use crate::session::ServerSession;
use crate::share::Share;
use crate::stop::{self, ServerStop};
use crate::times::Times;
pub use crate::weights::ServerModel;
use primer_net::Channel;
use primer_ot::{CotReceiver, CotSender};
use primer_plan::graph::{Op, ValueId};
use primer_ring::matrix::Scratch;
use primer_ring::modulus::{K, P};
use primer_ring::prg::Prg;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

/// Offline material of one inference. [`ServerSession::infer`] takes it by value, so it cannot be spent
/// twice:
///
/// ```compile_fail,E0382
/// use primer_protocol::server::{ServerBundle, ServerModel};
/// use primer_protocol::session::ServerSession;
/// # use primer_protocol::ProtocolError;
/// # use primer_net::Channel;
///
/// fn twice(
///     session: &mut ServerSession,
///     channel: &mut Channel,
///     model: &ServerModel,
///     bundle: ServerBundle,
/// ) -> Result<(), ProtocolError> {
///     session.infer(channel, model, bundle)?;
///     session.infer(channel, model, bundle)?;
///     Ok(())
/// }
/// ```
pub struct ServerBundle {
    steps: Vec<Material>,
    opening: HashMap<ValueId, Arc<Share>>,
    /// Seconds of the offline phase.
    pub times: Times,
}

/// What the server needs of a step online.
enum Material {
    /// Added to the server's own product: biases, and the homomorphic masks with their sign turned.
    Correction(Share),
    /// A stop.
    Stop(ServerStop),
}

impl ServerSession {
    /// Offline: makes the material of one inference together with the client.
    ///
    /// # Errors
    /// [`crate::ProtocolError`] of whatever failed; nothing can be used then.
    pub fn prepare(&mut self, channel: &mut Channel, model: &ServerModel) -> Result<ServerBundle> {
        let program = self.program.clone();
        let mut preparation = Preparation::new(self, &program, model, HashMap::new());
        let (mut steps, mut times) = (Vec::new(), Times::default());
        if program.scheme().prepared() == Prepared::Offline {
            for (index, step) in program.plan().graph().steps.iter().enumerate() {
                let started = Instant::now();
                let _phase = channel.phase(&format!("offline/{}", step.paper.name()));
                steps.push(preparation.step(channel, index)?);
                times.add(step.paper, started);
            }
            channel.flush()?;
        }
        Ok(ServerBundle {
            steps,
            opening: preparation.opening,
            times,
        })
    }

    /// Online: answers one inference.
    ///
    /// # Errors
    /// [`crate::ProtocolError`] of whatever failed; the bundle is spent in any case.
    pub fn infer(
        &mut self,
        channel: &mut Channel,
        model: &ServerModel,
        bundle: ServerBundle,
    ) -> Result<Times> {
        let program = self.program.clone();
        let graph = program.plan().graph();
        let ServerBundle { steps, opening, .. } = bundle;
        let mut steps = steps.into_iter();
        let mut times = Times::default();
        let started = Instant::now();
        let mut walk = {
            let _phase = channel.phase("online/embed");
            Walk::receive(channel, &program)?
        };
        times.add(graph.steps[0].paper, started);
        let mut preparation = Preparation::new(self, &program, model, opening);
        for (index, step) in graph.steps.iter().enumerate() {
            let started = Instant::now();
            let _phase = channel.phase(&format!("online/{}", step.paper.name()));
            let material = match steps.next() {
                Some(material) => material,
                None => preparation.step(channel, index)?,
            };
            let share = walk.step(channel, index, material, model, &preparation.opening)?;
            walk.values.insert(step.output(), share);
            for read in step.inputs() {
                if preparation.last[read.index()] == index {
                    walk.values.remove(&read);
                }
            }
            times.add(step.paper, started);
        }
        let _phase = channel.phase("online/others");
        for id in &graph.outputs {
            let share = walk.get(*id);
            channel.send_residues(OUTPUT, K, share.data().iter().copied())?;
        }
        channel.flush()?;
        Ok(times)
    }
}

/// The server's part in preparing steps.
pub(crate) struct Preparation<'a> {
    pub(crate) program: &'a Program,
    pub(crate) model: &'a ServerModel,
    pub(crate) answerer: Answerer<'a>,
    pub(crate) labels: &'a mut CotSender,
    pub(crate) transfers: &'a mut CotReceiver,
    pub(crate) rng: &'a mut Prg,
    opening: HashMap<ValueId, Arc<Share>>,
    last: Vec<usize>,
}

impl<'a> Preparation<'a> {
    fn new(
        session: &'a mut ServerSession,
        program: &'a Program,
        model: &'a ServerModel,
        opening: HashMap<ValueId, Arc<Share>>,
    ) -> Self {
        Self {
            program,
            model,
            answerer: Answerer::new(program, &mut session.evaluator),
            labels: &mut session.labels,
            transfers: &mut session.transfers,
            rng: &mut session.rng,
            opening,
            last: program.plan().graph().last_uses(),
        }
    }

    fn step(&mut self, channel: &mut Channel, index: usize) -> Result<Material> {
        let plan = self.program.plan();
        let step = &plan.graph().steps[index];
        let material = if let Op::Stop { input, .. } = step.op {
            Material::Stop(stop::server_offline(self, channel, index, input)?)
        } else if let Some(factors) = Factors::of(step) {
            Material::Correction(fhgs::server_offline(self, channel, factors)?)
        } else {
            let linear = hgs::terms(plan, step).expect("a step is linear, a product or a stop");
            let output = step.output();
            Material::Correction(hgs::server_offline(self, channel, &linear, output)?)
        };
        if let Op::Embed { .. } = step.op {
            self.answerer.forget(None);
        }
        for read in step.inputs() {
            if self.last[read.index()] == index {
                self.answerer.forget(Some(read));
            }
        }
        Ok(material)
    }

    /// The mask that a value will be opened with; one for all products that read it.
    pub(crate) fn opening(&mut self, id: ValueId) -> Arc<Share> {
        let value = self.program.plan().graph().value(id);
        let rng = &mut *self.rng;
        let draw = || Arc::new(Share::random(value.rows, value.cols, rng));
        Arc::clone(self.opening.entry(id).or_insert_with(draw))
    }
}

/// The online walk.
pub(crate) struct Walk<'a> {
    pub(crate) program: &'a Program,
    /// The one-hot rows, masked.
    pub(crate) input: Share,
    padding: Share,
    /// The server's share of each value that something still reads.
    pub(crate) values: HashMap<ValueId, Share>,
    /// What was opened against its mask.
    pub(crate) opened: HashSet<ValueId>,
    pub(crate) scratch: Scratch,
}

impl<'a> Walk<'a> {
    fn receive(channel: &mut Channel, program: &'a Program) -> Result<Self> {
        let graph = program.plan().graph();
        let mut input = Share::zeros(graph.tokens, graph.shape.vocab + graph.shape.types);
        channel.recv_residues(INPUT, K, P, input.data_mut())?;
        let mut padding = Share::zeros(1, graph.tokens);
        channel.recv_residues(PADDING, K, P, padding.data_mut())?;
        Ok(Self {
            program,
            input,
            padding,
            values: HashMap::new(),
            opened: HashSet::new(),
            scratch: Scratch::default(),
        })
    }

    pub(crate) fn get(&self, id: ValueId) -> &Share {
        self.values.get(&id).expect("steps come in order")
    }

    fn step(
        &mut self,
        channel: &mut Channel,
        index: usize,
        material: Material,
        model: &ServerModel,
        opening: &HashMap<ValueId, Arc<Share>>,
    ) -> Result<Share> {
        let plan = self.program.plan();
        let step = &plan.graph().steps[index];
        match (&step.op, material) {
            (Op::Stop { input, output, .. }, Material::Stop(stop)) => {
                let values = (*input, *output);
                let share = self.values.remove(input).expect("steps come in order");
                stop::server_online(channel, plan, index, values, share, &self.padding, stop)
            }
            (_, Material::Correction(correction)) => match Factors::of(step) {
                Some(factors) => {
                    fhgs::server_online(self, channel, step, factors, &correction, opening)
                }
                None => {
                    let linear = hgs::terms(plan, step);
                    let (terms, _) = linear.expect("a step is linear, a product or a stop");
                    Ok(hgs::server_online(self, model, &terms, correction))
                }
            },
            _ => unreachable!("materials are made step by step"),
        }
    }
}

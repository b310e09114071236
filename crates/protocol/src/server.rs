//! The server: has the weights, learns nothing but the length bucket.
//!
//! Offline, [`ServerSession::prepare`] walks the plan with the client's encrypted masks and writes a bundle; online,
//! [`infer`] walks it again with the masked input, in the clear but for the stops, and consumes the bundle. The
//! order of the offline phase is the client's ([`crate::client`]).

use crate::chgs;
use crate::clock::Clock;
use crate::error::{ProtocolError, Result};
use crate::fhgs::{self, Factors};
use crate::hgs;
use crate::homomorphic::{Answerer, Exchange};
use crate::kinds::{INPUT, OUTPUT, PADDING};
use crate::program::Program;
use crate::scheme::{Prepared, Products, Reveal};
use crate::seeds::{Seeds, Use};
use crate::session::ServerSession;
use crate::share::Share;
use crate::stop;
use crate::stored;
use crate::times::Times;
pub use crate::weights::ServerModel;
use crate::work::Work;
use primer_he::packing::matrix::EncryptedAnswer;
use primer_net::Channel;
use primer_ot::{CotReceiver, CotSender};
use primer_plan::graph::ValueId;
use primer_ring::matrix::{Matrix, Scratch};
use primer_ring::modulus::{K, P};
use primer_ring::prg::Prg;
use primer_stops::{Job, RequantiseServer, RequantiseWaiting, ServerMaterial, requantise};
use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::ops::Range;

/// Offline material of one inference. [`infer`] takes it by value, so it cannot be spent twice:
///
/// ```compile_fail,E0382
/// use primer_protocol::server::{self, Bundle, ServerModel};
/// # use primer_protocol::ProtocolError;
/// # use primer_net::Channel;
///
/// fn twice(
///     channel: &mut Channel,
///     model: &ServerModel,
///     bundle: Bundle,
/// ) -> Result<(), ProtocolError> {
///     server::infer(channel, model, bundle)?;
///     server::infer(channel, model, bundle)?;
///     Ok(())
/// }
/// ```
pub struct Bundle(Box<dyn Read + Send>);

impl Bundle {
    /// The bundle that [`ServerSession::prepare`] wrote. Whoever kept it must not give it out again.
    pub fn new(source: impl Read + Send + 'static) -> Self {
        Self(Box::new(source))
    }
}

impl ServerSession {
    /// Offline: makes the material of one inference together with the client and writes it to `sink`, in order.
    ///
    /// # Errors
    /// [`ProtocolError`] of whatever failed; what was written is of no use then.
    pub fn prepare(
        &mut self,
        channel: &mut Channel,
        model: &ServerModel,
        sink: &mut (dyn Write + Send),
    ) -> Result<Times> {
        let mut clock = Clock::start();
        let program = self.program.clone();
        check_model(&program, model)?;
        let seeds = Seeds::new(self.rng.seed());
        stored::write_header(sink, &program, &seeds)?;
        if program.scheme().prepared() == Prepared::Offline {
            let mut preparation = Preparation::new(self, model);
            for segment in program.segments() {
                preparation.segment(channel, segment, &seeds, sink, &mut clock)?;
            }
            channel.flush()?;
        }
        sink.flush()?;
        Ok(clock.times())
    }

    /// Online with this session, for schemes that prepare their steps online; others need only [`infer`].
    ///
    /// # Errors
    /// [`ProtocolError`] of whatever failed; the bundle is spent in any case.
    pub fn infer(
        &mut self,
        channel: &mut Channel,
        model: &ServerModel,
        bundle: Bundle,
    ) -> Result<Times> {
        check_model(&self.program, model)?;
        match self.program.scheme().prepared() {
            Prepared::Offline => infer(channel, model, bundle),
            Prepared::Online => run(channel, model, bundle, Some(Preparation::new(self, model))),
        }
    }
}

/// Online: answers one inference.
///
/// # Errors
/// [`ProtocolError`] of whatever failed; the bundle is spent in any case.
pub fn infer(channel: &mut Channel, model: &ServerModel, bundle: Bundle) -> Result<Times> {
    if model.program().scheme().prepared() == Prepared::Online {
        return Err(ProtocolError::NeedsSession);
    }
    run(channel, model, bundle, None)
}

fn check_model(program: &Program, model: &ServerModel) -> Result<()> {
    if program.fingerprint() == model.program().fingerprint() {
        Ok(())
    } else {
        Err(ProtocolError::OtherBundle { what: "model" })
    }
}

fn run(
    channel: &mut Channel,
    model: &ServerModel,
    bundle: Bundle,
    preparation: Option<Preparation<'_>>,
) -> Result<Times> {
    let mut clock = Clock::start();
    let program = model.program();
    let graph = program.plan().graph();
    let mut source = bundle.0;
    let seeds = stored::read_header(&mut *source, program)?;
    let mut walk = {
        let _phase = channel.phase("online/embed");
        Walk::receive(channel, model, source, seeds, preparation)?
    };
    clock.lap(&graph.steps[0]);
    let last = graph.last_uses();
    for segment in program.segments() {
        let mut material = walk.load(segment, &mut clock)?;
        for index in segment.clone() {
            let step = program.step(index);
            let _phase = channel.phase(&format!("online/{}", step.paper.name()));
            if let Some(share) = walk.step(channel, index, &mut material)? {
                walk.values.insert(step.output(), share);
            }
            if program.settled_after(index) {
                walk.settle(channel)?;
            }
            for read in step.inputs() {
                if last[read.index()] == index {
                    walk.values.remove(&read);
                }
            }
            clock.lap(step);
        }
    }
    let _phase = channel.phase("online/others");
    if program.reveal() == Reveal::Outputs {
        for id in &graph.outputs {
            let share = walk.get(*id);
            channel.send_residues(OUTPUT, K, share.data().iter().copied())?;
        }
    }
    channel.flush()?;
    clock.lap(&graph.steps[graph.steps.len() - 1]);
    Ok(clock.times())
}

/// The server's part in preparing steps.
struct Preparation<'a> {
    model: &'a ServerModel,
    answerer: Answerer<'a>,
    labels: &'a mut CotSender,
    transfers: &'a mut CotReceiver,
    rng: &'a mut Prg,
    last: Vec<usize>,
}

impl<'a> Preparation<'a> {
    fn new(session: &'a mut ServerSession, model: &'a ServerModel) -> Self {
        let program = model.program();
        Self {
            model,
            answerer: Answerer::new(program, &mut session.evaluator),
            labels: &mut session.labels,
            transfers: &mut session.transfers,
            rng: &mut session.rng,
            last: program.plan().graph().last_uses(),
        }
    }

    fn segment(
        &mut self,
        channel: &mut Channel,
        segment: &Range<usize>,
        seeds: &Seeds,
        sink: &mut (dyn Write + Send),
        clock: &mut Clock,
    ) -> Result<()> {
        let program = self.model.program();
        let phase = |channel: &Channel, index: usize| {
            let name = program.step(index).paper.name();
            channel.phase(&format!("offline/{name}"))
        };
        let exchanges = program.exchanges(segment.clone())?;
        let mut part = 0;
        for (at, (index, exchange)) in exchanges.iter().enumerate() {
            if at == 0 {
                let _phase = phase(channel, *index);
                self.answerer.accept(channel, exchange)?;
            }
            let answer = {
                let values = |id: ValueId| {
                    let value = program.plan().graph().value(id);
                    seeds.share(Use::Value(id), value.rows, value.cols)
                };
                self.answer(*index, part, exchange, seeds, &values)?
            };
            // The client has sent these already and now waits for the answer.
            if let Some((next, ahead)) = exchanges.get(at + 1) {
                let _phase = phase(channel, *next);
                self.answerer.accept(channel, ahead)?;
            }
            let _phase = phase(channel, *index);
            self.answerer.reply(channel, &answer)?;
            part += 1;
            if exchanges.get(at + 1).is_none_or(|(next, _)| next != index) {
                self.forget(*index);
                part = 0;
                if let Work::Merged(merged) = program.work(*index) {
                    let graph = program.plan().graph();
                    let correction = chgs::correction(graph, *merged, *index, seeds);
                    stored::write_share(sink, &correction)?;
                }
            }
            clock.lap(program.step(*index));
        }
        channel.flush()?;
        for transfers in [true, false] {
            for index in segment.clone() {
                let _phase = phase(channel, index);
                match program.work(index) {
                    Work::Requantise(input) if transfers => {
                        let material = self.requantise(channel, *input)?;
                        sink.write_all(&material.into_bytes())?;
                    }
                    Work::Garbled(_, job) | Work::Argmax(_, job) if !transfers => {
                        let material = self.garble(channel, job)?;
                        sink.write_all(&material.into_bytes())?;
                    }
                    _ => continue,
                }
                clock.lap(program.step(index));
            }
        }
        Ok(())
    }

    /// One homomorphic answer. `values` are what a product of secrets multiplies the client's masks with.
    fn answer(
        &mut self,
        index: usize,
        part: usize,
        exchange: &Exchange,
        seeds: &Seeds,
        values: &dyn Fn(ValueId) -> Share,
    ) -> Result<EncryptedAnswer> {
        let what = Use::Answer { step: index, part };
        let mask = seeds.share(what, exchange.rows, exchange.cols);
        let answerer = &mut self.answerer;
        let rng = &mut *self.rng;
        match self.model.program().work(index) {
            Work::Linear(linear) => {
                let term = &linear.terms[part];
                hgs::server_offline(answerer, self.model, term, exchange, &mask, rng)
            }
            Work::Product(factors) => {
                let (u, v) = (values(factors.left), values(factors.right));
                let masks = (&u, &v);
                fhgs::server_offline(answerer, *factors, part, masks, exchange, &mask, rng)
            }
            Work::Merged(merged) => {
                let at = (index, part);
                chgs::server_offline(answerer, self.model, *merged, at, exchange, seeds, rng)
            }
            Work::Requantise(_) | Work::Garbled(..) | Work::Argmax(..) => {
                unreachable!("stops have no exchanges")
            }
        }
    }

    /// Drops the encrypted masks that nothing reads after a step.
    fn forget(&mut self, index: usize) {
        let step = self.model.program().step(index);
        let inputs = step.inputs();
        if inputs.is_empty() {
            self.answerer.forget(None);
        }
        for read in inputs {
            if self.last[read.index()] == index {
                self.answerer.forget(Some(read));
            }
        }
    }

    fn requantise(&mut self, channel: &mut Channel, input: ValueId) -> Result<RequantiseServer> {
        let plan = self.model.program().plan();
        let value = plan.graph().value(input);
        let ring_bits = plan.truncation(input).ring_bits();
        let (transfers, n) = (&mut *self.transfers, value.rows * value.cols);
        Ok(RequantiseServer::prepare(
            channel, transfers, ring_bits, n, self.rng,
        )?)
    }

    fn garble(&mut self, channel: &mut Channel, job: &Job) -> Result<ServerMaterial> {
        Ok(ServerMaterial::prepare(
            channel,
            self.labels,
            job,
            self.rng,
        )?)
    }

    /// The exchanges of one step, right when it is needed, on the server's shares themselves.
    fn now(
        &mut self,
        channel: &mut Channel,
        index: usize,
        seeds: &Seeds,
        values: &dyn Fn(ValueId) -> Share,
    ) -> Result<()> {
        let exchanges = self.model.program().exchanges(index..index + 1)?;
        for (part, (_, exchange)) in exchanges.iter().enumerate() {
            self.answerer.accept(channel, exchange)?;
            let answer = self.answer(index, part, exchange, seeds, values)?;
            self.answerer.reply(channel, &answer)?;
        }
        self.forget(index);
        Ok(channel.flush()?)
    }
}

/// What a segment's steps take from the bundle.
#[derive(Default)]
struct Material {
    corrections: HashMap<usize, Vec<Share>>,
    transfers: HashMap<usize, RequantiseServer>,
    circuits: HashMap<usize, ServerMaterial>,
}

/// The online walk.
pub(crate) struct Walk<'a> {
    pub(crate) program: &'a Program,
    model: &'a ServerModel,
    source: Box<dyn Read + Send>,
    pub(crate) seeds: Seeds,
    preparation: Option<Preparation<'a>>,
    /// The one-hot rows, masked.
    pub(crate) input: Share,
    padding: Share,
    /// The server's share of each value that something still reads.
    pub(crate) values: HashMap<ValueId, Share>,
    /// What was opened against its mask.
    pub(crate) opened: HashSet<ValueId>,
    /// Requantisations that were asked for and are not answered yet.
    waiting: Vec<(ValueId, RequantiseWaiting)>,
    pub(crate) scratch: Scratch,
}

impl<'a> Walk<'a> {
    fn receive(
        channel: &mut Channel,
        model: &'a ServerModel,
        source: Box<dyn Read + Send>,
        seeds: Seeds,
        preparation: Option<Preparation<'a>>,
    ) -> Result<Self> {
        let program = model.program();
        let graph = program.plan().graph();
        let mut input = Share::zeros(graph.tokens, graph.shape.vocab + graph.shape.types);
        channel.recv_residues(INPUT, K, P, input.data_mut())?;
        let mut padding = Share::zeros(1, graph.tokens);
        channel.recv_residues(PADDING, K, P, padding.data_mut())?;
        Ok(Self {
            program,
            model,
            source,
            seeds,
            preparation,
            input,
            padding,
            values: HashMap::new(),
            opened: HashSet::new(),
            waiting: Vec::new(),
            scratch: Scratch::default(),
        })
    }

    pub(crate) fn get(&self, id: ValueId) -> &Share {
        self.values.get(&id).expect("steps come in order")
    }

    /// Reads what is stored of a segment, each step on its own time.
    fn load(&mut self, segment: &Range<usize>, clock: &mut Clock) -> Result<Material> {
        let mut material = Material::default();
        if self.preparation.is_some() {
            return Ok(material);
        }
        let plan = self.program.plan();
        for index in segment.clone() {
            let kept = self
                .program
                .work(index)
                .kept(plan.graph(), self.program.step(index));
            let corrections = stored::read_shares(&mut *self.source, &kept.server)?;
            material.corrections.insert(index, corrections);
            clock.lap(self.program.step(index));
        }
        for index in segment.clone() {
            if let Work::Requantise(input) = self.program.work(index) {
                let value = plan.graph().value(*input);
                let n = value.rows * value.cols;
                let bytes = stored::read_bytes(&mut *self.source, requantise::stored_len(n).1)?;
                let ring_bits = plan.truncation(*input).ring_bits();
                let transfers = RequantiseServer::from_bytes(&bytes, ring_bits, n)?;
                material.transfers.insert(index, transfers);
                clock.lap(self.program.step(index));
            }
        }
        for index in segment.clone() {
            if let Work::Garbled(_, job) | Work::Argmax(_, job) = self.program.work(index) {
                let bytes = stored::read_bytes(&mut *self.source, job.server_stored_len())?;
                let circuit = ServerMaterial::from_bytes(job, &bytes)?;
                material.circuits.insert(index, circuit);
                clock.lap(self.program.step(index));
            }
        }
        Ok(material)
    }

    /// Takes the answers to what was asked for.
    fn settle(&mut self, channel: &mut Channel) -> Result<()> {
        for (id, waiting) in std::mem::take(&mut self.waiting) {
            let results = waiting.receive(channel)?;
            let share = self.matrix(id, results);
            self.values.insert(id, share);
        }
        Ok(())
    }

    fn step(
        &mut self,
        channel: &mut Channel,
        index: usize,
        material: &mut Material,
    ) -> Result<Option<Share>> {
        let (program, model) = (self.program, self.model);
        let output = program.step(index).output();
        match program.work(index) {
            Work::Linear(linear) => {
                self.now(channel, index)?;
                let correction = hgs::correction(model, linear, (index, output), &self.seeds);
                Ok(Some(hgs::server_online(self, model, linear, correction)))
            }
            Work::Product(factors) => Ok(Some(self.product(channel, index, *factors)?)),
            Work::Merged(merged) => {
                self.now(channel, index)?;
                let stored = material
                    .corrections
                    .remove(&index)
                    .and_then(|mut c| c.pop());
                let correction = stored.unwrap_or_else(|| {
                    chgs::correction(program.plan().graph(), *merged, index, &self.seeds)
                });
                fhgs::server_opens(self, channel, std::iter::once(merged.input))?;
                let step = (*merged, index);
                let share = chgs::server_online(self, channel, model, step, &correction)?;
                Ok(Some(share))
            }
            Work::Requantise(input) => {
                let share = self.ring_share(index, *input);
                if let Some(preparation) = &mut self.preparation {
                    let transfers = preparation.requantise(channel, *input)?;
                    let results = transfers.finish(channel, &share)?;
                    return Ok(Some(self.matrix(output, results)));
                }
                let transfers = material.transfers.remove(&index).expect("loaded before");
                let waiting = transfers.request(channel, &share)?;
                channel.flush()?;
                self.waiting.push((output, waiting));
                Ok(None)
            }
            Work::Garbled(input, job) | Work::Argmax(input, job) => {
                let circuit = match &mut self.preparation {
                    Some(preparation) => preparation.garble(channel, job)?,
                    None => material.circuits.remove(&index).expect("loaded before"),
                };
                let share = self.ring_share(index, *input);
                let results = circuit.finish(channel, &share)?;
                // A circuit that tells the client leaves nothing here.
                let kept = matches!(program.work(index), Work::Garbled(..));
                Ok(kept.then(|| self.matrix(output, results)))
            }
        }
    }

    /// The exchanges of a step, if they were not prepared.
    fn now(&mut self, channel: &mut Channel, index: usize) -> Result<()> {
        let Some(preparation) = &mut self.preparation else {
            return Ok(());
        };
        let values = &self.values;
        let value = |id: ValueId| {
            let share = values.get(&id).expect("steps come in order");
            share.first_rows(share.rows())
        };
        preparation.now(channel, index, &self.seeds, &value)
    }

    fn ring_share(&mut self, index: usize, input: ValueId) -> stop::RingShare {
        let share = self.values.remove(&input).expect("steps come in order");
        stop::server_share(self.program.plan(), index, input, share, &self.padding)
    }

    fn matrix(&self, id: ValueId, data: Vec<u64>) -> Share {
        let value = self.program.plan().graph().value(id);
        Matrix::from_vec(value.rows, value.cols, data).into()
    }

    fn product(&mut self, channel: &mut Channel, index: usize, factors: Factors) -> Result<Share> {
        self.now(channel, index)?;
        if self.program.scheme().products() == Products::Opened {
            fhgs::server_opens(self, channel, factors.values())?;
        }
        let correction = fhgs::correction(self.program, factors, index, &self.seeds)?;
        let output = self.program.step(index).output();
        fhgs::server_online(self, channel, (factors, output), &correction)
    }
}

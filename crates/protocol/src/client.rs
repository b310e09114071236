//! The client: has the text, learns the answer.
//!
//! Offline, [`ClientSession::prepare`] walks the plan once with masks only and writes a bundle; online, [`infer`]
//! walks it again with the text and consumes the bundle. Its share of every value is a mask that it drew, or
//! a linear image of masks, so it is known before there is a text (`masks`).
//!
//! **Offline, segment by segment.** First all homomorphic exchanges: since masks do not depend on answers, those of
//! the next exchange leave before the answer of this one is awaited, and the server never waits for the client.
//! Then the transfers of the requantisations, then the garbled circuits, which go to the bundle as they come. What is
//! held in memory is one segment's shares.

use crate::chgs::{self, ClientMerged, Merged, Sizes};
use crate::clock::Clock;
use crate::error::{ProtocolError, Result};
use crate::fhgs::{self, ClientProduct, Factors};
use crate::hgs;
use crate::homomorphic::Asker;
use crate::kinds::{INPUT, OUTPUT, PADDING};
use crate::masks::Masks;
use crate::program::Program;
use crate::scheme::{Prepared, Products, Reveal};
use crate::seeds::Seeds;
use crate::session::{ClientSession, See};
use crate::share::Share;
use crate::stop;
use crate::stored;
use crate::times::Times;
use crate::work::Work;
use primer_model::text::Input;
use primer_net::Channel;
use primer_ot::{CotReceiver, CotSender};
use primer_plan::graph::{Graph, ValueId};
use primer_ring::fixed::exp2;
use primer_ring::matrix::Matrix;
use primer_ring::modulus::{self, K, P};
use primer_ring::prg::Prg;
use primer_stops::{ClientMaterial, RequantiseAnswering, RequantiseClient, requantise};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::ops::Range;

/// Offline material of one inference. [`infer`] takes it by value, so it cannot be spent twice:
///
/// ```compile_fail,E0382
/// use primer_protocol::client::{self, Bundle};
/// # use primer_protocol::{Program, ProtocolError};
/// # use primer_model::text::Input;
/// # use primer_net::Channel;
///
/// fn twice(
///     channel: &mut Channel,
///     program: &Program,
///     bundle: Bundle,
///     input: &Input,
/// ) -> Result<(), ProtocolError> {
///     client::infer(channel, program, bundle, input)?;
///     client::infer(channel, program, bundle, input)?;
///     Ok(())
/// }
/// ```
pub struct Bundle(Box<dyn Read + Send>);

impl Bundle {
    /// The bundle that [`ClientSession::prepare`] wrote. Whoever kept it must not give it out again.
    pub fn new(source: impl Read + Send + 'static) -> Self {
        Self(Box::new(source))
    }
}

/// The answer, in the order of the graph's outputs.
pub struct Answer {
    /// As integers at the plan's scales; none if only the label is revealed.
    pub integers: Vec<Matrix<i64>>,
    /// As real numbers.
    pub reals: Vec<Matrix<f64>>,
    /// The position of the largest logit, if only that is revealed.
    pub label: Option<usize>,
    /// Seconds of the online phase.
    pub times: Times,
}

impl ClientSession {
    /// Offline: makes the material of one inference together with the server and writes it to `sink`, in order.
    ///
    /// # Errors
    /// [`ProtocolError`] of whatever failed; what was written is of no use then.
    pub fn prepare(
        &mut self,
        channel: &mut Channel,
        sink: &mut (dyn Write + Send),
    ) -> Result<Times> {
        self.begin()?;
        let times = self.prepare_bundle(channel, sink)?;
        self.spoiled = false;
        Ok(times)
    }

    /// A session serves until something fails.
    fn begin(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.spoiled, true) {
            return Err(ProtocolError::Spoiled);
        }
        Ok(())
    }

    fn prepare_bundle(
        &mut self,
        channel: &mut Channel,
        sink: &mut (dyn Write + Send),
    ) -> Result<Times> {
        let mut clock = Clock::start();
        let program = self.program.clone();
        let seeds = Seeds::new(self.rng.seed());
        stored::write_header(sink, &program, &seeds)?;
        let mut masks = Masks::new(&program, seeds);
        if program.scheme().prepared() == Prepared::Offline {
            let mut preparation = Preparation::new(self, &program);
            for segment in program.segments() {
                preparation.segment(channel, segment, &mut masks, sink, &mut clock)?;
            }
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
        bundle: Bundle,
        input: &Input,
    ) -> Result<Answer> {
        let program = self.program.clone();
        match program.scheme().prepared() {
            Prepared::Offline => infer(channel, &program, bundle, input),
            Prepared::Online => {
                self.begin()?;
                let preparation = Preparation::new(self, &program);
                let answer = run(channel, &program, bundle, input, Some(preparation))?;
                self.spoiled = false;
                Ok(answer)
            }
        }
    }
}

/// Online: from a padded input to its answer.
///
/// # Errors
/// [`ProtocolError`] of whatever failed; the bundle is spent in any case.
pub fn infer(
    channel: &mut Channel,
    program: &Program,
    bundle: Bundle,
    input: &Input,
) -> Result<Answer> {
    if program.scheme().prepared() == Prepared::Online {
        return Err(ProtocolError::NeedsSession);
    }
    run(channel, program, bundle, input, None)
}

fn run(
    channel: &mut Channel,
    program: &Program,
    bundle: Bundle,
    input: &Input,
    preparation: Option<Preparation<'_>>,
) -> Result<Answer> {
    let mut clock = Clock::start();
    let graph = program.plan().graph();
    check_input(graph, input)?;
    let mut source = bundle.0;
    let masks = Masks::new(program, stored::read_header(&mut *source, program)?);
    {
        let _phase = channel.phase("online/embed");
        let (rows, padding) = masks.apply(input);
        channel.send_residues(INPUT, K, rows.data().iter().copied())?;
        channel.send_residues(PADDING, K, padding.data().iter().copied())?;
        channel.flush()?;
    }
    clock.lap(&graph.steps[0]);
    let mut walk = Walk {
        program,
        source,
        preparation,
        masks,
        opened: HashMap::new(),
        answers: Vec::new(),
        label: None,
    };
    for segment in program.segments() {
        let mut material = walk.load(segment, &mut clock)?;
        for index in segment.clone() {
            let step = program.step(index);
            let _phase = channel.phase(&format!("online/{}", step.paper.name()));
            walk.step(channel, index, &mut material)?;
            if program.settled_after(index) {
                walk.settle(channel)?;
            }
            clock.lap(step);
        }
        walk.masks.forget();
        walk.opened.clear();
    }
    walk.answer(channel, clock)
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

/// The client's part in preparing steps.
struct Preparation<'a> {
    program: &'a Program,
    asker: Asker<'a>,
    labels: &'a mut CotReceiver,
    transfers: &'a mut CotSender,
    rng: &'a mut Prg,
    see: &'a mut See,
}

impl<'a> Preparation<'a> {
    fn new(session: &'a mut ClientSession, program: &'a Program) -> Self {
        Self {
            program,
            asker: Asker::new(program, &session.secret),
            labels: &mut session.labels,
            transfers: &mut session.transfers,
            rng: &mut session.rng,
            see: &mut *session.see,
        }
    }

    fn segment(
        &mut self,
        channel: &mut Channel,
        segment: &Range<usize>,
        masks: &mut Masks,
        sink: &mut (dyn Write + Send),
        clock: &mut Clock,
    ) -> Result<()> {
        let program = self.program;
        let phase = |channel: &Channel, index: usize| {
            let name = program.step(index).paper.name();
            channel.phase(&format!("offline/{name}"))
        };
        let exchanges = program.exchanges(segment.clone())?;
        let mut answers = Vec::new();
        for (at, (index, exchange)) in exchanges.iter().enumerate() {
            // The masks of the next exchange leave before the answer to this one is awaited.
            let first = if at == 0 { 0 } else { at + 1 };
            for (index, ahead) in exchanges.iter().take(at + 2).skip(first) {
                let _phase = phase(channel, *index);
                self.asker.offer(channel, ahead, masks, self.rng)?;
            }
            let _phase = phase(channel, *index);
            answers.push(self.asker.answer(channel, exchange)?);
            if exchanges.get(at + 1).is_none_or(|(next, _)| next != index) {
                let answers = std::mem::take(&mut answers);
                for known in self.finish(*index, answers, masks) {
                    stored::write_share(sink, &known)?;
                }
            }
            clock.lap(program.step(*index));
        }
        for transfers in [true, false] {
            for index in segment.clone() {
                let _phase = phase(channel, index);
                match program.work(index) {
                    Work::Requantise(input) if transfers => {
                        let material = self.requantise(channel, index, *input, masks)?;
                        sink.write_all(&material.into_bytes())?;
                    }
                    Work::Garbled(input, job) | Work::Argmax(input, job) if !transfers => {
                        let share = self.share(index, *input, masks);
                        ClientMaterial::prepare(channel, self.labels, job, &share, sink)?;
                    }
                    _ => continue,
                }
                clock.lap(program.step(index));
            }
        }
        masks.forget();
        Ok(())
    }

    /// Makes a step's answers into the client's share of its result, or into what is known of it offline.
    fn finish(&self, index: usize, answers: Vec<Share>, masks: &mut Masks) -> Vec<Share> {
        let graph = self.program.plan().graph();
        match self.program.work(index) {
            Work::Linear(linear) => {
                let share = hgs::client_offline(linear, answers);
                masks.insert(self.program.step(index).output(), share);
                vec![]
            }
            Work::Product(factors) => {
                let (r, s) = (masks.get(factors.left), masks.get(factors.right));
                vec![fhgs::client_offline(graph, *factors, (&r, &s), answers)]
            }
            Work::Merged(merged) => {
                let r = masks.get(merged.input);
                chgs::client_offline(Sizes::of(graph), &r, answers).into()
            }
            Work::Requantise(_) | Work::Garbled(..) | Work::Argmax(..) => vec![],
        }
    }

    fn share(&mut self, index: usize, input: ValueId, masks: &mut Masks) -> stop::RingShare {
        stop::client_share(self.program, index, input, masks, &mut *self.see)
    }

    fn requantise(
        &mut self,
        channel: &mut Channel,
        index: usize,
        input: ValueId,
        masks: &mut Masks,
    ) -> Result<RequantiseClient> {
        let share = self.share(index, input, masks);
        let ring_bits = self.program.plan().truncation(input).ring_bits();
        let mask = masks.get(self.program.step(index).output());
        let transfers = &mut *self.transfers;
        let material =
            RequantiseClient::prepare(channel, transfers, ring_bits, &share, mask.data())?;
        Ok(material)
    }

    /// The exchanges of one step, right when it is needed.
    fn now(
        &mut self,
        channel: &mut Channel,
        index: usize,
        masks: &mut Masks,
    ) -> Result<Vec<Share>> {
        let exchanges = self.program.exchanges(index..index + 1)?;
        let mut answers = Vec::new();
        for (_, exchange) in &exchanges {
            self.asker.offer(channel, exchange, masks, self.rng)?;
            answers.push(self.asker.answer(channel, exchange)?);
        }
        Ok(self.finish(index, answers, masks))
    }
}

/// What a segment's steps take from the bundle before its circuits.
#[derive(Default)]
struct Material {
    known: HashMap<usize, Vec<Share>>,
    transfers: HashMap<usize, RequantiseClient>,
}

/// The online walk.
struct Walk<'a> {
    program: &'a Program,
    source: Box<dyn Read + Send>,
    preparation: Option<Preparation<'a>>,
    masks: Masks,
    /// What the server opened.
    opened: HashMap<ValueId, Share>,
    /// Requantisations that the server has asked for and that are not answered yet.
    answers: Vec<RequantiseAnswering>,
    label: Option<usize>,
}

impl Walk<'_> {
    /// Reads what is stored of a segment, up to its circuits, each step on its own time.
    fn load(&mut self, segment: &Range<usize>, clock: &mut Clock) -> Result<Material> {
        let mut material = Material::default();
        if self.preparation.is_some() {
            return Ok(material);
        }
        let graph = self.program.plan().graph();
        for index in segment.clone() {
            let kept = self
                .program
                .work(index)
                .kept(graph, self.program.step(index));
            let known = stored::read_shares(&mut *self.source, &kept.client)?;
            material.known.insert(index, known);
            clock.lap(self.program.step(index));
        }
        for index in segment.clone() {
            if let Work::Requantise(input) = self.program.work(index) {
                let value = graph.value(*input);
                let n = value.rows * value.cols;
                let bytes = stored::read_bytes(&mut *self.source, requantise::stored_len(n).0)?;
                let transfers = RequantiseClient::from_bytes(&bytes, n)?;
                material.transfers.insert(index, transfers);
                clock.lap(self.program.step(index));
            }
        }
        Ok(material)
    }

    /// Answers what the server has asked for.
    fn settle(&mut self, channel: &mut Channel) -> Result<()> {
        for answer in self.answers.drain(..) {
            answer.answer(channel)?;
        }
        Ok(())
    }

    fn step(&mut self, channel: &mut Channel, index: usize, material: &mut Material) -> Result<()> {
        let output = self.program.step(index).output();
        match self.program.work(index) {
            Work::Linear(_) => {
                if let Some(preparation) = &mut self.preparation {
                    preparation.now(channel, index, &mut self.masks)?;
                }
                Ok(())
            }
            Work::Product(factors) => {
                let known = self.known(channel, index, material)?;
                self.product(channel, index, *factors, known)
            }
            Work::Merged(merged) => {
                let known = self.known(channel, index, material)?;
                self.merged(channel, index, *merged, known)
            }
            Work::Requantise(input) => {
                if let Some(p) = &mut self.preparation {
                    let transfers = p.requantise(channel, index, *input, &mut self.masks)?;
                    return Ok(transfers.finish(channel)?);
                }
                let transfers = material.transfers.remove(&index).expect("loaded before");
                self.answers.push(transfers.listen(channel)?);
                Ok(())
            }
            Work::Garbled(input, job) => {
                let mask = self.masks.get(output);
                let (source, circuit) = self.circuit(channel, index, *input, job)?;
                Ok(circuit.finish(channel, &mut &mut *source, mask.data())?)
            }
            Work::Argmax(input, job) => {
                let (source, circuit) = self.circuit(channel, index, *input, job)?;
                let shown = circuit.show(channel, &mut &mut *source)?;
                self.label = shown.first().copied();
                Ok(())
            }
        }
    }

    /// A garbled circuit and where it is read from: the bundle, or memory that it was received into just now.
    fn circuit(
        &mut self,
        channel: &mut Channel,
        index: usize,
        input: ValueId,
        job: &primer_stops::Job,
    ) -> Result<(&mut (dyn Read + Send), ClientMaterial)> {
        if let Some(preparation) = &mut self.preparation {
            let share = preparation.share(index, input, &mut self.masks);
            let mut memory = Vec::new();
            let labels = &mut *preparation.labels;
            ClientMaterial::prepare(channel, labels, job, &share, &mut memory)?;
            self.source = Box::new(std::io::Cursor::new(memory));
        }
        Ok((&mut *self.source, ClientMaterial::stored(job)))
    }

    /// What is known of a step's result before it runs.
    fn known<const N: usize>(
        &mut self,
        channel: &mut Channel,
        index: usize,
        material: &mut Material,
    ) -> Result<[Share; N]> {
        let known = match &mut self.preparation {
            Some(preparation) => preparation.now(channel, index, &mut self.masks)?,
            None => material.known.remove(&index).expect("loaded before"),
        };
        let Ok(known) = <[Share; N]>::try_from(known) else {
            unreachable!("a step's own preparation made these");
        };
        Ok(known)
    }

    fn merged(
        &mut self,
        channel: &mut Channel,
        index: usize,
        merged: Merged,
        [constant, image]: [Share; 2],
    ) -> Result<()> {
        let plan = self.program.plan();
        let material = ClientMerged {
            input: self.masks.get(merged.input),
            image,
            constant,
            mask: self.masks.get(self.program.step(index).output()),
        };
        let read = std::iter::once(merged.input);
        fhgs::client_opens(channel, plan.graph(), read, &mut self.opened)?;
        let opened = &self.opened[&merged.input];
        chgs::client_online(channel, plan, merged, material, opened)
    }

    fn product(
        &mut self,
        channel: &mut Channel,
        index: usize,
        factors: Factors,
        [constant]: [Share; 1],
    ) -> Result<()> {
        let plan = self.program.plan();
        let output = self.program.step(index).output();
        let product = ClientProduct {
            left: self.masks.get(factors.left),
            right: self.masks.get(factors.right),
            constant,
            mask: self.masks.get(output),
        };
        let opened = match self.program.scheme().products() {
            Products::Encrypted => None,
            Products::Opened => {
                fhgs::client_opens(channel, plan.graph(), factors.values(), &mut self.opened)?;
                Some(&self.opened)
            }
        };
        fhgs::client_online(channel, plan, (factors, output), product, opened)
    }

    fn answer(mut self, channel: &mut Channel, mut clock: Clock) -> Result<Answer> {
        let plan = self.program.plan();
        let graph = plan.graph();
        let _phase = channel.phase("online/others");
        let mut answer = Answer {
            integers: Vec::new(),
            reals: Vec::new(),
            label: self.label,
            times: Times::default(),
        };
        if self.program.reveal() == Reveal::Outputs {
            for &id in &graph.outputs {
                let mask = self.masks.get(id);
                let mut value = Share::zeros(mask.rows(), mask.cols());
                channel.recv_residues(OUTPUT, K, P, value.data_mut())?;
                value.add(&mask);
                let integers = value.map(|v| modulus::to_signed(*v));
                let unit = exp2(-plan.scale(id).fraction());
                answer.reals.push(integers.map(|v| *v as f64 * unit));
                answer.integers.push(integers);
            }
        }
        clock.lap(&graph.steps[graph.steps.len() - 1]);
        answer.times = clock.times();
        // Giving back gigabytes of a spent bundle takes the system most of a second; the answer does not wait for it.
        let source = self.source;
        std::thread::spawn(move || drop(source));
        Ok(answer)
    }
}

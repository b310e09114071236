//! The server: has the weights, learns nothing but the length bucket.
//!
//! `prepare` walks the plan with the client's encrypted masks and makes a [`ServerBundle`]; `infer` walks
//! it again with the masked input, in the clear but for the stops, and consumes the bundle.

use crate::client::{dot, head_mix, head_scores, job, row_form};
use crate::error::{ProtocolError, Result};
use crate::homomorphic::Answerer;
use crate::kinds::{INPUT, OPENED, OUTPUT, PADDING, RESHARED};
use crate::scheme::{Form, Prepared, Program};
use crate::session::ServerSession;
use crate::share::{self, Share};
use crate::times::Times;
use primer_he::packing::weights::PreparedWeights;
use primer_he::slotwise::PreparedCentred;
use primer_model::quantise::{IntModel, IntWeight};
use primer_net::Channel;
use primer_plan::function::Function;
use primer_plan::graph::{Graph, Op, Step, Term, ValueId, WeightKind};
use primer_plan::plan::Plan;
use primer_plan::scales::WeightScale;
use primer_ring::fixed::exp2;
use primer_ring::matrix::{Matrix, Scratch, product_mod};
use primer_ring::modulus::{self, K, P};
use primer_stops::{RequantiseServer, ServerMaterial};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Dense weights larger than this are encoded anew for every product instead of being kept.
const KEEP_WEIGHTS: usize = 8 << 20;

/// A model ready to be multiplied with encrypted masks of one program.
pub struct ServerModel {
    model: Arc<IntModel>,
    program: Program,
    weights: Vec<HeWeight>,
}

/// A weight in its homomorphic form.
enum HeWeight {
    Dense(PreparedWeights),
    Centred(PreparedCentred),
    None,
}

impl ServerModel {
    /// Encodes a model's weights for a program.
    ///
    /// # Errors
    /// [`ProtocolError`] if the weights do not fit the homomorphic parameters.
    pub fn new(model: Arc<IntModel>, program: &Program) -> Result<Self> {
        let plan = program.plan();
        let graph = plan.graph();
        if graph.shape != *model.shape() || plan.scales() != model.scales() {
            return Err(ProtocolError::OtherBundle { what: "model" });
        }
        let params = program.params();
        let mut weights: Vec<HeWeight> = graph.weights.iter().map(|_| HeWeight::None).collect();
        for step in &graph.steps {
            let rows = graph.value(step.output()).rows;
            match &step.op {
                Op::Embed { table, .. } => {
                    let IntWeight::Dense(matrix) = &model.weights()[table.index()] else {
                        unreachable!("a checked model has a table here");
                    };
                    let prepared = dense(program, rows, matrix)?;
                    weights[table.index()] = HeWeight::Dense(prepared);
                }
                Op::Linear { terms, output, .. } => {
                    for term in terms {
                        weights[term.weight.index()] = match &model.weights()[term.weight.index()] {
                            IntWeight::Dense(matrix) => {
                                HeWeight::Dense(dense(program, rows, matrix)?)
                            }
                            IntWeight::Diagonal { .. } => {
                                let (g, h) = diagonal(plan, &model, term, *output);
                                let layout = program.layout(rows)?;
                                let centred = PreparedCentred::new(params, &layout, &g, &h)?;
                                HeWeight::Centred(centred)
                            }
                            IntWeight::Bias(_) => unreachable!("a bias is not a term"),
                        };
                    }
                }
                _ => {}
            }
        }
        Ok(Self {
            model,
            program: program.clone(),
            weights,
        })
    }

    /// The program that the weights were encoded for.
    pub const fn program(&self) -> &Program {
        &self.program
    }
}

fn dense(program: &Program, rows: usize, matrix: &Matrix<i16>) -> Result<PreparedWeights> {
    let layout = program.layout(rows)?;
    let params = program.params();
    Ok(if matrix.data().len() > KEEP_WEIGHTS {
        PreparedWeights::streamed(params, &layout, matrix.clone())?
    } else {
        PreparedWeights::dense(params, &layout, matrix)?
    })
}

/// Gains and means of a diagonal weight as residues, at the scale of the accumulator.
fn diagonal(plan: &Plan, model: &IntModel, term: &Term, output: ValueId) -> (Vec<u64>, Vec<u64>) {
    let IntWeight::Diagonal { gain, mean } = &model.weights()[term.weight.index()] else {
        unreachable!("a checked model has a diagonal here");
    };
    let (gain_fraction, mean_fraction) = plan.term_fractions(term);
    let scaled = |values: &[i16], fraction: i32| -> Vec<u64> {
        let by = share::power(plan.shift(fraction, output));
        values
            .iter()
            .map(|v| modulus::mul(modulus::from_signed((*v).into()), by))
            .collect()
    };
    (scaled(gain, gain_fraction), scaled(mean, mean_fraction))
}

/// Offline material of one inference. Consumed by [`ServerSession::infer`].
pub struct ServerBundle {
    steps: Vec<Material>,
    opening: HashMap<ValueId, Share>,
    /// Seconds of the offline phase.
    pub times: Times,
}

/// What the server needs of a step online.
enum Material {
    /// Added to the server's own product: biases, and the homomorphic masks with their sign turned.
    Correction(Share),
    /// A requantisation.
    Requantise(RequantiseServer),
    /// A garbled stop.
    Garbled(ServerMaterial),
}

impl ServerSession {
    /// Offline: makes the material of one inference together with the client.
    ///
    /// # Errors
    /// [`ProtocolError`] of whatever failed; nothing can be used then.
    pub fn prepare(&mut self, channel: &mut Channel, model: &ServerModel) -> Result<ServerBundle> {
        let program = self.program.clone();
        let graph = program.plan().graph();
        let mut bundle = ServerBundle {
            steps: Vec::new(),
            opening: HashMap::new(),
            times: Times::default(),
        };
        if program.scheme().prepared() == Prepared::Offline {
            let mut answerer = Answerer::new(&program, &mut self.evaluator);
            let last = graph.last_uses();
            for (index, step) in graph.steps.iter().enumerate() {
                let started = Instant::now();
                let _phase = channel.phase(&format!("offline/{}", step.paper.name()));
                let mut preparation = Preparation {
                    program: &program,
                    model,
                    answerer: &mut answerer,
                    labels: &mut self.labels,
                    transfers: &mut self.transfers,
                    rng: &mut self.rng,
                    opening: &mut bundle.opening,
                    channel,
                };
                let material = preparation.step(index, step, &last)?;
                bundle.steps.push(material);
                bundle.times.add(step.paper, started);
            }
            channel.flush()?;
        }
        Ok(bundle)
    }

    /// Online: answers one inference.
    ///
    /// # Errors
    /// [`ProtocolError`] of whatever failed; the bundle is spent in any case.
    pub fn infer(
        &mut self,
        channel: &mut Channel,
        model: &ServerModel,
        bundle: ServerBundle,
    ) -> Result<Times> {
        let program = self.program.clone();
        let graph = program.plan().graph();
        let ServerBundle {
            steps, mut opening, ..
        } = bundle;
        let mut steps = steps.into_iter();
        let mut times = Times::default();
        let started = Instant::now();
        let mut walk = {
            let _phase = channel.phase("online/embed");
            Walk::receive(channel, &program, model)?
        };
        times.add(graph.steps[0].paper, started);
        let mut answerer = Answerer::new(&program, &mut self.evaluator);
        let last = graph.last_uses();
        for (index, step) in graph.steps.iter().enumerate() {
            let started = Instant::now();
            let _phase = channel.phase(&format!("online/{}", step.paper.name()));
            let material = match steps.next() {
                Some(material) => material,
                None => {
                    let mut preparation = Preparation {
                        program: &program,
                        model,
                        answerer: &mut answerer,
                        labels: &mut self.labels,
                        transfers: &mut self.transfers,
                        rng: &mut self.rng,
                        opening: &mut opening,
                        channel,
                    };
                    preparation.step(index, step, &last)?
                }
            };
            let share = walk.step(channel, index, step, material, &opening)?;
            walk.values.insert(step.output(), share);
            for read in step.inputs() {
                if last[read.index()] == index {
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

/// The server's part in preparing one step.
struct Preparation<'a, 'b> {
    program: &'a Program,
    model: &'a ServerModel,
    answerer: &'a mut Answerer<'b>,
    labels: &'a mut primer_ot::CotSender,
    transfers: &'a mut primer_ot::CotReceiver,
    rng: &'a mut primer_ring::prg::Prg,
    opening: &'a mut HashMap<ValueId, Share>,
    channel: &'a mut Channel,
}

impl Preparation<'_, '_> {
    fn step(&mut self, index: usize, step: &Step, last: &[usize]) -> Result<Material> {
        let output = step.output();
        let material = match &step.op {
            Op::Embed {
                table, positions, ..
            } => {
                let graph = self.program.plan().graph();
                let cols = graph.shape.vocab + graph.shape.types;
                self.answerer.accept(self.channel, None, Form::Rows, cols)?;
                let HeWeight::Dense(weights) = &self.model.weights[table.index()] else {
                    unreachable!("the table was encoded");
                };
                let value = graph.value(output);
                let mut mask = share::random(value.rows, value.cols, self.rng);
                let (evaluator, input) = self.answerer.with(None, Form::Rows);
                let (answer, _) = evaluator.linear(input, weights, Some(&mask), self.rng)?;
                self.answerer.reply(self.channel, &answer)?;
                self.answerer.forget(None);
                let plan = self.program.plan();
                let fraction = plan.weight_scale(*table).fraction();
                share::shift(&mut mask, plan.shift(fraction, output));
                let IntWeight::Bias(positions) = &self.model.model.weights()[positions.index()]
                else {
                    unreachable!("a checked model has positions here");
                };
                let bias = Matrix::from_fn(value.rows, value.cols, |t, j| {
                    modulus::from_signed(positions.get(t, j))
                });
                Material::Correction(share::sub(&bias, &mask))
            }
            Op::Linear { terms, bias, .. } => {
                let value = self.program.plan().graph().value(output);
                let IntWeight::Bias(bias) = &self.model.model.weights()[bias.index()] else {
                    unreachable!("a checked model has a bias here");
                };
                let mut correction = Matrix::from_fn(value.rows, value.cols, |_, j| {
                    modulus::from_signed(bias.get(0, j))
                });
                for term in terms {
                    let mask = self.term(term, output)?;
                    share::sub_assign(&mut correction, &mask);
                }
                Material::Correction(correction)
            }
            Op::Scores { query, key, .. } => self.scores(*query, *key)?,
            Op::Mix {
                probabilities,
                value,
                ..
            } => self.mix(*probabilities, *value)?,
            Op::SquareSum { input, .. } => self.squares(*input)?,
            Op::ScaleRows { input, factor, .. } => self.scale_rows(*input, *factor)?,
            Op::Stop { input, .. } => self.stop(index, *input)?,
        };
        for read in step.inputs() {
            if last[read.index()] == index {
                self.answerer.forget(Some(read));
            }
        }
        Ok(material)
    }

    /// Answers one term of a linear step; its mask at the scale of the accumulator.
    fn term(&mut self, term: &Term, output: ValueId) -> Result<Share> {
        let plan = self.program.plan();
        let (input, value) = (plan.graph().value(term.input), plan.graph().value(output));
        let form = row_form(plan.graph(), output);
        self.answerer
            .accept(self.channel, Some(term.input), form, input.cols)?;
        let mut mask = share::random(value.rows, value.cols, self.rng);
        let (evaluator, encrypted) = self.answerer.with(Some(term.input), form);
        let (answer, _) = match &self.model.weights[term.weight.index()] {
            HeWeight::Dense(weights) => {
                evaluator.linear(encrypted, weights, Some(&mask), self.rng)?
            }
            HeWeight::Centred(weights) => evaluator.centred(encrypted, weights, &mask, self.rng)?,
            HeWeight::None => unreachable!("every term's weight was encoded"),
        };
        self.answerer.reply(self.channel, &answer)?;
        if let WeightScale::Dense { .. } = plan.weight_scale(term.weight) {
            let (fraction, _) = plan.term_fractions(term);
            share::shift(&mut mask, plan.shift(fraction, output));
        }
        Ok(mask)
    }

    /// The mask that a value will be opened with; one for all products that read it.
    fn opening(&mut self, id: ValueId) -> Share {
        let value = self.program.plan().graph().value(id);
        let rng = &mut *self.rng;
        let mask = self
            .opening
            .entry(id)
            .or_insert_with(|| share::random(value.rows, value.cols, rng));
        mask.clone()
    }

    /// Answers a product of a mask with one matrix for each head.
    fn heads(
        &mut self,
        id: ValueId,
        form: Form,
        rows: usize,
        cols: usize,
        blocks: &[Share],
    ) -> Result<Share> {
        self.answerer.accept(self.channel, Some(id), form, cols)?;
        let layout = self.program.layout(rows)?;
        let weights = PreparedWeights::blocks(self.program.params(), &layout, blocks)?;
        let mask = share::random(rows, blocks.len() * blocks[0].cols(), self.rng);
        let (evaluator, input) = self.answerer.with(Some(id), form);
        let (answer, _) = evaluator.linear(input, &weights, Some(&mask), self.rng)?;
        self.answerer.reply(self.channel, &answer)?;
        Ok(mask)
    }

    fn scores(&mut self, query: ValueId, key: ValueId) -> Result<Material> {
        let graph = self.program.plan().graph();
        let (n, heads, width) = (graph.tokens, graph.shape.heads, graph.shape.head_size());
        let transposed = |mask: &Share| -> Vec<Share> {
            (0..heads)
                .map(|h| share::block(mask, h, width).transpose())
                .collect()
        };
        let form = Form::Heads { outputs: n };
        let blocks = transposed(&self.opening(query));
        let by_key = self.heads(key, form, n, heads * width, &blocks)?;
        let blocks = transposed(&self.opening(key));
        let by_query = self.heads(query, form, n, heads * width, &blocks)?;
        Ok(Material::Correction(Matrix::from_fn(
            heads * n,
            n,
            |r, j| {
                let (h, i) = (r / n, r % n);
                modulus::neg(modulus::add(
                    by_key.get(j, h * n + i),
                    by_query.get(i, h * n + j),
                ))
            },
        )))
    }

    fn mix(&mut self, probabilities: ValueId, value: ValueId) -> Result<Material> {
        let graph = self.program.plan().graph();
        let (n, heads, width) = (graph.tokens, graph.shape.heads, graph.shape.head_size());
        let mask = self.opening(probabilities);
        let blocks: Vec<Share> = (0..heads)
            .map(|h| share::row_block(&mask, h, n).transpose())
            .collect();
        let by_value = self.heads(value, Form::Transposed, width, heads * n, &blocks)?;
        let mask = self.opening(value);
        let blocks: Vec<Share> = (0..heads).map(|h| share::block(&mask, h, width)).collect();
        let form = Form::Heads { outputs: width };
        let by_probability = self.heads(probabilities, form, n, heads * n, &blocks)?;
        Ok(Material::Correction(Matrix::from_fn(
            n,
            heads * width,
            |i, at| {
                let (h, feature) = (at / width, at % width);
                let mixed =
                    modulus::add(by_value.get(feature, h * n + i), by_probability.get(i, at));
                modulus::neg(mixed)
            },
        )))
    }

    fn squares(&mut self, input: ValueId) -> Result<Material> {
        let value = self.program.plan().graph().value(input);
        self.answerer
            .accept(self.channel, Some(input), Form::Rows, value.cols)?;
        let opening = self.opening(input);
        let mask = share::random(value.rows, 1, self.rng);
        let (evaluator, encrypted) = self.answerer.with(Some(input), Form::Rows);
        let (answer, _) = evaluator.row_sums(encrypted, &opening, &mask, self.rng)?;
        self.answerer.reply(self.channel, &answer)?;
        Ok(Material::Correction(
            mask.map(|s| modulus::neg(modulus::add(*s, *s))),
        ))
    }

    fn scale_rows(&mut self, input: ValueId, factor: ValueId) -> Result<Material> {
        let value = self.program.plan().graph().value(input);
        self.answerer
            .accept(self.channel, Some(input), Form::Rows, value.cols)?;
        self.answerer
            .accept(self.channel, Some(factor), Form::Repeated, 1)?;
        let opening = self.opening(input);
        let by = self.opening(factor);
        let by = Matrix::from_fn(value.rows, value.cols, |t, _| by.get(t, 0));
        let mask = share::random(value.rows, value.cols, self.rng);
        let layout = self.program.layout(value.rows)?;
        let (evaluator, x, f) = self
            .answerer
            .with_two((Some(input), Form::Rows), (Some(factor), Form::Repeated));
        let (answer, _) =
            evaluator.slotwise(&layout, &[(f, &opening), (x, &by)], &mask, self.rng)?;
        self.answerer.reply(self.channel, &answer)?;
        Ok(Material::Correction(mask.map(|s| modulus::neg(*s))))
    }

    fn stop(&mut self, index: usize, input: ValueId) -> Result<Material> {
        let plan = self.program.plan();
        let value = plan.graph().value(input);
        let by = plan.truncation(input);
        Ok(match plan.function(index) {
            None => Material::Requantise(RequantiseServer::prepare(
                self.channel,
                self.transfers,
                by.ring_bits(),
                value.rows * value.cols,
                self.rng,
            )?),
            Some(function) => {
                let job = job(function, value.rows, value.cols)?;
                let material = ServerMaterial::prepare(self.channel, self.labels, &job, self.rng)?;
                Material::Garbled(material)
            }
        })
    }
}

/// The online walk.
struct Walk<'a> {
    program: &'a Program,
    model: &'a ServerModel,
    input: Share,
    padding: Vec<u64>,
    values: HashMap<ValueId, Share>,
    opened: HashMap<ValueId, ()>,
    scratch: Scratch,
}

impl<'a> Walk<'a> {
    fn receive(
        channel: &mut Channel,
        program: &'a Program,
        model: &'a ServerModel,
    ) -> Result<Self> {
        let graph = program.plan().graph();
        let mut input = Matrix::zeros(graph.tokens, graph.shape.vocab + graph.shape.types);
        channel.recv_residues(INPUT, K, P, input.data_mut())?;
        let mut padding = vec![0; graph.tokens];
        channel.recv_residues(PADDING, K, P, &mut padding)?;
        Ok(Self {
            program,
            model,
            input,
            padding,
            values: HashMap::new(),
            opened: HashMap::new(),
            scratch: Scratch::default(),
        })
    }

    fn plan(&self) -> &'a Plan {
        self.program.plan()
    }

    fn graph(&self) -> &'a Graph {
        self.program.plan().graph()
    }

    fn get(&self, id: ValueId) -> &Share {
        self.values.get(&id).expect("steps come in order")
    }

    fn step(
        &mut self,
        channel: &mut Channel,
        index: usize,
        step: &Step,
        material: Material,
        opening: &HashMap<ValueId, Share>,
    ) -> Result<Share> {
        let plan = self.plan();
        let output = step.output();
        match (&step.op, material) {
            (Op::Embed { table, .. }, Material::Correction(correction)) => {
                let IntWeight::Dense(weight) = &self.model.model.weights()[table.index()] else {
                    unreachable!("a checked model has a table here");
                };
                let mut sum = product_mod(&self.input, weight, &mut self.scratch);
                let fraction = plan.weight_scale(*table).fraction();
                share::shift(&mut sum, plan.shift(fraction, output));
                share::add_assign(&mut sum, &correction);
                Ok(sum)
            }
            (Op::Linear { terms, .. }, Material::Correction(mut sum)) => {
                for term in terms {
                    self.term(term, output, &mut sum);
                }
                Ok(sum)
            }
            (Op::Stop { input, .. }, material) => {
                self.stop(channel, index, *input, output, material)
            }
            (_, Material::Correction(correction)) => {
                self.product(channel, step, correction, opening)
            }
            _ => unreachable!("materials are made step by step"),
        }
    }

    fn term(&mut self, term: &Term, output: ValueId, sum: &mut Share) {
        let plan = self.plan();
        let x = self.values.get(&term.input).expect("steps come in order");
        let x = share::first_rows(x, sum.rows());
        match plan.graph().weight(term.weight).kind {
            WeightKind::Dense => {
                let IntWeight::Dense(weight) = &self.model.model.weights()[term.weight.index()]
                else {
                    unreachable!("a checked model has a matrix here");
                };
                let mut product = product_mod(&x, weight, &mut self.scratch);
                let (fraction, _) = plan.term_fractions(term);
                share::shift(&mut product, plan.shift(fraction, output));
                share::add_assign(sum, &product);
            }
            WeightKind::Diagonal | WeightKind::Bias => {
                let (g, h) = diagonal(plan, &self.model.model, term, output);
                for t in 0..sum.rows() {
                    let mean = dot(x.row(t), &h);
                    for ((s, v), g) in sum.row_mut(t).iter_mut().zip(x.row(t)).zip(&g) {
                        *s = modulus::add(*s, modulus::sub(modulus::mul(*v, *g), mean));
                    }
                }
            }
        }
    }

    fn product(
        &mut self,
        channel: &mut Channel,
        step: &Step,
        correction: Share,
        opening: &HashMap<ValueId, Share>,
    ) -> Result<Share> {
        for id in step.inputs() {
            if self.opened.insert(id, ()).is_none() {
                let mask = opening.get(&id).expect("drawn when the step was prepared");
                let difference = share::sub(self.get(id), mask);
                channel.send_residues(OPENED, K, difference.data().iter().copied())?;
            }
        }
        channel.flush()?;
        let (plan, heads) = (self.plan(), self.graph().shape.heads);
        let output = step.output();
        let fraction = |id: ValueId| plan.scale(id).fraction();
        let (mut sum, fractions) = match &step.op {
            Op::Scores { query, key, .. } => (
                head_scores(self.get(*query), self.get(*key), heads),
                fraction(*query) + fraction(*key),
            ),
            Op::Mix {
                probabilities,
                value,
                ..
            } => (
                head_mix(self.get(*probabilities), self.get(*value), heads),
                fraction(*probabilities) + fraction(*value),
            ),
            Op::SquareSum { input, .. } => {
                let x = self.get(*input);
                let sums = Matrix::from_fn(x.rows(), 1, |t, _| dot(x.row(t), x.row(t)));
                (sums, 2 * fraction(*input))
            }
            Op::ScaleRows { input, factor, .. } => {
                let (x, by) = (self.get(*input), self.get(*factor));
                let product = Matrix::from_fn(x.rows(), x.cols(), |t, c| {
                    modulus::mul(x.get(t, c), by.get(t, 0))
                });
                (product, fraction(*input) + fraction(*factor))
            }
            Op::Embed { .. } | Op::Linear { .. } | Op::Stop { .. } => {
                unreachable!("only products of secrets come here")
            }
        };
        share::add_assign(&mut sum, &correction);
        share::shift(&mut sum, plan.shift(fractions, output));
        if let Op::SquareSum { .. } = step.op {
            let shape = &self.graph().shape;
            let epsilon = shape.epsilon * shape.hidden as f64 * exp2(plan.scale(output).fraction());
            let epsilon = modulus::from_signed(epsilon.round() as i64);
            sum.data_mut()
                .iter_mut()
                .for_each(|v| *v = modulus::add(*v, epsilon));
        }
        let mut reshared = Matrix::zeros(sum.rows(), sum.cols());
        channel.recv_residues(RESHARED, K, P, reshared.data_mut())?;
        share::add_assign(&mut sum, &reshared);
        Ok(sum)
    }

    fn stop(
        &mut self,
        channel: &mut Channel,
        index: usize,
        input: ValueId,
        output: ValueId,
        material: Material,
    ) -> Result<Share> {
        let plan = self.plan();
        let by = plan.truncation(input);
        let mut share = self.values.remove(&input).expect("steps come in order");
        if let Some(Function::Softmax(softmax)) = plan.function(index) {
            let unit = share::power(by.shift());
            let weight = modulus::mul(modulus::from_signed(softmax.mask), unit);
            let offset = modulus::mul(modulus::from_signed(softmax.offset), unit);
            for r in 0..share.rows() {
                for (v, pad) in share.row_mut(r).iter_mut().zip(&self.padding) {
                    *v = modulus::add(*v, modulus::sub(offset, modulus::mul(weight, *pad)));
                }
            }
        }
        let ring: Vec<u64> = share.data().iter().map(|v| by.server(*v)).collect();
        let results = match material {
            Material::Requantise(material) => material.finish(channel, &ring)?,
            Material::Garbled(material) => material.finish(channel, &ring)?,
            Material::Correction(_) => unreachable!("materials are made step by step"),
        };
        let value = plan.graph().value(output);
        Ok(Matrix::from_vec(value.rows, value.cols, results))
    }
}

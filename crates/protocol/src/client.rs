//! The client: has the text, learns the answer.
//!
//! `prepare` walks the plan once with masks only and makes a [`ClientBundle`]; `infer` walks it
//! again with the text and consumes the bundle. Its share of every value is a mask that it drew, or a
//! linear image of masks, so it is known before there is a text.

use crate::error::{ProtocolError, Result};
use crate::homomorphic::Asker;
use crate::kinds::{INPUT, OPENED, OUTPUT, PADDING, RESHARED};
use crate::scheme::{Form, Prepared, Program};
use crate::session::ClientSession;
use crate::share::{self, Share};
use crate::spool::{Spool, Storage};
use crate::times::Times;
use primer_garble::stop::Stop;
use primer_he::packing::layout::{Chunks, Shape};
use primer_model::text::Input;
use primer_net::Channel;
use primer_plan::function::Function;
use primer_plan::graph::{Graph, Op, Step, ValueId, WeightKind};
use primer_ring::matrix::{Matrix, product_residues};
use primer_ring::modulus::{self, K, P};
use primer_stops::{ClientMaterial, Job, RequantiseClient};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Offline material of one inference. Consumed by [`ClientSession::infer`].
pub struct ClientBundle {
    masks: Masks,
    steps: Vec<Material>,
    /// Seconds of the offline phase.
    pub times: Times,
}

/// The client's own randomness: what its online messages are masked with.
struct Masks {
    /// Of the one-hot rows.
    input: Share,
    /// Of the padding, one for each key.
    padding: Vec<u64>,
    /// The client's share of each value that something still reads.
    shares: HashMap<ValueId, Share>,
}

/// What the client needs of a step online.
enum Material {
    /// A linear step: nothing.
    Nothing,
    /// A product of two secrets.
    Product(Product),
    /// A requantisation.
    Requantise(RequantiseClient),
    /// A garbled stop and where its circuits are.
    Garbled {
        material: ClientMaterial,
        stored: Spool,
        masks: Share,
    },
}

/// A product with the client's factors, the terms known offline, and the new mask.
struct Product {
    left: Share,
    right: Share,
    constant: Share,
    mask: Share,
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
        let masks = Masks {
            input: share::random(
                graph.tokens,
                graph.shape.vocab + graph.shape.types,
                &mut self.rng,
            ),
            padding: (0..graph.tokens)
                .map(|_| modulus::random(&mut self.rng))
                .collect(),
            shares: HashMap::new(),
        };
        let mut bundle = ClientBundle {
            masks,
            steps: Vec::new(),
            times: Times::default(),
        };
        if program.scheme().prepared() == Prepared::Offline {
            let secret = &self.secret;
            let mut asker = Asker::new(&program, secret);
            let last = graph.last_uses();
            for (index, step) in graph.steps.iter().enumerate() {
                let started = Instant::now();
                let _phase = channel.phase(&format!("offline/{}", step.paper.name()));
                let mut preparation = Preparation {
                    program: &program,
                    asker: &mut asker,
                    labels: &mut self.labels,
                    transfers: &mut self.transfers,
                    rng: &mut self.rng,
                    storage,
                    channel,
                };
                let material = preparation.step(index, step, &mut bundle.masks, witness)?;
                bundle.steps.push(material);
                bundle.masks.forget(graph, step, index, &last);
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
        let mut times = Times::default();
        let started = Instant::now();
        {
            let _phase = channel.phase("online/embed");
            send_input(channel, graph, input, &masks)?;
        }
        times.add(graph.steps[0].paper, started);
        let mut steps = steps.into_iter();
        let mut asker = Asker::new(&program, &self.secret);
        let mut opened: HashMap<ValueId, Share> = HashMap::new();
        let last = graph.last_uses();
        for (index, step) in graph.steps.iter().enumerate() {
            let started = Instant::now();
            let _phase = channel.phase(&format!("online/{}", step.paper.name()));
            let material = match steps.next() {
                Some(material) => material,
                None => {
                    let mut preparation = Preparation {
                        program: &program,
                        asker: &mut asker,
                        labels: &mut self.labels,
                        transfers: &mut self.transfers,
                        rng: &mut self.rng,
                        storage,
                        channel,
                    };
                    let material = preparation.step(index, step, &mut masks, witness)?;
                    masks.forget(graph, step, index, &last);
                    material
                }
            };
            finish(channel, &program, step, material, &mut opened)?;
            times.add(step.paper, started);
        }
        let started = Instant::now();
        let _phase = channel.phase("online/others");
        let mut integers = Vec::new();
        for &id in &graph.outputs {
            let mask = masks.shares.remove(&id).expect("outputs are kept");
            let mut theirs = Matrix::zeros(mask.rows(), mask.cols());
            channel.recv_residues(OUTPUT, K, P, theirs.data_mut())?;
            share::add_assign(&mut theirs, &mask);
            integers.push(theirs.map(|v| modulus::to_signed(*v)));
        }
        times.add(graph.steps[graph.steps.len() - 1].paper, started);
        let reals = graph
            .outputs
            .iter()
            .zip(&integers)
            .map(|(id, m)| {
                let unit = primer_ring::fixed::exp2(-plan.scale(*id).fraction());
                m.map(|v| *v as f64 * unit)
            })
            .collect();
        Ok(Answer {
            integers,
            reals,
            times,
        })
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
    let too_large = |values: &[u32], limit: usize| values.iter().any(|v| *v as usize >= limit);
    if too_large(&input.ids, graph.shape.vocab) || too_large(&input.types, graph.shape.types) {
        let found = input.ids.iter().copied().max().unwrap_or(0) as usize;
        return Err(ProtocolError::Input {
            what: "as its largest token or type",
            expected: graph.shape.vocab,
            found,
        });
    }
    Ok(())
}

/// The one-hot rows and the padding, less their masks.
fn send_input(channel: &mut Channel, graph: &Graph, input: &Input, masks: &Masks) -> Result<()> {
    let mut rows = masks.input.map(|r| modulus::neg(*r));
    for t in 0..graph.tokens {
        let row = rows.row_mut(t);
        for hot in [
            input.ids[t] as usize,
            graph.shape.vocab + input.types[t] as usize,
        ] {
            row[hot] = modulus::add(row[hot], 1);
        }
    }
    channel.send_residues(INPUT, K, rows.data().iter().copied())?;
    let padded = masks
        .padding
        .iter()
        .enumerate()
        .map(|(t, r)| modulus::sub(u64::from(t >= input.length), *r));
    channel.send_residues(PADDING, K, padded.collect::<Vec<_>>().into_iter())?;
    Ok(channel.flush()?)
}

impl Masks {
    fn get(&self, id: ValueId) -> &Share {
        self.shares.get(&id).expect("steps come in order")
    }

    /// Drops the shares that no later step reads.
    fn forget(&mut self, graph: &Graph, step: &Step, index: usize, last: &[usize]) {
        for read in step.inputs() {
            if last[read.index()] == index && !graph.outputs.contains(&read) {
                self.shares.remove(&read);
            }
        }
    }
}

/// The client's part in preparing one step.
struct Preparation<'a, 'b> {
    program: &'a Program,
    asker: &'a mut Asker<'b>,
    labels: &'a mut primer_ot::CotReceiver,
    transfers: &'a mut primer_ot::CotSender,
    rng: &'a mut primer_ring::prg::Prg,
    storage: &'a Storage,
    channel: &'a mut Channel,
}

impl Preparation<'_, '_> {
    fn step(
        &mut self,
        index: usize,
        step: &Step,
        masks: &mut Masks,
        witness: Witness<'_>,
    ) -> Result<Material> {
        let plan = self.program.plan();
        let output = step.output();
        let (share, material) = match &step.op {
            Op::Embed { table, .. } => {
                self.offer(None, Form::Rows, || masks.input.clone())?;
                let mut share = self.dense_answer(Form::Rows, plan.graph().shape.hidden)?;
                let fraction = plan.weight_scale(*table).fraction();
                share::shift(&mut share, plan.shift(fraction, output));
                (share, Material::Nothing)
            }
            Op::Linear { terms, .. } => {
                let value = plan.graph().value(output);
                let mut sum = Matrix::zeros(value.rows, value.cols);
                for term in terms {
                    let mask = masks.get(term.input);
                    let form = row_form(plan.graph(), output);
                    self.offer(Some(term.input), form, || {
                        share::first_rows(mask, value.rows)
                    })?;
                    let mut answer = self.dense_answer(form, value.cols)?;
                    if plan.graph().weight(term.weight).kind == WeightKind::Dense {
                        let (fraction, _) = plan.term_fractions(term);
                        share::shift(&mut answer, plan.shift(fraction, output));
                    }
                    share::add_assign(&mut sum, &answer);
                }
                (sum, Material::Nothing)
            }
            Op::Scores { query, key, .. } => self.product(output, |p| {
                p.scores(masks.get(*query), *query, masks.get(*key), *key)
            })?,
            Op::Mix {
                probabilities,
                value,
                ..
            } => self.product(output, |p| {
                p.mix(
                    masks.get(*probabilities),
                    *probabilities,
                    masks.get(*value),
                    *value,
                )
            })?,
            Op::SquareSum { input, .. } => {
                self.product(output, |p| p.squares(masks.get(*input), *input))?
            }
            Op::ScaleRows { input, factor, .. } => self.product(output, |p| {
                p.scale_rows(masks.get(*input), *input, masks.get(*factor), *factor)
            })?,
            Op::Stop { input, .. } => self.stop(index, *input, output, masks, witness)?,
        };
        masks.shares.insert(output, share);
        Ok(material)
    }

    fn offer(
        &mut self,
        owner: Option<ValueId>,
        form: Form,
        mask: impl FnOnce() -> Share,
    ) -> Result<()> {
        self.asker.offer(self.channel, self.rng, owner, form, mask)
    }

    /// The answer of a product with a dense or diagonal weight.
    fn dense_answer(&mut self, form: Form, cols: usize) -> Result<Share> {
        let (layout, _) = self.program.packing(form, cols)?;
        self.asker
            .answer(self.channel, &layout, &Chunks::even(&layout, cols))
    }

    /// The answer of a product with one matrix for each head.
    fn heads_answer(&mut self, rows: usize, inputs: usize, outputs: usize) -> Result<Share> {
        let layout = self.program.layout(rows)?;
        let shape = Shape::blocks(self.program.plan().graph().shape.heads, inputs, outputs);
        self.asker
            .answer(self.channel, &layout, &shape.output_chunks(&layout))
    }

    /// A product of secrets: its offline terms, and a fresh mask for its result.
    fn product(
        &mut self,
        output: ValueId,
        terms: impl FnOnce(&mut Self) -> Result<(Share, Share, Share)>,
    ) -> Result<(Share, Material)> {
        let (left, right, constant) = terms(self)?;
        let value = self.program.plan().graph().value(output);
        let mask = share::random(value.rows, value.cols, self.rng);
        let product = Product {
            left,
            right,
            constant,
            mask: mask.clone(),
        };
        Ok((mask, Material::Product(product)))
    }

    fn scores(
        &mut self,
        query: &Share,
        query_id: ValueId,
        key: &Share,
        key_id: ValueId,
    ) -> Result<(Share, Share, Share)> {
        let shape = &self.program.plan().graph().shape;
        let (n, heads, width) = (query.rows(), shape.heads, shape.head_size());
        let form = Form::Heads { outputs: n };
        // U·Rkᵀ, transposed, and Rq·Vᵀ.
        self.offer(Some(key_id), form, || key.clone())?;
        let by_key = self.heads_answer(n, width, n)?;
        self.offer(Some(query_id), form, || query.clone())?;
        let by_query = self.heads_answer(n, width, n)?;
        let mut constant = head_scores(query, key, heads);
        for h in 0..heads {
            for i in 0..n {
                for (j, c) in constant.row_mut(h * n + i).iter_mut().enumerate() {
                    let mixed = modulus::add(by_key.get(j, h * n + i), by_query.get(i, h * n + j));
                    *c = modulus::add(*c, mixed);
                }
            }
        }
        Ok((query.clone(), key.clone(), constant))
    }

    fn mix(
        &mut self,
        probabilities: &Share,
        probabilities_id: ValueId,
        value: &Share,
        value_id: ValueId,
    ) -> Result<(Share, Share, Share)> {
        let shape = &self.program.plan().graph().shape;
        let (n, heads, width) = (value.rows(), shape.heads, shape.head_size());
        // U·Rv, transposed, and Rp·W.
        self.offer(Some(value_id), Form::Transposed, || {
            Matrix::from_fn(width, heads * n, |c, at| {
                value.get(at % n, (at / n) * width + c)
            })
        })?;
        let by_value = self.heads_answer(width, n, n)?;
        self.offer(
            Some(probabilities_id),
            Form::Heads { outputs: width },
            || {
                Matrix::from_fn(n, heads * n, |i, at| {
                    probabilities.get((at / n) * n + i, at % n)
                })
            },
        )?;
        let by_probability = self.heads_answer(n, n, width)?;
        let mut constant = head_mix(probabilities, value, heads);
        for i in 0..n {
            for (at, c) in constant.row_mut(i).iter_mut().enumerate() {
                let (h, feature) = (at / width, at % width);
                let mixed =
                    modulus::add(by_value.get(feature, h * n + i), by_probability.get(i, at));
                *c = modulus::add(*c, mixed);
            }
        }
        Ok((probabilities.clone(), value.clone(), constant))
    }

    fn squares(&mut self, x: &Share, id: ValueId) -> Result<(Share, Share, Share)> {
        self.offer(Some(id), Form::Rows, || x.clone())?;
        let layout = self.program.layout(x.rows())?;
        let sums = self
            .asker
            .answer(self.channel, &layout, &Chunks::even(&layout, 1))?;
        let constant = Matrix::from_fn(x.rows(), 1, |t, _| {
            let own = dot(x.row(t), x.row(t));
            modulus::add(own, modulus::add(sums.get(t, 0), sums.get(t, 0)))
        });
        Ok((x.clone(), Matrix::zeros(0, 0), constant))
    }

    fn scale_rows(
        &mut self,
        x: &Share,
        id: ValueId,
        factor: &Share,
        factor_id: ValueId,
    ) -> Result<(Share, Share, Share)> {
        self.offer(Some(id), Form::Rows, || x.clone())?;
        self.offer(Some(factor_id), Form::Repeated, || factor.clone())?;
        let layout = self.program.layout(x.rows())?;
        let chunks = Chunks::even(&layout, x.cols());
        let mut constant = self.asker.answer(self.channel, &layout, &chunks)?;
        for t in 0..x.rows() {
            let by = factor.get(t, 0);
            for (c, v) in constant.row_mut(t).iter_mut().zip(x.row(t)) {
                *c = modulus::add(*c, modulus::mul(by, *v));
            }
        }
        Ok((x.clone(), factor.clone(), constant))
    }

    fn stop(
        &mut self,
        index: usize,
        input: ValueId,
        output: ValueId,
        masks: &mut Masks,
        witness: Witness<'_>,
    ) -> Result<(Share, Material)> {
        let plan = self.program.plan();
        let by = plan.truncation(input);
        let mut share = masks.get(input).clone();
        let function = plan.function(index);
        if let Some(Function::Softmax(softmax)) = function {
            let weight = modulus::mul(modulus::from_signed(softmax.mask), share::power(by.shift()));
            for r in 0..share.rows() {
                for (v, pad) in share.row_mut(r).iter_mut().zip(&masks.padding) {
                    *v = modulus::sub(*v, modulus::mul(weight, *pad));
                }
            }
        }
        witness(input, &share);
        let value = plan.graph().value(output);
        let fresh = share::random(value.rows, value.cols, self.rng);
        let ring: Vec<u64> = share.data().iter().map(|v| by.client(*v)).collect();
        let material = match function {
            None => Material::Requantise(RequantiseClient::prepare(
                self.channel,
                self.transfers,
                by.ring_bits(),
                &ring,
                fresh.data(),
            )?),
            Some(function) => {
                let job = job(function, share.rows(), share.cols())?;
                let mut stored = self.storage.spool(job.stored_len())?;
                let material =
                    ClientMaterial::prepare(self.channel, self.labels, &job, &ring, &mut stored)?;
                Material::Garbled {
                    material,
                    stored,
                    masks: fresh.clone(),
                }
            }
        };
        Ok((fresh, material))
    }
}

/// The form of a linear step's input: a row for each token, or the first one only.
pub(crate) fn row_form(graph: &Graph, output: ValueId) -> Form {
    if graph.value(output).rows == graph.tokens {
        Form::Rows
    } else {
        Form::First
    }
}

/// The job of a stop over a matrix: rows for softmax, elements for everything else.
pub(crate) fn job(function: &Function, rows: usize, cols: usize) -> Result<Job> {
    let (row, instances) = match function {
        Function::Softmax(_) => (cols, rows),
        _ => (1, rows * cols),
    };
    Ok(Job::new(
        Arc::new(Stop::new(function, row)?),
        instances as u64,
    )?)
}

/// Per head, `query · keyᵀ`, as the plan lays scores out.
pub(crate) fn head_scores(query: &Share, key: &Share, heads: usize) -> Share {
    let width = query.cols() / heads;
    let blocks = (0..heads).map(|h| {
        let key = share::block(key, h, width).transpose();
        product_residues(&share::block(query, h, width), &key)
    });
    share::stack(blocks, key.rows())
}

/// Per head, `probabilities · value`, heads side by side.
pub(crate) fn head_mix(probabilities: &Share, value: &Share, heads: usize) -> Share {
    let (n, width) = (value.rows(), value.cols() / heads);
    let blocks: Vec<Share> = (0..heads)
        .map(|h| {
            let probabilities = share::row_block(probabilities, h, n);
            product_residues(&probabilities, &share::block(value, h, width))
        })
        .collect();
    share::beside(&blocks)
}

/// The inner product of two rows.
pub(crate) fn dot(a: &[u64], b: &[u64]) -> u64 {
    let sum = a
        .iter()
        .zip(b)
        .map(|(a, b)| u128::from(*a) * u128::from(*b))
        .sum::<u128>();
    modulus::reduce_wide(sum)
}

/// Online, one step.
fn finish(
    channel: &mut Channel,
    program: &Program,
    step: &Step,
    material: Material,
    opened: &mut HashMap<ValueId, Share>,
) -> Result<()> {
    match material {
        Material::Nothing => Ok(()),
        Material::Requantise(material) => Ok(material.finish(channel)?),
        Material::Garbled {
            material,
            stored,
            masks,
        } => Ok(material.finish(channel, &mut stored.rewind()?, masks.data())?),
        Material::Product(product) => finish_product(channel, program, step, product, opened),
    }
}

/// The difference of a value to the server's mask, received at its first use.
fn open<'a>(
    channel: &mut Channel,
    graph: &Graph,
    opened: &'a mut HashMap<ValueId, Share>,
    id: ValueId,
) -> Result<&'a Share> {
    if !opened.contains_key(&id) {
        let value = graph.value(id);
        let mut difference = Matrix::zeros(value.rows, value.cols);
        channel.recv_residues(OPENED, K, P, difference.data_mut())?;
        opened.insert(id, difference);
    }
    Ok(&opened[&id])
}

fn finish_product(
    channel: &mut Channel,
    program: &Program,
    step: &Step,
    product: Product,
    opened: &mut HashMap<ValueId, Share>,
) -> Result<()> {
    let (plan, graph) = (program.plan(), program.plan().graph());
    for id in step.inputs() {
        open(channel, graph, opened, id)?;
    }
    let heads = graph.shape.heads;
    let Product {
        left,
        right,
        constant,
        mask,
    } = product;
    let fractions: i32 = step
        .inputs()
        .iter()
        .map(|id| plan.scale(*id).fraction())
        .sum();
    let mut share = constant;
    let fractions = match &step.op {
        Op::Scores { query, key, .. } => {
            share::add_assign(&mut share, &head_scores(&opened[query], &right, heads));
            share::add_assign(&mut share, &head_scores(&left, &opened[key], heads));
            fractions
        }
        Op::Mix {
            probabilities,
            value,
            ..
        } => {
            share::add_assign(&mut share, &head_mix(&opened[probabilities], &right, heads));
            share::add_assign(&mut share, &head_mix(&left, &opened[value], heads));
            fractions
        }
        Op::SquareSum { input, .. } => {
            for t in 0..share.rows() {
                let mixed = dot(opened[input].row(t), left.row(t));
                let sum = share.get(t, 0);
                share.row_mut(t)[0] = modulus::add(sum, modulus::add(mixed, mixed));
            }
            2 * fractions
        }
        Op::ScaleRows { input, factor, .. } => {
            for t in 0..share.rows() {
                let (own, theirs) = (right.get(t, 0), opened[factor].get(t, 0));
                let (difference, x) = (opened[input].row(t), left.row(t));
                for (c, v) in share.row_mut(t).iter_mut().enumerate() {
                    let mixed =
                        modulus::add(modulus::mul(difference[c], own), modulus::mul(x[c], theirs));
                    *v = modulus::add(*v, mixed);
                }
            }
            fractions
        }
        Op::Embed { .. } | Op::Linear { .. } | Op::Stop { .. } => {
            unreachable!("only products of secrets have product material")
        }
    };
    share::shift(&mut share, plan.shift(fractions, step.output()));
    share::sub_assign(&mut share, &mask);
    channel.send_residues(RESHARED, K, share.data().iter().copied())?;
    Ok(channel.flush()?)
}

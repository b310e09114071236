//! The answers of an evaluation: in the clear on several threads, privately one after the other.

use super::journal::Journal;
use super::{Fitted, Request, Truncation};
use crate::task::Example;
use crate::{Progress, secure};
use anyhow::{Context, Result};
use primer::source::Model;
use primer_model::fixed::{self, OutOfRange};
use primer_model::float::{self, NoObserver};
use primer_model::quantise::IntModel;
use primer_plan::graph::Graph;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_text::{Input, TextError, Truncate, bucket};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The answer to one input of an example: to the example, or to a window of its context.
pub struct EvalAnswer {
    /// Which example.
    pub example: usize,
    /// What the engine says.
    pub logits: Vec<Vec<f64>>,
    /// What single precision says.
    pub float: Vec<Vec<f64>>,
    /// The protocol's integers in the clear, if they are not what is evaluated.
    pub fixed: Option<Vec<Vec<f64>>>,
    /// Values that left their range.
    pub out_of_range: Vec<OutOfRange>,
    /// Whether the client was told that values stayed in their ranges, or would be told if this
    /// were not in the clear; `None` where clients are not told.
    pub in_range: Option<bool>,
    /// Of a private answer, what its client would be told of the protocol's integers in the clear.
    pub fixed_in_range: Option<bool>,
    /// What was answered, as tokens.
    pub input: Input,
    /// The commit of the program that gave a private answer.
    pub commit: Option<String>,
}

/// Everything that an answer is made of.
pub(super) struct EvalRun<'a> {
    pub(super) request: &'a Request,
    pub(super) model: &'a Model,
    pub(super) prepared: Option<&'a Arc<IntModel>>,
    pub(super) fitted: Option<&'a dyn Fitted>,
    /// Tokens of an input.
    pub(super) limit: usize,
    pub(super) progress: Progress<'a>,
}

impl EvalRun<'_> {
    /// Answers in the clear: the engine's, or what a private one is compared with.
    pub(super) fn in_the_clear(&self, examples: &[Example]) -> Result<Vec<EvalAnswer>> {
        let mut inputs = Vec::with_capacity(examples.len());
        for (index, example) in examples.iter().enumerate() {
            let encoded = self.encode(example);
            let encoded = encoded.with_context(|| format!("example {}", index + 1))?;
            inputs.extend(encoded.into_iter().map(|input| (index, input)));
        }
        (self.progress)("evaluating", 0, inputs.len());
        let next = AtomicUsize::new(0);
        let results = Mutex::new(BTreeMap::new());
        std::thread::scope(|scope| {
            for _ in 0..self.request.threads.min(inputs.len()) {
                scope.spawn(|| {
                    let mut workspace = fixed::Workspace::default();
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(input) = inputs.get(index) else {
                            return;
                        };
                        let answer = self.one(input.clone(), &mut workspace);
                        let failed = answer.is_err();
                        let mut results = results.lock().expect("workers do not panic");
                        results.insert(index, answer);
                        if failed {
                            // The other workers stop at their next example.
                            next.store(inputs.len(), Ordering::Relaxed);
                            return;
                        }
                        (self.progress)("evaluating", results.len(), inputs.len());
                    }
                });
            }
        });
        let results = results.into_inner().expect("workers do not panic");
        results
            .into_iter()
            .map(|(at, answer)| answer.with_context(|| format!("example {}", inputs[at].0 + 1)))
            .collect()
    }

    /// Encodes an example as one input, or as many windows as its context takes.
    fn encode(&self, example: &Example) -> Result<Vec<Input>, TextError> {
        let text = &self.model.text;
        let mut inputs = match (&example.second, self.request.task.is_extractive()) {
            (Some(context), true) => {
                text.windows(&example.first, context, self.limit, self.request.stride)?
            }
            (second, _) => {
                let (second, cut) = (second.as_deref(), Truncate::LongestFirst);
                vec![text.encode(&example.first, second, self.limit, cut)?]
            }
        };
        for input in &mut inputs {
            let tokens = bucket(input.tokens(), self.limit).max(self.request.pad);
            input.pad_to(tokens, text.padding());
            input.fits(&self.model.shape)?;
        }
        Ok(inputs)
    }

    fn one(
        &self,
        (example, input): (usize, Input),
        workspace: &mut fixed::Workspace,
    ) -> Result<EvalAnswer> {
        let graph = Graph::new(&self.model.shape, input.tokens());
        let float = float::run(&graph, &self.model.weights, &input, &mut NoObserver);
        let float = reals(&float);
        let Some(prepared) = self.prepared else {
            let (logits, out_of_range) = match self.fitted {
                None => (float.clone(), Vec::new()),
                Some(fitted) => fitted.run(&input),
            };
            return Ok(EvalAnswer {
                example,
                logits,
                float,
                fixed: None,
                out_of_range,
                in_range: None,
                fixed_in_range: None,
                input,
                commit: None,
            });
        };
        let plan = prepared.plan(input.tokens())?;
        let mut rng = Prg::from_os();
        let mut shares = |_, _| modulus::random(&mut rng);
        let mut truncate = match self.request.truncation {
            Truncation::Exact => fixed::Truncate::Exact,
            Truncation::Shares => fixed::Truncate::Shares(&mut shares),
        };
        let mut drawn = Prg::from_os();
        let mut errors = match (self.request.truncation, self.request.scheme.deviation()) {
            (Truncation::Shares, Some(deviation)) => fixed::Errors::Drawn {
                rng: &mut drawn,
                deviation,
            },
            (Truncation::Exact | Truncation::Shares, _) => fixed::Errors::None,
        };
        let (truncate, errors) = (&mut truncate, &mut errors);
        let outcome = fixed::run(&plan, prepared, &input, truncate, errors, workspace);
        let logits = rows(&outcome.reals[0]);
        let in_range = outcome.flags.map(|flags| flags == 0);
        let is_compared = self.request.engine.is_private();
        Ok(EvalAnswer {
            example,
            fixed: is_compared.then(|| logits.clone()),
            logits,
            float,
            out_of_range: outcome.out_of_range,
            in_range,
            fixed_in_range: in_range.filter(|_| is_compared),
            input,
            commit: None,
        })
    }

    /// Replaces the logits by those of the private protocol, length by length.
    pub(super) fn privately(
        &self,
        answers: &mut [EvalAnswer],
        journal: &mut Journal,
    ) -> Result<()> {
        let prepared = self.prepared.expect("prepared for this engine");
        let mut by_length: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, answer) in answers.iter().enumerate() {
            if !journal.done.contains_key(&index) {
                let tokens = answer.input.tokens();
                by_length.entry(tokens).or_default().push(index);
            }
        }
        let left: usize = by_length.values().map(Vec::len).sum();
        let mut done = answers.len() - left;
        (self.progress)("private inference", done, answers.len());
        let scheme = self.request.scheme;
        let hinted = scheme.hint(prepared)?;
        for indices in by_length.values() {
            let inputs: Vec<&Input> = indices.iter().map(|i| &answers[*i].input).collect();
            secure::run(prepared, scheme, hinted.as_ref(), &inputs, |at, answer| {
                journal.record(indices[at], rows(&answer.reals[0]), answer.in_range)?;
                done += 1;
                (self.progress)("private inference", done, answers.len());
                Ok(())
            })?;
        }
        for (index, answer) in answers.iter_mut().enumerate() {
            let private = journal.done.remove(&index);
            let private = private.context("an example has no private answer")?;
            answer.logits = private.outputs;
            answer.in_range = private.in_range;
            answer.commit = Some(private.commit);
        }
        Ok(())
    }
}

/// Returns the rows of the first output.
pub fn reals(outputs: &[Matrix<f32>]) -> Vec<Vec<f64>> {
    rows(&outputs[0].map(|v| f64::from(*v)))
}

fn rows(matrix: &Matrix<f64>) -> Vec<Vec<f64>> {
    (0..matrix.rows()).map(|r| matrix.row(r).to_vec()).collect()
}

//! The walk along the plan, for either role.

use crate::chain::{Feed, run_all};
use crate::error::Result;
use crate::garbled_step::{Embed, Factors, GarbledStep, Linear, Program, Secret};
use crate::labels::Labels;
use crate::role::Role;
use primer_garble::Label;
use primer_plan::graph::{Graph, ValueId};
use zeroize::Zeroizing;

/// The client's bits: for every token its word, its type, and whether it is padding.
pub(crate) struct Inputs {
    pub(crate) indices: [Labels; 2],
    pub(crate) padding: Labels,
}

/// The values that are alive.
pub(crate) struct LabelWalk<'p> {
    program: &'p Program,
    inputs: Inputs,
    values: Vec<Option<Labels>>,
    last: Vec<usize>,
}

impl<'p> LabelWalk<'p> {
    /// Begins before the first step.
    pub(crate) fn new(program: &'p Program, inputs: Inputs) -> Self {
        let graph = program.plan().graph();
        Self {
            program,
            inputs,
            values: graph.values.iter().map(|_| None).collect(),
            last: graph.last_uses(),
        }
    }

    fn graph(&self) -> &'p Graph {
        self.program.plan().graph()
    }

    fn get(&self, id: ValueId) -> &Labels {
        self.values[id.index()]
            .as_ref()
            .expect("steps come in order")
    }

    /// Returns the labels of the outputs, in order.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = &Labels> {
        self.graph().outputs.iter().map(|id| self.get(*id))
    }

    /// Takes one step.
    pub(crate) fn step<R: Role>(&mut self, index: usize, role: &mut R) -> Result<()> {
        let step = &self.graph().steps[index];
        let cols = self.graph().value(step.output()).cols;
        let (bits, labels) = match self.program.work(index) {
            GarbledStep::Embed(work) => (work.bits, self.embed(work, role)?),
            GarbledStep::Linear(work) => (work.bits, self.linear(work, role)?),
            GarbledStep::Secret(work) => (work.bits, self.secret(work, role)?),
            GarbledStep::Scale {
                input,
                factor,
                circuit,
                bits,
            } => {
                let (x, factor) = (self.get(*input), self.get(*factor));
                let size = x.all().len() / x.bits();
                let labels = run_all(role, circuit, size, |i, inputs| {
                    inputs.extend_from_slice(x.element(i / cols, i % cols));
                    inputs.extend_from_slice(factor.element(i / cols, 0));
                })?;
                (*bits, labels)
            }
            GarbledStep::Function {
                input,
                circuit,
                row,
                masked,
                bits,
            } => {
                let x = self.get(*input).all();
                let per = *row * self.get(*input).bits();
                let padding = self.inputs.padding.all();
                let labels = run_all(role, circuit, x.len() / per, |i, inputs| {
                    inputs.extend_from_slice(&x[i * per..(i + 1) * per]);
                    if *masked {
                        inputs.extend_from_slice(padding);
                    }
                })?;
                (*bits, labels)
            }
            GarbledStep::Requantise(input) => {
                let value = self.values[input.index()].take();
                self.values[step.output().index()] = value;
                return Ok(());
            }
        };
        self.values[step.output().index()] = Some(Labels::new(cols, bits, labels));
        for read in step.inputs() {
            if self.last[read.index()] == index {
                self.values[read.index()] = None;
            }
        }
        Ok(())
    }

    fn embed<R: Role>(&self, work: &Embed, role: &mut R) -> Result<Zeroizing<Vec<Label>>> {
        let [table, positions] = [role.give(&work.given[0])?, role.give(&work.given[1])?];
        let (cols, size) = (work.cols, work.tokens * work.cols);
        let mut first = 0;
        let mut chosen = Vec::with_capacity(2);
        for part in 0..2 {
            let indices = &self.inputs.indices[part];
            let hot = run_all(role, &work.one_hot[part], work.tokens, |t, inputs| {
                inputs.extend_from_slice(indices.element(t, 0));
            })?;
            let hot = Labels::new(work.entries[part], 1, hot);
            chosen.push(work.select[part].select(role, size, |i, terms, inputs| {
                inputs.extend_from_slice(hot.span(i / cols, terms.clone()));
                let rows = first + terms.start..first + terms.end;
                inputs.extend_from_slice(table.span(i % cols, rows));
            })?);
            first += work.entries[part];
        }
        let chosen: Vec<Labels> = chosen
            .into_iter()
            .map(|labels| Labels::new(cols, table.bits(), labels))
            .collect();
        run_all(role, &work.read, size, |i, inputs| {
            for labels in chosen.iter().chain([&positions]) {
                inputs.extend_from_slice(labels.element(i / cols, i % cols));
            }
        })
    }

    fn linear<R: Role>(&self, work: &Linear, role: &mut R) -> Result<Zeroizing<Vec<Label>>> {
        let constants = role.give(&work.constants)?;
        let width = constants.bits();
        let number = |labels| Labels::new(1, width, labels);
        // The number that belongs to a row, and the dense term's factors.
        let (mut row_number, mut factors) = (None, None);
        if let Some(dense) = &work.dense {
            let weights = role.give(&dense.weights)?;
            let x = self.get(dense.input);
            let terms = dense.weights.cols;
            let sums = run_all(role, &dense.sum, work.rows, |r, inputs| {
                inputs.extend_from_slice(x.span(r, 0..terms));
            })?;
            row_number = Some(number(sums));
            factors = Some((x, weights));
        }
        let mut gains = None;
        if let Some(diagonal) = &work.diagonal {
            let [means, constant] = [
                role.give(&diagonal.given[0])?,
                role.give(&diagonal.given[1])?,
            ];
            let x = self.get(diagonal.input);
            let terms = diagonal.given[0].cols;
            let sums = run_all(role, &diagonal.sum, work.rows, |r, inputs| {
                inputs.extend_from_slice(x.span(r, 0..terms));
            })?;
            let sums = number(sums);
            let before = row_number.take();
            let feed = Feed {
                start: |r: usize, inputs: &mut Vec<Label>| {
                    inputs.extend_from_slice(constant.all());
                    inputs.extend_from_slice(sums.element(r, 0));
                },
                terms: |r: usize, terms: std::ops::Range<usize>, inputs: &mut Vec<Label>| {
                    inputs.extend_from_slice(x.span(r, terms.clone()));
                    inputs.extend_from_slice(means.span(0, terms));
                },
                end: |r: usize, inputs: &mut Vec<Label>| {
                    if let Some(before) = &before {
                        inputs.extend_from_slice(before.element(r, 0));
                    }
                },
            };
            row_number = Some(number(diagonal.means.run(role, work.rows, &feed)?));
            gains = Some((x, role.give(&diagonal.given[2])?));
        }
        let row_number = row_number.expect("a linear step has a term");
        let cols = work.cols;
        let feed = Feed {
            start: |i: usize, inputs: &mut Vec<Label>| {
                inputs.extend_from_slice(constants.element(i % cols, 0));
                inputs.extend_from_slice(row_number.element(i / cols, 0));
                if let Some((x, gains)) = &gains {
                    inputs.extend_from_slice(x.element(i / cols, i % cols));
                    inputs.extend_from_slice(gains.element(0, i % cols));
                }
            },
            terms: |i: usize, terms: std::ops::Range<usize>, inputs: &mut Vec<Label>| {
                if let Some((x, weights)) = &factors {
                    inputs.extend_from_slice(x.span(i / cols, terms.clone()));
                    inputs.extend_from_slice(weights.span(i % cols, terms));
                }
            },
            end: |_: usize, _: &mut Vec<Label>| (),
        };
        work.chain.run(role, work.rows * cols, &feed)
    }

    fn secret<R: Role>(&self, work: &Secret, role: &mut R) -> Result<Zeroizing<Vec<Label>>> {
        let graph = self.graph();
        let (n, heads, dh) = (graph.tokens, graph.shape.heads, graph.shape.head_size());
        // `x` and `y` as rows of factors: row `h·n + i` is head `h`, token `i`, or a column of
        // values.
        let (x, y) = match work.factors {
            Factors::Scores { query, key } => {
                (self.heads(query, heads, dh), self.heads(key, heads, dh))
            }
            Factors::Mix {
                probabilities,
                value,
            } => {
                let all = Zeroizing::new(self.get(probabilities).all().to_vec());
                let bits = self.get(probabilities).bits();
                (self.get(value).transposed(), Labels::new(n, bits, all))
            }
            Factors::Squares { input } => {
                let copy = || {
                    let x = self.get(input);
                    let cols = graph.value(input).cols;
                    Labels::new(cols, x.bits(), Zeroizing::new(x.all().to_vec()))
                };
                (copy(), copy())
            }
        };
        let square = matches!(work.factors, Factors::Squares { .. });
        let place = |i: usize| match work.factors {
            Factors::Scores { .. } => (i / n, i / (n * n) * n + i % n),
            Factors::Mix { .. } => (i % work.cols, i % work.cols / dh * n + i / work.cols),
            Factors::Squares { .. } => (i, i),
        };
        let mut numbers = Vec::with_capacity(2);
        for ((circuit, count), factor) in work.sums.iter().zip([&x, &y]) {
            let sums = run_all(role, circuit, *count, |r, inputs| {
                inputs.extend_from_slice(factor.row(r));
            })?;
            numbers.push(Labels::new(1, circuit.cost().kept, sums));
        }
        let feed = Feed {
            start: |i: usize, inputs: &mut Vec<Label>| {
                let (a, b) = place(i);
                inputs.extend_from_slice(numbers[0].element(a, 0));
                inputs.extend_from_slice(numbers[1].element(b, 0));
            },
            terms: |i: usize, terms: std::ops::Range<usize>, inputs: &mut Vec<Label>| {
                let (a, b) = place(i);
                inputs.extend_from_slice(x.span(a, terms.clone()));
                if !square {
                    inputs.extend_from_slice(y.span(b, terms));
                }
            },
            end: |_: usize, _: &mut Vec<Label>| (),
        };
        work.chain.run(role, work.instances, &feed)
    }

    /// Places the heads of a value one below the other.
    fn heads(&self, id: ValueId, heads: usize, dh: usize) -> Labels {
        let value = self.get(id);
        let mut all = Zeroizing::new(Vec::with_capacity(value.all().len()));
        for h in 0..heads {
            for t in 0..self.graph().tokens {
                all.extend_from_slice(value.span(t, h * dh..(h + 1) * dh));
            }
        }
        Labels::new(dh, value.bits(), all)
    }
}

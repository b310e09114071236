//! A plan compiled: for every step its circuits, how often each is used, and what the garbler gives.
//!
//! Counting, garbling and evaluating all go by this. Counting multiplies; nothing here grows with the number
//! of instances.

use crate::chain::{Chain, Links};
use crate::error::{GcError, Result};
use crate::given::{Given, Source, WEIGHT_DIGITS};
use crate::spec::{Digits, Products, Spec, WEIGHT};
use crate::window::Window;
use primer_garble::circuit::Circuit;
use primer_plan::function::Function;
use primer_plan::graph::{Graph, Op, StopFunction, Term, ValueId, WeightId, WeightKind};
use primer_plan::plan::Plan;
use std::sync::Arc;

/// Circuits built so far: equal descriptions share one.
#[derive(Default)]
pub(crate) struct Circuits {
    built: Vec<(Spec, Arc<Circuit>)>,
}

impl Circuits {
    /// The circuit of a description.
    pub(crate) fn get(&mut self, spec: Spec) -> Result<Arc<Circuit>> {
        if let Some((_, circuit)) = self.built.iter().find(|(known, _)| *known == spec) {
            return Ok(Arc::clone(circuit));
        }
        let circuit = Arc::new(spec.build()?);
        self.built.push((spec, Arc::clone(&circuit)));
        Ok(circuit)
    }
}

/// A circuit and how often it runs.
pub(crate) struct Use<'a> {
    pub(crate) circuit: &'a Circuit,
    pub(crate) instances: usize,
    /// How often each instance runs it.
    pub(crate) links: usize,
}

impl<'a> Use<'a> {
    pub(crate) fn once(circuit: &'a Circuit, instances: usize) -> Self {
        Self {
            circuit,
            instances,
            links: 1,
        }
    }
}

/// The look-up of embeddings.
pub(crate) struct Embed {
    pub(crate) tokens: usize,
    pub(crate) cols: usize,
    /// Entries of words and of types.
    pub(crate) entries: [usize; 2],
    pub(crate) one_hot: [Arc<Circuit>; 2],
    pub(crate) select: [Links; 2],
    pub(crate) read: Arc<Circuit>,
    pub(crate) bits: usize,
    pub(crate) given: [Given; 2],
}

/// The dense term of a linear step.
pub(crate) struct Dense {
    pub(crate) input: ValueId,
    /// The negative sum of a row.
    pub(crate) sum: Arc<Circuit>,
    pub(crate) weights: Given,
}

/// The diagonal term of a linear step.
pub(crate) struct Diagonal {
    pub(crate) input: ValueId,
    pub(crate) sum: Arc<Circuit>,
    /// The products with the means, subtracted from the negative sum of the dense term.
    pub(crate) means: Chain,
    pub(crate) given: [Given; 3],
}

/// A product with weights.
pub(crate) struct Linear {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) dense: Option<Dense>,
    pub(crate) diagonal: Option<Diagonal>,
    pub(crate) constants: Given,
    pub(crate) chain: Chain,
    pub(crate) bits: usize,
}

/// Which products of two secrets.
#[derive(Clone, Copy)]
pub(crate) enum Factors {
    Scores {
        query: ValueId,
        key: ValueId,
    },
    Mix {
        probabilities: ValueId,
        value: ValueId,
    },
    Squares {
        input: ValueId,
    },
}

/// Sums of products of two secrets.
pub(crate) struct Secret {
    pub(crate) factors: Factors,
    pub(crate) instances: usize,
    pub(crate) cols: usize,
    /// Negative sums over the factors, with how many there are.
    pub(crate) sums: [(Arc<Circuit>, usize); 2],
    pub(crate) chain: Chain,
    pub(crate) bits: usize,
}

/// What a step is.
pub(crate) enum Work {
    Embed(Box<Embed>),
    Linear(Box<Linear>),
    Secret(Box<Secret>),
    Scale {
        input: ValueId,
        factor: ValueId,
        circuit: Arc<Circuit>,
        bits: usize,
    },
    /// A function, on rows of `row` elements.
    Function {
        input: ValueId,
        circuit: Arc<Circuit>,
        row: usize,
        /// Whether the row's padding goes in too.
        masked: bool,
        bits: usize,
    },
    /// Nothing: the bits that are wanted were read already.
    Requantise(ValueId),
}

impl Work {
    /// The circuits of the step.
    pub(crate) fn uses<'a>(&'a self, graph: &Graph, output: ValueId) -> Vec<Use<'a>> {
        let value = graph.value(output);
        let size = value.rows * value.cols;
        match self {
            Self::Embed(e) => {
                let mut uses = vec![Use::once(&e.read, size)];
                uses.extend(e.one_hot.iter().map(|c| Use::once(c, e.tokens)));
                uses.extend(e.select.iter().flat_map(|s| s.uses(size)));
                uses
            }
            Self::Linear(l) => {
                let mut uses = l.chain.uses(size);
                uses.extend(l.dense.iter().map(|d| Use::once(&d.sum, l.rows)));
                if let Some(d) = &l.diagonal {
                    uses.push(Use::once(&d.sum, l.rows));
                    uses.extend(d.means.uses(l.rows));
                }
                uses
            }
            Self::Secret(s) => {
                let mut uses = s.chain.uses(s.instances);
                uses.extend(s.sums.iter().map(|(c, n)| Use::once(c, *n)));
                uses
            }
            Self::Scale { circuit, .. } => vec![Use::once(circuit, size)],
            Self::Function { circuit, row, .. } => vec![Use::once(circuit, size / row)],
            Self::Requantise(_) => Vec::new(),
        }
    }

    /// What the garbler gives for the step.
    pub(crate) fn given(&self) -> Vec<Given> {
        match self {
            Self::Embed(e) => e.given.to_vec(),
            Self::Linear(l) => {
                let mut given = vec![l.constants];
                given.extend(l.dense.iter().map(|d| d.weights));
                given.extend(l.diagonal.iter().flat_map(|d| d.given));
                given
            }
            Self::Secret(_) | Self::Scale { .. } | Self::Function { .. } | Self::Requantise(_) => {
                Vec::new()
            }
        }
    }
}

/// A plan with the work of every step.
pub(crate) struct Program {
    plan: Plan,
    work: Vec<Work>,
}

impl Program {
    /// Compiles a plan.
    pub(crate) fn new(plan: &Plan) -> Result<Self> {
        let mut compiler = Compiler {
            plan,
            circuits: Circuits::default(),
        };
        let steps = 0..plan.graph().steps.len();
        let work = steps
            .map(|index| compiler.step(index))
            .collect::<Result<_>>()?;
        Ok(Self {
            plan: plan.clone(),
            work,
        })
    }

    /// The plan.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The work of a step.
    pub(crate) fn work(&self, index: usize) -> &Work {
        &self.work[index]
    }
}

struct Compiler<'a> {
    plan: &'a Plan,
    circuits: Circuits,
}

impl Compiler<'_> {
    /// How the elements of a fixed value are written as labels.
    fn digits(&self, id: ValueId) -> Digits {
        let format = self.plan.scale(id).format();
        let bits = format.expect("a checked plan reads fixed values").bits as usize;
        let positive = self.plan.graph().steps.iter().any(|step| {
            matches!(step.op, Op::Stop { function: StopFunction::Softmax | StopFunction::InverseRoot, output, .. } if output == id)
        });
        Digits {
            bits: bits - usize::from(positive),
            signed: !positive,
        }
    }

    /// Products of two values or of a value and a weight, at their place in the doubled accumulator.
    fn products(&self, window: Window, x: ValueId, y: Digits, at: u32) -> Products {
        Products {
            window,
            x: self.digits(x).bits,
            y,
            at,
        }
    }

    fn step(&mut self, index: usize) -> Result<Work> {
        let graph = self.plan.graph();
        match &graph.steps[index].op {
            Op::Embed {
                table,
                positions,
                output,
            } => self.embed(*table, *positions, *output),
            Op::Linear {
                terms,
                bias,
                output,
            } => self.linear(terms, *bias, *output),
            Op::MergedScores { .. } => Err(GcError::Merged),
            Op::Scores { query, key, output } => {
                let (query, key) = (*query, *key);
                let terms = graph.shape.head_size();
                let numbers = [graph.shape.heads * graph.tokens; 2];
                let factors = Factors::Scores { query, key };
                self.secret(factors, (query, key), terms, numbers, *output)
            }
            Op::Mix {
                probabilities,
                value,
                output,
            } => {
                let (probabilities, value) = (*probabilities, *value);
                let numbers = [graph.shape.hidden, graph.shape.heads * graph.tokens];
                let factors = Factors::Mix {
                    probabilities,
                    value,
                };
                self.secret(
                    factors,
                    (value, probabilities),
                    graph.tokens,
                    numbers,
                    *output,
                )
            }
            Op::SquareSum { input, output } => {
                let numbers = [graph.value(*input).rows; 2];
                let terms = graph.value(*input).cols;
                let factors = Factors::Squares { input: *input };
                self.secret(factors, (*input, *input), terms, numbers, *output)
            }
            Op::ScaleRows {
                input,
                factor,
                output,
            } => {
                let at = self.shift(&[*input, *factor], *output);
                let window = Window::of(self.plan, *output, at);
                let of = self.products(window, *input, self.digits(*factor), at);
                let constant = of.constants(1) + window.rounding();
                Ok(Work::Scale {
                    input: *input,
                    factor: *factor,
                    circuit: self.circuits.get(Spec::Scale { of, constant })?,
                    bits: window.bits(),
                })
            }
            Op::Stop { input, output, .. } => self.stop(index, *input, *output),
        }
    }

    /// Where the doubled product of two values has its lowest bit.
    fn shift(&self, factors: &[ValueId], output: ValueId) -> u32 {
        let fraction = factors.iter().map(|id| self.plan.scale(*id).fraction());
        self.plan.shift(fraction.sum(), output)
    }

    fn embed(&mut self, table: WeightId, positions: WeightId, output: ValueId) -> Result<Work> {
        let plan = self.plan;
        let graph = plan.graph();
        let entries = [graph.shape.vocab, graph.shape.types];
        let cols = graph.shape.hidden;
        // Not a product: doubled by its place alone.
        let at = plan.shift(plan.weight_scale(table).fraction(), output) + 1;
        let window = Window::of(plan, output, at);
        let select = |terms| Spec::Select { terms };
        let source = Source::Positions {
            positions,
            window,
            at,
        };
        let rows = graph.weight(table).rows;
        Ok(Work::Embed(Box::new(Embed {
            tokens: graph.tokens,
            cols,
            entries,
            one_hot: [
                self.circuits.get(Spec::OneHot {
                    entries: entries[0],
                })?,
                self.circuits.get(Spec::OneHot {
                    entries: entries[1],
                })?,
            ],
            select: [
                Links::new(&mut self.circuits, entries[0], select)?,
                Links::new(&mut self.circuits, entries[1], select)?,
            ],
            read: self.circuits.get(Spec::Embedded { window, at })?,
            bits: window.bits(),
            given: [
                weights(Source::Dense(table), cols, rows),
                Given {
                    source,
                    count: graph.tokens * cols,
                    bits: window.width,
                    cols,
                },
            ],
        })))
    }

    fn linear(&mut self, terms: &[Term], bias: WeightId, output: ValueId) -> Result<Work> {
        let plan = self.plan;
        let graph = plan.graph();
        let (rows, cols) = (graph.value(output).rows, graph.value(output).cols);
        let shifts = |term: &Term| {
            let (first, mean) = plan.term_fractions(term);
            (plan.shift(first, output), plan.shift(mean, output))
        };
        let of_kind = |kind| {
            let found = terms.iter().find(|t| graph.weight(t.weight).kind == kind);
            found.map(|term| (term, shifts(term)))
        };
        let (dense, diagonal) = (of_kind(WeightKind::Dense), of_kind(WeightKind::Diagonal));
        let all = dense.iter().chain(&diagonal);
        let lowest = all.map(|(_, (first, mean))| *first.min(mean)).min();
        let window = Window::of(plan, output, lowest.unwrap_or(0));
        let weight = |term: &Term, at| self.products(window, term.input, WEIGHT_DIGITS, at);
        let dense = dense.map(|(t, (at, _))| (t, weight(t, at)));
        let diagonal = diagonal.map(|(t, (gain, mean))| (t, weight(t, gain), weight(t, mean)));
        let (of, count) = match dense {
            Some((term, of)) => (of, graph.weight(term.weight).rows),
            // No dense products: a chain without links.
            None => (weight(&terms[0], window.low), 0),
        };
        let head = diagonal.map(|(_, gain, _)| Spec::Gain(gain));
        let chain = Chain::new(
            &mut self.circuits,
            (of, count, false),
            head,
            Spec::Read(window),
        )?;
        let constants = Source::Constants {
            bias,
            dense: dense.map(|(t, of)| (t.weight, of)),
            gains: diagonal.map(|(t, of, _)| (t.weight, of)),
            window,
        };
        Ok(Work::Linear(Box::new(Linear {
            rows,
            cols,
            dense: dense
                .map(|(term, of)| self.dense(term, of, cols))
                .transpose()?,
            diagonal: diagonal
                .map(|(term, _, of)| self.diagonal(term, of, dense.is_some()))
                .transpose()?,
            constants: Given {
                source: constants,
                count: cols,
                bits: window.width,
                cols: 1,
            },
            chain,
            bits: window.bits(),
        })))
    }

    fn dense(&mut self, term: &Term, of: Products, cols: usize) -> Result<Dense> {
        let terms = self.plan.graph().weight(term.weight).rows;
        Ok(Dense {
            input: term.input,
            sum: self.circuits.get(Spec::Sum(of.sum_of_x(terms, 0)))?,
            weights: weights(Source::Dense(term.weight), cols, terms),
        })
    }

    fn diagonal(&mut self, term: &Term, of: Products, from: bool) -> Result<Diagonal> {
        let terms = self.plan.graph().value(term.input).cols;
        let window = of.window;
        let tail = Spec::Difference { window, from };
        let constant = Given {
            source: Source::MeanConstant(term.weight, of),
            count: 1,
            bits: window.width,
            cols: 1,
        };
        Ok(Diagonal {
            input: term.input,
            sum: self.circuits.get(Spec::Sum(of.sum_of_x(terms, 0)))?,
            means: Chain::new(&mut self.circuits, (of, terms, false), None, tail)?,
            given: [
                weights(Source::Means(term.weight), 1, terms),
                constant,
                weights(Source::Gains(term.weight), 1, terms),
            ],
        })
    }

    fn secret(
        &mut self,
        factors: Factors,
        (x, y): (ValueId, ValueId),
        terms: usize,
        numbers: [usize; 2],
        output: ValueId,
    ) -> Result<Work> {
        let at = self.shift(&[x, y], output);
        let window = Window::of(self.plan, output, at);
        let of = self.products(window, x, self.digits(y), at);
        let square = matches!(factors, Factors::Squares { .. });
        let mut constant = of.constants(terms) + window.rounding();
        if square {
            constant += 2 * i128::from(self.plan.epsilon(output));
        }
        let value = self.plan.graph().value(output);
        let sum_of_x = self.circuits.get(Spec::Sum(of.sum_of_x(terms, constant)))?;
        let sum_of_y = self.circuits.get(Spec::Sum(of.sum_of_y(terms)))?;
        let products = (of, terms, square);
        Ok(Work::Secret(Box::new(Secret {
            factors,
            instances: value.rows * value.cols,
            cols: value.cols,
            sums: [(sum_of_x, numbers[0]), (sum_of_y, numbers[1])],
            chain: Chain::new(&mut self.circuits, products, None, Spec::Read(window))?,
            bits: window.bits(),
        })))
    }

    fn stop(&mut self, index: usize, input: ValueId, output: ValueId) -> Result<Work> {
        let Some(function) = self.plan.function(index) else {
            return Ok(Work::Requantise(input));
        };
        let softmax = matches!(function, Function::Softmax(_));
        let row = if softmax { self.plan.graph().tokens } else { 1 };
        let spec = Spec::Function {
            function: function.clone(),
            row,
        };
        Ok(Work::Function {
            input,
            circuit: self.circuits.get(spec)?,
            row,
            masked: softmax,
            bits: self.digits(output).bits,
        })
    }
}

/// `rows` rows of `cols` weights.
fn weights(source: Source, rows: usize, cols: usize) -> Given {
    Given {
        source,
        count: rows * cols,
        bits: WEIGHT,
        cols,
    }
}

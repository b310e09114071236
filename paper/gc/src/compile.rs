//! From a plan to the work of its steps: which circuits, at which widths.

use crate::chain::{Chain, Links};
use crate::error::{GcError, Result};
use crate::garbled_step::{Circuits, Dense, Diagonal, Embed, Factors, GarbledStep, Linear, Secret};
use crate::given::{Given, Source, WEIGHT_DIGITS};
use crate::products::{Digits, Products};
use crate::spec::{Spec, WEIGHT};
use crate::window::Window;
use primer_plan::function::Function;
use primer_plan::graph::{Op, Term, ValueId, WeightId, WeightKind};
use primer_plan::plan::Plan;
use primer_plan::role::ValueRole;

/// Compiles the work of every step.
pub(crate) fn compile(plan: &Plan) -> Result<Vec<GarbledStep>> {
    let mut compiler = Compiler {
        plan,
        circuits: Circuits::default(),
    };
    let steps = 0..plan.graph().steps.len();
    steps.map(|index| compiler.step(index)).collect()
}

struct Compiler<'a> {
    plan: &'a Plan,
    circuits: Circuits,
}

impl Compiler<'_> {
    /// Returns how the elements of a fixed value are written as labels.
    fn digits(&self, id: ValueId) -> Digits {
        let format = self.plan.scale(id).format();
        let bits = format.expect("a checked plan reads fixed values").bits as usize;
        let role = self.plan.graph().value(id).role;
        let positive = matches!(role, ValueRole::Probabilities | ValueRole::InverseRoot);
        Digits {
            bits: bits - usize::from(positive),
            signed: !positive,
        }
    }

    /// Describes products of two values or of a value and a weight, at their place in the doubled
    /// accumulator.
    fn products(&self, window: Window, x: ValueId, y: Digits, at: u32) -> Products {
        Products {
            window,
            x: self.digits(x).bits,
            y,
            at,
        }
    }

    fn step(&mut self, index: usize) -> Result<GarbledStep> {
        let graph = self.plan.graph();
        match &graph.steps[index].op {
            Op::Embed {
                table,
                positions: Some(positions),
                output,
            } => self.embed(*table, *positions, *output),
            Op::Linear {
                terms,
                bias,
                output,
            } => self.linear(terms, *bias, *output),
            Op::Embed {
                positions: None, ..
            }
            | Op::MergedScores { .. }
            | Op::Exponents { .. }
            | Op::RowSum { .. } => Err(GcError::OtherGraph),
            Op::Kept { .. } | Op::Pool { .. } => Err(GcError::Family(graph.shape.architecture())),
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
                Ok(GarbledStep::Scale {
                    input: *input,
                    factor: *factor,
                    circuit: self.circuits.get(Spec::Scale { of, constant })?,
                    bits: window.bits(),
                })
            }
            Op::Stop { input, output, .. } => self.stop(index, *input, *output),
        }
    }

    /// Returns where the doubled product of two values has its lowest bit.
    fn shift(&self, factors: &[ValueId], output: ValueId) -> u32 {
        let fraction = factors.iter().map(|id| self.plan.scale(*id).fraction());
        self.plan.shift(fraction.sum(), output)
    }

    fn embed(
        &mut self,
        table: WeightId,
        positions: WeightId,
        output: ValueId,
    ) -> Result<GarbledStep> {
        let plan = self.plan;
        let graph = plan.graph();
        if graph.shape.types == 0 || graph.shape.is_projected() {
            return Err(GcError::Family(graph.shape.architecture()));
        }
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
        Ok(GarbledStep::Embed(Box::new(Embed {
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

    fn linear(&mut self, terms: &[Term], bias: WeightId, output: ValueId) -> Result<GarbledStep> {
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
        Ok(GarbledStep::Linear(Box::new(Linear {
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
    ) -> Result<GarbledStep> {
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
        Ok(GarbledStep::Secret(Box::new(Secret {
            factors,
            instances: value.rows * value.cols,
            cols: value.cols,
            sums: [(sum_of_x, numbers[0]), (sum_of_y, numbers[1])],
            chain: Chain::new(&mut self.circuits, products, None, Spec::Read(window))?,
            bits: window.bits(),
        })))
    }

    fn stop(&mut self, index: usize, input: ValueId, output: ValueId) -> Result<GarbledStep> {
        let Some(function) = self.plan.function(index) else {
            return Ok(GarbledStep::Requantise(input));
        };
        let softmax = matches!(function, Function::Softmax(_));
        let row = if softmax { self.plan.graph().tokens } else { 1 };
        let spec = Spec::Function {
            function: function.clone(),
            row,
        };
        Ok(GarbledStep::Function {
            input,
            circuit: self.circuits.get(spec)?,
            row,
            masked: softmax,
            bits: self.digits(output).bits,
        })
    }
}

/// Describes `rows` rows of `cols` weights.
fn weights(source: Source, rows: usize, cols: usize) -> Given {
    Given {
        source,
        count: rows * cols,
        bits: WEIGHT,
        cols,
    }
}

//! The fixed-point reference: the plan in integers, as the private protocol computes it.
//!
//! Linear steps are exact integer products, shifted to the scale of their accumulator. At every
//! stop the accumulator is truncated to the stop's ring and the function of the plan is applied.
//! Truncation has two forms ([`Truncate`]): rounding to nearest, and what two parties get when each
//! drops the low bits of a random share. Products may err as silent linear steps do, and embedded
//! rows may have signs as they do there, until LayerNorm removes them ([`Errors`]). With the shares
//! and errors of a real run injected, this reference gives that run's result exactly.
//!
//! A value that leaves its range would wrap around in the protocol. Here it wraps too, and is
//! reported ([`OutOfRange`]). What the protocol itself can notice, the range flags of look-ups and
//! of sums that have run dry, is counted as well ([`Outcome::flags`]).

mod errors;
mod range;
mod truncate;

pub use errors::{Errors, Sign};
pub use range::OutOfRange;
pub use truncate::Truncate;

use crate::quantise::IntModel;
use primer_plan::function::{Function, Powers, SoftmaxScratch, Sorted};
use primer_plan::graph::{Graph, Op, StopFunction, Term, ValueId, WeightId};
use primer_plan::plan::{ExponentMap, Plan};
use primer_plan::weights::IntWeight;
use primer_ring::fixed::exp2;
use primer_ring::matrix::{Matrix, Scratch, product};
use primer_text::Input;

/// The result of one inference.
pub struct Outcome {
    /// The outputs in the order of [`Graph::outputs`], as integers at their scales.
    pub integers: Vec<Matrix<i64>>,
    /// The same as real numbers.
    pub reals: Vec<Matrix<f64>>,
    /// Values that left their range.
    pub out_of_range: Vec<OutOfRange>,
    /// How many range flags are set, those of padding included, as in the protocol: its client is
    /// told that there are some. `None` where the plan has no flags.
    pub flags: Option<usize>,
}

/// Buffers that are reused between inferences.
#[derive(Default)]
pub struct Workspace {
    product: Scratch,
    softmax: SoftmaxScratch,
}

/// Runs an input through the plan in integers.
///
/// # Panics
/// If the plan is not the model's or the input does not have the plan's number of tokens.
pub fn run(
    plan: &Plan,
    model: &IntModel,
    input: &Input,
    truncate: &mut Truncate<'_>,
    errors: &mut Errors<'_>,
    workspace: &mut Workspace,
) -> Outcome {
    let graph = plan.graph();
    assert!(
        graph.shape == *model.shape() && plan.scales() == model.scales(),
        "the plan belongs to the model"
    );
    assert_eq!(
        input.tokens(),
        graph.tokens,
        "the input is padded to the plan's tokens"
    );
    let last = graph.last_uses();
    let mut walk = FixedWalk {
        plan,
        weights: model.weights(),
        input,
        workspace,
        values: graph.values.iter().map(|_| None).collect(),
        out_of_range: Vec::new(),
        flags: None,
        signs: Vec::new(),
    };
    for (index, step) in graph.steps.iter().enumerate() {
        let value = walk.step(index, &step.op, truncate, errors);
        walk.values[step.output().index()] = Some(value);
        for read in step.inputs() {
            if last[read.index()] == index {
                walk.values[read.index()] = None;
            }
        }
    }
    let take = |id: &ValueId| walk.values[id.index()].take().expect("outputs are kept");
    let integers: Vec<Matrix<i64>> = graph.outputs.iter().map(take).collect();
    let reals = graph
        .outputs
        .iter()
        .zip(&integers)
        .map(|(id, m)| {
            let unit = exp2(-plan.scale(*id).fraction());
            m.map(|v| *v as f64 * unit)
        })
        .collect();
    Outcome {
        integers,
        reals,
        out_of_range: walk.out_of_range,
        flags: walk.flags,
    }
}

struct FixedWalk<'a> {
    plan: &'a Plan,
    weights: &'a [IntWeight],
    input: &'a Input,
    workspace: &'a mut Workspace,
    values: Vec<Option<Matrix<i64>>>,
    out_of_range: Vec<OutOfRange>,
    flags: Option<usize>,
    /// The signs of embedded rows.
    signs: Vec<Sign>,
}

fn add_rows(matrix: &mut Matrix<i64>, bias: &Matrix<i64>) {
    for r in 0..matrix.rows() {
        let row = matrix.row_mut(r).iter_mut();
        row.zip(bias.row(0)).for_each(|(s, b)| *s += b);
    }
}

/// Flips the sign of the rows whose `signs` are minus.
fn turn_rows(matrix: &mut Matrix<i64>, signs: &[Sign]) {
    for (r, sign) in signs.iter().enumerate() {
        if *sign == Sign::Minus {
            matrix.row_mut(r).iter_mut().for_each(|v| *v = -*v);
        }
    }
}

fn shift_left(matrix: &mut Matrix<i64>, by: u32) {
    matrix.data_mut().iter_mut().for_each(|v| *v <<= by);
}

/// Replaces every row by `function` of it.
fn each_row(matrix: &mut Matrix<i64>, mut function: impl FnMut(&[i64], &mut [i64])) {
    let mut out = vec![0; matrix.cols()];
    for r in 0..matrix.rows() {
        function(matrix.row(r), &mut out);
        matrix.row_mut(r).copy_from_slice(&out);
    }
}

impl FixedWalk<'_> {
    fn graph(&self) -> &Graph {
        self.plan.graph()
    }

    fn get(&self, id: ValueId) -> &Matrix<i64> {
        self.values[id.index()]
            .as_ref()
            .expect("steps come in order")
    }

    fn fraction(&self, id: ValueId) -> i32 {
        self.plan.scale(id).fraction()
    }

    fn bias(&self, id: WeightId) -> &Matrix<i64> {
        match &self.weights[id.index()] {
            IntWeight::Bias(bias) => bias,
            _ => unreachable!("a checked model has a bias here"),
        }
    }

    fn step(
        &mut self,
        index: usize,
        op: &Op,
        truncate: &mut Truncate<'_>,
        errors: &mut Errors<'_>,
    ) -> Matrix<i64> {
        match op {
            Op::Embed {
                table,
                positions,
                output,
            } => {
                let IntWeight::Dense(words) = &self.weights[table.index()] else {
                    unreachable!("a checked model has a table here");
                };
                let positions = positions.map(|positions| self.bias(positions));
                let fraction = self.plan.weight_scale(*table).fraction();
                let shift = self.plan.shift(fraction, *output);
                let shape = &self.graph().shape;
                let cols = words.cols();
                let mut sum = Matrix::from_fn(self.input.tokens(), cols, |t, j| {
                    let word = words.get(self.input.ids[t] as usize, j);
                    let kind = match shape.types {
                        0 => 0,
                        _ => words.get(shape.vocab + self.input.types[t] as usize, j),
                    };
                    let row = i64::from(word) + i64::from(kind);
                    match positions {
                        Some(positions) => (row << shift) + positions.get(t, j),
                        None => (row + i64::from(words.get(shape.one_hot() + t, j))) << shift,
                    }
                });
                if self.graph().signed().is_some() {
                    self.signs = errors.signs(*output, &sum);
                    turn_rows(&mut sum, &self.signs);
                }
                let carried = self.plan.one_hot_bits(*table, *output);
                let scratch = &mut self.workspace.product;
                errors.of_term(words, shift - carried, scratch, &mut sum);
                errors.of_step(*output, &mut sum);
                sum
            }
            Op::Linear {
                terms,
                bias,
                output,
            } => {
                let shape = self.graph().value(*output);
                let mut sum = Matrix::zeros(shape.rows, shape.cols);
                for term in terms {
                    self.term(term, *output, &mut sum, errors);
                }
                add_rows(&mut sum, self.bias(*bias));
                errors.of_step(*output, &mut sum);
                sum
            }
            Op::Scores { query, key, output } => self.scores(*query, *key, *output),
            Op::MergedScores {
                input,
                weight,
                bias,
                output,
            } => self.merged_scores(*input, (*weight, *bias), *output),
            Op::Mix {
                probabilities,
                value,
                output,
            } => self.mix(*probabilities, *value, *output),
            Op::SquareSum { input, output } => {
                let shift = self.plan.shift(2 * self.fraction(*input), *output);
                let x = self.get(*input);
                // ε·d is added to the sum of squares, which keeps the root away from zero.
                let epsilon = self.plan.epsilon(*output);
                Matrix::from_fn(x.rows(), 1, |r, _| {
                    (x.row(r).iter().map(|v| v * v).sum::<i64>() << shift) + epsilon
                })
            }
            Op::ScaleRows {
                input,
                factor,
                output,
            } => {
                let fractions = self.fraction(*input) + self.fraction(*factor);
                let shift = self.plan.shift(fractions, *output);
                let (x, factor) = (self.get(*input), self.get(*factor));
                let mut scaled = Matrix::from_fn(x.rows(), x.cols(), |r, c| {
                    (x.get(r, c) * factor.get(r, 0)) << shift
                });
                let signed = self.graph().signed();
                if signed.is_some_and(|signed| signed.output == *output) {
                    turn_rows(&mut scaled, &self.signs);
                }
                scaled
            }
            Op::Exponents {
                scores,
                reference,
                output,
            } => self.exponents(*scores, *reference, *output),
            Op::RowSum { input, output } => {
                let shift = self.plan.shift(self.fraction(*input), *output);
                let x = self.get(*input);
                Matrix::from_fn(x.rows(), 1, |r, _| x.row(r).iter().sum::<i64>() << shift)
            }
            Op::Kept { .. } => Matrix::from_fn(self.graph().tokens, 1, |t, _| {
                i64::from(t < self.input.length)
            }),
            Op::Pool {
                input,
                kept,
                output,
            } => {
                let fractions = self.fraction(*input) + self.fraction(*kept);
                let shift = self.plan.shift(fractions, *output);
                let (x, kept) = (self.get(*input), self.get(*kept));
                Matrix::from_fn(1, x.cols(), |_, c| {
                    let rows = (0..x.rows()).map(|t| x.get(t, c) * kept.get(t, 0));
                    rows.sum::<i64>() << shift
                })
            }
            Op::Stop {
                function,
                input,
                output,
            } => self.stop(index, *function, *input, *output, truncate),
        }
    }

    fn term(
        &mut self,
        term: &Term,
        output: ValueId,
        sum: &mut Matrix<i64>,
        errors: &mut Errors<'_>,
    ) {
        let (fraction, mean_fraction) = self.plan.term_fractions(term);
        let shift = self.plan.shift(fraction, output);
        match &self.weights[term.weight.index()] {
            IntWeight::Dense(w) => {
                let x = self.values[term.input.index()]
                    .as_ref()
                    .expect("steps come in order");
                let product = if x.rows() == sum.rows() {
                    product(x, w, &mut self.workspace.product)
                } else {
                    let first = Matrix::from_fn(sum.rows(), x.cols(), |r, c| x.get(r, c));
                    product(&first, w, &mut self.workspace.product)
                };
                sum.data_mut()
                    .iter_mut()
                    .zip(product.data())
                    .for_each(|(s, p)| *s += p << shift);
                errors.of_term(w, shift, &mut self.workspace.product, sum);
            }
            IntWeight::Diagonal { gain, mean } => {
                let mean_shift = self.plan.shift(mean_fraction, output);
                let x = self.get(term.input);
                for r in 0..sum.rows() {
                    let row = x.row(r);
                    let shared: i64 = row.iter().zip(mean).map(|(v, h)| v * i64::from(*h)).sum();
                    for ((s, v), g) in sum.row_mut(r).iter_mut().zip(row).zip(gain) {
                        *s += ((v * i64::from(*g)) << shift) - (shared << mean_shift);
                    }
                }
                errors.of_diagonal((gain, mean), shift, sum);
            }
            IntWeight::Bias(_) => unreachable!("a bias is not a term"),
        }
    }

    fn scores(&mut self, query: ValueId, key: ValueId, output: ValueId) -> Matrix<i64> {
        let shift = self
            .plan
            .shift(self.fraction(query) + self.fraction(key), output);
        let (n, heads) = (self.graph().tokens, self.graph().shape.heads);
        let dh = self.graph().shape.head_size();
        let mut data = Vec::with_capacity(heads * n * n);
        for h in 0..heads {
            let q = self.get(query).columns(h * dh, dh);
            let k = self.get(key).columns(h * dh, dh).transpose();
            data.extend(product(&q, &k, &mut self.workspace.product).into_data());
        }
        let mut scores = Matrix::from_vec(heads * n, n, data);
        shift_left(&mut scores, shift);
        scores
    }

    /// Computes both products of merged scores exactly; the first has no scale of its own to fit.
    fn merged_scores(
        &mut self,
        input: ValueId,
        (weight, bias): (WeightId, WeightId),
        output: ValueId,
    ) -> Matrix<i64> {
        let fraction = self.plan.merged_fraction(input, weight) + self.fraction(input);
        let shift = self.plan.shift(fraction, output);
        let IntWeight::Dense(matrix) = &self.weights[weight.index()] else {
            unreachable!("a checked model has a matrix here");
        };
        let x = self.values[input.index()]
            .as_ref()
            .expect("steps come in order");
        let mut left = product(x, matrix, &mut self.workspace.product);
        add_rows(&mut left, self.bias(bias));
        let (n, heads, d) = (x.rows(), self.graph().shape.heads, x.cols());
        let mut scores = Matrix::from_fn(heads * n, n, |r, key| {
            let row = &left.row(r % n)[r / n * d..][..d];
            // Wrapping, as in the protocol, if a damaged model gets here.
            let products = row.iter().zip(x.row(key));
            products.fold(0i64, |sum, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)))
        });
        shift_left(&mut scores, shift);
        scores
    }

    /// Computes the exponents of softmax, head by head.
    fn exponents(&self, scores: ValueId, reference: ValueId, output: ValueId) -> Matrix<i64> {
        let (s, reference) = (self.get(scores), self.get(reference));
        let n = self.graph().tokens;
        let mut exponents = Matrix::zeros(s.rows(), s.cols());
        for r in 0..s.rows() {
            let map = self.plan.exponent_map(r / n, scores, output);
            for (c, out) in exponents.row_mut(r).iter_mut().enumerate() {
                let score = s.get(r, c);
                *out = match map {
                    ExponentMap::Placed { shift, constant } => (score << shift) + constant,
                    ExponentMap::Measured {
                        unit_bits,
                        mask,
                        constant,
                        shift,
                    } => {
                        let padded = if c >= self.input.length { mask } else { 0 };
                        let below = padded + (reference.get(r, c) << unit_bits);
                        (score + constant - below) << shift
                    }
                };
            }
        }
        exponents
    }

    /// Replaces exponents by powers of two; padded keys of placed heads become zero.
    fn powers(&self, powers: &Powers, x: &mut Matrix<i64>) {
        let (n, length) = (self.graph().tokens, self.input.length);
        for r in 0..x.rows() {
            let (class, _) = powers.class(r / n);
            let table = &class.lookup.tables[0];
            for (key, v) in x.row_mut(r).iter_mut().enumerate() {
                *v = match class.measured || key < length {
                    true => table.at(*v),
                    false => 0,
                };
            }
        }
    }

    fn mix(&mut self, probabilities: ValueId, value: ValueId, output: ValueId) -> Matrix<i64> {
        let shift = self
            .plan
            .shift(self.fraction(probabilities) + self.fraction(value), output);
        let (n, heads) = (self.graph().tokens, self.graph().shape.heads);
        let dh = self.graph().shape.head_size();
        let mut mixed = Matrix::zeros(n, heads * dh);
        for h in 0..heads {
            let p = self.get(probabilities);
            let p = Matrix::from_fn(n, n, |r, c| p.get(h * n + r, c));
            let v = self.get(value).columns(h * dh, dh);
            let product = product(&p, &v, &mut self.workspace.product);
            for r in 0..n {
                mixed.row_mut(r)[h * dh..][..dh].copy_from_slice(product.row(r));
            }
        }
        shift_left(&mut mixed, shift);
        mixed
    }

    fn stop(
        &mut self,
        index: usize,
        function: StopFunction,
        input: ValueId,
        output: ValueId,
        truncate: &mut Truncate<'_>,
    ) -> Matrix<i64> {
        if function == StopFunction::CoarseMaximum && self.plan.function(index).is_none() {
            // No head is measured, and nothing reads it.
            return Matrix::zeros(self.get(input).rows(), self.get(input).cols());
        }
        if let Some(Function::Sorted(sorted)) = self.plan.function(index) {
            return self.sorted(sorted, input, truncate);
        }
        let by = self.plan.truncation(input);
        let mut x = self.get(input).clone();
        if let Some(masking) = self.plan.function(index).and_then(Function::masking) {
            let unit = 1i64 << by.shift();
            for r in 0..x.rows() {
                for (key, v) in x.row_mut(r).iter_mut().enumerate() {
                    *v += masking.offset * unit;
                    if key >= self.input.length {
                        *v -= masking.mask * unit;
                    }
                }
            }
        }
        self.check_range(function, input, by, &x);
        let cols = x.cols();
        for (i, v) in x.data_mut().iter_mut().enumerate() {
            *v = truncate.apply(by, input, i, *v);
        }
        match self.plan.function(index) {
            None => {}
            Some(Function::Sorted(_)) => unreachable!("it has a truncation for each class"),
            Some(Function::Gelu(gelu)) => {
                x.data_mut().iter_mut().for_each(|v| *v = gelu.apply(*v));
            }
            Some(Function::Relu { .. }) => {
                x.data_mut().iter_mut().for_each(|v| *v = (*v).max(0));
            }
            Some(Function::InverseRoot(root)) => {
                x.data_mut().iter_mut().for_each(|v| *v = root.apply(*v));
            }
            Some(Function::Tanh(tanh)) => {
                x.data_mut().iter_mut().for_each(|v| *v = tanh.apply(*v));
            }
            Some(Function::Lookup(lookup)) => {
                self.flag(lookup.is_flagged(), x.data(), |v| lookup.flag(v));
                let table = &lookup.tables[0];
                x.data_mut().iter_mut().for_each(|v| *v = table.at(*v));
            }
            Some(Function::Powers(powers)) => {
                self.flag_powers(powers, &x);
                self.powers(powers, &mut x);
            }
            Some(Function::Reciprocal(reciprocal)) => {
                self.check_dry(input, reciprocal, &x);
                self.flag(true, x.data(), |v| reciprocal.is_dry(v));
                (x.data_mut().iter_mut()).for_each(|v| *v = reciprocal.apply(*v));
            }
            Some(Function::Softmax(softmax)) => each_row(&mut x, |row, out| {
                softmax.apply(row, out, &mut self.workspace.softmax);
            }),
            Some(Function::CoarseMaximum(coarse)) => {
                each_row(&mut x, |row, out| coarse.apply(row, out));
            }
        }
        debug_assert_eq!(x.data().len(), self.graph().value(output).rows * cols);
        x
    }

    /// Looks up columns by their classes; each result continues from its entry along a line.
    fn sorted(
        &mut self,
        sorted: &Sorted,
        input: ValueId,
        truncate: &mut Truncate<'_>,
    ) -> Matrix<i64> {
        self.check_classes(input, sorted);
        let mut x = self.get(input).clone();
        let cols = x.cols();
        let mut indices = Vec::new();
        for ((columns, by), class) in sorted.indices().zip(&sorted.classes) {
            indices.clear();
            for r in 0..x.rows() {
                for c in columns.clone() {
                    let v = &mut x.row_mut(r)[c];
                    let place = truncate.place(by, input, r * cols + c, *v);
                    indices.push(place.0);
                    *v = Sorted::result(class, place);
                }
            }
            let lookup = &class.lookup;
            self.flag(lookup.is_flagged(), &indices, |v| lookup.flag(v));
        }
        x
    }
}

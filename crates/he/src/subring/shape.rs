//! How many rows lie side by side, and how inputs and outputs are cut into blocks.

use super::cost;
use crate::params::Params;
use primer_lattice::ntt::Part;
use std::ops::Range;

/// Fewest rows side by side: what the kernel's vectors hold.
const MIN_LANES: usize = 8;
/// Most rows side by side: 16 points are left for features at degree 8192.
const MAX_LANES: usize = 512;

/// Rows of a matrix as powers of `X`: `T` of them in one ciphertext, `F` powers of `Y` each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lanes {
    rows: usize,
    lanes: usize,
    points: usize,
}

impl Lanes {
    /// For so many rows.
    pub(crate) fn new(params: &Params, rows: usize) -> Self {
        let lanes = rows.next_power_of_two().clamp(MIN_LANES, MAX_LANES);
        Self {
            rows,
            lanes,
            points: params.degree() / lanes,
        }
    }

    /// Rows of the matrix.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// `T`, rows of one ciphertext.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }

    /// `F`, powers of `Y`.
    pub(crate) fn points(&self) -> usize {
        self.points
    }

    /// How often all ciphertexts are repeated because there are more rows than lanes.
    pub(crate) fn runs(&self) -> usize {
        self.rows.div_ceil(self.lanes)
    }

    /// The rows of one run.
    pub(crate) fn of_run(&self, run: usize) -> Range<usize> {
        let first = run * self.lanes;
        first..(first + self.lanes).min(self.rows)
    }

    /// The coefficient of `X^t·Y^i`.
    pub(crate) fn at(&self, t: usize, i: usize) -> usize {
        t + self.lanes * i
    }

    /// The coefficients of the rows of a run at some powers of `Y`, power by power.
    pub(crate) fn coefficients(
        &self,
        run: usize,
        powers: impl Iterator<Item = usize>,
    ) -> Vec<usize> {
        let rows = self.of_run(run).len();
        let at = |i| (0..rows).map(move |t| self.at(t, i));
        powers.flat_map(at).collect()
    }
}

/// A dense product cut into blocks: `k` inputs of a query's ciphertext, `m` outputs of an answer's,
/// `km ≤ F`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub(crate) lanes: Lanes,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// `k`: inputs of a block, and the distance of outputs in powers of `Y`.
    pub(crate) stride: usize,
    /// `m`: outputs of a block.
    pub(crate) width: usize,
}

impl Blocks {
    /// The blocks of least cost.
    pub(crate) fn choose(params: &Params, rows: usize, inputs: usize, outputs: usize) -> Self {
        let lanes = Lanes::new(params, rows);
        let candidates = (1..=lanes.points.min(inputs)).map(|stride| {
            let queries = inputs.div_ceil(stride);
            let answers = outputs.div_ceil(lanes.points / stride);
            Self {
                lanes,
                inputs,
                outputs,
                // The same number of blocks, all of nearly the same size.
                stride: inputs.div_ceil(queries),
                width: outputs.div_ceil(answers),
            }
        });
        let price = |blocks: &Self| cost::price(cost::dense(params, blocks));
        let best = candidates.min_by(|a, b| price(a).total_cmp(&price(b)));
        best.expect("there is a block of one input")
    }

    /// Ciphertexts of a query, in each run.
    pub(crate) fn queries(&self) -> usize {
        self.inputs.div_ceil(self.stride)
    }

    /// Ciphertexts of an answer, in each run.
    pub(crate) fn answers(&self) -> usize {
        self.outputs.div_ceil(self.width)
    }

    /// The outputs of one answer.
    pub(crate) fn outputs_of(&self, answer: usize) -> Range<usize> {
        let first = answer * self.width;
        first..(first + self.width).min(self.outputs)
    }

    /// The power of `Y`, and the sign, of the weight from input `i` of a block to output `o`:
    /// `Y^(ok - i)`, where `Y^F = -1`.
    pub(crate) fn weight(&self, o: usize, i: usize) -> (usize, i64) {
        match (o * self.stride).checked_sub(i) {
            Some(power) => (power, 1),
            None => (o * self.stride + self.lanes.points - i, -1),
        }
    }

    /// How many coefficients of an answer's ciphertext are sent.
    pub(crate) fn sent_len(&self, run: usize, answer: usize) -> usize {
        self.lanes.of_run(run).len() * self.outputs_of(answer).len()
    }

    /// The coefficients of an answer's ciphertext that are sent: output by output, all rows of
    /// each. Output `o` of a block is at `Y^(ok)`.
    pub(crate) fn sent(&self, run: usize, answer: usize) -> Vec<usize> {
        let outputs = 0..self.outputs_of(answer).len();
        let powers = outputs.map(|o| o * self.stride);
        self.lanes.coefficients(run, powers)
    }

    /// The powers of `Y` that have results, of all rows.
    pub(crate) fn part(&self) -> Part {
        let lanes = self.lanes.lanes;
        Part::new(lanes * self.lanes.points, lanes, self.stride, self.width)
    }

    /// Those that are sent of a full answer, as places in that part.
    pub(crate) fn places(&self, run: usize) -> Vec<usize> {
        self.lanes.coefficients(run, 0..self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fit_and_cover() {
        let params = Params::without_rotations(8192, 4).unwrap();
        for (rows, inputs, outputs) in [
            (1, 1, 1),
            (30, 768, 2304),
            (30, 3072, 768),
            (240, 768, 768),
            (513, 5, 7),
        ] {
            let blocks = Blocks::choose(&params, rows, inputs, outputs);
            assert!(blocks.stride * blocks.width <= blocks.lanes.points());
            assert!(blocks.queries() * blocks.stride >= inputs);
            assert!(blocks.answers() * blocks.width >= outputs);
            let runs = 0..blocks.lanes.runs();
            assert_eq!(
                runs.map(|run| blocks.lanes.of_run(run).len())
                    .sum::<usize>(),
                rows
            );
            let mut sent = blocks.sent(0, 0);
            assert!(sent.iter().all(|&at| at < 8192));
            sent.sort_unstable();
            sent.dedup();
            assert_eq!(sent.len(), blocks.sent_len(0, 0));
            let places = blocks.places(0).into_iter();
            let lanes = blocks.lanes.lanes();
            let spread = places.map(|at| at % lanes + at / lanes * blocks.stride * lanes);
            assert!(spread.eq(blocks.sent(0, 0)));
            // Those of a narrower answer are the first of them.
            let last = blocks.answers() - 1;
            let narrow = blocks.sent(0, last);
            assert_eq!(narrow, blocks.sent(0, 0)[..blocks.sent_len(0, last)]);
        }
    }
}

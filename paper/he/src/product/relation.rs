//! What products compute, as mathematics.
//!
//! The client's matrices come first and are encrypted; the server's come second and are in the
//! clear. Everything is modulo p. A relation has sizes and nothing else: both parties derive it
//! from the plan, and both packings compute the same.

use primer_ring::matrix::Matrix;
use primer_rlwe::error::{HeError, agree, in_range};
use primer_rlwe::form::{Form, Operand};
use std::fmt;

/// Most rows of a matrix.
const MAX_ROWS: usize = 1 << 16;
/// Most columns of a matrix.
const MAX_COLS: usize = 1 << 24;

/// What a product computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relation {
    /// `X·W`: the first `rows` rows of the client's matrix times a matrix.
    Dense {
        /// Rows of the client's matrix that are used, and of the answer.
        rows: usize,
        /// Columns of the client's matrix.
        inputs: usize,
        /// Columns of the answer.
        outputs: usize,
    },
    /// `g_j·x[t][j] - Σ_i h_i·x[t][i]`: a diagonal matrix minus one of rank one. The first `rows`
    /// rows of the client's matrix are used.
    Centred {
        /// Rows of the answer.
        rows: usize,
        /// Columns of the client's matrix and of the answer.
        cols: usize,
    },
    /// `X_h·M_h` for every head, heads of the answer side by side.
    Heads {
        /// Number of heads.
        heads: usize,
        /// How each `X_h` lies in the client's matrix.
        operand: Operand,
        /// Rows of each `X_h`, and of the answer.
        rows: usize,
        /// Columns of each `X_h`.
        inputs: usize,
        /// Columns of each head of the answer.
        outputs: usize,
    },
    /// `Σ_j x[t][j]·u[t][j]`: an answer of one column.
    RowSums {
        /// Rows of the client's matrix and of the answer.
        rows: usize,
        /// Columns of the client's matrix.
        cols: usize,
    },
    /// `s[t]·u[t][j] + x[t][j]·v[t][j]`: two matrices of the client's, `x` and the one column `s`.
    ScaledRows {
        /// Rows of all matrices.
        rows: usize,
        /// Columns of `x` and of the answer.
        cols: usize,
    },
    /// `x[t][j]·u[t][j]`: one matrix of the client's.
    Hadamard {
        /// Rows of all matrices.
        rows: usize,
        /// Columns of all matrices.
        cols: usize,
    },
}

/// What the server multiplies with, entries any residues modulo p.
#[derive(Clone, Copy)]
pub enum Weights<'a> {
    /// `W` of [`Relation::Dense`].
    Dense(&'a Matrix<u64>),
    /// `g` and `h` of [`Relation::Centred`].
    Centred {
        /// `g`.
        gain: &'a [u64],
        /// `h`.
        mean: &'a [u64],
    },
    /// `M_h` of [`Relation::Heads`], one matrix for each head.
    Heads(&'a [Matrix<u64>]),
    /// `u` of [`Relation::RowSums`].
    RowSums(&'a Matrix<u64>),
    /// `u` and `v` of [`Relation::ScaledRows`].
    ScaledRows {
        /// `u`, what the client's column is multiplied with.
        u: &'a Matrix<u64>,
        /// `v`, what the client's matrix is multiplied with.
        v: &'a Matrix<u64>,
    },
    /// `u` of [`Relation::Hadamard`].
    Hadamard(&'a Matrix<u64>),
}

impl Relation {
    /// Returns the rows and columns of the answer.
    pub fn size(&self) -> (usize, usize) {
        match *self {
            Self::Dense { rows, outputs, .. } => (rows, outputs),
            Self::Centred { rows, cols }
            | Self::Hadamard { rows, cols }
            | Self::ScaledRows { rows, cols } => (rows, cols),
            Self::Heads {
                heads,
                rows,
                outputs,
                ..
            } => (rows, heads * outputs),
            Self::RowSums { rows, .. } => (rows, 1),
        }
    }

    /// Returns the client's matrices, in order, each as it is read.
    pub(super) fn forms(&self) -> Vec<Form> {
        match *self {
            Self::Dense { rows, inputs, .. } => vec![Form::Rows { rows, cols: inputs }],
            Self::Centred { rows, cols }
            | Self::RowSums { rows, cols }
            | Self::Hadamard { rows, cols } => vec![Form::Rows { rows, cols }],
            Self::Heads {
                heads,
                operand,
                rows,
                inputs,
                outputs,
            } => vec![Form::Heads {
                heads,
                operand,
                rows,
                inputs,
                outputs,
            }],
            Self::ScaledRows { rows, cols } => {
                vec![Form::Rows { rows, cols }, Form::Repeated { rows }]
            }
        }
    }

    /// Checks that no size is zero or beyond what any packing takes.
    pub(super) fn check(&self) -> Result<(), HeError> {
        let (rows, _) = self.size();
        in_range("number of rows", rows, MAX_ROWS)?;
        match *self {
            Self::Dense {
                inputs, outputs, ..
            } => {
                in_range("number of inputs", inputs, MAX_COLS)?;
                in_range("number of outputs", outputs, MAX_COLS)
            }
            Self::Heads {
                heads,
                inputs,
                outputs,
                ..
            } => {
                in_range("number of heads", heads, MAX_ROWS)?;
                in_range("inputs of a head", inputs, MAX_COLS / heads)?;
                in_range("outputs of a head", outputs, MAX_COLS / heads)
            }
            Self::Centred { cols, .. }
            | Self::RowSums { cols, .. }
            | Self::Hadamard { cols, .. }
            | Self::ScaledRows { cols, .. } => in_range("number of columns", cols, MAX_COLS),
        }
    }

    /// Checks that weights are those of this relation, in their sizes.
    pub(super) fn check_weights(&self, weights: &Weights<'_>) -> Result<(), HeError> {
        match (*self, weights) {
            (
                Self::Dense {
                    inputs, outputs, ..
                },
                Weights::Dense(w),
            ) => check_size(w, inputs, outputs),
            (Self::Centred { cols, .. }, Weights::Centred { gain, mean }) => {
                agree("gains of weights and product", gain.len(), cols)?;
                agree("means of weights and product", mean.len(), cols)
            }
            (
                Self::Heads {
                    heads,
                    inputs,
                    outputs,
                    ..
                },
                Weights::Heads(blocks),
            ) => {
                agree("heads of weights and product", blocks.len(), heads)?;
                let mut blocks = blocks.iter();
                blocks.try_for_each(|block| check_size(block, inputs, outputs))
            }
            (Self::RowSums { rows, cols }, Weights::RowSums(u))
            | (Self::Hadamard { rows, cols }, Weights::Hadamard(u)) => check_size(u, rows, cols),
            (Self::ScaledRows { rows, cols }, Weights::ScaledRows { u, v }) => {
                check_size(u, rows, cols)?;
                check_size(v, rows, cols)
            }
            _ => Err(HeError::OtherProduct {
                what: "the weights",
                found: weights.name().into(),
                wanted: self.to_string(),
            }),
        }
    }
}

/// Checks that a matrix of weights has a size.
pub(super) fn check_size<T: Copy + Default>(
    matrix: &Matrix<T>,
    rows: usize,
    cols: usize,
) -> Result<(), HeError> {
    agree("rows of weights and product", matrix.rows(), rows)?;
    agree("columns of weights and product", matrix.cols(), cols)
}

impl Weights<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Dense(_) => "a dense product",
            Self::Centred { .. } => "a centred product",
            Self::Heads(_) => "a product of heads",
            Self::RowSums(_) => "row sums",
            Self::ScaledRows { .. } => "scaled rows",
            Self::Hadamard(_) => "a product element by element",
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Dense {
                rows,
                inputs,
                outputs,
            } => write!(f, "a dense product {rows}×{inputs}×{outputs}"),
            Self::Centred { rows, cols } => write!(f, "a centred product {rows}×{cols}"),
            Self::Heads {
                heads,
                operand,
                rows,
                inputs,
                outputs,
            } => {
                let lying = match operand {
                    Operand::Columns => "side by side",
                    Operand::Rows => "on top of each other",
                    Operand::Turned => "side by side and turned",
                };
                write!(
                    f,
                    "a product of {heads} heads {rows}×{inputs}×{outputs}, {lying}"
                )
            }
            Self::RowSums { rows, cols } => write!(f, "row sums {rows}×{cols}"),
            Self::ScaledRows { rows, cols } => write!(f, "scaled rows {rows}×{cols}"),
            Self::Hadamard { rows, cols } => {
                write!(f, "a product element by element {rows}×{cols}")
            }
        }
    }
}

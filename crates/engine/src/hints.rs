//! Hints in a model: which values have one, and what multiplies them.
//!
//! A linear step reads values that the client masks with lattice functions (`primer_hint`). All
//! weights that read one value are multiplied together, side by side in one matrix: queries, keys
//! and values, and the residual path that skips them. So there is one hint, one secret and one
//! message for each value, in the order in which values are first read. None of this depends on
//! the number of tokens.
//!
//! [`Build`] makes the hint of a model, once for all clients. Everything in it follows from the
//! server's secret and the integer weights: replicas that share both make the same bytes.

use crate::error::Result;
use crate::exchange::Owner;
use crate::program::Program;
use crate::silent::Rows;
use primer_hint::contents::{Contents, Entry};
use primer_hint::margin::Margin;
use primer_hint::multipliers::Multipliers;
use primer_hint::public::Name;
use primer_hint::published::Published;
use primer_hint::server::{Hint, HintSecret, Multiplier};
use primer_plan::graph::{Graph, Op, ValueId, WeightId};
use primer_plan::plan::Plan;
use primer_plan::weights::{IntWeight, ModelWeights};
use primer_ring::matrix::Matrix;
use std::ops::Range;
use zeroize::Zeroize;

/// What reads one value.
pub(crate) struct Readers {
    pub(crate) owner: Owner,
    pub(crate) terms: Vec<Reader>,
}

/// A term of a linear step, and where it lies among the weights that read a value.
pub(crate) struct Reader {
    pub(crate) step: usize,
    pub(crate) term: usize,
    pub(crate) weight: WeightId,
    pub(crate) columns: Range<usize>,
}

impl Readers {
    fn outputs(&self) -> usize {
        self.terms.last().map_or(0, |last| last.columns.end)
    }

    /// Lists the readers of all values, in the order in which values are first read.
    pub(crate) fn all(graph: &Graph) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let mut add = |owner: Owner, step: usize, term: usize, weight: WeightId, cols: usize| {
            let found = all.iter().position(|readers| readers.owner == owner);
            let at = found.unwrap_or(all.len());
            if found.is_none() {
                let terms = Vec::new();
                all.push(Self { owner, terms });
            }
            let start = all[at].outputs();
            all[at].terms.push(Reader {
                step,
                term,
                weight,
                columns: start..start + cols,
            });
        };
        for (index, step) in graph.steps.iter().enumerate() {
            let cols = graph.value(step.output()).cols;
            match &step.op {
                Op::Embed { table, .. } => add(None, index, 0, *table, cols),
                Op::Linear { terms, .. } => {
                    for (place, term) in terms.iter().enumerate() {
                        add(Some(term.input), index, place, term.weight, cols);
                    }
                }
                _ => {}
            }
        }
        all
    }
}

/// Returns the number of a value in hints: that of the input is 0.
pub(crate) fn number(owner: Owner) -> u32 {
    owner.map_or(0, |id: ValueId| id.index() as u32 + 1)
}

/// The values of a program that have hints.
pub(crate) struct Hints {
    readers: Vec<Readers>,
    contents: Contents,
}

impl Hints {
    pub(crate) fn of(graph: &Graph) -> Self {
        let readers = Readers::all(graph);
        let entry = |readers: &Readers| Entry {
            value: number(readers.owner),
            features: match readers.owner {
                None => graph.one_hot(),
                Some(id) => graph.value(id).cols,
            },
            outputs: readers.outputs(),
        };
        let contents = Contents::new(readers.iter().map(entry).collect());
        Self { readers, contents }
    }

    /// Returns what reads each value, in the order in which values are first read.
    pub(crate) fn readers(&self) -> &[Readers] {
        &self.readers
    }

    /// Returns what the whole hint consists of.
    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Returns the entry of a value, if a linear step reads it.
    pub(crate) fn entry(&self, owner: Owner) -> Option<usize> {
        let mut readers = self.readers.iter();
        readers.position(|readers| readers.owner == owner)
    }

    /// Returns the entries of values that are first read by some steps.
    pub(crate) fn first_read(&self, steps: &Range<usize>) -> Range<usize> {
        let before = |step: usize| {
            let mut readers = self.readers.iter();
            let later = readers.position(|readers| readers.terms[0].step >= step);
            later.unwrap_or(self.readers.len())
        };
        before(steps.start)..before(steps.end)
    }

    /// Returns how the rows of an entry's value lie in groups.
    pub(crate) fn rows(&self, program: &Program, entry: usize, bundles: usize) -> Rows {
        let graph = program.plan().graph();
        let each = match self.readers[entry].owner {
            None => graph.tokens,
            Some(id) => graph.value(id).rows,
        };
        Rows { bundles, each }
    }
}

/// Lists what the hint of a model consists of.
///
/// # Errors
/// [`ProtocolError::Plan`](crate::ProtocolError::Plan) if the model has no plan.
pub fn contents_of(model: &impl ModelWeights) -> Result<Contents> {
    Ok(Hints::of(plan_of(model)?.graph()).contents)
}

/// Compiles the plan of a model for one token.
fn plan_of(model: &impl ModelWeights) -> Result<Plan> {
    Ok(Plan::new(model.shape(), 1, model.scales().clone())?)
}

/// Hashes the integers that hints multiply with: another way of rounding is another hint.
fn digest(model: &impl ModelWeights) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("primer weights of a hint v1");
    let mut absorb = |values: &[i16]| {
        hasher.update(&(values.len() as u64).to_le_bytes());
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        hasher.update(&bytes);
    };
    for weight in model.weights() {
        match weight {
            IntWeight::Dense(matrix) => absorb(matrix.data()),
            IntWeight::Diagonal { gain, mean } => {
                absorb(gain);
                absorb(mean);
            }
            IntWeight::Bias(_) => {}
        }
    }
    *hasher.finalize().as_bytes()
}

/// Makes a model's hint.
pub struct Build<'a> {
    model: &'a dyn ModelWeights,
    secret: &'a HintSecret,
    name: Name,
    hints: Hints,
}

impl<'a> Build<'a> {
    /// Lists what is to be made.
    ///
    /// # Errors
    /// As [`contents_of`].
    pub fn new(model: &'a impl ModelWeights, secret: &'a HintSecret) -> Result<Self> {
        let plan = plan_of(model)?;
        Ok(Self {
            model,
            secret,
            name: secret.name(&[&digest(model), &plan.encode()]),
            hints: Hints::of(plan.graph()),
        })
    }

    /// Returns the name of the hint: it stands for the secret, the weights and their scales.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Returns what the hint consists of.
    pub fn contents(&self) -> &Contents {
        &self.hints.contents
    }

    /// Makes the hint of one value, and what the server multiplies with.
    ///
    /// # Errors
    /// [`crate::ProtocolError::Hint`] if shares of these weights would tell too much.
    pub fn entry(&self, index: usize) -> Result<(Multiplier, Hint, Margin)> {
        let entry = self.hints.contents.entries()[index];
        let mut weights = Matrix::zeros(entry.features, entry.outputs);
        for reader in &self.hints.readers[index].terms {
            self.place(reader, &mut weights);
        }
        let built = Multiplier::build(self.secret, &self.name, entry.value, &weights);
        weights.data_mut().zeroize();
        Ok(built?)
    }

    /// Writes the weights of a reader to their columns.
    fn place(&self, reader: &Reader, weights: &mut Matrix<i16>) {
        let columns = reader.columns.clone();
        match &self.model.weights()[reader.weight.index()] {
            IntWeight::Dense(matrix) => {
                for row in 0..matrix.rows() {
                    weights.row_mut(row)[columns.clone()].copy_from_slice(matrix.row(row));
                }
            }
            IntWeight::Diagonal { gain, mean } => {
                // Both have 15 bits, at one scale: the difference has 16.
                for (row, &mean) in mean.iter().enumerate() {
                    let out = &mut weights.row_mut(row)[columns.clone()];
                    out.fill(-mean);
                    out[row] += gain[row];
                }
            }
            IntWeight::Bias(_) => unreachable!("a bias is not a term"),
        }
    }

    /// Makes all of it, in memory; `progress` is told how many outputs of how many are done.
    ///
    /// # Errors
    /// As [`Self::entry`].
    pub fn in_memory(
        &self,
        mut progress: impl FnMut(usize, usize),
    ) -> Result<(Published, Multipliers)> {
        let entries = self.contents().entries();
        let all = entries.iter().map(|entry| entry.outputs).sum();
        let (mut bytes, mut multipliers, mut done) = (Vec::new(), Vec::new(), 0);
        for (index, entry) in entries.iter().enumerate() {
            let (multiplier, hint, _) = self.entry(index)?;
            bytes.extend(hint.encode());
            multipliers.push(multiplier);
            done += entry.outputs;
            progress(done, all);
        }
        let published = Published::in_memory(&self.name, bytes);
        let multipliers = Multipliers::in_memory(*published.identity(), multipliers);
        Ok((published, multipliers))
    }
}

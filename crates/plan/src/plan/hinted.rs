//! What products by hints need of a plan: they err a little, and the errors must not matter.

use super::{Plan, PlanError};
use crate::graph::{Op, Term, ValueId, WeightId};
use crate::scales::{LEAST_ONE_HOT_BITS, OUTPUT_ERROR_BITS, WeightScale};

impl Plan {
    /// Checks that a one of the one-hot input is a number large enough that the error of its
    /// product does not reach the values.
    pub(crate) fn check_one_hot(&self, table: WeightId, output: ValueId) -> Result<(), PlanError> {
        let carried = self.one_hot_bits(table, output);
        if carried >= LEAST_ONE_HOT_BITS {
            return Ok(());
        }
        let reason =
            format!("its one-hot input carries {carried} bits, {LEAST_ONE_HOT_BITS} are needed");
        Err(self.conflict(output, reason))
    }

    /// Checks that the gains and the means of a diagonal term have one scale, because it is
    /// multiplied as a matrix of integers.
    pub(crate) fn check_diagonals(&self, terms: &[Term], output: ValueId) -> Result<(), PlanError> {
        let apart = |term: &Term| match self.weight_scale(term.weight) {
            WeightScale::Diagonal { gain, mean } => gain != mean,
            WeightScale::Dense { .. } | WeightScale::Bias => false,
        };
        if terms.iter().any(apart) {
            return Err(self.conflict(output, "a diagonal term has gains and means of two scales"));
        }
        Ok(())
    }

    /// Checks that an output is no finer than what its products err by.
    pub(crate) fn check_output(&self, sum: ValueId, output: ValueId) -> Result<(), PlanError> {
        let Op::Linear { terms, .. } = &self.graph().maker(sum).op else {
            return Ok(());
        };
        if !self.graph().outputs.contains(&output) {
            return Ok(());
        }
        let products = terms.iter().map(|term| self.term_fractions(term).0);
        let coarsest = products.min().expect("a linear step has a term");
        let finest = coarsest - OUTPUT_ERROR_BITS;
        if self.scale(output).fraction() > finest {
            let reason = format!("it has more than the {finest} fractional bits of its products");
            return Err(self.conflict(output, reason));
        }
        Ok(())
    }
}

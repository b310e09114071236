//! Softmax as steps whose functions have short indices.

use super::Builder;
use crate::graph::{Op, StopFunction, ValueId};
use crate::role::ValueRole;

impl Builder {
    /// Adds the probabilities, from looked-up powers; a coarse maximum is of measured heads only,
    /// and may be empty.
    pub(crate) fn looked_up_softmax(&mut self, scores: ValueId) -> ValueId {
        let (rows, cols) = (self.rows(scores), self.cols(scores));
        let coarse = StopFunction::CoarseMaximum;
        let reference = self.stop("references", ValueRole::Reference, coarse, scores);
        let exponents = self.value("exponents", ValueRole::Exponents, rows, cols);
        self.push(Op::Exponents {
            scores,
            reference,
            output: exponents,
        });
        let powers = self.stop("powers", ValueRole::Powers, StopFunction::Power, exponents);
        let total = self.value("totals", ValueRole::Total, rows, 1);
        self.push(Op::RowSum {
            input: powers,
            output: total,
        });
        let function = StopFunction::Reciprocal;
        let factor = self.stop("reciprocals", ValueRole::Reciprocal, function, total);
        let scaled = "probabilities.scaled";
        let scaled = self.value(scaled, ValueRole::Probabilities, rows, cols);
        self.push(Op::ScaleRows {
            input: powers,
            factor,
            output: scaled,
        });
        self.requantise("probabilities", scaled)
    }
}

//! Kinds of stop, and what builds one.
//!
//! `primer_engine::stop_kinds` names a [`StopKind`] for each function, the paper's schemes in a
//! table of their own; a [`StopBuilder`] makes the stop. Nothing else in the program tells one kind
//! of stop from another.

use crate::classes::ClassedLookups;
use crate::client_garbled::ClientGarbled;
use crate::error::{Result, StopError};
use crate::garbled::Garbled;
use crate::late::LateRequantise;
use crate::lift::Lift;
use crate::lookup::Lookups;
use crate::requantise::Requantise;
use crate::stop::TwoPartyStop;
use crate::transfers::Transfers;
use primer_garble::stop::StopCircuit;
use primer_plan::function::Function;
use std::sync::Arc;

/// A kind of stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopKind {
    /// A garbled circuit for each row or element.
    Garbling,
    /// A garbled circuit for each row or element that the client garbles; functions that show
    /// nothing.
    ClientGarbling,
    /// The same for functions of what both parties learn online.
    LateClientGarbling,
    /// One oblivious transfer for each element; requantisation only.
    Transfers,
    /// A product of two late bits for each element; requantisation of what both parties learn
    /// online.
    LateTransfers,
    /// One oblivious transfer for each element and no answer; requantisation of what products of
    /// secrets read and nothing else.
    Lift,
    /// Shares of a unit vector for each element; functions of a short index only.
    Lookups,
}

impl StopKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Garbling,
        Self::ClientGarbling,
        Self::LateClientGarbling,
        Self::Transfers,
        Self::LateTransfers,
        Self::Lift,
        Self::Lookups,
    ];

    /// Returns its name, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Garbling => "garbling",
            Self::ClientGarbling => "client garbling",
            Self::LateClientGarbling => "late client garbling",
            Self::Transfers => "transfers",
            Self::LateTransfers => "late transfers",
            Self::Lift => "lift",
            Self::Lookups => "look-ups",
        }
    }
}

/// What a stop is to compute, on a matrix of ring elements.
#[derive(Debug, Clone, Copy)]
pub struct StopSpec<'a> {
    /// The function.
    pub result: StopResult<'a>,
    /// Bits of the ring.
    pub ring_bits: u32,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
}

/// What becomes of the elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StopResult<'a> {
    /// They stay what they are.
    Same,
    /// A function of the plan.
    Function(&'a Function),
    /// The client sees the position of the largest in each row, and neither party anything else.
    Position,
}

/// Builds stops; equal circuits are built once.
#[derive(Default)]
pub struct StopBuilder {
    transfers: Transfers,
    built: Vec<(Function, usize, Arc<StopCircuit>)>,
}

impl StopBuilder {
    /// Makes a builder of stops on these transfers.
    pub fn over(transfers: impl Into<Transfers>) -> Self {
        Self {
            transfers: transfers.into(),
            built: Vec::new(),
        }
    }

    /// Builds a stop of this kind.
    ///
    /// # Errors
    /// [`StopError::Kind`] if stops of this kind cannot compute it, [`StopError::Circuit`],
    /// [`StopError::Ring`] and [`StopError::Limit`] if it cannot be done at all.
    pub fn stop(&mut self, kind: StopKind, spec: &StopSpec<'_>) -> Result<Arc<dyn TwoPartyStop>> {
        let elements = spec.rows * spec.cols;
        let transfers = self.transfers;
        match (kind, spec.result) {
            (StopKind::Transfers, StopResult::Same) => {
                let stop = Requantise::new(spec.ring_bits, elements)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (StopKind::LateTransfers, StopResult::Same) => {
                let stop = LateRequantise::new(spec.ring_bits, elements)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (StopKind::Lift, StopResult::Same) => {
                let stop = Lift::new(spec.ring_bits, elements)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (StopKind::Lookups, StopResult::Function(Function::Lookup(lookup))) => {
                let stop = Lookups::new(lookup, elements as u64)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (StopKind::Lookups, StopResult::Function(Function::Powers(powers))) => {
                let stop = ClassedLookups::of_heads(powers, (spec.rows, spec.cols))?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (StopKind::Lookups, StopResult::Function(Function::Sorted(sorted))) => {
                let stop = ClassedLookups::of_columns(sorted, (spec.rows, spec.cols))?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (StopKind::Garbling, StopResult::Function(function)) => {
                let (circuit, instances) = self.circuits(function, spec)?;
                let stop = Garbled::new(circuit, instances)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (StopKind::ClientGarbling, StopResult::Function(function)) => {
                let (circuit, instances) = self.circuits(function, spec)?;
                let stop = ClientGarbled::new(circuit, instances)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (StopKind::LateClientGarbling, StopResult::Function(function)) => {
                let (circuit, instances) = self.circuits(function, spec)?;
                let stop = ClientGarbled::new(circuit, instances)?;
                Ok(Arc::new(stop.late().over(transfers)))
            }
            (StopKind::Garbling, StopResult::Position) => {
                let circuit = StopCircuit::argmax(spec.ring_bits, spec.cols)?;
                let stop = Garbled::new(Arc::new(circuit), spec.rows as u64)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (kind, wanted) => Err(StopError::Kind {
                kind: kind.name(),
                what: wanted.name(),
            }),
        }
    }

    /// Returns the circuit of `function`, and the number of instances in `spec`.
    fn circuits(
        &mut self,
        function: &Function,
        spec: &StopSpec<'_>,
    ) -> Result<(Arc<StopCircuit>, u64)> {
        let (row, instances) = match function.takes_rows() {
            true => (spec.cols, spec.rows),
            false => (1, spec.rows * spec.cols),
        };
        Ok((self.circuit(function, row)?, instances as u64))
    }

    fn circuit(&mut self, function: &Function, row: usize) -> Result<Arc<StopCircuit>> {
        let known = (self.built.iter()).find(|(f, r, _)| f == function && *r == row);
        if let Some((_, _, circuit)) = known {
            return Ok(Arc::clone(circuit));
        }
        let circuit = Arc::new(StopCircuit::new(function, row)?);
        (self.built).push((function.clone(), row, Arc::clone(&circuit)));
        Ok(circuit)
    }
}

impl StopResult<'_> {
    /// Returns its name, for messages.
    const fn name(&self) -> &'static str {
        match self {
            Self::Same => "requantisation",
            Self::Function(_) => "a function",
            Self::Position => "argmax",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_circuits_are_built_once_and_impossible_tasks_are_refused() {
        let relu = Function::Relu {
            ring_bits: 8,
            fraction: 0,
        };
        let mut builder = StopBuilder::default();
        let spec = |result| StopSpec {
            result,
            ring_bits: 8,
            rows: 3,
            cols: 4,
        };
        for _ in 0..2 {
            for kind in [
                StopKind::Garbling,
                StopKind::ClientGarbling,
                StopKind::LateClientGarbling,
            ] {
                let stop = builder.stop(kind, &spec(StopResult::Function(&relu)));
                assert_eq!(stop.unwrap().elements(), 12);
            }
        }
        assert_eq!(builder.built.len(), 1);
        let refused = [
            (StopKind::Transfers, StopResult::Function(&relu)),
            (StopKind::Transfers, StopResult::Position),
            (StopKind::LateTransfers, StopResult::Position),
            (StopKind::Lift, StopResult::Function(&relu)),
            (StopKind::Lift, StopResult::Position),
            (StopKind::Garbling, StopResult::Same),
            (StopKind::ClientGarbling, StopResult::Same),
            (StopKind::ClientGarbling, StopResult::Position),
            (StopKind::LateClientGarbling, StopResult::Same),
            (StopKind::LateClientGarbling, StopResult::Position),
            (StopKind::Lookups, StopResult::Function(&relu)),
            (StopKind::Lookups, StopResult::Position),
        ];
        for (kind, wanted) in refused {
            let error = builder.stop(kind, &spec(wanted)).err().unwrap();
            assert!(matches!(error, StopError::Kind { .. }), "{error}");
        }
    }
}

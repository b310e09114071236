//! The means by which a function is computed.
//!
//! A scheme names a [`Means`] for each function; a [`StopBuilder`] makes the stop. Nothing else in
//! the program tells one kind of stop from another.

use crate::classes::ClassedLookups;
use crate::client_garbled::ClientGarbled;
use crate::error::{Result, StopsError};
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
pub enum Means {
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

impl Means {
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
pub struct Task<'a> {
    /// The function.
    pub result: Wanted<'a>,
    /// Bits of the ring.
    pub ring_bits: u32,
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
}

/// What becomes of the elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted<'a> {
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

    /// Builds the stop for `task` by `means`.
    ///
    /// # Errors
    /// [`StopsError::Means`] if the task cannot be done by these means, [`StopsError::Circuit`],
    /// [`StopsError::Ring`] and [`StopsError::Limit`] if it cannot be done at all.
    pub fn stop(&mut self, means: Means, task: &Task<'_>) -> Result<Arc<dyn TwoPartyStop>> {
        let elements = task.rows * task.cols;
        let transfers = self.transfers;
        match (means, task.result) {
            (Means::Transfers, Wanted::Same) => {
                let stop = Requantise::new(task.ring_bits, elements)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (Means::LateTransfers, Wanted::Same) => {
                let stop = LateRequantise::new(task.ring_bits, elements)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (Means::Lift, Wanted::Same) => {
                let stop = Lift::new(task.ring_bits, elements)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (Means::Lookups, Wanted::Function(Function::Lookup(lookup))) => {
                let stop = Lookups::new(lookup, elements as u64)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (Means::Lookups, Wanted::Function(Function::Powers(powers))) => {
                let stop = ClassedLookups::of_heads(powers, (task.rows, task.cols))?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (Means::Lookups, Wanted::Function(Function::Sorted(sorted))) => {
                let stop = ClassedLookups::of_columns(sorted, (task.rows, task.cols))?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (Means::Garbling, Wanted::Function(function)) => {
                let (circuit, instances) = self.circuits(function, task)?;
                let stop = Garbled::new(circuit, instances)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (Means::ClientGarbling, Wanted::Function(function)) => {
                let (circuit, instances) = self.circuits(function, task)?;
                let stop = ClientGarbled::new(circuit, instances)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (Means::LateClientGarbling, Wanted::Function(function)) => {
                let (circuit, instances) = self.circuits(function, task)?;
                let stop = ClientGarbled::new(circuit, instances)?;
                Ok(Arc::new(stop.late().over(transfers)))
            }
            (Means::Garbling, Wanted::Position) => {
                let circuit = StopCircuit::argmax(task.ring_bits, task.cols)?;
                let stop = Garbled::new(Arc::new(circuit), task.rows as u64)?;
                Ok(Arc::new(stop.over(transfers)))
            }
            (means, wanted) => Err(StopsError::Means {
                means: means.name(),
                what: wanted.name(),
            }),
        }
    }

    /// Returns the circuit of `function`, and the number of instances in `task`.
    fn circuits(
        &mut self,
        function: &Function,
        task: &Task<'_>,
    ) -> Result<(Arc<StopCircuit>, u64)> {
        let (row, instances) = match function.takes_rows() {
            true => (task.cols, task.rows),
            false => (1, task.rows * task.cols),
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

impl Wanted<'_> {
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
        let task = |result| Task {
            result,
            ring_bits: 8,
            rows: 3,
            cols: 4,
        };
        for _ in 0..2 {
            for means in [
                Means::Garbling,
                Means::ClientGarbling,
                Means::LateClientGarbling,
            ] {
                let stop = builder.stop(means, &task(Wanted::Function(&relu)));
                assert_eq!(stop.unwrap().elements(), 12);
            }
        }
        assert_eq!(builder.built.len(), 1);
        let refused = [
            (Means::Transfers, Wanted::Function(&relu)),
            (Means::Transfers, Wanted::Position),
            (Means::LateTransfers, Wanted::Position),
            (Means::Lift, Wanted::Function(&relu)),
            (Means::Lift, Wanted::Position),
            (Means::Garbling, Wanted::Same),
            (Means::ClientGarbling, Wanted::Same),
            (Means::ClientGarbling, Wanted::Position),
            (Means::LateClientGarbling, Wanted::Same),
            (Means::LateClientGarbling, Wanted::Position),
            (Means::Lookups, Wanted::Function(&relu)),
            (Means::Lookups, Wanted::Position),
        ];
        for (means, wanted) in refused {
            let error = builder.stop(means, &task(wanted)).err().unwrap();
            assert!(matches!(error, StopsError::Means { .. }), "{error}");
        }
    }
}

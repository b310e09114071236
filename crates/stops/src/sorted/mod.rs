//! Look-ups of several lengths side by side.
//!
//! A matrix whose columns are sorted by their ranges is looked up class by class: the columns of a
//! class share a table, and an index of as many bits as they need
//! ([`primer_plan::function::Sorted`]). A class is a [`Lookups`] of its own, with its own strings and messages. Nothing of one class
//! depends on another, so all are asked before the first is answered, and the whole takes the one
//! round trip that each would take alone.
//!
//! What goes in are the elements of the matrix, row by row, each in the ring of its class; what
//! comes out is in the same order. What is stored, sent and flagged is what the classes store, send
//! and flag, one after the other.
//!
//! Who learns what is what [`crate::lookup`] says of each class. How many columns a class has is
//! public; which features they are is known to the server alone.

mod client;
mod server;

use crate::bytes::StoredBytes;
use crate::error::Result;
use crate::lookup::{self, Lookups};
use crate::stop::{Stop, Turn};
use crate::transfers::Transfers;
use primer_garble::stop::StopError as CircuitError;
use primer_net::PhaseBytes;
use primer_plan::function::{Function, Sorted};
use std::ops::Range;
use zeroize::Zeroizing;

/// A matrix of look-ups whose columns belong to classes.
pub struct SortedLookups {
    rows: usize,
    columns: usize,
    classes: Vec<ClassLookups>,
}

/// The columns of a class, and their look-ups.
struct ClassLookups {
    columns: Range<usize>,
    lookups: Lookups,
}

impl SortedLookups {
    /// Look-ups of a matrix with so many rows.
    ///
    /// # Errors
    /// [`crate::StopsError::Circuit`] if the function is not usable, [`crate::StopsError::Limit`]
    /// if there is more of it than any model needs. Nothing is allocated for the elements before
    /// this check.
    pub fn new(sorted: &Sorted, rows: u64) -> Result<Self> {
        let valid = Function::Sorted(sorted.clone()).validate();
        valid.map_err(CircuitError::from)?;
        let mut classes = Vec::with_capacity(sorted.classes.len());
        for (columns, class) in sorted.ranges() {
            // A number beyond all limits stays beyond them.
            let elements = rows.saturating_mul(columns.len() as u64);
            let lookups = Lookups::new(&class.lookup, elements)?;
            classes.push(ClassLookups { columns, lookups });
        }
        Ok(Self {
            rows: rows as usize,
            columns: classes.last().map_or(0, |class| class.columns.end),
            classes,
        })
    }

    /// The same on transfers of other variants.
    #[must_use]
    pub fn over(self, transfers: impl Into<Transfers>) -> Self {
        let transfers = transfers.into();
        let classes = self.classes.into_iter().map(|class| ClassLookups {
            lookups: class.lookups.over(transfers),
            ..class
        });
        Self {
            classes: classes.collect(),
            ..self
        }
    }

    /// Returns the elements of a class among all elements, row by row.
    fn of_class(&self, class: &ClassLookups, all: &[u64]) -> Zeroizing<Vec<u64>> {
        let mut some = Zeroizing::new(Vec::with_capacity(self.rows * class.columns.len()));
        for row in all.chunks_exact(self.columns) {
            some.extend_from_slice(&row[class.columns.clone()]);
        }
        some
    }
}

impl Stop for SortedLookups {
    fn name(&self) -> &'static str {
        lookup::NAME
    }

    fn elements(&self) -> usize {
        self.rows * self.columns
    }

    fn outputs(&self) -> usize {
        self.elements()
    }

    fn flags(&self) -> usize {
        self.classes.iter().map(|class| class.lookups.flags()).sum()
    }

    fn bytes(&self) -> PhaseBytes {
        self.classes.iter().map(|class| class.lookups.bytes()).sum()
    }

    fn stored(&self) -> StoredBytes {
        (self.classes.iter())
            .map(|class| class.lookups.stored())
            .sum()
    }

    fn streams(&self) -> bool {
        true
    }

    fn turns(&self) -> Vec<Turn> {
        (self.classes.iter())
            .flat_map(|class| class.lookups.turns())
            .collect()
    }
}

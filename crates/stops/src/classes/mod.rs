//! Look-ups in several tables side by side.
//!
//! The elements of a matrix belong to classes: the columns of an activation are sorted by their
//! ranges, the rows of scores belong to heads. The elements of a class share a table, and a class
//! is a [`Lookups`] of its own, with its own strings and messages. Nothing of one class depends on
//! another, so all are asked before the first is answered, and together they take the one round
//! trip that each would take alone.
//!
//! The inputs are the elements of the matrix, row by row, each in the ring of its class; the
//! outputs are in the same order. What is stored, sent and flagged is what the classes store, send
//! and flag, one after the other.
//!
//! Each class shows to each party what [`crate::lookup`] says. Which elements belong to a class is
//! public; which features of a model sorted columns are is known to the server alone.

mod client;
mod server;

use crate::bytes::StoredBytes;
use crate::error::{Result, StopError};
use crate::lookup::{self, Lookups};
use crate::stop::{Stop, Turn};
use crate::transfers::Transfers;
use primer_garble::stop::CircuitError;
use primer_plan::function::{Function, Powers, Sorted};
use primer_wire::PhaseBytes;
use std::ops::Range;
use zeroize::Zeroizing;

/// Look-ups whose elements belong to classes.
pub struct ClassedLookups {
    elements: usize,
    classes: Vec<Class>,
}

/// The look-ups of a class, and the places of its elements among all elements, in order.
struct Class {
    places: Vec<Range<usize>>,
    lookups: Lookups,
}

impl ClassedLookups {
    /// Makes the look-ups for the powers of the scores of `tokens` tokens, where the rows of a head
    /// follow those of the head before.
    ///
    /// # Errors
    /// [`StopError::Circuit`] if the function is not usable or has classes for other heads than
    /// there are rows, [`StopError::Limit`] if there is more of it than any model needs. Nothing
    /// is allocated for the elements before this check.
    pub fn of_heads(powers: &Powers, (rows, tokens): (usize, usize)) -> Result<Self> {
        let valid = Function::Powers(powers.clone()).validate();
        let heads = rows / tokens.max(1);
        let valid = valid.and_then(|()| powers.check_heads(heads));
        valid.map_err(CircuitError::from)?;
        if rows != heads * tokens {
            return Err(StopError::Kind {
                kind: lookup::NAME,
                what: "rows that are not those of whole heads",
            });
        }
        let head = tokens * tokens;
        lookup::check_results((heads * head) as u64, 1)?;
        let mut classes = Vec::with_capacity(powers.classes.len());
        for class in &powers.classes {
            let lookups = Lookups::new(&class.lookup, (class.heads.len() * head) as u64)?;
            let places = class.heads.iter().map(|placed| {
                let first = usize::from(placed.head) * head;
                first..first + head
            });
            classes.push(Class {
                places: places.collect(),
                lookups: match class.measured {
                    true => lookups,
                    false => lookups.counted(),
                },
            });
        }
        Ok(Self {
            elements: heads * head,
            classes,
        })
    }

    /// Makes the look-ups of a matrix whose columns are sorted by their ranges.
    ///
    /// # Errors
    /// [`StopError::Circuit`] if the function is not usable, [`StopError::Kind`] if it has
    /// another number of columns, [`StopError::Limit`] if there is more of it than any model
    /// needs. Nothing is allocated for the elements before this check.
    pub fn of_columns(sorted: &Sorted, (rows, columns): (usize, usize)) -> Result<Self> {
        let valid = Function::Sorted(sorted.clone()).validate();
        valid.map_err(CircuitError::from)?;
        if sorted.columns() != Some(columns) {
            return Err(StopError::Kind {
                kind: lookup::NAME,
                what: "classes of other columns",
            });
        }
        // A number beyond all limits stays beyond them.
        lookup::check_results((rows as u64).saturating_mul(columns as u64), 1)?;
        let mut classes = Vec::with_capacity(sorted.classes.len());
        for (of_class, class) in sorted.ranges() {
            let elements = (rows * of_class.len()) as u64;
            let lookups = Lookups::new(&class.lookup, elements)?;
            let place = |row: usize| row * columns + of_class.start..row * columns + of_class.end;
            classes.push(Class {
                places: (0..rows).map(place).collect(),
                lookups,
            });
        }
        Ok(Self {
            elements: rows * columns,
            classes,
        })
    }

    /// Returns the same look-ups on transfers of other variants.
    #[must_use]
    pub fn over(self, transfers: impl Into<Transfers>) -> Self {
        let transfers = transfers.into();
        let classes = self.classes.into_iter().map(|class| Class {
            lookups: class.lookups.over(transfers),
            ..class
        });
        Self {
            classes: classes.collect(),
            ..self
        }
    }
}

impl Class {
    /// Returns the elements of this class among all.
    fn of(&self, all: &[u64]) -> Zeroizing<Vec<u64>> {
        let mut some = Zeroizing::new(Vec::with_capacity(self.lookups.elements()));
        for place in &self.places {
            some.extend_from_slice(&all[place.clone()]);
        }
        some
    }
}

impl Stop for ClassedLookups {
    fn name(&self) -> &'static str {
        lookup::NAME
    }

    fn elements(&self) -> usize {
        self.elements
    }

    fn outputs(&self) -> usize {
        self.elements
    }

    fn flags(&self) -> usize {
        self.classes.iter().map(|class| class.lookups.flags()).sum()
    }

    fn bytes(&self) -> PhaseBytes {
        self.classes.iter().map(|class| class.lookups.bytes()).sum()
    }

    fn stored(&self) -> StoredBytes {
        let stored = self.classes.iter().map(|class| class.lookups.stored());
        stored.sum()
    }

    fn streams(&self) -> bool {
        true
    }

    fn turns(&self) -> Vec<Turn> {
        let turns = self.classes.iter().map(|class| class.lookups.turns());
        turns.flatten().collect()
    }
}

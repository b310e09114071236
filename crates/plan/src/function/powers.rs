//! Powers of two of a layer's scores, head by head: softmax without its maximum.
//!
//! Softmax does not depend on what is added to a row, so a power may be taken of `s + o` for any
//! `o`: the division by the row's sum cancels `2^o`. The only requirement on `o` is that no power
//! leaves the range of its table, and for that it need not follow every row. The maxima of a head's
//! rows lie within some ten units of log 2 of each other for any text, so one public `o` for the
//! head is enough:
//!
//! ```text
//! index    k = (s + o) in cells of 2^-fraction, a signed element of Z_2^m
//! result   2^(top of the table - distance of k from the end of its range)
//! ```
//!
//! The upper end of the index belongs to the largest power, of [`TOP`] bits; entries of indices so
//! far below it that their power rounds to nothing are zero. Padded keys are zero too, by a bit of
//! the client's that the look-up takes in addition to the index (`primer_stops::lookup`).
//!
//! Three things can go wrong with a text that the calibration text does not resemble, and each
//! raises a range flag. A score above the window reaches the upper end of the index, and one that
//! is too far below wraps around to it: both ends are flagged ([`Lookup::edge`]). A row in which
//! all scores are low has a sum with too few bits: its reciprocal is flagged
//! ([`super::Reciprocal`]).
//!
//! **Measured heads.** A few heads have rows whose maxima differ by more than a window: for
//! instance, one that attends to the previous token by its position. There the scores are measured
//! against a coarse maximum first ([`super::CoarseMaximum`]), and the power of what is left is
//! looked up.

use super::{FunctionError, Lookup};
use serde::{Deserialize, Serialize};

const NAME: &str = "powers of scores";

/// The largest power is `2^TOP`.
pub const TOP: u32 = 30;
/// Offsets, in cells, are smaller than this.
const MAX_OFFSET: i64 = 1 << 20;

/// Powers of all heads of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Powers {
    /// Heads that share a table, each head in one class.
    pub classes: Vec<HeadClass>,
}

/// Heads that share a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadClass {
    /// The heads in rising order.
    pub heads: Vec<PlacedHead>,
    /// The table of one result.
    pub lookup: Lookup,
    /// Whether its scores are measured against a coarse maximum first.
    pub measured: bool,
}

/// A head, and where its scores lie in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedHead {
    /// Its number.
    pub head: u16,
    /// Added to its scores, in cells; zero for a measured head.
    pub offset: i64,
}

impl Powers {
    /// Returns the class of a head.
    ///
    /// # Panics
    /// If there is no such head, which a checked plan rules out.
    pub fn class(&self, head: usize) -> (&HeadClass, PlacedHead) {
        let placed = |class: &'_ HeadClass| class.placed(head);
        let found = self.classes.iter().find_map(|c| Some((c, placed(c)?)));
        found.expect("every head has a class")
    }

    /// Returns the heads whose scores are measured, in rising order.
    pub fn measured(&self) -> Vec<usize> {
        let measured = self.classes.iter().filter(|class| class.measured);
        let heads = measured.flat_map(|class| &class.heads);
        heads.map(|placed| usize::from(placed.head)).collect()
    }

    /// Returns the first table: all others have the same index bits and results of the same size.
    pub(super) fn first(&self) -> Option<&Lookup> {
        self.classes.first().map(|class| &class.lookup)
    }

    /// Checks that each of `heads` heads has a class.
    ///
    /// # Errors
    /// [`FunctionError`] if one has none, or more than one.
    pub fn check_heads(&self, heads: usize) -> Result<(), FunctionError> {
        let mut counts = vec![0; heads];
        for placed in self.classes.iter().flat_map(|class| &class.heads) {
            match counts.get_mut(usize::from(placed.head)) {
                Some(count) => *count += 1,
                None => return FunctionError::unless(false, NAME, "a head that is not there"),
            }
        }
        let once = counts.iter().all(|count| *count == 1);
        FunctionError::unless(once, NAME, "a head has one class")
    }

    pub(crate) fn validate(&self) -> Result<(), FunctionError> {
        let check = |ok, reason: &str| FunctionError::unless(ok, NAME, reason);
        let Some(first) = self.first() else {
            return check(false, "there are no classes");
        };
        for class in &self.classes {
            let Lookup {
                index_bits, tables, ..
            } = &class.lookup;
            class.lookup.validate()?;
            check(tables.len() == 1, "a class has one table")?;
            let results = |lookup: &Lookup| {
                let table = &lookup.tables[0];
                (table.output_bits(), table.output_fraction())
            };
            check(
                *index_bits == first.index_bits && results(&class.lookup) == results(first),
                "classes have indices and results of one size",
            )?;
            check(
                class.heads.is_sorted_by(|a, b| a.head < b.head) && !class.heads.is_empty(),
                "the heads of a class come in rising order",
            )?;
            let usable = |placed: &PlacedHead| match class.measured {
                true => placed.offset == 0,
                false => (-MAX_OFFSET..MAX_OFFSET).contains(&placed.offset),
            };
            check(
                class.heads.iter().all(usable),
                "a head lies outside its table",
            )?;
            let sums = tables[0].entries().iter().all(|entry| *entry >= 0);
            check(sums, "a power is negative")?;
        }
        let measured = self.classes.iter().filter(|class| class.measured);
        check(measured.count() <= 1, "measured heads are one class")
    }
}

impl HeadClass {
    /// Returns the place of a head, if it is in this class.
    pub fn placed(&self, head: usize) -> Option<PlacedHead> {
        let mut heads = self.heads.iter();
        heads.find(|p| usize::from(p.head) == head).copied()
    }
}

//! An activation looked up directly, among as many entries as each feature needs.
//!
//! The look-up knows only an index `k` of its argument `x`, which truncation makes from it in cells
//! of some width. Both parties have shares of the rest, `x - k`, for free
//! ([`primer_ring::coarse`]), so the result continues from the entry along a line:
//!
//! ```text
//! f(x)  ≈  T[k] + slope·(x - k)
//! ```
//!
//! The slope is a public constant, and the same for a whole class of features. Entries are the
//! function at their index. Truncation makes one of the two indices around `x`, the nearer one more
//! often, and over both of them the terms with the slope cancel: on average the result is on the
//! chord between the two entries for any slope, off by at most `h²/8·max|f''|` for cells of width
//! `h`. The slope only changes how much a single result differs from that average: by
//! `(f' - slope)·h` times a number of standard deviation `1/√6` at most. It is chosen near the mean
//! of `f'` over the arguments that occur (`docs/numerics.md`, section 3).
//!
//! **Classes.** The cost of a look-up grows with its entries, and the ranges of features differ by
//! a factor of ten and more. So features are sorted by range, the widest first, and divided into
//! classes; a class has its own index, and all have the same cells unless a range is extreme. Which
//! feature is in which place is the server's secret: a plan only says how many there are in each
//! class.
//!
//! ```text
//! index of class c    2^finer·x truncated to its bits; the accumulator is that of the widest class
//! result              T_c[k] + (slope_c/8·(2^finer·x - 2^s·k)), at the scale of the entries
//! ```
//!
//! Each party rounds the second term on its own: together they are off by a unit at most, and the
//! definition here includes this ([`CoarseIndex::shared`]).

use super::{FunctionError, Lookup};
use primer_ring::coarse::CoarseIndex;
use primer_ring::modulus::K;
use primer_ring::truncate::Truncation;
use serde::{Deserialize, Serialize};
use std::ops::Range;

const NAME: &str = "sorted look-up";

/// Look-ups of columns that are sorted by their ranges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sorted {
    /// From the first column to the last. The first class has the widest range, and the accumulator
    /// fills its ring.
    pub classes: Vec<Class>,
}

/// Columns that are looked up in the same table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// How many there are.
    pub columns: usize,
    /// Eighths of what the index leaves out that are added to the result.
    pub slope: u32,
    /// The table; there is one.
    pub lookup: Lookup,
}

impl Sorted {
    /// Classes, at most.
    pub const MAX_CLASSES: usize = 16;

    /// Joins classes.
    ///
    /// # Errors
    /// [`FunctionError`] if they do not fit each other.
    pub fn new(classes: Vec<Class>) -> Result<Self, FunctionError> {
        let sorted = Self { classes };
        sorted.validate()?;
        Ok(sorted)
    }

    /// Returns the look-up of the widest class.
    pub(crate) fn widest(&self) -> &Lookup {
        &self.classes[0].lookup
    }

    /// Returns how many columns all classes have, or `None` if the number overflows.
    pub fn columns(&self) -> Option<usize> {
        let mut columns = self.classes.iter().map(|class| class.columns);
        columns.try_fold(0usize, |sum, columns| sum.checked_add(columns))
    }

    /// Returns the classes with their columns.
    pub fn ranges(&self) -> impl Iterator<Item = (Range<usize>, &Class)> {
        let mut start = 0;
        self.classes.iter().map(move |class| {
            let columns = start..start + class.columns;
            start = columns.end;
            (columns, class)
        })
    }

    /// Returns how the columns of each class are truncated.
    ///
    /// # Panics
    /// If the classes do not fit each other.
    pub fn indices(&self) -> impl Iterator<Item = (Range<usize>, CoarseIndex)> {
        self.ranges().map(|(columns, class)| {
            let index = self.index(class);
            (
                columns,
                index.expect("a checked function has usable classes"),
            )
        })
    }

    /// Returns the result for an index and `part`, the part of the rest that is added to it.
    pub fn result(class: &Class, (index, part): (i64, i64)) -> i64 {
        class.lookup.tables[0].at(index) + part
    }

    /// Returns how a class truncates the accumulator, or `None` if it cannot.
    fn index(&self, class: &Class) -> Option<CoarseIndex> {
        let fraction = |lookup: &Lookup| lookup.fraction + (K - lookup.index_bits) as i32;
        let (widest, lookup) = (self.widest(), &class.lookup);
        let finer = fraction(lookup) - fraction(widest);
        let coarser = fraction(lookup) - lookup.tables[0].output_fraction();
        CoarseIndex::new(
            Truncation::to_ring(lookup.index_bits)?,
            finer.try_into().ok()?,
            class.slope,
            coarser.try_into().ok()?,
        )
    }

    pub(super) fn validate(&self) -> Result<(), FunctionError> {
        let check = |ok, reason: String| FunctionError::unless(ok, NAME, reason);
        let count = self.classes.len();
        check(
            (1..=Self::MAX_CLASSES).contains(&count),
            format!("{count} classes"),
        )?;
        check(self.columns().is_some(), "columns without number".into())?;
        for class in &self.classes {
            class.lookup.validate()?;
            let tables = class.lookup.tables.len();
            check(tables == 1, format!("{tables} tables in a class"))?;
            check(class.columns > 0, "a class without a column".into())?;
        }
        let format = |lookup: &Lookup| {
            let table = &lookup.tables[0];
            (table.output_bits(), table.output_fraction())
        };
        for class in &self.classes {
            check(
                format(&class.lookup) == format(self.widest()),
                "classes with results of two scales".into(),
            )?;
            check(
                self.index(class).is_some(),
                "a class whose index does not fit the widest one".into(),
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::{Activation, LookupTable};

    fn class(columns: usize, index_bits: u32, fraction: i32, output: (u32, i32)) -> Class {
        let index = (index_bits, fraction);
        let real = |x| Activation::GeluErf.real(x);
        let table = LookupTable::tabulate(index, output, real);
        Class {
            columns,
            slope: 3,
            lookup: Lookup::new(index, [1; 2], vec![table]).unwrap(),
        }
    }

    fn sorted() -> Sorted {
        let classes = [(3, 9, 5), (5, 7, 5), (2, 6, 5)];
        let classes =
            classes.map(|(columns, bits, fraction)| class(columns, bits, fraction, (18, 13)));
        Sorted::new(classes.into()).unwrap()
    }

    #[test]
    fn classes_take_their_columns_in_order() {
        let sorted = sorted();
        assert_eq!(sorted.columns(), Some(10));
        let ranges: Vec<_> = sorted.ranges().map(|(columns, _)| columns).collect();
        assert_eq!(ranges, [0..3, 3..8, 8..10]);
        let rings = sorted
            .indices()
            .map(|(_, index)| index.truncation().ring_bits());
        assert_eq!(rings.collect::<Vec<_>>(), [9, 7, 6]);
    }

    /// Checks that classes of all rings find the same number at the same cell: with the index
    /// rounded to nearest, the result is that of the widest class.
    #[test]
    fn classes_agree_where_their_ranges_overlap() {
        let sorted = sorted();
        let unit = 1i64 << (K - 9 - 5 - 3);
        for step in -0x200..0x200 {
            // Up to almost one, in units of 2^-13 of the cell's 2^-5.
            let x = step * 15 * unit;
            let found = sorted.indices().zip(&sorted.classes);
            let found: Vec<i64> = found
                .map(|((_, index), class)| Sorted::result(class, index.exact(x)))
                .collect();
            assert_eq!(found, [found[0]; 3], "{step}");
        }
    }

    #[test]
    fn classes_that_do_not_fit_are_refused() {
        let refused = |change: &dyn Fn(&mut Sorted)| {
            let mut sorted = sorted();
            change(&mut sorted);
            assert!(sorted.validate().is_err(), "{sorted:?}");
        };
        refused(&|s| s.classes.clear());
        refused(&|s| s.classes = vec![s.classes[0].clone(); Sorted::MAX_CLASSES + 1]);
        refused(&|s| s.classes[1].columns = 0);
        refused(&|s| s.classes[1].columns = usize::MAX);
        refused(&|s| s.classes[2].slope = 9);
        refused(&|s| s.classes[2].lookup.edge = [u32::MAX; 2]);
        refused(&|s| s.classes[1].lookup.fraction = i32::MAX);
        refused(&|s| {
            let table = s.classes[1].lookup.tables[0].clone();
            s.classes[1].lookup.tables.push(table);
        });
        // Results of another scale, wider than the widest, finer than the accumulator can tell.
        refused(&|s| s.classes[1] = class(5, 7, 5, (18, 12)));
        refused(&|s| s.classes[1] = class(5, 7, 5, (17, 13)));
        refused(&|s| s.classes[1] = class(5, 10, 5, (18, 13)));
        refused(&|s| s.classes[1] = class(5, 7, -35, (18, 13)));
        refused(&|s| s.classes = vec![class(10, 9, 14, (18, 13))]);
        refused(&|s| s.classes = vec![class(10, 9, 5, (18, 38))]);
    }
}

//! Functions of one short index, by tables.
//!
//! An index has so few bits (4 to 10) that a function of it *is* its table: nothing has to be cheap
//! in a circuit, and any function is possible. One index may have several tables: a slope and an
//! intercept, for example. They are looked up together and cost less than apart.
//!
//! ```text
//! index    k       a signed element of Z_2^m: what truncation leaves of an accumulator
//! result   T_l[k mod 2^m]       for each table l; signed integers of its `output_bits`
//! ```
//!
//! Truncation rounds stochastically: `k` is one of the two indices around the accumulator, and on
//! average it *is* the accumulator. So the entry of an index is the function there, not at the
//! middle of a cell. For a cell of width `h` the mean of the result is then the straight line
//! between two neighbours, off by at most `h²/8 · max|f''|`; a single result is off by up to
//! `h · max|f'|` more.
//!
//! An index that leaves its range wraps around. A table can carry a *range flag*: whether the index
//! lies in the outermost cells, [`Lookup::edge`]. A flagged index has not wrapped yet, or has
//! wrapped by less than the width of the edge.

use super::FunctionError;
use primer_ring::select;
use serde::{Deserialize, Serialize};

const NAME: &str = "look-up";

// Tables of all these sizes can be summed up.
const _: () = assert!(1 << Lookup::MIN_BITS == select::MIN_ENTRIES);
const _: () = assert!(1 << Lookup::MAX_BITS == select::MAX_ENTRIES);

/// Tables on one index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// Bits of the index, which is the ring that the input comes from.
    pub index_bits: u32,
    /// Fractional bits of the index.
    pub fraction: i32,
    /// Cells at the lower and at the upper end of the range that raise the flag. If there are none,
    /// nothing is flagged.
    pub edge: [u32; 2],
    /// The tables, at least one.
    pub tables: Vec<LookupTable>,
}

/// One table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookupTable {
    output_bits: u32,
    output_fraction: i32,
    /// In the order of ring elements: the entry of index `k` is at `k mod 2^m`.
    entries: Vec<i64>,
}

impl LookupTable {
    /// Tabulates a function of the index as a real number. Results are rounded and clamped to
    /// `output_bits`, the sign included.
    ///
    /// # Panics
    /// If the numbers of bits are not those of a usable [`Lookup`].
    pub fn tabulate(
        (index_bits, fraction): (u32, i32),
        (output_bits, output_fraction): (u32, i32),
        mut real: impl FnMut(f64) -> f64,
    ) -> Self {
        assert!((Lookup::MIN_BITS..=Lookup::MAX_BITS).contains(&index_bits));
        assert!((2..=Lookup::MAX_OUTPUT_BITS).contains(&output_bits));
        let half = 1i64 << (output_bits - 1);
        let (low, high) = (-half as f64, (half - 1) as f64);
        let (cell, unit) = (2f64.powi(-fraction), 2f64.powi(output_fraction));
        let size = 1i64 << index_bits;
        let entries = (0..size).map(|j| {
            let index = if j < size / 2 { j } else { j - size };
            (real(index as f64 * cell) * unit).round().clamp(low, high) as i64
        });
        Self {
            output_bits,
            output_fraction,
            entries: entries.collect(),
        }
    }

    /// Returns the bits of an entry with its sign.
    pub const fn output_bits(&self) -> u32 {
        self.output_bits
    }

    /// Returns the fractional bits of an entry.
    pub const fn output_fraction(&self) -> i32 {
        self.output_fraction
    }

    /// Returns the entries in the order of ring elements.
    pub fn entries(&self) -> &[i64] {
        &self.entries
    }

    /// Returns the entry of an index, signed or not.
    #[inline]
    pub fn at(&self, index: i64) -> i64 {
        self.entries[index as usize & (self.entries.len() - 1)]
    }

    fn validate(&self, index_bits: u32) -> Result<(), FunctionError> {
        let check = |ok, reason: String| FunctionError::unless(ok, NAME, reason);
        let bits = self.output_bits;
        check(
            (2..=Lookup::MAX_OUTPUT_BITS).contains(&bits),
            format!("entries of {bits} bits"),
        )?;
        check(
            super::in_reach(self.output_fraction),
            format!("entries with {} fractional bits", self.output_fraction),
        )?;
        let half = 1i64 << (bits - 1);
        check(
            self.entries.len() == 1 << index_bits
                && self.entries.iter().all(|e| (-half..half).contains(e)),
            "a table does not have the announced size".into(),
        )
    }
}

impl Lookup {
    /// The shortest index.
    pub const MIN_BITS: u32 = 4;
    /// The longest index.
    pub const MAX_BITS: u32 = 10;
    /// Bits of an entry, at most; with the sign it has to fit `Z_p`.
    pub const MAX_OUTPUT_BITS: u32 = select::MAX_ENTRY_BITS;
    /// Tables on one index, at most.
    pub const MAX_TABLES: usize = 4;

    /// Joins tables on an index with its scale and its edges.
    ///
    /// # Errors
    /// [`FunctionError`] if they do not fit each other.
    pub fn new(
        (index_bits, fraction): (u32, i32),
        edge: [u32; 2],
        tables: Vec<LookupTable>,
    ) -> Result<Self, FunctionError> {
        let lookup = Self {
            index_bits,
            fraction,
            edge,
            tables,
        };
        lookup.validate()?;
        Ok(lookup)
    }

    /// Tells whether results carry range flags.
    pub fn is_flagged(&self) -> bool {
        self.edge != [0; 2]
    }

    /// Tells whether an index, signed or not, lies in the outermost cells.
    #[inline]
    pub fn flag(&self, index: i64) -> bool {
        let size = 1i64 << self.index_bits;
        // From the lower end: 0 is the smallest index there is.
        let above = (index + size / 2) & (size - 1);
        let [low, high] = self.edge.map(i64::from);
        above < low || above >= size - high
    }

    pub(super) fn validate(&self) -> Result<(), FunctionError> {
        let check = |ok, reason: String| FunctionError::unless(ok, NAME, reason);
        let m = self.index_bits;
        check(
            (Self::MIN_BITS..=Self::MAX_BITS).contains(&m),
            format!("an index of {m} bits"),
        )?;
        check(
            super::in_reach(self.fraction),
            format!("an index with {} fractional bits", self.fraction),
        )?;
        let [low, high] = self.edge.map(u64::from);
        check(
            low + high < 1 << m,
            format!("{low} and {high} outermost cells of an index of {m} bits"),
        )?;
        let count = self.tables.len();
        check(
            (1..=Self::MAX_TABLES).contains(&count),
            format!("{count} tables on one index"),
        )?;
        self.tables.iter().try_for_each(|table| table.validate(m))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::Activation;

    fn gelu(bits: u32, fraction: i32) -> LookupTable {
        LookupTable::tabulate((bits, fraction), (18, 10), |x| Activation::GeluErf.real(x))
    }

    /// Computes what a stochastically rounded index gives on average, for every accumulator between
    /// two cells: the straight line between their entries.
    #[test]
    fn the_mean_result_is_within_its_bound() {
        for fraction in [3, 4] {
            let table = gelu(8, fraction);
            let cell = 2f64.powi(-fraction);
            // |GELU''| is at most 2·φ(0) = 0.798.
            let bound = cell * cell / 8.0 * 0.798 + 0.5 / 1024.0;
            let mut worst: f64 = 0.0;
            for index in -128..127i64 {
                for part in 0..16 {
                    let t = f64::from(part) / 16.0;
                    let (a, b) = (table.at(index) as f64, table.at(index + 1) as f64);
                    let mean = ((1.0 - t) * a + t * b) / 1024.0;
                    let real = Activation::GeluErf.real((index as f64 + t) * cell);
                    worst = worst.max((mean - real).abs());
                }
            }
            assert!(worst < bound, "{worst} against {bound}");
            assert!(
                worst > 0.5 * bound,
                "the bound is loose: {worst} against {bound}"
            );
        }
    }

    #[test]
    fn entries_are_those_of_signed_indices_and_are_clamped() {
        let table = LookupTable::tabulate((4, 1), (4, 1), |x| 2.0 * x);
        assert_eq!(table.at(3), 6);
        assert_eq!(table.at(-2), -4);
        assert_eq!(table.at(14), -4);
        assert_eq!((table.at(7), table.at(-8)), (7, -8));
    }

    #[test]
    fn the_outermost_cells_are_flagged() {
        let lookup = Lookup::new((8, 3), [2, 1], vec![gelu(8, 3)]).unwrap();
        for index in -128..128 {
            let expected = index < -126 || index == 127;
            assert_eq!(lookup.flag(index), expected, "{index}");
            assert_eq!(lookup.flag(index & 255), expected, "{index}");
        }
        let plain = Lookup::new((8, 3), [0; 2], vec![gelu(8, 3)]).unwrap();
        assert!(!plain.is_flagged() && (-128..128).all(|index| !plain.flag(index)));
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let good = Lookup::new((8, 3), [1, 1], vec![gelu(8, 3)]).unwrap();
        let refused = |change: &dyn Fn(&mut Lookup)| {
            let mut lookup = good.clone();
            change(&mut lookup);
            assert!(lookup.validate().is_err(), "{lookup:?}");
        };
        for bits in [0, 3, 7, 9, 11, u32::MAX] {
            refused(&|l| l.index_bits = bits);
        }
        refused(&|l| l.fraction = i32::MIN);
        refused(&|l| l.edge = [128, 128]);
        refused(&|l| l.edge = [u32::MAX, u32::MAX]);
        refused(&|l| l.tables.clear());
        refused(&|l| l.tables = vec![gelu(8, 3); 5]);
        refused(&|l| l.tables[0] = gelu(9, 3));
        for bits in [0, 1, Lookup::MAX_OUTPUT_BITS + 1, u32::MAX] {
            refused(&|l| l.tables[0].output_bits = bits);
        }
        refused(&|l| l.tables[0].output_bits = 12);
        refused(&|l| l.tables[0].entries[0] = i64::MIN);
        refused(&|l| l.tables[0].output_fraction = 65);
    }
}

//! Classes of the columns of an activation's input ([`Sorted`]).
//!
//! A column needs as many entries as its range has cells: what calibration saw of it with the
//! margin, rounded up to a power of two. No column gets a range below [`NARROWEST`]. In a
//! calibration text of a few dozen lines, features that detect something rare are seen at rest, and
//! they reach many times as far in the one text that has it; the range of a single column is a much
//! worse prediction than that of a whole layer. `docs/numerics.md`, section 3, has the figures.
//!
//! **The first layers have finer cells.** The error of an activation passes through all layers
//! after it, so the same cells cost the logits three times as much in the first layers as in the
//! middle. The first quarter of the layers has cells of half the width, and so have all layers of a
//! model that marks spans: its answer is the largest of hundreds of logits that lie close together,
//! and what the cells cost every one of them decides between neighbours.
//!
//! The plan is public and says how many columns each class has. Counts are multiples of
//! [`TOGETHER`]: those of wide ranges are rounded up, with columns for which a narrower range would
//! be enough.

use super::room::WIDEST;
use super::{AssignError, Assigner, MARGIN};
use crate::function::{Activation, Class, Function, Lookup, LookupTable, Sorted};
use crate::graph::ValueId;
use crate::scales::Scale;
use crate::shape::Head;
use primer_ring::fixed::Format;

/// Fractional bits of an activation's index in the first layers and in the others, unless its range
/// needs more bits than there are.
const CELL_FRACTIONS: [i32; 2] = [6, 5];
/// The first layers are one part in this many of all layers.
const FIRST_LAYERS: usize = 4;
/// The narrowest range of a column.
const NARROWEST: f64 = 8.0;
/// The number of columns of a class is a multiple of this, except in the last class.
const TOGETHER: usize = 16;
/// The slope of all classes, in eighths: near the mean slope of GELU over the arguments that count.
const SLOPE: u32 = 1;
/// The part of each half of a table that raises the range flag, at its end.
const EDGE: u32 = 16;

/// Columns that share a table.
struct Group {
    /// Logarithm of its range.
    reach: i32,
    columns: usize,
}

/// Returns the order in which the columns of an activation's input are looked up, from the largest
/// absolute element of each: the widest first.
pub fn order(columns: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by(|a, b| columns[*b].total_cmp(&columns[*a]));
    order
}

/// Divides columns, once they are in order, into groups.
fn groups(columns: &[f64]) -> Vec<Group> {
    let order = order(columns).into_iter();
    let reaches: Vec<i32> = order.map(|j| reach(columns[j])).collect();
    let mut groups = Vec::new();
    let mut start = 0;
    for reach in (0..=reaches.first().copied().unwrap_or(0)).rev() {
        let needed = reaches.partition_point(|other| *other >= reach);
        let end = needed.next_multiple_of(TOGETHER).min(reaches.len());
        if end > start {
            let columns = end - start;
            groups.push(Group { reach, columns });
            start = end;
        }
    }
    groups
}

/// Returns the logarithm of the smallest power of two that is not below the range of a column.
fn reach(max_abs: f64) -> i32 {
    (MARGIN * max_abs).max(NARROWEST).log2().ceil() as i32
}

/// Returns the fractional bits of the index of a layer of a model.
fn cell_fraction(layer: usize, layers: usize, head: &Head) -> i32 {
    let [first, others] = CELL_FRACTIONS;
    match layer < layers.div_ceil(FIRST_LAYERS) || *head == Head::Span {
        true => first,
        false => others,
    }
}

/// Returns the bits and fractional bits of the index of a range.
fn cells(reach: i32, cell_fraction: i32) -> (u32, i32) {
    let bits = (reach + 1 + cell_fraction).min(Lookup::MAX_BITS as i32);
    (bits as u32, bits - 1 - reach)
}

impl Assigner<'_> {
    /// Gives the stop of step `index` an activation of columns that are sorted by their ranges.
    pub(crate) fn sorted(
        &mut self,
        index: usize,
        (input, output): (ValueId, ValueId),
    ) -> Result<Scale, AssignError> {
        let cols = self.graph.value(input).cols;
        let groups = match self.columns.get(&input) {
            Some(columns) if columns.len() == cols => groups(columns),
            _ => groups(&vec![self.observations[input.index()].max_abs(); cols]),
        };
        let layer = self.graph.steps[index].layer;
        let layer = layer.expect("activations are in layers");
        let shape = &self.graph.shape;
        let cell_fraction = cell_fraction(layer, shape.layers, &shape.head);
        let widest = groups[0].reach;
        let (ring_bits, fraction) = cells(widest, cell_fraction);
        if fraction < 0 {
            return Err(self.too_wide(input, self.wide(input), Lookup::MAX_BITS));
        }
        let activation = self.graph.shape.activation;
        let format = self.activated(output, widest, cell_fraction);
        let classes = groups.iter().map(|group| {
            let index = cells(group.reach, cell_fraction);
            class(activation, group.columns, index, format)
        });
        let sorted = Sorted::new(classes.collect()).expect("groups share their scales");
        self.accumulator(input, ring_bits, fraction);
        Ok(self.leave(index, Function::Sorted(sorted)))
    }

    /// Returns the format of what an activation leaves: as fine as other values, and wide enough
    /// for every possible input.
    fn activated(&self, output: ValueId, reach: i32, cell_fraction: i32) -> Format {
        let fitting = Format::fitting(self.design.value_bits(), self.wide(output));
        let most = WIDEST as i32 - 1 - reach;
        let fraction = fitting.fraction.clamp(cell_fraction, most);
        Format {
            bits: (fraction + reach + 1) as u32,
            fraction,
        }
    }
}

/// Makes the class of a group of columns: its table's entries are the activation at their indices.
fn class(activation: Activation, columns: usize, index: (u32, i32), format: Format) -> Class {
    let output = (format.bits, format.fraction);
    let table = LookupTable::tabulate(index, output, |x| activation.real(x));
    let edge = (1 << (index.0 - 1)) / EDGE;
    let lookup = Lookup::new(index, [edge; 2], vec![table]);
    Class {
        columns,
        slope: SLOPE,
        lookup: lookup.expect("a table of an activation has usable parameters"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that counts are rounded so that no column is in a class too narrow for it.
    #[test]
    fn columns_are_in_classes_that_hold_them() {
        // Twelve wide ones, the others narrow.
        let range = |j: usize| {
            if j.is_multiple_of(9) {
                10.0
            } else {
                0.05 * j as f64
            }
        };
        let columns: Vec<f64> = (0..100).map(range).collect();
        let (order, groups) = (order(&columns), groups(&columns));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..100));
        let told: Vec<_> = groups.iter().map(|g| (g.reach, g.columns)).collect();
        assert_eq!(told, [(4, 16), (3, 84)]);
        let mut places = order.iter();
        for group in &groups {
            for j in places.by_ref().take(group.columns) {
                assert!(reach(columns[*j]) <= group.reach);
            }
        }
    }

    #[test]
    fn the_first_quarter_of_the_layers_has_finer_cells() {
        let finer = |layers, head: &Head| {
            let finer = |layer: &usize| cell_fraction(*layer, layers, head) == 6;
            (0..layers).filter(finer).count()
        };
        let encoder = Head::Encoder { pooled: true };
        let first = |layers| finer(layers, &encoder);
        assert_eq!([1, 2, 4, 6, 12, 24].map(first), [1, 1, 1, 2, 3, 6]);
        assert!((0..3).all(|layer| cell_fraction(layer, 12, &encoder) == 6));
        assert_eq!(cell_fraction(3, 12, &encoder), 5);
        // What is decided among hundreds of logits has finer cells throughout.
        assert_eq!(
            [1, 6, 12].map(|layers| finer(layers, &Head::Span)),
            [1, 6, 12]
        );
    }

    #[test]
    fn wide_ranges_have_wide_cells_at_last() {
        assert_eq!(
            [3, 4, 6].map(|reach| cells(reach, 5)),
            [(9, 5), (10, 5), (10, 3)]
        );
        assert_eq!(
            [3, 4, 6].map(|reach| cells(reach, 6)),
            [(10, 6), (10, 5), (10, 3)]
        );
        assert_eq!([0.0, 5.3, 5.4, 30.0].map(reach), [3, 3, 4, 6]);
    }
}

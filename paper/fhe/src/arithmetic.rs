//! The operations that a walk is made of, and their count.
//!
//! A walk ([`crate::walk`]) is written once, against [`Arithmetic`]. The server runs it on
//! ciphertexts ([`crate::ckks::evaluate::Evaluator`]), the cost estimate on nothing but levels
//! ([`Counting`]): what is counted is what would be done.

use primer_plan::graph::PaperStep;
use std::collections::BTreeMap;

/// Where in the paper's table an operation belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The step.
    pub step: PaperStep,
    /// Whether it is part of a layer.
    pub in_layer: bool,
}

impl Default for Location {
    fn default() -> Self {
        Self {
            step: PaperStep::Embed,
            in_layer: false,
        }
    }
}

/// An operation on ciphertexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A vector in the clear becomes a polynomial. Could be done once for a model, at the price of
    /// its memory.
    Encoding,
    /// A ciphertext times an encoded vector, added to a sum.
    PlainProduct,
    /// A ciphertext times one number.
    ScalarProduct,
    /// A ciphertext times a ciphertext, added to a sum of three parts.
    Product,
    /// Three parts become two again: digits and key switching.
    Relinearise,
    /// The digits of a ciphertext, once for all its rotations.
    Digits,
    /// Key switching and automorphism of one rotation.
    Rotation,
    /// Division by the last prime.
    Rescale,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 8] = [
        Self::Encoding,
        Self::PlainProduct,
        Self::ScalarProduct,
        Self::Product,
        Self::Relinearise,
        Self::Digits,
        Self::Rotation,
        Self::Rescale,
    ];

    /// Returns the name that tables use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Encoding => "encoding",
            Self::PlainProduct => "plain product",
            Self::ScalarProduct => "scalar product",
            Self::Product => "product",
            Self::Relinearise => "relinearisation",
            Self::Digits => "digits",
            Self::Rotation => "rotation",
            Self::Rescale => "rescaling",
        }
    }
}

/// How often each operation happens, by place and level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    times: BTreeMap<(Location, Operation, usize), usize>,
}

impl Count {
    /// Counts an operation.
    pub fn add(&mut self, place: Location, operation: Operation, level: usize, times: usize) {
        *self.times.entry((place, operation, level)).or_default() += times;
    }

    /// Lists every entry: place, operation, level, times.
    pub fn entries(&self) -> impl Iterator<Item = (Location, Operation, usize, usize)> {
        (self.times.iter())
            .map(|(&(place, operation, level), &times)| (place, operation, level, times))
    }

    /// Returns how often an operation happens in all.
    pub fn total(&self, operation: Operation) -> usize {
        let of = self.entries().filter(|entry| entry.1 == operation);
        of.map(|entry| entry.3).sum()
    }
}

/// A vector in the clear: the number in each slot.
pub type Slots<'a> = dyn Fn(usize) -> f64 + 'a;

/// Arithmetic on vectors at levels.
pub trait Arithmetic {
    /// A vector.
    type Value;

    /// Assigns what follows to a place.
    fn enter(&mut self, place: Location);
    /// Returns the number of numbers in a vector.
    fn slots(&self) -> usize;
    /// Returns the level of a vector.
    fn level(&self, x: &Self::Value) -> usize;
    /// Copies a vector.
    fn copy(&self, x: &Self::Value) -> Self::Value;
    /// Computes `x += y`; both have the same level.
    fn add(&mut self, x: &mut Self::Value, y: &Self::Value);
    /// Computes `x -= y`; both have the same level.
    fn subtract(&mut self, x: &mut Self::Value, y: &Self::Value);
    /// Adds a vector in the clear.
    fn add_slots(&mut self, x: &mut Self::Value, slots: &Slots<'_>);
    /// Adds a number to every slot.
    fn add_constant(&mut self, x: &mut Self::Value, value: f64);
    /// Rotates a vector to the left by each of `steps`.
    fn rotations(&mut self, x: &Self::Value, steps: &[i32]) -> Vec<Self::Value>;
    /// Sums products with vectors in the clear, at the same level and not rescaled.
    fn weighted_sum(&mut self, terms: &[(&Self::Value, &Slots<'_>)]) -> Self::Value;
    /// Brings the scale of such a sum back; the level falls by one.
    fn rescale(&mut self, x: Self::Value) -> Self::Value;
    /// Multiplies a vector by a number, down to any lower level.
    fn scale(&mut self, x: &Self::Value, factor: f64, level: usize) -> Self::Value;
    /// Sums products, all of the same level; the level falls by one.
    fn products(&mut self, terms: &[(&Self::Value, &Self::Value)]) -> Self::Value;
}

/// Arithmetic that does nothing but count.
pub struct Counting {
    slots: usize,
    place: Location,
    /// What would have been done.
    pub count: Count,
    /// The rotations that would have been asked for.
    pub rotations: std::collections::BTreeSet<i32>,
}

impl Counting {
    /// Counts for vectors of `slots` numbers.
    pub fn new(slots: usize) -> Self {
        Self {
            slots,
            place: Location::default(),
            count: Count::default(),
            rotations: std::collections::BTreeSet::new(),
        }
    }
}

impl Arithmetic for Counting {
    type Value = usize;

    fn enter(&mut self, place: Location) {
        self.place = place;
    }

    fn slots(&self) -> usize {
        self.slots
    }

    fn level(&self, x: &usize) -> usize {
        *x
    }

    fn copy(&self, x: &usize) -> usize {
        *x
    }

    fn add(&mut self, x: &mut usize, y: &usize) {
        assert_eq!(x, y);
    }

    fn subtract(&mut self, x: &mut usize, y: &usize) {
        assert_eq!(x, y);
    }

    fn add_slots(&mut self, x: &mut usize, _: &Slots<'_>) {
        self.count.add(self.place, Operation::Encoding, *x, 1);
    }

    fn add_constant(&mut self, _: &mut usize, _: f64) {}

    fn rotations(&mut self, x: &usize, steps: &[i32]) -> Vec<usize> {
        if !steps.is_empty() {
            self.count.add(self.place, Operation::Digits, *x, 1);
            let times = steps.len();
            self.count.add(self.place, Operation::Rotation, *x, times);
            self.rotations.extend(steps);
        }
        vec![*x; steps.len()]
    }

    fn weighted_sum(&mut self, terms: &[(&usize, &Slots<'_>)]) -> usize {
        let level = *terms[0].0;
        assert!(terms.iter().all(|term| *term.0 == level));
        for operation in [Operation::Encoding, Operation::PlainProduct] {
            self.count.add(self.place, operation, level, terms.len());
        }
        level
    }

    fn rescale(&mut self, x: usize) -> usize {
        self.count.add(self.place, Operation::Rescale, x, 1);
        x - 1
    }

    fn scale(&mut self, x: &usize, _: f64, level: usize) -> usize {
        assert!(level < *x, "scaling takes a level");
        let place = self.place;
        self.count
            .add(place, Operation::ScalarProduct, level + 1, 1);
        self.rescale(level + 1)
    }

    fn products(&mut self, terms: &[(&usize, &usize)]) -> usize {
        let level = *terms[0].0;
        assert!(terms.iter().all(|(x, y)| **x == level && **y == level));
        let place = self.place;
        self.count
            .add(place, Operation::Product, level, terms.len());
        self.count.add(place, Operation::Relinearise, level, 1);
        self.rescale(level)
    }
}

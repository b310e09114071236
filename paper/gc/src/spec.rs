//! The circuits of a step, from a description that both parties derive from the plan.
//!
//! Products are added up as described in `products`.
//!
//! A sum of many products is a chain of equal circuits of [`TERMS`] products each, through which
//! two numbers pass ([`Columns`]), and a last one that adds these two and keeps what the stop
//! reads.
//!
//! Every circuit begins with the *zero wire*, an input that is 0, known to both: where a kept bit
//! turns out to be constant, it is that wire's label that is kept.
//!
//! # AND gates
//!
//! With `a`, `b` the bits of the factors (15 for weights, queries, keys and values, 20 for what
//! LayerNorm centres, 12 for probabilities):
//!
//! * product with a weight, or of two secrets, in a sum: `a·b`, by digits ±1; at most one more for
//!   each column (≤ 42) of the 16 that share a circuit, for a half adder where three bits are left;
//! * end of a sum: one for each column but the last, where the two numbers that are left are added;
//! * sum over a row: `a` for each element and a few for each column, carries saved;
//! * residual connection: `15·a + a` for each result, `15·a` for each element of the row's mean, a
//!   diagonal product as in the plan;
//! * embedding: `15·V` for each token and feature, `V` for each token: one-hot by a tree, then one
//!   gate for each bit of each weight;
//! * square: `a²`; product of a row by its factor: `a·b + 2a + b`, and the columns;
//! * softmax, n = 30, 15-bit ring: 209 for each element, and up to 14 for offset and mask;
//! * GELU, 16-bit ring, 8 → 10: 110 (94 with shares and projections);
//! * reciprocal root, 22-bit ring: 277; tanh, 16-bit ring: 205; requantisation: none, a choice of
//!   wires.

use crate::columns::Columns;
use crate::error::Result;
use crate::products::{Products, Sum};
use crate::window::Window;
use primer_garble::circuit::{Bit, Builder, CarrySave, Circuit, Modulus, Party};
use primer_garble::stop::in_bits;
use primer_plan::function::Function;
use primer_plan::scales::WEIGHT_BITS;

/// Products in one circuit of a chain, and rows in one circuit of a look-up.
pub(crate) const TERMS: usize = 16;
/// Bits of a weight.
pub(crate) const WEIGHT: usize = WEIGHT_BITS as usize;

/// Everything that is built.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Spec {
    /// One hot among `entries`, from the bits of an index.
    OneHot { entries: usize },
    /// The sum of `terms` weights, of which one is chosen, or none.
    Select { terms: usize },
    /// Two chosen weights at a place, and a number: what a stop reads.
    Embedded { window: Window, at: u32 },
    /// A sum over a row.
    Sum(Sum),
    /// Some more products in a chain; `square` if the factors are the same.
    Products {
        of: Products,
        terms: usize,
        square: bool,
    },
    /// One more product, with its correction, at the head of a chain.
    Gain(Products),
    /// A number, if there is one, minus the two at the end of a chain.
    Difference { window: Window, from: bool },
    /// What a stop reads of the two numbers at the end of a chain.
    Read(Window),
    /// A single product: what a stop reads.
    Scale { of: Products, constant: i128 },
    /// A function on a row, each element with a bit that masks it if it is softmax.
    Function { function: Function, row: usize },
}

/// A circuit under construction, with its zero wire.
struct Gates {
    b: Builder,
    zero: Bit,
}

impl Gates {
    fn new() -> Self {
        // There are no arithmetic outputs, so their modulus does not matter.
        let mut b = Builder::new(Modulus::Ring(1));
        let zero = b.inputs(Party::Garbler, 1)[0];
        Self { b, zero }
    }

    fn input(&mut self, bits: usize) -> Vec<Bit> {
        self.b.inputs(Party::Garbler, bits as u32)
    }

    fn keep(&mut self, bits: &[Bit]) {
        for &bit in bits {
            let bit = match bit.as_constant() {
                Some(value) => self.zero.flip(value),
                None => bit,
            };
            self.b.keep(bit);
        }
    }

    /// Takes in the two numbers of a chain.
    fn chain(&mut self, window: Window) -> Columns {
        let mut columns = Columns::new(window.width);
        for _ in 0..2 {
            let number = self.input(window.width);
            columns.number(&mut self.b, 0, &number);
        }
        columns
    }

    fn keep_chain(&mut self, columns: Columns) {
        let two = columns.into_two(&mut self.b);
        self.keep(&two.concat());
    }

    fn read(&mut self, window: Window, columns: Columns) {
        let sum = columns.into_one(&mut self.b);
        self.keep(&sum[window.skipped()..]);
    }

    /// Adds the rows of a product.
    fn rows(&mut self, columns: &mut Columns, of: Products, x: &[Bit], y: &[Bit]) {
        let (top, low) = x.split_last().expect("numbers have bits");
        let at = of.window.column(of.at);
        for (i, &digit) in y.iter().enumerate() {
            let sign = of.y.signed && i + 1 == y.len();
            let negative = digit.flip(!sign);
            for (j, &bit) in low.iter().enumerate() {
                let bit = self.b.xor(bit, negative);
                columns.push(&mut self.b, at + i + j, bit);
            }
            let top = self.b.xor(!*top, negative);
            columns.push(&mut self.b, at + i + low.len(), top);
        }
    }
}

/// Returns the bits of a number as those of one that is not negative, and by how much it is larger.
fn unsigned(bits: &[Bit], signed: bool) -> (Vec<Bit>, i128) {
    let mut bits = bits.to_vec();
    let more = match bits.last_mut() {
        Some(top) if signed => {
            *top = !*top;
            1 << (bits.len() - 1)
        }
        _ => 0,
    };
    (bits, more)
}

impl Spec {
    /// Builds the circuit.
    pub(crate) fn build(&self) -> Result<Circuit> {
        let mut g = Gates::new();
        match self {
            Self::OneHot { entries } => one_hot(&mut g, *entries),
            Self::Select { terms } => select(&mut g, *terms),
            Self::Embedded { window, at } => embedded(&mut g, *window, *at),
            Self::Sum(sum) => sum.build(&mut g),
            Self::Products { of, terms, square } => {
                let mut columns = g.chain(of.window);
                let xs: Vec<_> = (0..*terms).map(|_| g.input(of.x)).collect();
                for x in &xs {
                    let y = match square {
                        true => x.clone(),
                        false => g.input(of.y.bits),
                    };
                    g.rows(&mut columns, *of, x, &y);
                }
                g.keep_chain(columns);
            }
            Self::Gain(of) => {
                let mut columns = g.chain(of.window);
                let (x, y) = (g.input(of.x), g.input(of.y.bits));
                g.rows(&mut columns, *of, &x, &y);
                negative(&mut g, &mut columns, of.window.column(of.at), &x);
                g.keep_chain(columns);
            }
            Self::Difference { window, from } => difference(&mut g, *window, *from),
            Self::Read(window) => {
                let columns = g.chain(*window);
                g.read(*window, columns);
            }
            Self::Scale { of, constant } => scale(&mut g, *of, *constant),
            Self::Function { function, row } => apply(&mut g, function, *row)?,
        }
        Ok(g.b.finish())
    }
}

/// Builds the circuit of one gate for each inner node of the tree over the index bits, the highest
/// first.
fn one_hot(g: &mut Gates, entries: usize) {
    let bits = index_bits(entries);
    let index = g.input(bits);
    let mut level = vec![Bit::ONE];
    for (i, &bit) in index.iter().enumerate().rev() {
        let wanted = entries.div_ceil(1 << i);
        let mut next = Vec::with_capacity(wanted);
        for node in level {
            let one = g.b.and(node, bit);
            next.push(g.b.xor(node, one));
            if next.len() < wanted {
                next.push(one);
            }
        }
        level = next;
    }
    g.keep(&level);
}

/// Returns the bits of an index among some entries.
pub(crate) fn index_bits(entries: usize) -> usize {
    entries.next_power_of_two().ilog2() as usize
}

/// Builds the circuit of one gate for each bit of each weight; the sum of what is chosen is free.
fn select(g: &mut Gates, terms: usize) {
    let chosen = g.input(terms);
    let mut sum = vec![Bit::ZERO; WEIGHT];
    for &choice in &chosen {
        let weight = g.input(WEIGHT);
        for (s, &w) in sum.iter_mut().zip(&weight) {
            let bit = g.b.and(choice, w);
            *s = g.b.xor(*s, bit);
        }
    }
    g.keep(&sum);
}

/// Builds the sum of embeddings. Word and type are signed; the garbler's number makes up for their
/// complemented signs.
fn embedded(g: &mut Gates, window: Window, at: u32) {
    let mut columns = Columns::new(window.width);
    for _ in 0..2 {
        let weight = g.input(WEIGHT);
        let (weight, _) = unsigned(&weight, true);
        columns.number(&mut g.b, window.column(at), &weight);
    }
    let number = g.input(window.width);
    columns.number(&mut g.b, 0, &number);
    g.read(window, columns);
}

/// Returns what the complemented signs of [`embedded`] leave to be made up for.
pub(crate) fn embedded_signs(at: u32) -> i128 {
    -(2 << (at as usize + WEIGHT - 1))
}

/// Adds `-x` at an offset, up to the constant [`negative_constant`].
fn negative(g: &mut Gates, columns: &mut Columns, at: usize, x: &[Bit]) {
    let (x, _) = unsigned(x, true);
    let flipped: Vec<Bit> = x.iter().map(|&bit| !bit).collect();
    columns.number(&mut g.b, at, &flipped);
}

/// Returns what is missing for `-x` of `bits` bits: `-x = NOT x' + 1 - 2^(bits-1)` with `x'` of
/// complemented sign.
pub(crate) fn negative_constant(bits: usize) -> i128 {
    1 - (1 << (bits - 1))
}

fn difference(g: &mut Gates, window: Window, from: bool) {
    let mut columns = Columns::new(window.width);
    // -p - q = NOT p + NOT q + 2.
    for _ in 0..2 {
        let number = g.input(window.width);
        let flipped: Vec<Bit> = number.iter().map(|&bit| !bit).collect();
        columns.number(&mut g.b, 0, &flipped);
    }
    columns.constant(&mut g.b, 2);
    if from {
        let number = g.input(window.width);
        columns.number(&mut g.b, 0, &number);
    }
    let number = columns.into_one(&mut g.b);
    g.keep(&number);
}

fn scale(g: &mut Gates, of: Products, constant: i128) {
    let (x, y) = (g.input(of.x), g.input(of.y.bits));
    let mut columns = Columns::new(of.window.width);
    g.rows(&mut columns, of, &x, &y);
    // The single product's own sums.
    let constant = of.sum_of_x(1, constant).push(g, &mut columns, &x);
    let constant = of.sum_of_y(1).push(g, &mut columns, &y) + constant;
    columns.constant(&mut g.b, of.window.cut(constant));
    g.read(of.window, columns);
}

impl Sum {
    fn build(self, g: &mut Gates) {
        let most = ((1u64 << self.number.bits) - 1) * self.count as u64;
        let mut total = CarrySave::new(most);
        let mut more = 0;
        for _ in 0..self.count {
            let number = g.input(self.number.bits);
            let (number, by) = unsigned(&number, self.number.signed);
            total.add(&mut g.b, &number);
            more += by;
        }
        let total = total.finish(&mut g.b);
        let mut columns = Columns::new(self.window.width);
        let constant = self.push_unsigned(g, &mut columns, &total, more);
        columns.constant(&mut g.b, self.window.cut(constant));
        let number = columns.into_one(&mut g.b);
        g.keep(&number);
    }

    /// Adds the number for a single summand; the constant is still to be added.
    fn push(self, g: &mut Gates, columns: &mut Columns, x: &[Bit]) -> i128 {
        let (x, more) = unsigned(x, self.number.signed);
        self.push_unsigned(g, columns, &x, more)
    }

    /// Adds `factor·(total - more)·2^at` to the columns, up to the constant that is returned.
    fn push_unsigned(
        self,
        g: &mut Gates,
        columns: &mut Columns,
        total: &[Bit],
        more: i128,
    ) -> i128 {
        let at = self.window.column(self.at);
        if self.factor > 0 {
            let power = (self.factor + 1).trailing_zeros() as usize;
            columns.number(&mut g.b, at + power, total);
        }
        // -total = NOT total + 1 - 2^bits.
        let flipped: Vec<Bit> = total.iter().map(|&bit| !bit).collect();
        columns.number(&mut g.b, at, &flipped);
        let negated = 1 - (1i128 << total.len());
        self.constant + ((negated - self.factor * more) << self.at)
    }
}

fn apply(g: &mut Gates, function: &Function, row: usize) -> Result<()> {
    let bits = function.ring_bits() as usize;
    let mut values: Vec<_> = (0..row).map(|_| g.input(bits)).collect();
    if let Function::Softmax(softmax) = function {
        // A key's mask bit chooses between two public numbers: complements, so only their sum costs
        // gates.
        let masks = g.input(row);
        let (plain, masked) = (softmax.offset, softmax.offset - softmax.mask);
        for (value, &mask) in values.iter_mut().zip(&masks) {
            let shift: Vec<Bit> = (0..bits)
                .map(|i| match (plain >> i & 1, masked >> i & 1) {
                    (p, m) if p == m => Bit::constant(p == 1),
                    (p, _) => mask.flip(p == 1),
                })
                .collect();
            *value = g.b.add(value, &shift);
        }
    }
    for result in in_bits(&mut g.b, function, values)? {
        g.keep(&result);
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! Tables with monomials shared between their outputs.
//!
//! The inputs are divided into a *high* and a *low* part. All products of high bits are formed
//! once (`2^h - h - 1` AND gates); any function of the high bits is then a XOR of them, free. Each
//! output is a polynomial in the low bits with such functions as coefficients, evaluated by
//! Horner's rule (`2^l - 1` AND gates for each output, fewer where a coefficient vanishes or two
//! outputs share one). The division is searched over all subsets of the inputs for the fewest
//! gates.
//!
//! A *guard* makes the table take its last entry when it is 0, which is what saturation needs: the
//! table is taken relative to that entry, and every product of high bits gets the guard as one
//! more factor. That costs `h` AND gates instead of one for each input or output bit.

use super::{Bit, Builder};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// The polynomial over GF(2) of a truth table, in place: entry `m` is the coefficient of monomial `m`.
fn polynomial(truth: &mut [bool]) {
    let mut step = 1;
    while step < truth.len() {
        for i in 0..truth.len() {
            if i & step != 0 {
                truth[i] ^= truth[i ^ step];
            }
        }
        step *= 2;
    }
}

/// Spreads the bits of `index` over the set bits of `mask`.
fn deposit(index: usize, mask: usize) -> usize {
    let mut out = 0;
    let mut rest = mask;
    let mut i = 0;
    while rest != 0 {
        let low = rest & rest.wrapping_neg();
        if index >> i & 1 == 1 {
            out |= low;
        }
        rest ^= low;
        i += 1;
    }
    out
}

/// A table as polynomials, divided into high and low inputs.
pub(super) struct Divided {
    polynomials: Vec<Vec<bool>>,
    /// The entry that the polynomials are relative to.
    last: u32,
    high: usize,
    low: usize,
}

/// Divisions found so far, by entries, output bits and whether there is a guard.
pub(super) type KnownTables = HashMap<(Vec<u32>, u32, bool), Rc<Divided>>;

impl Divided {
    /// The cheapest division of a table.
    fn search(entries: &[u32], output_bits: u32, guarded: bool) -> Self {
        let last = if guarded {
            entries[entries.len() - 1]
        } else {
            0
        };
        let polynomials: Vec<Vec<bool>> = (0..output_bits)
            .map(|o| {
                let mut truth: Vec<bool> =
                    entries.iter().map(|e| (e ^ last) >> o & 1 == 1).collect();
                polynomial(&mut truth);
                truth
            })
            .collect();
        let all = entries.len() - 1;
        let mut table = Self {
            polynomials,
            last,
            high: all,
            low: 0,
        };
        let mut best = (usize::MAX, all);
        for high in 0..=all {
            // More than four low bits never pay: each output would need 31 gates or more.
            if (all ^ high).count_ones() <= 4 {
                table.divide(high);
                best = best.min((table.cost(guarded), high));
            }
        }
        table.divide(best.1);
        table
    }

    fn divide(&mut self, high: usize) {
        self.low = (self.polynomials[0].len() - 1) ^ high;
        self.high = high;
    }

    fn coefficient(&self, output: usize, low: usize) -> Vec<bool> {
        let base = deposit(low, self.low);
        (0..1usize << self.high.count_ones())
            .map(|h| self.polynomials[output][base | deposit(h, self.high)])
            .collect()
    }

    /// AND gates of this division, with equal Horner steps counted once.
    fn cost(&self, guarded: bool) -> usize {
        let l = self.low.count_ones();
        let mut used = HashSet::new();
        let mut steps = HashSet::new();
        for output in 0..self.polynomials.len() {
            let mut level: Vec<Vec<bool>> =
                (0..1 << l).map(|i| self.coefficient(output, i)).collect();
            for c in &level {
                used.extend((0..c.len()).filter(|&i| c[i]));
            }
            for v in 0..l {
                // Each step needs the whole polynomial below it to be told apart from others.
                let half = level.len() / 2;
                let (a, b): (Vec<_>, Vec<_>) = (0..half)
                    .map(|i| (level[2 * i].clone(), level[2 * i + 1].clone()))
                    .unzip();
                for odd in &b {
                    let trivial = !guarded && odd[1..].iter().all(|x| !x);
                    if odd.contains(&true) && !trivial {
                        steps.insert((v, odd.clone()));
                    }
                }
                level = (a.into_iter().zip(b))
                    .map(|(a, b)| [a, b].concat())
                    .collect();
            }
        }
        // Products are built from smaller ones, so a used product needs its prefixes.
        let mut products: HashSet<usize> = HashSet::new();
        for mut m in used {
            while m.count_ones() >= if guarded { 1 } else { 2 } && products.insert(m) {
                m &= m - 1;
            }
        }
        products.len() + steps.len()
    }
}

impl Builder {
    /// `entries[index]` with `output_bits` bits; the index has its least significant bit first.
    pub fn table(&mut self, index: &[Bit], entries: &[u32], output_bits: u32) -> Vec<Bit> {
        self.guarded_table(Bit::ONE, index, entries, output_bits)
    }

    /// `entries[index]` if `guard` else the last entry.
    pub fn guarded_table(
        &mut self,
        guard: Bit,
        index: &[Bit],
        entries: &[u32],
        output_bits: u32,
    ) -> Vec<Bit> {
        assert_eq!(entries.len(), 1 << index.len(), "a table has 2^n entries");
        let guarded = guard != Bit::ONE;
        let key = (entries.to_vec(), output_bits, guarded);
        let table = match self.tables.get(&key) {
            Some(known) => Rc::clone(known),
            None => {
                let new = Rc::new(Divided::search(entries, output_bits, guarded));
                self.tables.insert(key, Rc::clone(&new));
                new
            }
        };
        self.divided_table(guard, index, &table)
    }

    fn divided_table(&mut self, guard: Bit, index: &[Bit], table: &Divided) -> Vec<Bit> {
        let pick = |mask: usize| -> Vec<Bit> {
            let kept = (0..index.len()).filter(|i| mask >> i & 1 == 1);
            kept.map(|i| index[i]).collect()
        };
        let (high, low) = (pick(table.high), pick(table.low));
        // products[m] = guard · Π of the high bits in m, from the product without its lowest bit.
        // Products that no output uses are dropped with every other unused gate.
        let mut products = vec![guard];
        for m in 1..1usize << high.len() {
            let rest = products[m & (m - 1)];
            let bit = high[m.trailing_zeros() as usize];
            products.push(self.and(rest, bit));
        }
        (0..table.polynomials.len())
            .map(|output| {
                let mut level: Vec<Bit> = (0..1 << low.len())
                    .map(|i| {
                        let c = table.coefficient(output, i);
                        self.combination(&products, &c)
                    })
                    .collect();
                for &bit in &low {
                    level = level
                        .chunks_exact(2)
                        .map(|pair| {
                            let term = self.and(bit, pair[1]);
                            self.xor(pair[0], term)
                        })
                        .collect();
                }
                level[0].flip(table.last >> output & 1 == 1)
            })
            .collect()
    }

    /// A XOR of chosen products. Groups of four are combined first: there are only fifteen
    /// combinations of each, and tables ask for most of them again and again.
    fn combination(&mut self, products: &[Bit], chosen: &[bool]) -> Bit {
        let groups = products.chunks(4).zip(chosen.chunks(4));
        let partial: Vec<Bit> = groups
            .map(|(p, c)| {
                let kept = p.iter().zip(c).filter(|(_, c)| **c).map(|(p, _)| *p);
                let kept: Vec<Bit> = kept.collect();
                self.sum(kept)
            })
            .collect();
        self.sum(partial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_of_known_functions() {
        // x0 OR x1 = x0 + x1 + x0·x1.
        let mut or = [false, true, true, true];
        polynomial(&mut or);
        assert_eq!(or, [false, true, true, true]);
        let mut and = [false, false, false, true];
        polynomial(&mut and);
        assert_eq!(and, [false, false, false, true]);
        assert_eq!(deposit(0b101, 0b11010), 0b10010);
    }
}

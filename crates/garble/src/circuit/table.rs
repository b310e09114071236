//! Tables with monomials shared between their outputs.
//!
//! The inputs are divided into a *high* and a *low* part. All products of high bits are formed
//! once (`2^h - h - 1` AND gates); any function of the high bits is then an XOR of them, free. Each
//! output is a polynomial in the low bits with such functions as coefficients, evaluated by
//! Horner's rule (`2^l - 1` AND gates for each output, fewer where a coefficient vanishes or two
//! outputs share one). The division is searched over all subsets of the inputs for the fewest
//! gates ([`Divided::search`]).
//!
//! A *guard* makes the table take its last entry when it is 0, as saturation needs: the table is
//! taken relative to that entry, and every product of high bits gets the guard as one more factor.
//! That costs `h` AND gates instead of one for each input or output bit.

use super::division::{Divided, GROUP};
use super::{Bit, Builder};
use std::rc::Rc;

impl Builder {
    /// Returns `entries[index]` with `output_bits` bits; the index has its least significant bit
    /// first.
    pub fn table(&mut self, index: &[Bit], entries: &[u32], output_bits: u32) -> Vec<Bit> {
        self.guarded_table(Bit::ONE, index, entries, output_bits)
    }

    /// Returns `entries[index]` if `guard` else the last entry.
    pub fn guarded_table(
        &mut self,
        guard: Bit,
        index: &[Bit],
        entries: &[u32],
        output_bits: u32,
    ) -> Vec<Bit> {
        assert_eq!(entries.len(), 1 << index.len(), "a table has 2^n entries");
        let guarded = guard != Bit::ONE;
        let mut known = self.tables.iter();
        let known = known.find(|t| t.is_of(entries, output_bits, guarded));
        let table = match known.map(Rc::clone) {
            Some(known) => known,
            None => {
                let new = Rc::new(Divided::search(entries, output_bits, guarded));
                self.tables.push(Rc::clone(&new));
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
        let mut groups: Vec<Group<'_>> = products.chunks(GROUP).map(Group::new).collect();
        let outputs = table.outputs().map(|output| {
            let coefficients = table.output(output);
            let mut level: Vec<Bit> = coefficients
                .map(|chosen| {
                    let chosen = groups.iter_mut().zip(chosen);
                    let sums: Vec<Bit> = chosen.map(|(g, &c)| g.sum(self, c)).collect();
                    self.sum(sums)
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
        });
        outputs.collect()
    }
}

/// A few products, and those of their sums that have been asked for.
struct Group<'a> {
    products: &'a [Bit],
    sums: [Option<Bit>; 1 << GROUP],
}

impl<'a> Group<'a> {
    fn new(products: &'a [Bit]) -> Self {
        Self {
            products,
            sums: [None; 1 << GROUP],
        }
    }

    fn sum(&mut self, b: &mut Builder, chosen: u8) -> Bit {
        let products = self.products.iter().enumerate();
        *self.sums[usize::from(chosen)].get_or_insert_with(|| {
            let kept = products.filter(|(i, _)| chosen >> i & 1 == 1);
            b.sum(kept.map(|(_, p)| *p))
        })
    }
}

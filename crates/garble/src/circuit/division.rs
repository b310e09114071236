//! Which inputs of a table are high and which are low.
//!
//! A division costs the products of high bits that any output uses, with the products that these
//! are built from, and one AND gate for every step of Horner's rule, equal steps once. All
//! divisions with few low bits are tried.
//!
//! The search chooses one low bit after the other, from the top down, and moves it to the topmost
//! place of the polynomials that is not taken yet. The steps of a low bit are then the blocks of
//! bits that stand behind it, and choosing further low bits only moves bits within these blocks. So
//! every division starts from the count of the one with one low bit fewer, and adds the steps of a
//! single bit.

use super::monomials::Monomials;
use foldhash::fast::FixedState;
use std::collections::HashSet;

/// The largest number of low bits. More never pay: each output would need 31 gates or more.
const MAX_LOW: u32 = 4;

/// The number of high products that are combined in a group: of each group there are only fifteen
/// sums, and tables ask for most of them again and again.
pub(super) const GROUP: usize = 4;

/// A table as polynomials, divided into high and low inputs.
pub(super) struct Divided {
    entries: Vec<u32>,
    output_bits: u32,
    guarded: bool,
    /// The entry that the polynomials are relative to.
    pub(super) last: u32,
    /// The high inputs.
    pub(super) high: usize,
    /// The low inputs.
    pub(super) low: usize,
    /// Which high products are added up, for each output and each product of low bits: a mask of
    /// [`GROUP`] bits for each group.
    coefficients: Vec<u8>,
}

impl Divided {
    /// Finds the cheapest division of a table.
    pub(super) fn search(entries: &[u32], output_bits: u32, guarded: bool) -> Self {
        let inputs = entries.len().ilog2();
        let last = match guarded {
            true => entries[entries.len() - 1],
            false => 0,
        };
        let polynomial =
            |o: u32| Monomials::of_truth(inputs, |i| (entries[i] ^ last) >> o & 1 == 1);
        let polynomials: Vec<Monomials> = (0..output_bits).map(polynomial).collect();
        let high = Search::best(inputs, &polynomials, guarded);
        let low = (entries.len() - 1) ^ high;
        Self {
            entries: entries.to_vec(),
            output_bits,
            guarded,
            last,
            high,
            low,
            coefficients: coefficients(&polynomials, high, low),
        }
    }

    /// Tells whether this is the division of a table.
    pub(super) fn is_of(&self, entries: &[u32], output_bits: u32, guarded: bool) -> bool {
        (self.output_bits, self.guarded) == (output_bits, guarded) && self.entries == entries
    }

    /// Returns the coefficients of an output: one slice for each product of low bits.
    pub(super) fn output(&self, output: u32) -> impl Iterator<Item = &[u8]> {
        let groups = (1usize << self.high.count_ones()).div_ceil(GROUP);
        let each = groups << self.low.count_ones();
        self.coefficients[output as usize * each..][..each].chunks_exact(groups)
    }

    /// Returns the range of output numbers.
    pub(super) fn outputs(&self) -> std::ops::Range<u32> {
        0..self.output_bits
    }
}

fn coefficients(polynomials: &[Monomials], high: usize, low: usize) -> Vec<u8> {
    let subsets = |mask: usize| (0..1usize << mask.count_ones()).map(move |i| deposit(i, mask));
    let high: Vec<usize> = subsets(high).collect();
    let mut all = Vec::new();
    for polynomial in polynomials {
        for low in subsets(low) {
            all.extend(high.chunks(GROUP).map(|group| {
                let bits = group.iter().enumerate();
                bits.fold(0, |mask, (i, h)| {
                    mask | u8::from(polynomial.has(low | h)) << i
                })
            }));
        }
    }
    all
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

struct Search {
    inputs: u32,
    guarded: bool,
    /// The lowest cost so far and the high inputs that have it.
    best: (usize, usize),
}

/// A division that is still to be continued with lower low bits.
struct Partial {
    low: usize,
    /// The polynomials, with the low bits on top.
    polynomials: Vec<Monomials>,
    /// The products of high bits that any of them uses, with all bits at their own places.
    used: Monomials,
    steps: usize,
}

impl Search {
    /// Returns the high inputs of the cheapest division; the smallest number of equally cheap ones.
    fn best(inputs: u32, polynomials: &[Monomials], guarded: bool) -> usize {
        let mut used = Monomials::empty(inputs);
        polynomials.iter().for_each(|p| used.join(p));
        let mut search = Self {
            inputs,
            guarded,
            best: (usize::MAX, 0),
        };
        let whole = Partial {
            low: 0,
            polynomials: polynomials.to_vec(),
            used,
            steps: 0,
        };
        search.visit(&whole, inputs);
        search.best.1
    }

    /// Visits a division and all that come from it by low bits below `limit`.
    fn visit(&mut self, now: &Partial, limit: u32) {
        let high = ((1 << self.inputs) - 1) ^ now.low;
        self.best = self.best.min((self.products(&now.used) + now.steps, high));
        if now.low.count_ones() == MAX_LOW {
            return;
        }
        for bit in 0..limit {
            let place = self.inputs - 1 - now.low.count_ones();
            let mut polynomials = now.polynomials.clone();
            polynomials.iter_mut().for_each(|p| p.exchange(bit, place));
            let mut used = now.used.clone();
            used.forget(bit);
            let next = Partial {
                low: now.low | 1 << bit,
                steps: now.steps + self.steps(&polynomials, place),
                polynomials,
                used,
            };
            self.visit(&next, bit);
        }
    }

    /// Counts the AND gates of the high products. A product is built from the one without its
    /// lowest bit.
    fn products(&self, used: &Monomials) -> usize {
        let mut needed = used.clone();
        needed.close();
        needed.count(if self.guarded { 1 } else { 2 })
    }

    /// Counts the AND gates of the steps of one low bit: its different factors. None is needed for
    /// zero, nor for one if there is no guard.
    fn steps(&self, polynomials: &[Monomials], place: u32) -> usize {
        let mut words = Vec::new();
        let mut width = 1;
        for polynomial in polynomials {
            width = polynomial.factors(place, &mut words);
        }
        let trivial = u64::from(!self.guarded);
        let factors = words.chunks_exact(width);
        let counted = factors.filter(|f| f[0] > trivial || f[1..].iter().any(|w| *w != 0));
        let different: HashSet<&[u64], FixedState> = counted.collect();
        different.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts the AND gates of one division by the definition: every step told apart by its whole
    /// factor.
    fn cost(polynomials: &[Monomials], inputs: u32, high: usize, guarded: bool) -> usize {
        let low = ((1 << inputs) - 1) ^ high;
        let subsets = |mask: usize| (0..1usize << mask.count_ones()).map(move |i| deposit(i, mask));
        let mut products = HashSet::new();
        let mut steps = HashSet::new();
        for polynomial in polynomials {
            let coefficient =
                |l: usize| -> Vec<bool> { subsets(high).map(|h| polynomial.has(l | h)).collect() };
            let mut level: Vec<Vec<bool>> = subsets(low).map(coefficient).collect();
            for c in &level {
                for mut m in (0..c.len()).filter(|&m| c[m]) {
                    while m.count_ones() >= if guarded { 1 } else { 2 } && products.insert(m) {
                        m &= m - 1;
                    }
                }
            }
            while level.len() > 1 {
                for odd in level.iter().skip(1).step_by(2) {
                    let trivial = !guarded && odd[1..].iter().all(|x| !x);
                    if odd.contains(&true) && !trivial {
                        steps.insert(odd.clone());
                    }
                }
                level = level.chunks(2).map(|pair| pair.concat()).collect();
            }
        }
        products.len() + steps.len()
    }

    proptest! {
        #[test]
        fn the_search_finds_the_cheapest_division(
            entries in (1u32..=7).prop_flat_map(|n| {
                let one = prop_oneof![Just(0u32), Just(0b1011), 0u32..16, any::<u32>()];
                prop::collection::vec(one, 1usize << n)
            }),
            output_bits in 1u32..=8,
            guarded in any::<bool>(),
        ) {
            let inputs = entries.len().ilog2();
            let all = entries.len() - 1;
            let found = Divided::search(&entries, output_bits, guarded);
            let polynomials: Vec<Monomials> = (0..output_bits)
                .map(|o| {
                    Monomials::of_truth(inputs, |i| (entries[i] ^ found.last) >> o & 1 == 1)
                })
                .collect();
            let few = (0..=all).filter(|high| (all ^ high).count_ones() <= MAX_LOW);
            let costs = few.map(|high| (cost(&polynomials, inputs, high, guarded), high));
            prop_assert_eq!(found.high, costs.min().map_or(0, |(_, high)| high));
            prop_assert_eq!(found.low, all ^ found.high);
        }
    }

    #[test]
    fn bits_are_spread_over_a_mask() {
        assert_eq!(deposit(0b101, 0b11010), 0b10010);
    }
}

//! Sets of monomials, one bit each.
//!
//! A monomial of `n` variables is the set of its variables, written as a number below `2^n`; a
//! polynomial over GF(2) is the set of its monomials. Here a set is a string of `2^n` bits,
//! processed a whole word at a time.

/// Bits of a word whose position has the variable, for the variables that lie within a word.
const WITH: [u64; 6] = [
    0xaaaa_aaaa_aaaa_aaaa,
    0xcccc_cccc_cccc_cccc,
    0xf0f0_f0f0_f0f0_f0f0,
    0xff00_ff00_ff00_ff00,
    0xffff_0000_ffff_0000,
    0xffff_ffff_0000_0000,
];

/// The variables of a word's position.
const WITHIN: u32 = 6;

/// A set of monomials of a number of variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Monomials {
    variables: u32,
    words: Vec<u64>,
}

impl Monomials {
    /// Computes the polynomial of a truth table: entry `i` belongs to the inputs that are the bits
    /// of `i`.
    pub(super) fn of_truth(variables: u32, truth: impl Fn(usize) -> bool) -> Self {
        let mut set = Self::empty(variables);
        for i in (0..1usize << variables).filter(|&i| truth(i)) {
            set.words[i >> WITHIN] |= 1 << (i & 63);
        }
        // Every monomial adds up the entries of its subsets, one variable after the other.
        for v in 0..variables {
            if v < WITHIN {
                let with = WITH[v as usize];
                set.words
                    .iter_mut()
                    .for_each(|w| *w ^= *w << (1 << v) & with);
            } else {
                let step = 1usize << (v - WITHIN);
                for i in (0..set.words.len()).filter(|i| i & step != 0) {
                    set.words[i] ^= set.words[i ^ step];
                }
            }
        }
        set
    }

    /// Returns the set without monomials.
    pub(super) fn empty(variables: u32) -> Self {
        Self {
            variables,
            words: vec![0; 1 << variables.saturating_sub(WITHIN)],
        }
    }

    /// Tells whether a monomial is in the set.
    pub(super) fn has(&self, monomial: usize) -> bool {
        self.words[monomial >> WITHIN] >> (monomial & 63) & 1 == 1
    }

    /// Adds all monomials of another set.
    pub(super) fn join(&mut self, other: &Self) {
        let pairs = self.words.iter_mut().zip(&other.words);
        pairs.for_each(|(a, b)| *a |= b);
    }

    /// Strikes a variable out of all monomials.
    pub(super) fn forget(&mut self, variable: u32) {
        if variable < WITHIN {
            let with = WITH[variable as usize];
            for w in &mut self.words {
                *w = (*w | (*w & with) >> (1 << variable)) & !with;
            }
        } else {
            let step = 1usize << (variable - WITHIN);
            for i in (0..self.words.len()).filter(|i| i & step != 0) {
                let moved = std::mem::take(&mut self.words[i]);
                self.words[i ^ step] |= moved;
            }
        }
    }

    /// Exchanges two variables, `a <= b`.
    pub(super) fn exchange(&mut self, a: u32, b: u32) {
        if a == b {
            return;
        }
        let words = &mut self.words;
        let step = |v: u32| 1usize << (v - WITHIN);
        if b < WITHIN {
            let (by, only_a) = ((1 << b) - (1 << a), WITH[a as usize] & !WITH[b as usize]);
            for w in words {
                let change = (*w >> by ^ *w) & only_a;
                *w ^= change ^ change << by;
            }
        } else if a < WITHIN {
            let (by, without) = (1 << a, !WITH[a as usize]);
            for i in (0..words.len()).filter(|i| i & step(b) != 0) {
                let change = (words[i ^ step(b)] >> by ^ words[i]) & without;
                words[i] ^= change;
                words[i ^ step(b)] ^= change << by;
            }
        } else {
            for i in (0..words.len()).filter(|i| i & step(a) != 0 && i & step(b) == 0) {
                words.swap(i, i ^ step(a) ^ step(b));
            }
        }
    }

    /// Adds to every monomial what is left of it without its lowest variable, and so on.
    pub(super) fn close(&mut self) {
        for v in 0..self.variables {
            if v < WITHIN {
                let lower = WITH[..v as usize].iter().fold(0, |all, with| all | with);
                let lowest = WITH[v as usize] & !lower;
                for w in &mut self.words {
                    *w |= (*w & lowest) >> (1 << v);
                }
            } else {
                let step = 1usize << (v - WITHIN);
                for i in (step..self.words.len()).step_by(2 * step) {
                    self.words[i ^ step] |= self.words[i] & 1;
                }
            }
        }
    }

    /// Counts the monomials that have at least `degree` variables, 1 or 2.
    pub(super) fn count(&self, degree: u32) -> usize {
        let all: u32 = self.words.iter().map(|w| w.count_ones()).sum();
        let singles = (0..self.variables).filter(|v| degree > 1 && self.has(1 << v));
        all as usize - usize::from(self.has(0)) - singles.count()
    }

    /// Appends what `variable` is multiplied by, once for every set of the variables above it: a
    /// polynomial in the variables below. Returns the number of words of one.
    pub(super) fn factors(&self, variable: u32, into: &mut Vec<u64>) -> usize {
        if variable >= WITHIN {
            let width = 1 << (variable - WITHIN);
            let blocks = self.words.chunks_exact(width).skip(1).step_by(2);
            blocks.for_each(|block| into.extend(block));
            return width;
        }
        let size = 1u32 << variable;
        let mask = (1u64 << size) - 1;
        for w in &self.words {
            into.extend(
                (size..64)
                    .step_by(2 * size as usize)
                    .map(|at| w >> at & mask),
            );
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn members(set: &Monomials) -> Vec<usize> {
        (0..1 << set.variables).filter(|&m| set.has(m)).collect()
    }

    fn set(variables: u32, members: &[usize]) -> Monomials {
        let mut set = Monomials::empty(variables);
        for m in members {
            set.words[m >> WITHIN] |= 1 << (m & 63);
        }
        set
    }

    /// Generates a set and two of its variables in order.
    fn sets() -> impl Strategy<Value = (Monomials, u32, u32)> {
        (1u32..=9).prop_flat_map(|n| {
            let members = prop::collection::vec(0..1usize << n, 0..40);
            (members, 0..n, 0..n).prop_map(move |(m, a, b)| (set(n, &m), a.min(b), a.max(b)))
        })
    }

    #[test]
    fn polynomials_of_known_functions() {
        // x0 OR x1 = x0 + x1 + x0·x1.
        let or = Monomials::of_truth(2, |i| i != 0);
        assert_eq!(members(&or), [0b01, 0b10, 0b11]);
        let and = Monomials::of_truth(8, |i| i & 0b1000_0010 == 0b1000_0010);
        assert_eq!(members(&and), [0b1000_0010]);
        let not = Monomials::of_truth(7, |i| i >> 6 == 0);
        assert_eq!(members(&not), [0, 0b100_0000]);
    }

    proptest! {
        #[test]
        fn variables_are_exchanged_and_forgotten((before, a, b) in sets()) {
            let mut after = before.clone();
            after.exchange(a, b);
            let moved = |m: usize| {
                let differ = (m >> a ^ m >> b) & 1;
                m ^ differ << a ^ if a == b { 0 } else { differ << b }
            };
            let want: Vec<usize> = members(&before).into_iter().map(moved).collect();
            prop_assert_eq!(&after, &set(before.variables, &want));
            after = before.clone();
            after.forget(b);
            let want: Vec<usize> = members(&before).iter().map(|m| m & !(1 << b)).collect();
            prop_assert_eq!(&after, &set(before.variables, &want));
        }

        #[test]
        fn closing_adds_what_products_are_built_from((before, ..) in sets()) {
            let mut after = before.clone();
            after.close();
            let mut want = Vec::new();
            for mut m in members(&before) {
                want.push(m);
                while m != 0 {
                    m &= m - 1;
                    want.push(m);
                }
            }
            prop_assert_eq!(&after, &set(before.variables, &want));
            for degree in [1, 2] {
                let many = members(&after).iter().filter(|m| m.count_ones() >= degree).count();
                prop_assert_eq!(after.count(degree), many);
            }
        }

        #[test]
        fn factors_are_what_a_variable_is_multiplied_by((poly, v, _) in sets()) {
            let mut words = Vec::new();
            let width = poly.factors(v, &mut words);
            for (above, factor) in words.chunks_exact(width).enumerate() {
                let base = 1 << v | above << (v + 1);
                for below in 0..1 << v {
                    let here = base < 1 << poly.variables && poly.has(base | below);
                    prop_assert_eq!(factor[below >> WITHIN] >> (below & 63) & 1 == 1, here);
                }
            }
            prop_assert!(words.len() / width >= 1 << (poly.variables - v - 1));
        }
    }
}

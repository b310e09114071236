//! What a secret string of bits selects from a public table: sums, and parities of bits.
//!
//! ```text
//! sum      Σ_j bit_j · entry[(j + shift) mod N]
//! parity   of the bits of the same entries, position by position
//! ```
//!
//! for tables of `N` entries, a power of two from 16 to 1024. This is how two parties look up an
//! entry whose index neither of them knows: their strings differ in one place only, so their sums
//! differ by that entry, and so do their parities.
//!
//! The string is secret: every entry is read, and a mask decides whether it counts. The shift is
//! public. It chooses where reading starts in a table that is stored twice, one copy after the
//! other.
//!
//! **Sums.** Entries have at most 40 bits with their sign, so 1024 of them stay below 2^50. The
//! vector form turns a word of the string into masks by moving it left: the top bit of each of four
//! lanes is the bit that decides, four entries further with every step. Where all entries of a
//! table together stay below 2^31, as those of short tables do, there are eight lanes of half the
//! width.

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::modulus;
use zeroize::Zeroize;

/// The largest number of entries of a table.
pub const MAX_ENTRIES: usize = 1024;
/// The smallest number of entries of a table.
pub const MIN_ENTRIES: usize = 16;
/// Bits of an entry, at most, with the sign, so that it is a residue of its own.
pub const MAX_ENTRY_BITS: u32 = modulus::K - 1;
const _: () = assert!(1 << (MAX_ENTRY_BITS - 1) <= modulus::P / 2);
const _: () = assert!((MAX_ENTRIES as u64) << (MAX_ENTRY_BITS - 1) <= 1 << 50);
/// Words of the longest string.
const MAX_WORDS: usize = MAX_ENTRIES / 64;

/// The form of the inner loop that runs. Only detection makes the vector form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Kernel {
    fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Self::Avx2;
        }
        Self::Portable
    }
}

/// A table of numbers.
pub struct Numbers {
    doubled: Doubled,
    kernel: Kernel,
}

/// The entries twice, in 32 bits if any sum of them fits.
enum Doubled {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

/// The smallest number of entries of a narrow table: the bits of a word.
const NARROW_WORD: usize = 32;

impl Doubled {
    fn new(entries: &[i64]) -> Self {
        let doubled = [entries, entries].concat();
        let largest: i64 = entries.iter().map(|e| e.abs()).sum();
        if largest > i64::from(i32::MAX) || entries.len() < NARROW_WORD {
            return Self::Wide(doubled);
        }
        Self::Narrow(doubled.into_iter().map(|e| e as i32).collect())
    }
}

impl Numbers {
    /// Makes a table with these entries.
    ///
    /// # Panics
    /// If their number is not a power of two from 16 to 1024, or one has more than
    /// [`MAX_ENTRY_BITS`] bits.
    pub fn new(entries: &[i64]) -> Self {
        check_size(entries.len());
        let half = 1i64 << (MAX_ENTRY_BITS - 1);
        assert!(
            entries.iter().all(|e| (-half..half).contains(e)),
            "entries have at most {MAX_ENTRY_BITS} bits"
        );
        Self {
            doubled: Doubled::new(entries),
            kernel: Kernel::detect(),
        }
    }

    /// Returns the number of entries of the table.
    pub fn size(&self) -> usize {
        match &self.doubled {
            Doubled::Narrow(doubled) => doubled.len() / 2,
            Doubled::Wide(doubled) => doubled.len() / 2,
        }
    }

    /// Computes the sums for many strings, modulo p. A string has a bit for each entry, packed,
    /// least significant bit first.
    ///
    /// # Panics
    /// If there are not as many strings and results as shifts, or a shift is not below the number
    /// of entries.
    pub fn sums(&self, strings: &[u8], shifts: &[u16], out: &mut [u64]) {
        let size = self.size();
        assert_eq!(
            strings.len(),
            shifts.len() * size / 8,
            "a string for each shift"
        );
        assert_eq!(out.len(), shifts.len(), "a sum for each shift");
        assert!(
            shifts.iter().all(|&shift| usize::from(shift) < size),
            "shifts are below the number of entries"
        );
        match (self.kernel, &self.doubled) {
            (Kernel::Portable, Doubled::Narrow(doubled)) => sums(doubled, strings, shifts, out),
            (Kernel::Portable, Doubled::Wide(doubled)) => sums(doubled, strings, shifts, out),
            #[cfg(target_arch = "x86_64")]
            (Kernel::Avx2, Doubled::Narrow(doubled)) => {
                avx2::narrow_sums(doubled, strings, shifts, out);
            }
            #[cfg(target_arch = "x86_64")]
            (Kernel::Avx2, Doubled::Wide(doubled)) => avx2::sums(doubled, strings, shifts, out),
        }
    }
}

fn check_size(size: usize) {
    assert!(
        size.is_power_of_two() && (MIN_ENTRIES..=MAX_ENTRIES).contains(&size),
        "a table has 16 to 1024 entries, a power of two"
    );
}

/// Returns up to 64 bits of a string.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(whole) => u64::from_le_bytes(*whole),
        None => bytes.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b)),
    }
}

fn sums<T: Copy + Into<i64>>(doubled: &[T], strings: &[u8], shifts: &[u16], out: &mut [u64]) {
    let size = doubled.len() / 2;
    let strings = strings.chunks_exact(size / 8);
    for ((string, &shift), out) in strings.zip(shifts).zip(out) {
        let entries = &doubled[usize::from(shift)..][..size];
        let mut sum = 0;
        for (bytes, entries) in string.chunks(8).zip(entries.chunks(64)) {
            let bits = word(bytes);
            for (i, &entry) in entries.iter().enumerate() {
                sum += entry.into() & ((bits >> i & 1) as i64).wrapping_neg();
            }
        }
        *out = modulus::from_signed(sum);
    }
}

/// A table of short strings of bits.
pub struct Columns {
    size: usize,
    /// For each bit of an entry, that bit of all entries.
    columns: Vec<[u64; MAX_WORDS]>,
}

impl Columns {
    /// Makes a table whose entries are the lowest `bits` bits of these, 64 at most.
    ///
    /// # Panics
    /// If their number is not a power of two from 16 to 1024, or more than 64 bits are asked for.
    pub fn new(entries: &[i64], bits: u32) -> Self {
        check_size(entries.len());
        assert!(bits <= u64::BITS, "entries have at most 64 bits");
        let column = |bit: u32| {
            let mut words = [0; MAX_WORDS];
            for (i, entry) in entries.iter().enumerate() {
                words[i / 64] |= (*entry as u64 >> bit & 1) << (i % 64);
            }
            words
        };
        Self {
            size: entries.len(),
            columns: (0..bits).map(column).collect(),
        }
    }

    /// Returns the number of entries of the table.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Returns the parities for one string: bit `o` is that of the selected entries' bits `o`.
    ///
    /// # Panics
    /// If the string does not have a bit for each entry, or the shift is not below their number.
    pub fn parities(&self, string: &[u8], shift: u16) -> u64 {
        let shift = usize::from(shift);
        assert_eq!(string.len(), self.size / 8, "a bit for each entry");
        assert!(shift < self.size, "shifts are below the number of entries");
        let mut turned = [0; MAX_WORDS];
        turn(string, shift, &mut turned);
        let words = self.size.div_ceil(64);
        let mut all = 0;
        for (o, column) in self.columns.iter().enumerate() {
            let pairs = turned[..words].iter().zip(column);
            let folded = pairs.fold(0, |folded, (t, c)| folded ^ (t & c));
            all |= u64::from(folded.count_ones() & 1) << o;
        }
        turned.zeroize();
        all
    }
}

/// Moves bit `j` of the string to place `(j + shift) mod N`.
fn turn(string: &[u8], shift: usize, out: &mut [u64; MAX_WORDS]) {
    let size = 8 * string.len();
    if size < 64 {
        let bits = word(string);
        out[0] = (bits << shift | bits >> (size - shift)) & ((1 << size) - 1);
        return;
    }
    // A power of two: a remainder is a mask, which takes no division.
    let (last, whole, rest) = (size / 64 - 1, shift / 64, shift % 64);
    for (k, bytes) in string.chunks_exact(8).enumerate() {
        let bits = word(bytes);
        out[(k + whole) & last] |= bits << rest;
        // In two steps: a shift by 64 is none.
        out[(k + whole + 1) & last] |= bits >> 1 >> (63 - rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prg::Prg;
    use rand_core::Rng;

    const SIZES: [usize; 7] = [16, 32, 64, 128, 256, 512, 1024];

    fn strings(size: usize, count: usize, prg: &mut Prg) -> Vec<u8> {
        let mut strings = vec![0; count * size / 8];
        prg.fill(&mut strings);
        strings
    }

    fn bit(string: &[u8], j: usize) -> bool {
        string[j / 8] >> (j % 8) & 1 == 1
    }

    /// Checks both forms against the definition, with full-length and short entries of both signs.
    #[test]
    fn sums_are_what_they_say() {
        let mut prg = Prg::new(&[1; 16]);
        for (size, dropped) in SIZES.into_iter().flat_map(|size| [(size, 24), (size, 44)]) {
            let entries: Vec<i64> = (0..size)
                .map(|_| prg.next_u64() as i64 >> dropped)
                .collect();
            let mut shifts: Vec<u16> = (0..50).map(|i| (i * 37 % size) as u16).collect();
            shifts.push(size as u16 - 1);
            let mut all = strings(size, shifts.len() - 2, &mut prg);
            all.extend(vec![0xff; size / 8]);
            all.extend(vec![0; size / 8]);
            let mut table = Numbers::new(&entries);
            let narrow = matches!(table.doubled, Doubled::Narrow(_));
            assert_eq!(narrow, dropped == 44 && size >= NARROW_WORD);
            let mut found = vec![0; shifts.len()];
            table.sums(&all, &shifts, &mut found);
            for ((string, &shift), &found) in all.chunks(size / 8).zip(&shifts).zip(&found) {
                let selected = (0..size).filter(|&j| bit(string, j));
                let sum: i64 = selected
                    .map(|j| entries[(j + usize::from(shift)) % size])
                    .sum();
                assert_eq!(found, modulus::from_signed(sum), "{size} {shift}");
            }
            table.kernel = Kernel::Portable;
            let mut portable = vec![0; shifts.len()];
            table.sums(&all, &shifts, &mut portable);
            assert_eq!(portable, found);
        }
    }

    #[test]
    fn extreme_entries_do_not_overflow() {
        // The longest of each width: 2^21 - 1 is the largest of which 1024 fit 31 bits.
        for entry in [
            -(1 << (MAX_ENTRY_BITS - 1)),
            (1 << (MAX_ENTRY_BITS - 1)) - 1,
            -(1 << 21),
            1 << 21,
            (1 << 21) - 1,
        ] {
            let table = Numbers::new(&[entry; 1024]);
            let mut sum = [0];
            table.sums(&[0xff; 128], &[77], &mut sum);
            assert_eq!(sum[0], modulus::from_signed(1024 * entry));
        }
    }

    #[test]
    fn parities_are_what_they_say() {
        let mut prg = Prg::new(&[2; 16]);
        for size in SIZES {
            let entries: Vec<i64> = (0..size).map(|_| prg.next_u64() as i64).collect();
            for bits in [1, 20, 64] {
                let table = Columns::new(&entries, bits);
                for shift in [0, 1, size / 2, 63 % size, 64 % size, 65 % size, size - 1] {
                    let string = strings(size, 1, &mut prg);
                    let selected = (0..size).filter(|&j| bit(&string, j));
                    let folded = selected.fold(0, |x, j| x ^ entries[(j + shift) % size] as u64);
                    let wanted = folded & (u64::MAX >> (64 - bits));
                    assert_eq!(
                        table.parities(&string, shift as u16),
                        wanted,
                        "{size} {shift}"
                    );
                }
            }
        }
    }

    /// Checks that sums and parities of two strings that differ in one place differ by its entry.
    #[test]
    fn one_place_is_one_entry() {
        let mut prg = Prg::new(&[3; 16]);
        let entries: Vec<i64> = (0..256).map(|_| prg.next_u64() as i64 >> 44).collect();
        let (numbers, columns) = (Numbers::new(&entries), Columns::new(&entries, 20));
        for place in 0..256usize {
            let one = strings(256, 1, &mut prg);
            let mut other = one.clone();
            other[place / 8] ^= 1 << (place % 8);
            let shift = (prg.next_u32() % 256) as u16;
            let entry = entries[(place + usize::from(shift)) % 256];
            let mut found = [0; 2];
            numbers.sums(&[&one[..], &other].concat(), &[shift; 2], &mut found);
            let sign = if bit(&other, place) { 1 } else { -1 };
            let difference = modulus::sub(found[1], found[0]);
            assert_eq!(modulus::to_signed(difference), sign * entry);
            let parities = columns.parities(&one, shift) ^ columns.parities(&other, shift);
            assert_eq!(parities, entry as u64 & ((1 << 20) - 1));
        }
    }

    #[test]
    #[should_panic(expected = "at most 40 bits")]
    fn long_entries_are_refused() {
        Numbers::new(&[1 << (MAX_ENTRY_BITS - 1); 16]);
    }
}

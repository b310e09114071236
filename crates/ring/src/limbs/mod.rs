//! Products of residues by short integers, on limbs that fit a 16-bit multiplier.
//!
//! A residue of 41 bits is cut into four limbs of eleven bits, each between `-2^10` and `2^10`. The
//! machine multiplies sixteen pairs of 16-bit numbers at once and adds neighbours; so the inner
//! dimension runs in pairs, and four vectors of sums, one for each limb, grow by one such
//! instruction and one addition a step.
//!
//! **Sums.** A step adds two products of a limb and a weight: at most `2·2^10·2^15 = 2^26`.
//! [`BLOCK`] `= 31` steps stay below `2^31`, so a block is summed in 32 bits; then limbs are joined
//! two by two, `low = s0 + 2^11·s1` and `high = s2 + 2^11·s3`, and added up in 64 bits. A product
//! of `k` rows has `|low| ≤ k·2^25·(1 + 2^11) < k·2^36.01`, and `|high|` no more, which fits for
//! `k` up to `2^25` even with a multiple of p near `2^62` added against the sign. The result is
//! `low + 2^22·high`.
//!
//! **Order.** Weights are read once, a panel of [`COLUMNS`] columns at a time, and interleaved in
//! pairs on the way; that is done again for every product, as it costs little beside the thirty
//! rows that use them. Limbs of [`DEPTH`] pairs of all rows fill half of the second-level cache, a
//! block of a panel an eighth of the first.

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::modulus;
use zeroize::optimization_barrier;

/// Limbs of a residue.
const LIMBS: usize = 4;
/// Bits of a limb.
const BITS: u32 = 11;
/// Columns of a panel: two vectors of 32-bit sums for each limb. Three would not leave the
/// registers room.
const COLUMNS: usize = 16;
/// Pairs of rows whose sums fit 32 bits.
const BLOCK: usize = 31;
/// Pairs of rows that are cut into limbs at once.
const DEPTH: usize = 16 * BLOCK;
/// Most rows of the right side.
const MAX_INNER: usize = 1 << 25;

/// The limbs of two neighbours of a row: `[limb][neighbour]`.
type Limbs = [[i16; 2]; LIMBS];
/// Two rows of a panel, interleaved: `[column][row]`.
type Pair = [[i16; 2]; COLUMNS];

/// Sums of one row in one panel.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Sums {
    /// `s0 + 2^11·s1` of each column.
    low: [i64; COLUMNS],
    /// `s2 + 2^11·s3` of each column.
    high: [i64; COLUMNS],
}

const ZERO: Sums = Sums {
    low: [0; COLUMNS],
    high: [0; COLUMNS],
};

const NOTHING: Pair = [[0; 2]; COLUMNS];

/// Which form of the inner loop runs. Only looking finds the vector form.
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

    /// Adds the products of one row and one block of a panel.
    #[inline(always)]
    fn block(self, limbs: &[Limbs], panel: &[Pair], sums: &mut Sums) {
        assert!(limbs.len() == panel.len() && limbs.len() <= BLOCK);
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::block(limbs, panel, sums),
            Self::Portable => portable(limbs, panel, sums),
        }
    }

    /// A panel of the right side.
    fn interleave(self, right: &[i16], cols: usize, first: usize, out: &mut [Pair]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::interleave(right, cols, first, out),
            Self::Portable => interleave(right, cols, first, out),
        }
    }

    /// The residues of sums.
    #[inline(always)]
    fn finish(self, sums: &Sums, out: &mut [u64]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::finish(sums, out),
            Self::Portable => finish(sums, out),
        }
    }

    /// The limbs of some neighbours of a row; with an odd number the last is paired with zero.
    fn cut(self, row: &[u64], out: &mut [Limbs]) {
        assert!(out.len() == row.len().div_ceil(2));
        let (pairs, rest) = row.as_chunks();
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::cut_pairs(pairs, out),
            Self::Portable => cut_pairs(pairs, out),
        }
        if let ([last], Some(out)) = (rest, out.last_mut()) {
            *out = cut::<BITS, LIMBS>(*last).map(|limb| [limb, 0]);
        }
    }
}

#[inline(always)]
fn cut_pairs(pairs: &[[u64; 2]], out: &mut [Limbs]) {
    for (pair, out) in pairs.iter().zip(out) {
        let [a, b] = pair.map(cut::<BITS, LIMBS>);
        *out = std::array::from_fn(|l| [a[l], b[l]]);
    }
}

#[inline(always)]
fn finish(sums: &Sums, out: &mut [u64]) {
    // A multiple of p above every sum.
    const LIFT: i64 = (modulus::P << 21) as i64;
    for ((out, low), high) in out.iter_mut().zip(&sums.low).zip(&sums.high) {
        let [low, high] = [low, high].map(|sum| modulus::reduce((sum + LIFT) as u64));
        // Below 2^63 + 2^41.
        *out = modulus::reduce((high << (2 * BITS)) + low);
    }
}

fn portable(limbs: &[Limbs], panel: &[Pair], sums: &mut Sums) {
    let mut short = [[0i32; COLUMNS]; LIMBS];
    for (limbs, pair) in limbs.iter().zip(panel) {
        for (short, limb) in short.iter_mut().zip(limbs) {
            for (s, w) in short.iter_mut().zip(pair) {
                *s += i32::from(limb[0]) * i32::from(w[0]) + i32::from(limb[1]) * i32::from(w[1]);
            }
        }
    }
    let join = |l: usize, c: usize| i64::from(short[l][c]) + (i64::from(short[l + 1][c]) << BITS);
    for c in 0..COLUMNS {
        sums.low[c] += join(0, c);
        sums.high[c] += join(2, c);
    }
}

/// A residue as limbs: `Σ_i limb_i·2^(BITS·i)`. All but the last lie between `-2^(BITS-1)` and
/// `2^(BITS-1)`; the last holds the remaining bits, of which 41 leave few enough.
#[inline(always)]
fn cut<const BITS: u32, const LIMBS: usize>(residue: u64) -> [i16; LIMBS] {
    debug_assert!(residue < modulus::P);
    let (half, last) = (1u64 << (BITS - 1), LIMBS - 1);
    // With half a unit added to each limb they are plain digits.
    let shifted = residue + (0..last).fold(0, |sum, i| sum + (half << (BITS * i as u32)));
    std::array::from_fn(|i| {
        let digit = shifted >> (BITS * i as u32);
        if i == last {
            digit as i16
        } else {
            ((digit & (2 * half - 1)) as i16) - half as i16
        }
    })
}

/// Buffers kept from one product to the next. They hold shares and are wiped.
#[derive(Default)]
pub(crate) struct Scratch {
    limbs: Vec<Limbs>,
    panel: Vec<Pair>,
    sums: Vec<Sums>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.limbs.fill(Limbs::default());
        self.panel.fill(NOTHING);
        self.sums.fill(ZERO);
        // Number by number, as `zeroize` does it, would take as long as a small product.
        optimization_barrier(self.limbs.as_slice());
        optimization_barrier(self.panel.as_slice());
        optimization_barrier(self.sums.as_slice());
    }
}

/// `left · right` modulo p; both lie in rows, `left` of `inner` residues, `right` of `cols` short
/// integers.
pub(crate) fn product(
    left: &[u64],
    right: &[i16],
    inner: usize,
    cols: usize,
    scratch: &mut Scratch,
) -> Vec<u64> {
    run(Kernel::detect(), left, right, inner, cols, scratch)
}

fn run(
    kernel: Kernel,
    left: &[u64],
    right: &[i16],
    inner: usize,
    cols: usize,
    scratch: &mut Scratch,
) -> Vec<u64> {
    assert!(right.len() == inner * cols && inner <= MAX_INNER);
    if inner == 0 || cols == 0 || left.is_empty() {
        return Vec::new();
    }
    assert!(left.len().is_multiple_of(inner));
    let rows = left.len() / inner;
    let panels = cols.div_ceil(COLUMNS);
    let Scratch { limbs, panel, sums } = scratch;
    sums.clear();
    sums.resize(panels * rows, ZERO);
    for first in (0..inner).step_by(2 * DEPTH) {
        let depth = (inner - first).min(2 * DEPTH);
        let pairs = depth.div_ceil(2);
        limbs.resize(rows * pairs, Limbs::default());
        for (row, out) in left.chunks_exact(inner).zip(limbs.chunks_exact_mut(pairs)) {
            kernel.cut(&row[first..first + depth], out);
        }
        let right = &right[first * cols..][..depth * cols];
        for (p, sums) in sums.chunks_exact_mut(rows).enumerate() {
            panel.resize(pairs, NOTHING);
            kernel.interleave(right, cols, p * COLUMNS, panel);
            for (at, panel) in panel.chunks(BLOCK).enumerate() {
                for (limbs, sums) in limbs.chunks_exact(pairs).zip(&mut *sums) {
                    kernel.block(&limbs[at * BLOCK..][..panel.len()], panel, sums);
                }
            }
        }
    }
    let mut out = vec![0; rows * cols];
    for (r, out) in out.chunks_exact_mut(cols).enumerate() {
        for (p, out) in out.chunks_mut(COLUMNS).enumerate() {
            kernel.finish(&sums[p * rows + r], out);
        }
    }
    out
}

/// Some columns of a matrix in pairs of rows; what lies outside is zero.
#[inline(always)]
fn interleave(right: &[i16], cols: usize, first: usize, out: &mut [Pair]) {
    for (rows, out) in right.chunks(2 * cols).zip(out) {
        let (a, b) = rows.split_at(cols);
        let (a, b) = (&a[first..], b.get(first..).unwrap_or(&[]));
        if let (Some(a), Some(b)) = (a.first_chunk::<COLUMNS>(), b.first_chunk::<COLUMNS>()) {
            for (pair, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
                *pair = [*a, *b];
            }
        } else {
            for (c, pair) in out.iter_mut().enumerate() {
                *pair = [a, b].map(|row| row.get(c).map_or(0, |v| *v));
            }
        }
    }
}

/// Bits of a limb of a residue on the right.
const RIGHT_BITS: u32 = 14;
/// Limbs of a residue on the right: between `-2^13` and `2^13`, so short integers.
const RIGHT_LIMBS: usize = 3;

/// `left · right` modulo p for residues on both sides: the right side's limbs are columns beside
/// each other.
pub(crate) fn product_residues(
    left: &[u64],
    right: &[u64],
    inner: usize,
    cols: usize,
    scratch: &mut Scratch,
) -> Vec<u64> {
    let mut short = vec![0i16; RIGHT_LIMBS * right.len()];
    if cols > 0 {
        for (row, out) in right
            .chunks_exact(cols)
            .zip(short.chunks_exact_mut(RIGHT_LIMBS * cols))
        {
            for (c, &v) in row.iter().enumerate() {
                for (l, limb) in cut::<RIGHT_BITS, RIGHT_LIMBS>(v).into_iter().enumerate() {
                    out[l * cols + c] = limb;
                }
            }
        }
    }
    let wide = product(left, &short, inner, RIGHT_LIMBS * cols, scratch);
    short.fill(0);
    optimization_barrier(short.as_slice());
    let mut out = Vec::with_capacity(wide.len() / RIGHT_LIMBS);
    for row in wide.chunks_exact((RIGHT_LIMBS * cols).max(1)) {
        out.extend((0..cols).map(|c| {
            (0..RIGHT_LIMBS).rev().fold(0, |sum, l| {
                modulus::reduce((sum << RIGHT_BITS) + row[l * cols + c])
            })
        }));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modulus::P;
    use crate::prg::Prg;
    use proptest::prelude::*;
    use rand_core::Rng;

    fn kernels() -> Vec<Kernel> {
        let mut all = vec![Kernel::Portable];
        if Kernel::detect() != Kernel::Portable {
            all.push(Kernel::detect());
        }
        all
    }

    fn schoolbook(left: &[u64], right: &[u64], inner: usize, cols: usize) -> Vec<u64> {
        left.chunks_exact(inner)
            .flat_map(|row| {
                (0..cols).map(move |c| {
                    let terms = row.iter().enumerate();
                    terms.fold(0, |sum, (i, v)| {
                        modulus::add(sum, modulus::mul(*v, right[i * cols + c]))
                    })
                })
            })
            .collect()
    }

    fn check(left: &[u64], right: &[i16], inner: usize, cols: usize) {
        let residues: Vec<u64> = right
            .iter()
            .map(|v| modulus::from_signed((*v).into()))
            .collect();
        let want = schoolbook(left, &residues, inner, cols);
        for kernel in kernels() {
            let mut scratch = Scratch::default();
            // Twice: nothing of a product may stay in the buffers.
            for _ in 0..2 {
                let got = run(kernel, left, right, inner, cols, &mut scratch);
                assert!(got == want, "{kernel:?}, {inner} by {cols}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn is_schoolbook(
            rows in 1usize..5,
            inner in 1usize..150,
            cols in 1usize..60,
            seed in any::<[u8; 16]>(),
        ) {
            let mut rng = Prg::new(&seed);
            let mut draw =
                |len| -> Vec<u64> { (0..len).map(|_| modulus::random(&mut rng)).collect() };
            let (left, right) = (draw(rows * inner), draw(inner * cols));
            let short: Vec<i16> = right.iter().map(|v| *v as i16).collect();
            check(&left, &short, inner, cols);
            let got = product_residues(&left, &right, inner, cols, &mut Scratch::default());
            prop_assert!(got == schoolbook(&left, &right, inner, cols));
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        // Residues with all limbs at their lowest or highest, and the ends of the range.
        let lowest = |sign: i64, top: i64| {
            (0..3).fold(top << 33, |sum, i| sum + (sign << (10 + 11 * i))) as u64
        };
        let residues = [
            lowest(-1, 256),
            lowest(-1, 1),
            lowest(1, 255) - (1 << 22 | 1 << 11 | 1),
            P / 2,
            P - 1,
            0,
        ];
        // Two blocks to the brim, more than one depth, and an odd rest.
        for inner in [4 * BLOCK, 2 * DEPTH + 2 * BLOCK + 1] {
            for residue in residues {
                for weight in [i16::MIN, -i16::MAX, i16::MAX] {
                    let left = vec![residue; inner];
                    check(&left, &vec![weight; inner * 3], inner, 3);
                    let got = product_residues(
                        &left,
                        &vec![residue; inner],
                        inner,
                        1,
                        &mut Scratch::default(),
                    );
                    assert!(got == schoolbook(&left, &vec![residue; inner], inner, 1));
                }
            }
        }
    }

    #[test]
    fn limbs_are_within_their_bounds_and_sum_up() {
        let mut rng = Prg::new(&[3; 16]);
        let edges = [0, 1, P / 2, P / 2 + 1, P - 1];
        for v in edges
            .into_iter()
            .chain((0..1000).map(|_| rng.next_u64() % P))
        {
            fn sum<const BITS: u32, const LIMBS: usize>(v: u64, bound: i16) -> u64 {
                let limbs = cut::<BITS, LIMBS>(v);
                assert!(
                    limbs.iter().all(|l| (-bound..=bound).contains(l)),
                    "{v}: {limbs:?}"
                );
                limbs
                    .iter()
                    .rev()
                    .fold(0i64, |sum, l| (sum << BITS) + i64::from(*l)) as u64
            }
            assert_eq!(sum::<BITS, LIMBS>(v, 1 << 10), v);
            assert_eq!(sum::<RIGHT_BITS, RIGHT_LIMBS>(v, 1 << 13), v);
        }
    }
}

//! The products against their definition, in every form.

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
    let packed = Packed::from_rows(right, inner, cols);
    for kernel in kernels() {
        let mut scratch = Scratch::default();
        // Twice: a product must leave nothing behind in the buffers.
        for _ in 0..2 {
            let got = run(kernel, left, &packed, &mut scratch);
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

/// Returns the residues whose limbs are all at their lowest or highest, and the ends of the range.
fn extremes() -> [u64; 6] {
    let joined = |limb: i64, top: i64| ((top << 28) + (limb << 14) + limb) as u64;
    let (lowest, highest) = (1 - (1 << 13), 1 << 13);
    [
        joined(lowest, 1 << 13),
        joined(lowest, 1),
        joined(highest, (1 << 13) - 1),
        P / 2,
        P - 1,
        0,
    ]
}

#[test]
fn extremes_do_not_overflow() {
    // Whole blocks to the brim, and an odd rest; weights of 15 bits, then of 16.
    for inner in [4 * STEPS, 4 * PAIRS + 2 * STEPS + 1] {
        for residue in extremes() {
            let left = vec![residue; inner];
            for weight in [
                -1 << 14,
                (1 << 14) - 1,
                1 << 14,
                i16::MIN,
                -i16::MAX,
                i16::MAX,
            ] {
                check(&left, &vec![weight; inner * 3], inner, 3);
            }
            let right = vec![residue; inner];
            let got = product_residues(&left, &right, inner, 1, &mut Scratch::default());
            assert!(got == schoolbook(&left, &right, inner, 1));
        }
    }
}

#[test]
fn the_longest_sums_do_not_overflow() {
    let inner = MAX_INNER;
    let residues = extremes();
    for (residue, weight) in [
        (residues[0], i16::MIN),
        (residues[2], i16::MIN),
        (residues[2], i16::MAX),
    ] {
        let (left, right) = (vec![residue; inner], vec![weight; inner]);
        let terms = modulus::mul(residue, modulus::from_signed(weight.into()));
        let want = modulus::mul(terms, inner as u64);
        let right = Packed::from_rows(&right, inner, 1);
        for kernel in kernels() {
            let got = run(kernel, &left, &right, &mut Scratch::default());
            assert_eq!(got, [want], "{kernel:?}");
        }
    }
}

#[test]
fn groups_and_rows_of_every_kind() {
    let mut rng = Prg::new(&[6; 16]);
    for (rows, inner, cols) in [
        (1, 2 * PAIRS + 5, PANELS * COLUMNS + 1),
        (3, 7, 2 * PANELS * COLUMNS + COLUMNS + 3),
        (4, 2 * PAIRS, PANELS * COLUMNS),
    ] {
        let left: Vec<u64> = (0..rows * inner)
            .map(|_| modulus::random(&mut rng))
            .collect();
        let right: Vec<i16> = (0..inner * cols)
            .map(|_| (rng.next_u32() as i16) >> 1)
            .collect();
        check(&left, &right, inner, cols);
    }
}

#[test]
fn weights_beyond_fifteen_bits_are_noticed() {
    for (weight, wide) in [(0, false), (-1 << 14, false), ((1 << 14) - 1, false)]
        .into_iter()
        .chain([(1 << 14, true), ((-1 << 14) - 1, true), (i16::MIN, true)])
    {
        let mut rows = vec![1; 3 * 40];
        rows[2 * 40 + 39] = weight;
        let packed = Packed::from_rows(&rows, 3, 40);
        assert_eq!(packed.steps() < STEPS, wide, "{weight}");
        assert_eq!(packed.memory(), 2 * 4 * 48);
    }
}

#[test]
fn limbs_are_within_their_bounds_and_sum_up() {
    let mut rng = Prg::new(&[3; 16]);
    let random = (0..1000).map(|_| rng.next_u64() % P);
    for v in extremes().into_iter().chain([1, P / 2 + 1]).chain(random) {
        let limbs = cut(v);
        let bounds = 1 - (1 << 13)..=1 << 13;
        assert!(limbs.iter().all(|l| bounds.contains(l)), "{v}: {limbs:?}");
        let sum = limbs.iter().rev();
        let sum = sum.fold(0i64, |sum, l| (sum << BITS) + i64::from(*l));
        assert_eq!(sum as u64, v);
    }
}

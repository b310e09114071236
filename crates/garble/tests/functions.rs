//! Every stop against the plan's definition of its function, bit for bit.

mod common;

use common::{clear, words};
use primer_garble::clear::CLEAR_LANES;
use primer_garble::stop::{CircuitError, StopCircuit};
use primer_plan::function::{
    Activation, CoarseMaximum, Function, Gelu, InverseRoot, Lookup, LookupTable, Reciprocal,
    Softmax, SoftmaxScratch, Tanh,
};
use primer_ring::modulus;
use primer_ring::prg::Prg;
use proptest::prelude::*;
use rand_core::Rng;

fn elementwise(
    function: &Function,
    reference: impl Fn(i64) -> i64,
    values: impl Iterator<Item = i64>,
) {
    let stop = StopCircuit::new(function, 1).unwrap();
    let mut prg = Prg::new(&[5; 16]);
    let values: Vec<i64> = values.collect();
    for chunk in values.chunks(CLEAR_LANES) {
        let rows: Vec<Vec<i64>> = chunk.iter().map(|&x| vec![x]).collect();
        let result = clear(&stop, &rows, &mut prg);
        for (l, &x) in chunk.iter().enumerate() {
            let got = modulus::to_signed(result.outputs[0][l]);
            assert_eq!(got, reference(x), "{} of {x}", stop.name());
        }
    }
}

fn whole_ring(bits: u32) -> std::ops::Range<i64> {
    -(1 << (bits - 1))..1 << (bits - 1)
}

#[test]
fn gelu_on_whole_rings() {
    for (m, f, g) in [
        (9, 6, 6),
        (12, 8, 12),
        (15, 8, 8),
        (16, 8, 9),
        (16, 7, 9),
        (16, 13, 14),
    ] {
        for activation in [Activation::GeluErf, Activation::GeluTanh] {
            let gelu = Gelu::new(activation, m, f, g);
            let function = Function::Gelu(gelu.clone());
            elementwise(&function, |x| gelu.apply(x), whole_ring(m));
        }
    }
}

#[test]
fn relu_on_whole_rings() {
    for ring_bits in [2, 3, 11, 16] {
        let function = Function::Relu {
            ring_bits,
            fraction: 4,
        };
        elementwise(&function, |x| x.max(0), whole_ring(ring_bits));
    }
}

#[test]
fn tanh_on_whole_rings() {
    for (m, f) in [(11, 8), (16, 10), (16, 8)] {
        let tanh = Tanh::new(m, f);
        elementwise(
            &Function::Tanh(tanh.clone()),
            |x| tanh.apply(x),
            whole_ring(m),
        );
    }
}

#[test]
fn reciprocal_on_whole_rings() {
    for (m, scale) in [
        (4, 1.0),
        (8, 3.0),
        (9, 1.0),
        (13, 0.3),
        (16, 1.0),
        (17, 1000.0),
    ] {
        let reciprocal = Reciprocal::new(m, scale, 0, 2);
        let function = Function::Reciprocal(reciprocal.clone());
        elementwise(&function, |x| reciprocal.apply(x), whole_ring(m));
    }
    // The widest ring cuts its result, so its smallest numbers are of interest too.
    for m in [22, 24, 38] {
        let reciprocal = Reciprocal::new(m, 1.0, m.saturating_sub(24), 7);
        let mut prg = Prg::new(&[7; 16]);
        let draw = |_| (prg.next_u64() as i64) >> (64 - m) >> (prg.next_u32() % m);
        let values: Vec<i64> = (0..20).chain((0..20_000).map(draw)).collect();
        let function = Function::Reciprocal(reciprocal.clone());
        elementwise(&function, |x| reciprocal.apply(x), values.into_iter());
    }
}

/// Checks that the second output says whether a number has run dry.
#[test]
fn small_numbers_of_a_reciprocal_are_flagged() {
    for (m, dry_bits) in [(8, 0), (8, 3), (9, 8), (13, 7)] {
        let reciprocal = Reciprocal::new(m, 1.0, 0, dry_bits);
        let stop = StopCircuit::new(&Function::Reciprocal(reciprocal.clone()), 1).unwrap();
        assert!(stop.is_flagged());
        let mut prg = Prg::new(&[8; 16]);
        let values: Vec<Vec<i64>> = whole_ring(m).map(|x| vec![x]).collect();
        for chunk in values.chunks(CLEAR_LANES) {
            let result = clear(&stop, chunk, &mut prg);
            for (l, x) in chunk.iter().enumerate() {
                let flag = modulus::to_signed(result.outputs[1][l]);
                assert_eq!(flag == 1, reciprocal.is_dry(x[0]), "{m} {dry_bits} {x:?}");
            }
        }
    }
}

/// Checks all pairs of a small ring, and random rows of the rings in use, with far and padded
/// scores.
#[test]
fn coarse_maximum_of_rows() {
    let check = |coarse: &CoarseMaximum, rows: &[Vec<i64>]| {
        let stop = StopCircuit::new(&Function::CoarseMaximum(coarse.clone()), rows[0].len());
        let stop = stop.unwrap();
        let mut prg = Prg::new(&[6; 16]);
        for chunk in rows.chunks(CLEAR_LANES) {
            let result = clear(&stop, chunk, &mut prg);
            for (l, row) in chunk.iter().enumerate() {
                let mut want = vec![0; row.len()];
                coarse.apply(row, &mut want);
                let got = result
                    .outputs
                    .iter()
                    .map(|lane| modulus::to_signed(lane[l]));
                assert_eq!(got.collect::<Vec<_>>(), want, "{coarse:?} of {row:?}");
            }
        }
    };
    let coarse = |ring_bits, near_bits, far| CoarseMaximum {
        ring_bits,
        fraction: -2,
        near_bits,
        far,
        mask: 0,
        offset: 0,
    };
    let pairs = whole_ring(4).flat_map(|a| whole_ring(4).map(move |b| vec![a, b]));
    let pairs: Vec<_> = pairs.collect();
    for (near, far) in [(1, 2), (1, 5), (2, 4), (2, 8), (3, 8)] {
        check(&coarse(4, near, far), &pairs);
    }
    let mut prg = Prg::new(&[8; 16]);
    for (m, near, far) in [(6, 2, 5), (7, 2, 5), (7, 3, 9), (8, 3, 8)] {
        for n in [1, 2, 30, 128] {
            check(&coarse(m, near, far), &random_rows(m, n, 128, &mut prg));
        }
    }
}

#[test]
fn functions_without_a_circuit_are_refused_by_name() {
    let table = LookupTable::tabulate((8, 3), (18, 10), f64::tanh);
    let lookup = Function::Lookup(Lookup::new((8, 3), [0; 2], vec![table]).unwrap());
    let error = StopCircuit::new(&lookup, 1).unwrap_err();
    assert_eq!(error, CircuitError::NoCircuit("look-up"));
}

#[test]
fn inverse_root_on_whole_rings() {
    for m in [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16] {
        let root = InverseRoot::new(m, 27.7);
        let function = Function::InverseRoot(root.clone());
        elementwise(&function, |x| root.apply(x), whole_ring(m));
    }
}

#[test]
fn all_pairs_of_shares() {
    // The adder in front of a function, for every pair of shares of a small ring.
    let gelu = Gelu::new(Activation::GeluErf, 9, 6, 8);
    let stop = StopCircuit::new(&Function::Gelu(gelu.clone()), 1).unwrap();
    for server in 0..512u64 {
        for base in (0..512u64).step_by(CLEAR_LANES) {
            let mine = vec![vec![server]; CLEAR_LANES];
            let theirs: Vec<Vec<u64>> = (0..64).map(|l| vec![base + l]).collect();
            let (mine, theirs) = (words(&stop, &mine), words(&stop, &theirs));
            let result = primer_garble::clear::evaluate(stop.circuit(), &mine, &theirs);
            for l in 0..CLEAR_LANES {
                let x = ((server + base + l as u64) as i64) << 55 >> 55;
                assert_eq!(modulus::to_signed(result.outputs[0][l]), gelu.apply(x));
            }
        }
    }
}

fn softmax_rows(softmax: &Softmax, rows: &[Vec<i64>]) {
    let n = rows[0].len();
    let stop = StopCircuit::new(&Function::Softmax(softmax.clone()), n).unwrap();
    let mut prg = Prg::new(&[6; 16]);
    let mut want = vec![0; n];
    for chunk in rows.chunks(CLEAR_LANES) {
        let result = clear(&stop, chunk, &mut prg);
        for (l, row) in chunk.iter().enumerate() {
            softmax.apply(row, &mut want, &mut SoftmaxScratch::default());
            for (j, &p) in want.iter().enumerate() {
                assert_eq!(result.outputs[j][l] as i64, p, "element {j} of {row:?}");
            }
        }
    }
}

#[test]
fn softmax_pairs_exhaustively() {
    // Two elements of an 8-bit ring: every pair of values, so every distance and every sum.
    let softmax = Softmax::new(8, 3, 0, 0);
    let all = whole_ring(8).flat_map(|a| whole_ring(8).map(move |b| vec![a, b]));
    softmax_rows(&softmax, &all.collect::<Vec<_>>());
}

#[test]
fn softmax_single_elements() {
    let softmax = Softmax::new(16, 6, 0, 0);
    let all = whole_ring(16).map(|a| vec![a]);
    softmax_rows(&softmax, &all.collect::<Vec<_>>());
}

#[test]
fn softmax_distances_exhaustively() {
    // One element at the top, the other everywhere: all 2^16 distances through both powers.
    let softmax = Softmax::new(16, 6, 0, 0);
    let all = whole_ring(16).map(|a| vec![a, (1 << 15) - 1, a]);
    softmax_rows(&softmax, &all.collect::<Vec<_>>());
}

/// Draws rows of mixed spread: near the maximum, all over the ring, equal, and at its edges.
fn random_rows(m: u32, n: usize, count: usize, prg: &mut Prg) -> Vec<Vec<i64>> {
    let half = 1i64 << (m - 1);
    (0..count)
        .map(|r| {
            let spread = 1u64 << (prg.next_u32() % (m + 1));
            (0..n)
                .map(|_| {
                    let offset = (prg.next_u64() % spread) as i64;
                    if r % 7 == 0 {
                        half - 1 - offset
                    } else {
                        -half + offset
                    }
                })
                .collect()
        })
        .collect()
}

#[test]
fn softmax_of_every_kind_of_length() {
    let mut prg = Prg::new(&[7; 16]);
    for (m, f, n, count) in [
        (15, 5, 1, 64),
        (15, 5, 2, 640),
        (16, 6, 3, 640),
        (15, 5, 17, 256),
        (15, 5, 30, 512),
        (16, 6, 30, 512),
        (24, 8, 31, 128),
        (15, 5, 128, 64),
    ] {
        let softmax = Softmax::new(m, f, 0, 0);
        softmax_rows(&softmax, &random_rows(m, n, count, &mut prg));
    }
}

#[test]
fn softmax_of_the_longest_row() {
    let mut prg = Prg::new(&[8; 16]);
    let softmax = Softmax::new(15, 5, 0, 0);
    let mut rows = random_rows(15, 512, 63, &mut prg);
    rows.push(vec![77; 512]);
    softmax_rows(&softmax, &rows);
}

#[test]
fn argmax_takes_the_first_of_equals() {
    let mut prg = Prg::new(&[9; 16]);
    for (m, n) in [(2, 1), (2, 4), (3, 5), (16, 2), (16, 3), (20, 130)] {
        let stop = StopCircuit::argmax(m, n).unwrap();
        let rows = random_rows(m, n, 64, &mut prg);
        let result = clear(&stop, &rows, &mut prg);
        for (l, row) in rows.iter().enumerate() {
            let bits: Vec<bool> = result.revealed.iter().map(|w| w >> l & 1 == 1).collect();
            let best = *row.iter().max().unwrap();
            let first = row.iter().position(|&x| x == best).unwrap();
            assert_eq!(StopCircuit::position(&bits), first, "{row:?}");
        }
    }
}

#[test]
fn argmax_pairs_exhaustively() {
    let mut prg = Prg::new(&[10; 16]);
    let stop = StopCircuit::argmax(8, 2).unwrap();
    let all: Vec<Vec<i64>> = whole_ring(8)
        .flat_map(|a| whole_ring(8).map(move |b| vec![a, b]))
        .collect();
    for chunk in all.chunks(CLEAR_LANES) {
        let result = clear(&stop, chunk, &mut prg);
        for (l, row) in chunk.iter().enumerate() {
            assert_eq!(result.revealed[0] >> l & 1 == 1, row[1] > row[0]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn wide_rings(m in 17u32..=24, seed in any::<[u8; 16]>()) {
        let mut prg = Prg::new(&seed);
        let mut draw = |n: usize| -> Vec<i64> {
            (0..n).map(|_| {
                // All magnitudes alike: shift a full ring value down by a random amount.
                let x = (prg.next_u64() as i64) >> (64 - m);
                x >> (prg.next_u32() % m)
            }).collect()
        };
        let values = draw(128);
        let gelu = Gelu::new(Activation::GeluErf, m, 10, 11);
        elementwise(&Function::Gelu(gelu.clone()), |x| gelu.apply(x), values.iter().copied());
        let root = InverseRoot::new(m, 3.5);
        let function = Function::InverseRoot(root.clone());
        elementwise(&function, |x| root.apply(x), values.iter().copied());
        let relu = Function::Relu { ring_bits: m, fraction: 3 };
        elementwise(&relu, |x| x.max(0), values.iter().copied());
        let softmax = Softmax::new(m, 7, 0, 0);
        let rows: Vec<Vec<i64>> = (0..8).map(|_| draw(9)).collect();
        softmax_rows(&softmax, &rows);
    }
}

#[test]
fn tables_from_elsewhere_keep_their_meaning() {
    // A plan may bring any table: nothing may depend on the entries that this program would
    // compute.
    let mut prg = Prg::new(&[11; 16]);
    let mut gelu = Gelu::new(Activation::GeluErf, 12, 8, 9);
    gelu.table = primer_plan::function::Table::tabulate(8, 7, |_| f64::from(prg.next_u32() % 128));
    elementwise(
        &Function::Gelu(gelu.clone()),
        |x| gelu.apply(x),
        whole_ring(12),
    );
    let mut softmax = Softmax::new(12, 5, 0, 0);
    softmax.exp = primer_plan::function::Table::tabulate(5, 12, |i| {
        if i == 0 {
            4095.0
        } else {
            f64::from(prg.next_u32() % 4096)
        }
    });
    softmax_rows(&softmax, &random_rows(12, 5, 256, &mut prg));
}

#[test]
fn unusable_stops_are_refused() {
    let softmax = Function::Softmax(Softmax::new(15, 5, 0, 0));
    assert_eq!(StopCircuit::new(&softmax, 0), Err(CircuitError::Row(0)));
    assert_eq!(StopCircuit::new(&softmax, 513), Err(CircuitError::Row(513)));
    let relu = Function::Relu {
        ring_bits: 16,
        fraction: 0,
    };
    assert!(matches!(
        StopCircuit::new(&relu, 4),
        Err(CircuitError::Elementwise { row: 4, .. })
    ));
    let mut gelu = Gelu::new(Activation::GeluErf, 15, 8, 9);
    gelu.ring_bits = 60;
    assert!(matches!(
        StopCircuit::new(&Function::Gelu(gelu), 1),
        Err(CircuitError::Function(_))
    ));
    assert_eq!(StopCircuit::argmax(1, 2), Err(CircuitError::Ring(1)));
    assert_eq!(StopCircuit::argmax(16, 0), Err(CircuitError::Row(0)));
}

#[test]
fn equality_of_all_pairs_of_strings() {
    let stop = StopCircuit::equality(4);
    for server in 0..16u64 {
        let mine = vec![vec![server]; CLEAR_LANES];
        let theirs: Vec<Vec<u64>> = (0..CLEAR_LANES as u64).map(|l| vec![l % 16]).collect();
        let (mine, theirs) = (words(&stop, &mine), words(&stop, &theirs));
        let result = primer_garble::clear::evaluate(stop.circuit(), &mine, &theirs);
        assert_eq!(result.revealed.len(), 1);
        for l in 0..CLEAR_LANES {
            let equal = result.revealed[0] >> l & 1 == 1;
            assert_eq!(equal, server == l as u64 % 16);
        }
    }
}

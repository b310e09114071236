//! The circuits in the clear, against integers.

use super::*;
use crate::products::Digits;
use primer_garble::clear::evaluate;
use primer_ring::prg::Prg;
use rand_core::Rng;

/// Runs a circuit on numbers, each with its number of bits, one after the other behind the zero
/// wire; returns the kept bits as one number.
fn run(circuit: &Circuit, numbers: &[(i128, usize)]) -> u128 {
    let bits = numbers
        .iter()
        .flat_map(|(n, bits)| (0..*bits).map(move |i| (n >> i & 1) as u64));
    let words: Vec<u64> = std::iter::once(0).chain(bits).collect();
    let kept = evaluate(circuit, &words, &[]).kept;
    let bits = kept.iter().enumerate();
    bits.fold(0, |n, (i, word)| n | u128::from(word & 1) << i)
}

fn signed(prg: &mut Prg, bits: usize) -> i128 {
    let number = (prg.next_u64() as i64) >> (64 - bits);
    // The edges as well.
    match prg.next_u32() % 8 {
        0 => -(1 << (bits - 1)),
        1 => (1 << (bits - 1)) - 1,
        _ => i128::from(number),
    }
}

fn number(prg: &mut Prg, digits: Digits) -> i128 {
    if digits.signed {
        signed(prg, digits.bits)
    } else {
        i128::from(prg.next_u64() >> (64 - digits.bits))
    }
}

const WINDOW: Window = Window::for_tests(3, 38, 20);

fn modulo(number: i128) -> u128 {
    u128::from(WINDOW.cut(number))
}

fn cases() -> Vec<Products> {
    let mut cases = Vec::new();
    for (x, bits, signed, at) in [
        (15, 15, true, 3),
        (9, 12, false, 7),
        (20, 20, true, 4),
        (2, 1, false, 3),
        (18, 15, true, 30),
    ] {
        let y = Digits { bits, signed };
        cases.push(Products {
            window: WINDOW,
            x,
            y,
            at,
        });
    }
    cases
}

#[test]
fn sums_of_products_are_exact() {
    let mut prg = Prg::new(&[1; 16]);
    for of in cases() {
        for terms in [1, 3, TERMS] {
            let [products, sum_x, sum_y] = [
                Spec::Products {
                    of,
                    terms,
                    square: false,
                },
                Spec::Sum(of.sum_of_x(terms, of.constants(terms))),
                Spec::Sum(of.sum_of_y(terms)),
            ]
            .map(|spec| spec.build().unwrap());
            for _ in 0..20 {
                let x: Vec<_> = (0..terms).map(|_| (signed(&mut prg, of.x), of.x)).collect();
                let y: Vec<_> = (0..terms)
                    .map(|_| (number(&mut prg, of.y), of.y.bits))
                    .collect();
                let a = run(&sum_x, &x) as i128;
                let b = run(&sum_y, &y) as i128;
                let width = WINDOW.width;
                let mut inputs = vec![(a, width), (b, width)];
                inputs.extend(x.iter().chain(&y));
                let two = run(&products, &inputs);
                let sum = (two & ((1 << width) - 1)) + (two >> width);
                let dot: i128 = x.iter().zip(&y).map(|(x, y)| x.0 * y.0).sum();
                let want = modulo((2 * dot) << of.at);
                assert_eq!(sum & ((1 << width) - 1), want, "{of:?}");
            }
        }
    }
}

#[test]
fn a_product_costs_a_gate_for_each_pair_of_bits() {
    for of in cases().into_iter().take(3) {
        let spec = Spec::Products {
            of,
            terms: TERMS,
            square: false,
        };
        let gates = spec.build().unwrap().cost().and_gates;
        let pairs = TERMS * of.x * of.y.bits;
        // A half adder in a column at most; carries out of the window are free.
        assert!(gates <= pairs + WINDOW.width, "{gates} for {pairs}");
    }
}

#[test]
fn squares_gains_and_scales() {
    let mut prg = Prg::new(&[2; 16]);
    let of = cases()[0];
    let width = WINDOW.width;
    let square = Spec::Products {
        of,
        terms: 1,
        square: true,
    };
    let gain = Spec::Gain(of).build().unwrap();
    let square = square.build().unwrap();
    let add = |two: u128| ((two & ((1 << width) - 1)) + (two >> width)) & ((1 << width) - 1);
    for _ in 0..50 {
        let (x, y) = (signed(&mut prg, of.x), signed(&mut prg, of.y.bits));
        let start = of.constants(1) - (x << of.at);
        let inputs = |second: i128| {
            let first = (modulo(start) as i128, width);
            vec![first, (modulo(second) as i128, width), (x, of.x)]
        };
        let two = run(&square, &inputs(-(x << of.at)));
        assert_eq!(add(two), modulo((2 * x * x) << of.at));
        // The gain's own correction is in its circuit, up to a constant.
        let known = (of.y.negatives(y as i64) << of.at) + of.signs();
        let second = known + (negative_constant(of.x) << of.at) - start;
        let mut inputs = inputs(second);
        inputs.push((y, of.y.bits));
        assert_eq!(add(run(&gain, &inputs)), modulo((2 * x * y) << of.at));
    }
    for of in cases() {
        let constant = of.constants(1) + WINDOW.rounding();
        let circuit = Spec::Scale { of, constant }.build().unwrap();
        for _ in 0..50 {
            let (x, y) = (signed(&mut prg, of.x), number(&mut prg, of.y));
            let got = run(&circuit, &[(x, of.x), (y, of.y.bits)]);
            let sum = ((2 * x * y) << of.at) + WINDOW.rounding();
            assert_eq!(got, modulo(sum) >> WINDOW.skipped());
        }
    }
}

#[test]
fn choices() {
    for entries in [1, 2, 3, 5, 12, 64, 100] {
        let circuit = Spec::OneHot { entries }.build().unwrap();
        assert!(circuit.cost().and_gates < entries + index_bits(entries).max(1));
        for index in 0..entries {
            let bits = index_bits(entries);
            let got = run(&circuit, &[(index as i128, bits)]);
            assert_eq!(got, 1 << index, "{index} of {entries}");
        }
    }
    let terms = 3;
    let circuit = Spec::Select { terms }.build().unwrap();
    assert_eq!(circuit.cost().and_gates, terms * WEIGHT);
    let weights = [77, -1, -(1 << 14)];
    for chosen in 0..=terms {
        let one_hot = if chosen < terms { 1 << chosen } else { 0 };
        let mut inputs = vec![(one_hot, terms)];
        inputs.extend(weights.map(|w| (w, WEIGHT)));
        let want = weights.get(chosen).map_or(0, |w| w & 0x7fff);
        assert_eq!(run(&circuit, &inputs) as i128, want);
    }
}

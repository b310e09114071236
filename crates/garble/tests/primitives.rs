//! The builder's parts on all inputs of small widths, with their gate counts.

use primer_garble::circuit::{Bit, Builder, CarrySave, Circuit, Modulus, Party};
use primer_garble::clear::{CLEAR_LANES, evaluate};
use primer_ring::prg::Prg;
use proptest::prelude::*;
use rand_core::Rng;

/// Builds a circuit of two numbers of `n` bits, its result revealed.
fn circuit(n: u32, build: impl FnOnce(&mut Builder, &[Bit], &[Bit]) -> Vec<Bit>) -> Circuit {
    let mut b = Builder::new(Modulus::Prime);
    let x = b.inputs(Party::Garbler, n);
    let y = b.inputs(Party::Evaluator, n);
    for bit in build(&mut b, &x, &y) {
        b.reveal(bit);
    }
    b.finish()
}

/// Runs a circuit on all pairs of `n`-bit numbers.
fn check(n: u32, circuit: &Circuit, want: impl Fn(u64, u64) -> u64) {
    let pairs: Vec<(u64, u64)> = (0..1u64 << n)
        .flat_map(|x| (0..1u64 << n).map(move |y| (x, y)))
        .collect();
    for chunk in pairs.chunks(CLEAR_LANES) {
        let word = |pick: fn(&(u64, u64)) -> u64| -> Vec<u64> {
            let bit = |i: u32| {
                let lanes = chunk.iter().enumerate();
                lanes.fold(0, |w, (l, p)| w | (pick(p) >> i & 1) << l)
            };
            (0..n).map(bit).collect()
        };
        let result = evaluate(circuit, &word(|p| p.0), &word(|p| p.1));
        for (l, &(x, y)) in chunk.iter().enumerate() {
            let bits = result.revealed.iter().enumerate();
            let got = bits.fold(0, |v, (i, w)| v | (w >> l & 1) << i);
            assert_eq!(got, want(x, y), "{x} {y}");
        }
    }
}

fn gates(circuit: &Circuit) -> usize {
    circuit.cost().and_gates
}

#[test]
fn additions_and_subtractions() {
    for n in 1..=5 {
        let mask = (1 << n) - 1;
        let sum = circuit(n, |b, x, y| b.add(x, y));
        check(n, &sum, |x, y| (x + y) & mask);
        assert_eq!(gates(&sum), n as usize - 1);
        let carry = circuit(n, |b, x, y| {
            let (mut sum, carry) = b.add_carry(x, y);
            sum.push(carry);
            sum
        });
        check(n, &carry, |x, y| x + y);
        assert_eq!(gates(&carry), n as usize);
        let difference = circuit(n, |b, x, y| b.subtract(x, y));
        check(n, &difference, |x, y| x.wrapping_sub(y) & mask);
        assert_eq!(gates(&difference), n as usize - 1);
    }
}

#[test]
fn comparisons_and_choices() {
    for n in 1..=5 {
        let less = circuit(n, |b, x, y| vec![b.less(x, y)]);
        check(n, &less, |x, y| u64::from(x < y));
        assert_eq!(gates(&less), n as usize);
        let max = circuit(n, |b, x, y| b.max(x, y));
        check(n, &max, |x, y| x.max(y));
        assert_eq!(gates(&max), 2 * n as usize);
        let any = circuit(n, |b, x, y| {
            let both: Vec<Bit> = x.iter().chain(y).copied().collect();
            vec![b.any(&both)]
        });
        check(n, &any, |x, y| u64::from(x | y != 0));
        assert_eq!(gates(&any), 2 * n as usize - 1);
    }
}

#[test]
fn shifts() {
    let n = 5;
    let right = circuit(n, |b, x, y| b.shift_right(x, &y[..3]));
    check(n, &right, |x, y| x >> (y & 7));
    let left = circuit(n, |b, x, y| b.shift_left_if(y[0], x, 2));
    check(n, &left, |x, y| if y & 1 == 1 { x << 2 & 31 } else { x });
    assert_eq!(gates(&left), n as usize);
}

#[test]
fn leading_ones() {
    let n = 6;
    let position = circuit(n, |b, x, _| {
        let leading = b.leading_one(x);
        let mut out = b.encode(&leading.one_hot, 3, |i| i as u32);
        out.push(leading.none);
        out
    });
    check(n, &position, |x, _| match x {
        0 => 8,
        _ => u64::from(x.ilog2()),
    });
    assert_eq!(gates(&position), n as usize - 1);
}

#[test]
fn many_numbers_add_up() {
    // x three times and y twice, and one: all carries of a saved sum.
    let n = 4;
    let largest = 5 * 15 + 1;
    let sum = circuit(n, |b, x, y| {
        let mut sum = CarrySave::new(largest);
        sum.add(b, &[Bit::ONE]);
        for number in [x, y, x, x, y] {
            sum.add(b, number);
        }
        sum.finish(b)
    });
    check(n, &sum, |x, y| 3 * x + 2 * y + 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_table_with_and_without_a_guard(
        seed in any::<[u8; 16]>(),
        inputs in 1u32..=7,
        outputs in 1u32..=6,
        sparse in any::<bool>(),
    ) {
        let mut prg = Prg::new(&seed);
        let entries: Vec<u32> = (0..1 << inputs)
            .map(|_| {
                let zero = sparse && !prg.next_u32().is_multiple_of(4);
                if zero { 0 } else { prg.next_u32() & ((1 << outputs) - 1) }
            })
            .collect();
        let last = u64::from(entries[entries.len() - 1]);
        let at = |x: u64| u64::from(entries[(x & ((1 << inputs) - 1)) as usize]);
        let plain = circuit(inputs, |b, x, _| b.table(x, &entries, outputs));
        check(inputs, &plain, |x, _| at(x));
        let guarded = circuit(inputs, |b, x, y| b.guarded_table(y[0], x, &entries, outputs));
        check(inputs, &guarded, |x, y| if y & 1 == 1 { at(x) } else { last });
        // Never more than the split in the middle by the formula.
        let (h, l) = (inputs.div_ceil(2), inputs / 2);
        let formula = (1 << h) - h - 1 + outputs * ((1 << l) - 1);
        prop_assert!(gates(&plain) <= formula as usize, "{} gates", gates(&plain));
        prop_assert!(gates(&guarded) <= formula as usize + h as usize + outputs as usize);
    }
}

#[test]
fn a_table_with_structure_is_cheap() {
    // A XOR of all inputs is free, a single product costs what it takes to form it.
    let parity: Vec<u32> = (0..256u32).map(|i| i.count_ones() % 2).collect();
    assert_eq!(gates(&circuit(8, |b, x, _| b.table(x, &parity, 1))), 0);
    let all: Vec<u32> = (0..256u32).map(|i| u32::from(i == 255)).collect();
    assert_eq!(gates(&circuit(8, |b, x, _| b.table(x, &all, 1))), 7);
    let constant = vec![5; 16];
    assert_eq!(gates(&circuit(4, |b, x, _| b.table(x, &constant, 3))), 0);
}

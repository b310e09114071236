//! Outputs that stay labels: functions from bits to bits, chains of circuits, labels that instances
//! share.

use primer_garble::circuit::{Bit, Builder, Circuit, LANES, Modulus, Party};
use primer_garble::clear::{self, CLEAR_LANES};
use primer_garble::evaluator::Evaluator;
use primer_garble::garbler::Garbler;
use primer_garble::stop::{CircuitError, in_bits};
use primer_garble::{Backend, Label, Offset};
use primer_plan::function::{
    Activation, Function, Gelu, InverseRoot, Softmax, SoftmaxScratch, Tanh,
};
use primer_ring::prg::Prg;
use rand_core::Rng;

/// Builds a function's circuit on rows, every result kept, and returns how many bits each has.
fn kept(function: &Function, row: usize) -> (Circuit, usize) {
    let mut b = Builder::new(Modulus::Prime);
    let bits = function.ring_bits();
    let values = (0..row).map(|_| b.inputs(Party::Garbler, bits)).collect();
    let results = in_bits(&mut b, function, values).unwrap();
    let width = results[0].len();
    for bit in results.into_iter().flatten() {
        // ReLU has a sign that is always 0, and only wires can be kept.
        if bit.as_constant().is_none() {
            b.keep(bit);
        } else {
            assert_eq!(bit, Bit::ZERO);
        }
    }
    (b.finish(), width)
}

/// Compares with the function itself on rows of ring values.
fn compare(function: &Function, rows: &[Vec<i64>], reference: impl Fn(&[i64]) -> Vec<i64>) {
    let row = rows[0].len();
    let (circuit, width) = kept(function, row);
    let wires = circuit.cost().kept / row;
    let bits = function.ring_bits() as usize;
    for chunk in rows.chunks(CLEAR_LANES) {
        let mut words = vec![0; row * bits];
        for (l, values) in chunk.iter().enumerate() {
            for (i, word) in words.iter_mut().enumerate() {
                *word |= (values[i / bits] as u64 >> (i % bits) & 1) << l;
            }
        }
        let results = clear::evaluate(&circuit, &words, &[]).kept;
        for (l, values) in chunk.iter().enumerate() {
            let got: Vec<i64> = (results.chunks_exact(wires))
                .map(|bits| {
                    let bits = bits.iter().enumerate();
                    let number = bits.fold(0, |n, (i, word)| n | (word >> l & 1) << i);
                    let signed = wires == width
                        && !matches!(function, Function::Softmax(_) | Function::InverseRoot(_));
                    let unused = if signed { 64 - width } else { 0 };
                    (number << unused) as i64 >> unused
                })
                .collect();
            assert_eq!(got, reference(values), "{values:?}");
        }
    }
}

fn singles(bits: u32) -> Vec<Vec<i64>> {
    (-(1i64 << (bits - 1))..1 << (bits - 1))
        .map(|x| vec![x])
        .collect()
}

#[test]
fn functions_from_bits_to_bits() {
    for (m, f, g) in [(12, 8, 12), (15, 8, 8), (16, 8, 10)] {
        let gelu = Gelu::new(Activation::GeluErf, m, f, g);
        compare(&Function::Gelu(gelu.clone()), &singles(m), |x| {
            vec![gelu.apply(x[0])]
        });
    }
    let relu = Function::Relu {
        ring_bits: 11,
        fraction: 4,
    };
    compare(&relu, &singles(11), |x| vec![x[0].max(0)]);
    let tanh = Tanh::new(16, 10);
    compare(&Function::Tanh(tanh.clone()), &singles(16), |x| {
        vec![tanh.apply(x[0])]
    });
    for m in [5, 12, 16] {
        let root = InverseRoot::new(m, 27.7);
        compare(&Function::InverseRoot(root.clone()), &singles(m), |x| {
            vec![root.apply(x[0])]
        });
    }
    let softmax = Softmax::new(15, 5, 0, 0);
    let mut prg = Prg::new(&[3; 16]);
    let rows: Vec<Vec<i64>> = (0..256)
        .map(|_| {
            let spread = 1u64 << (prg.next_u32() % 15);
            (0..7)
                .map(|_| (prg.next_u64() % spread) as i64 - (1 << 13))
                .collect()
        })
        .collect();
    compare(&Function::Softmax(softmax.clone()), &rows, |row| {
        let mut out = vec![0; row.len()];
        softmax.apply(row, &mut out, &mut SoftmaxScratch::default());
        out
    });
}

/// Counts gates without the addition of shares in front, and with what projections do for free
/// behind.
#[test]
fn gates_from_bits_to_bits() {
    let gates = |f: Function, row| kept(&f, row).0.cost().and_gates;
    let gelu = Gelu::new(Activation::GeluErf, 16, 8, 10);
    assert_eq!(gates(Function::Gelu(gelu), 1), 110);
    let relu = Function::Relu {
        ring_bits: 16,
        fraction: 8,
    };
    assert_eq!(gates(relu, 1), 15);
    assert_eq!(
        gates(Function::InverseRoot(InverseRoot::new(22, 1.0)), 1),
        277
    );
    assert_eq!(gates(Function::Tanh(Tanh::new(16, 10)), 1), 205);
    assert_eq!(
        gates(Function::Softmax(Softmax::new(15, 5, 0, 0)), 30),
        6277
    );
}

#[test]
fn rows_of_single_functions_are_refused() {
    let mut b = Builder::new(Modulus::Prime);
    let tanh = Function::Tanh(Tanh::new(16, 10));
    let row = (0..2).map(|_| b.inputs(Party::Garbler, 16)).collect();
    let refused = in_bits(&mut b, &tanh, row);
    assert!(matches!(
        refused,
        Err(CircuitError::Elementwise { row: 2, .. })
    ));
}

#[test]
#[should_panic(expected = "a constant has no labels")]
fn constants_are_not_kept() {
    let mut b = Builder::new(Modulus::Prime);
    let x = b.inputs(Party::Garbler, 1)[0];
    let nothing = b.xor(x, x);
    b.keep(nothing);
}

fn label(prg: &mut Prg) -> Label {
    Label::from_le_bytes(prg.seed())
}

/// Builds a circuit that keeps `NOT (x AND NOT y)`, `x XOR y` and `NOT x`, in this order for each
/// instance.
fn step() -> Circuit {
    let mut b = Builder::new(Modulus::Prime);
    let x = b.inputs(Party::Garbler, 1)[0];
    let y = b.inputs(Party::Evaluator, 1)[0];
    let both = b.and(x, !y);
    let differ = b.xor(x, y);
    b.keep(!both);
    b.keep(differ);
    b.keep(!x);
    b.finish()
}

#[test]
fn kept_labels_go_through_circuit_after_circuit() {
    let circuit = step();
    assert_eq!((circuit.cost().kept, circuit.cost().and_gates), (3, 1));
    for backend in Backend::available() {
        for instances in [1, 5, LANES] {
            let mut prg = Prg::new(&[9; 16]);
            let offset = Offset::random(&mut prg);
            let mut labels = || (0..instances).map(|_| label(&mut prg)).collect::<Vec<_>>();
            let (mut x0, y0) = (labels(), labels());
            // Instance l has x = bit 0 of l and y = bit 1 of l.
            let bit = |l: usize, i: usize| l >> i & 1 == 1;
            let active = |zeros: &[Label], i| -> Vec<Label> {
                let each = zeros.iter().enumerate();
                each.map(|(l, &z)| offset.choose(z, bit(l, i))).collect()
            };
            let (mut x, y) = (active(&x0, 0), active(&y0, 1));
            let mut value: Vec<bool> = (0..instances).map(|l| bit(l, 0)).collect();
            for round in 0..6u128 {
                let nonce = 77 + (round << 64);
                let (mut zeros, mut held) = (vec![0; 3 * instances], vec![0; 3 * instances]);
                let mut material = Vec::new();
                let mut garbler = Garbler::with_backend(&circuit, &offset, nonce, backend);
                let done = garbler.batch_keeping(&x0, &y0, &mut [], &mut zeros, &mut material);
                done.unwrap();
                assert_eq!(material.len(), 32 * instances);
                let mut evaluator = Evaluator::with_backend(&circuit, nonce, backend);
                let mut source = &material[..];
                let done =
                    evaluator.batch_keeping(&x, &y, &mut source, &mut [], &mut [], &mut held);
                done.unwrap();
                for l in 0..instances {
                    let (a, b) = (value[l], bit(l, 1));
                    for (i, want) in [!a || b, a != b, !a].into_iter().enumerate() {
                        let at = 3 * l + i;
                        assert!(
                            held[at] == offset.choose(zeros[at], want),
                            "{round} {l} {i}"
                        );
                    }
                    // One of the three goes on.
                    let next = 3 * l + round as usize % 3;
                    (x0[l], x[l]) = (zeros[next], held[next]);
                    value[l] = [!a || b, a != b, !a][round as usize % 3];
                }
            }
        }
    }
}

/// Checks the case of one label that all instances of a batch have in common, such as a weight that
/// serves many tokens. If it were hashed alike in two instances, the first halves of their tables
/// would differ by nothing or by Δ.
#[test]
fn shared_labels_are_hashed_apart() {
    let circuit = step();
    let mut prg = Prg::new(&[10; 16]);
    let offset = Offset::random(&mut prg);
    let delta = Label::from_le_bytes(*offset.to_bytes());
    let shared = vec![label(&mut prg); LANES];
    let own: Vec<Label> = (0..LANES).map(|_| label(&mut prg)).collect();
    let same = vec![label(&mut prg); LANES];
    for (x, y) in [(&shared, &own), (&own, &shared), (&shared, &same)] {
        for backend in Backend::available() {
            let mut material = Vec::new();
            let mut garbler = Garbler::with_backend(&circuit, &offset, 5, backend);
            let mut kept = vec![0; 3 * LANES];
            let done = garbler.batch_keeping(x, y, &mut [], &mut kept, &mut material);
            done.unwrap();
            let halves: Vec<Label> = (material.chunks_exact(16))
                .map(|half| Label::from_le_bytes(half.try_into().unwrap()))
                .collect();
            for half in halves.chunks_exact(LANES) {
                for i in 0..LANES {
                    for j in 0..i {
                        let difference = half[i] ^ half[j];
                        assert!(difference != 0 && difference != delta, "{i} {j}");
                    }
                }
            }
        }
    }
}

//! Compiled circuits by their digests.
//!
//! Each party compiles its own circuits, and stored garbled bytes were made for the circuit of
//! their day. So a faster compiler must leave every operation, slot and weight where it was: these
//! digests notice a single one that moved. An intended change changes them too.

use super::{Builder, Circuit, Modulus, Op, Party};
use crate::stop::{StopCircuit, in_bits};
use primer_plan::function::{Activation, Function, Gelu, InverseRoot, Softmax, Tanh};
use primer_ring::prg::Prg;
use rand_core::Rng;

fn digest(circuits: &[Circuit]) -> String {
    let mut hash = blake3::Hasher::new();
    let mut put = |word: u64| {
        hash.update(&word.to_le_bytes());
    };
    for circuit in circuits {
        for op in &circuit.ops {
            let fields: [u32; 5] = match *op {
                Op::Input { dst, party, index } => [0, dst, party as u32, index, 0],
                Op::Xor { dst, a, b } => [1, dst, a, b, 0],
                Op::Sum { dst, first, count } => [2, dst, first, count, 0],
                Op::And {
                    dst,
                    a,
                    b,
                    flip_a,
                    flip_b,
                } => [3, dst, a, b, u32::from(flip_a) << 1 | u32::from(flip_b)],
                Op::Project { a, output, weight } => [4, a, output, weight, 0],
                Op::Reveal { a, flip } => [5, a, flip.into(), 0, 0],
                Op::Keep { a, flip, output } => [6, a, flip.into(), output, 0],
            };
            fields.into_iter().for_each(|field| put(field.into()));
        }
        circuit.sources.iter().for_each(|s| put((*s).into()));
        circuit.weights.iter().for_each(|w| put(*w));
        circuit.constants.iter().for_each(|c| put(*c));
        for s in &circuit.segments {
            let fields = [
                s.ops.start,
                s.ops.end,
                s.and_gates,
                s.projections,
                s.reveals,
            ];
            fields.into_iter().for_each(|field| put(field as u64));
        }
        let lengths = [circuit.ops.len(), circuit.sources.len(), circuit.slots];
        lengths.into_iter().for_each(|l| put(l as u64));
    }
    hash.finalize().to_hex()[..16].to_owned()
}

fn check(circuits: &[(String, Vec<Circuit>)], pinned: &[(&str, &str)]) {
    let found: Vec<(&str, String)> = (circuits.iter())
        .map(|(name, all)| (name.as_str(), digest(all)))
        .collect();
    let found: Vec<(&str, &str)> = found.iter().map(|(n, d)| (*n, d.as_str())).collect();
    assert_eq!(found, pinned, "a compiled circuit has changed");
}

fn softmax(ring_bits: u32, fraction: u32, row: usize) -> (Function, usize) {
    let softmax = Softmax::new(ring_bits, fraction, 0, 0);
    (Function::Softmax(softmax), row)
}

/// Lists functions with their names here, over the rings, scales and rows that plans have.
fn functions() -> Vec<(String, Function, usize)> {
    let mut all = Vec::new();
    for activation in [Activation::GeluErf, Activation::GeluTanh] {
        for (m, f, g) in [
            (9, 6, 6),
            (12, 8, 10),
            (13, 8, 10),
            (15, 8, 8),
            (16, 8, 9),
            (20, 8, 10),
        ] {
            let function = Function::Gelu(Gelu::new(activation, m, f, g));
            all.push((format!("{activation:?} {m} {f} {g}"), function, 1));
        }
    }
    for ring_bits in [6, 16] {
        let fraction = 4;
        let function = Function::Relu {
            ring_bits,
            fraction,
        };
        all.push((format!("relu {ring_bits}"), function, 1));
    }
    for (m, f) in [(11, 5), (12, 5), (15, 5), (16, 6)] {
        for n in [1, 2, 3, 8, 17, 32] {
            let (function, row) = softmax(m, f, n);
            all.push((format!("softmax {m} {f} {n}"), function, row));
        }
    }
    let (function, row) = softmax(14, 5, 128);
    all.push(("softmax 14 5 128".to_owned(), function, row));
    for (m, scale) in [(11, 3.0), (16, 1.0), (22, 1.0), (22, 362.04), (22, 5792.6)] {
        let function = Function::InverseRoot(InverseRoot::new(m, scale));
        all.push((format!("root {m} {scale}"), function, 1));
    }
    for (m, f) in [(14, 9), (16, 10), (20, 10)] {
        let function = Function::Tanh(Tanh::new(m, f));
        all.push((format!("tanh {m} {f}"), function, 1));
    }
    all
}

#[test]
fn stops_are_compiled_as_ever() {
    let mut all: Vec<(String, Vec<Circuit>)> = functions()
        .into_iter()
        .map(|(name, function, row)| {
            let stop = StopCircuit::new(&function, row).unwrap();
            (name, vec![stop.circuit().clone()])
        })
        .collect();
    for (m, n) in [(8, 1), (16, 2), (21, 2), (21, 3), (16, 9), (24, 64)] {
        let stop = StopCircuit::argmax(m, n).unwrap();
        all.push((format!("argmax {m} {n}"), vec![stop.circuit().clone()]));
    }
    check(&all, &STOPS);
}

#[test]
fn functions_of_bits_are_compiled_as_ever() {
    let compiled = |function: &Function, row: usize| {
        let mut b = Builder::new(Modulus::Ring(8));
        let row = (0..row)
            .map(|_| b.inputs(Party::Garbler, function.ring_bits()))
            .collect();
        for result in in_bits(&mut b, function, row).unwrap() {
            for bit in result.into_iter().filter(|b| b.as_constant().is_none()) {
                b.keep(bit);
            }
        }
        b.finish()
    };
    let all: Vec<Circuit> = functions()
        .iter()
        .map(|(_, function, row)| compiled(function, *row))
        .collect();
    check(&[("all".to_owned(), all)], &BITS);
}

/// Checks random tables, some of them with repeated or constant outputs.
#[test]
fn tables_are_compiled_as_ever() {
    let mut prg = Prg::new(&[5; 16]);
    let mut all = Vec::new();
    for inputs in 1..=10u32 {
        let mut compiled = Vec::new();
        for outputs in [1, 3, 8, 12] {
            for guarded in [false, true] {
                let keep = prg.next_u32();
                let mut entry = || prg.next_u32() & (keep | 0x155) & ((1 << outputs) - 1);
                let mut entries: Vec<u32> = (0..1 << inputs).map(|_| entry()).collect();
                if outputs == 8 {
                    entries.sort_unstable();
                }
                let mut b = Builder::new(Modulus::Prime);
                let index = b.inputs(Party::Evaluator, inputs);
                let guard = b.inputs(Party::Garbler, 1)[0];
                let value = match guarded {
                    true => b.guarded_table(!guard, &index, &entries, outputs),
                    false => b.table(&index, &entries, outputs),
                };
                value.into_iter().for_each(|bit| b.reveal(bit));
                compiled.push(b.finish());
            }
        }
        all.push((format!("{inputs} inputs"), compiled));
    }
    check(&all, &TABLES);
}

const STOPS: [(&str, &str); 53] = [
    ("GeluErf 9 6 6", "06b76edc012e5fb0"),
    ("GeluErf 12 8 10", "272203d5f3ea18d1"),
    ("GeluErf 13 8 10", "f1d2b01ce23f7610"),
    ("GeluErf 15 8 8", "339d2849acf4977b"),
    ("GeluErf 16 8 9", "41d022cd0c6d6ce1"),
    ("GeluErf 20 8 10", "3a29f93b24e7b9a3"),
    ("GeluTanh 9 6 6", "e14c10f6e88a12f6"),
    ("GeluTanh 12 8 10", "88c0ba3f85594bdf"),
    ("GeluTanh 13 8 10", "3a947087284ee1d3"),
    ("GeluTanh 15 8 8", "24a641c8ab2fb99c"),
    ("GeluTanh 16 8 9", "43dc203acd268ff5"),
    ("GeluTanh 20 8 10", "a4828ee6cbb13b25"),
    ("relu 6", "8e66b3d47336eee3"),
    ("relu 16", "f764f901390f348d"),
    ("softmax 11 5 1", "c1ea3994bacfd65c"),
    ("softmax 11 5 2", "53353c527c13ebac"),
    ("softmax 11 5 3", "c217b9d8611003d3"),
    ("softmax 11 5 8", "a484635277b42c0a"),
    ("softmax 11 5 17", "0f68d632c772abc3"),
    ("softmax 11 5 32", "2cb767002ed305f9"),
    ("softmax 12 5 1", "c1ea3994bacfd65c"),
    ("softmax 12 5 2", "2f8529532fd88534"),
    ("softmax 12 5 3", "0039af1eced1abe2"),
    ("softmax 12 5 8", "3c01616118e98920"),
    ("softmax 12 5 17", "ea7ddc3baec6a45b"),
    ("softmax 12 5 32", "7cc9151873a9797f"),
    ("softmax 15 5 1", "c1ea3994bacfd65c"),
    ("softmax 15 5 2", "c6de979e22a83bc0"),
    ("softmax 15 5 3", "8348857c8210f46c"),
    ("softmax 15 5 8", "2c909752e7ce6a9d"),
    ("softmax 15 5 17", "c9940c822799c426"),
    ("softmax 15 5 32", "3155ecee69e354ff"),
    ("softmax 16 6 1", "400a043c0c31651e"),
    ("softmax 16 6 2", "829b4be79be915aa"),
    ("softmax 16 6 3", "663207af9bd70c1b"),
    ("softmax 16 6 8", "64087b22d46952bc"),
    ("softmax 16 6 17", "5ecd37cb09521b43"),
    ("softmax 16 6 32", "541ee50bff9ffb17"),
    ("softmax 14 5 128", "f15c273c1848fb96"),
    ("root 11 3", "115b6eb99db72a99"),
    ("root 16 1", "5f397b2fb1a546af"),
    ("root 22 1", "5018acb3b2b68d09"),
    ("root 22 362.04", "7f09535687c5c556"),
    ("root 22 5792.6", "9dadcdca93b0d6d5"),
    ("tanh 14 9", "a5b542504ebb1c67"),
    ("tanh 16 10", "01b383e8a248fc3b"),
    ("tanh 20 10", "c1408a60ecd50074"),
    ("argmax 8 1", "308ddd3ef063d7e5"),
    ("argmax 16 2", "0a9e5b8bc240c6cf"),
    ("argmax 21 2", "3af2fdeacf86d501"),
    ("argmax 21 3", "b28f97aca4f3c904"),
    ("argmax 16 9", "17b68943024372bf"),
    ("argmax 24 64", "1f2351718ea44cf9"),
];

const BITS: [(&str, &str); 1] = [("all", "b1e9cfddd6e55156")];

const TABLES: [(&str, &str); 10] = [
    ("1 inputs", "00fac4d340181fee"),
    ("2 inputs", "1db1e5cda32cfa60"),
    ("3 inputs", "4455056b46f386b8"),
    ("4 inputs", "c19496c1ebd1340a"),
    ("5 inputs", "c470b72a83423da3"),
    ("6 inputs", "b371fc237c700b64"),
    ("7 inputs", "f9a4279abbb9ac23"),
    ("8 inputs", "1b25bf4301b2cffa"),
    ("9 inputs", "fcad7b8006ebca53"),
    ("10 inputs", "e025a70fc5c8a7c5"),
];

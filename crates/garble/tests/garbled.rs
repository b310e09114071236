//! Garbled runs against clear ones, on every engine of this processor.

mod common;

use common::{clear_shares, share};
use primer_garble::circuit::{Bit, Builder, Circuit, LANES, Modulus, Party};
use primer_garble::evaluator::{EvaluateError, Evaluator};
use primer_garble::garbler::Garbler;
use primer_garble::stop::StopCircuit;
use primer_garble::{Backend, Label, Offset};
use primer_plan::function::{Activation, Function, Gelu, InverseRoot, Softmax, Tanh};
use primer_ring::prg::Prg;
use rand_core::Rng;

/// The data of one garbled run of a few instances.
struct Run {
    nonce: Label,
    material: Vec<u8>,
    masks: Vec<u64>,
    active: [Vec<Label>; 2],
}

fn bits(stop: &StopCircuit, shares: &[Vec<u64>]) -> Vec<bool> {
    let m = stop.ring_bits();
    let flat = shares.iter().flatten();
    flat.flat_map(|s| (0..m).map(move |i| s >> i & 1 == 1))
        .collect()
}

fn label(prg: &mut Prg) -> Label {
    Label::from_le_bytes(prg.seed())
}

/// Garbles instances whose input bits are given, batch by batch.
fn garble(circuit: &Circuit, inputs: [&[bool]; 2], backend: Backend, seed: u8) -> Run {
    garble_negated(circuit, inputs, &[], backend, seed)
}

/// Garbles with the outputs of some instances negated; if `negated` is empty, in the usual way.
fn garble_negated(
    circuit: &Circuit,
    inputs: [&[bool]; 2],
    negated: &[bool],
    backend: Backend,
    seed: u8,
) -> Run {
    let mut prg = Prg::new(&[seed; 16]);
    let offset = Offset::random(&mut prg);
    let nonce = label(&mut prg);
    let zero = inputs.map(|bits| bits.iter().map(|_| label(&mut prg)).collect::<Vec<_>>());
    let active = [0, 1].map(|p| {
        let labels = zero[p].iter().zip(inputs[p]);
        labels
            .map(|(&z, &b)| offset.choose(z, b))
            .collect::<Vec<_>>()
    });
    let per = [Party::Garbler, Party::Evaluator].map(|p| circuit.inputs(p));
    let instances = inputs[0].len() / per[0];
    let outputs = circuit.cost().outputs;
    let mut masks = vec![0; instances * outputs];
    let mut material = Vec::new();
    let mut garbler = Garbler::with_backend(circuit, &offset, nonce, backend);
    for first in (0..instances).step_by(LANES) {
        let end = instances.min(first + LANES);
        let part = |p: usize| &zero[p][first * per[p]..end * per[p]];
        let masks = &mut masks[first * outputs..end * outputs];
        let garbled = match negated.get(first..end) {
            None => garbler.batch(part(0), part(1), masks, &mut material),
            Some(negated) => garbler.batch_negated(part(0), part(1), negated, masks, &mut material),
        };
        garbled.unwrap();
    }
    assert_eq!(
        circuit.garbled_len(instances as u64),
        Some(material.len() as u64)
    );
    Run {
        nonce,
        material,
        masks,
        active,
    }
}

/// Evaluates a run: outputs plus masks, and revealed bits.
fn evaluate(
    circuit: &Circuit,
    run: &Run,
    backend: Backend,
) -> Result<(Vec<u64>, Vec<bool>), EvaluateError> {
    let per = [Party::Garbler, Party::Evaluator].map(|p| circuit.inputs(p));
    let instances = run.active[0].len() / per[0];
    let cost = circuit.cost();
    let mut outputs = vec![0; instances * cost.outputs];
    let mut revealed = vec![false; instances * cost.reveals];
    let mut source = &run.material[..];
    let mut evaluator = Evaluator::with_backend(circuit, run.nonce, backend);
    for first in (0..instances).step_by(LANES) {
        let end = instances.min(first + LANES);
        let part = |p: usize| &run.active[p][first * per[p]..end * per[p]];
        evaluator.batch(
            part(0),
            part(1),
            &mut source,
            &mut outputs[first * cost.outputs..end * cost.outputs],
            &mut revealed[first * cost.reveals..end * cost.reveals],
        )?;
    }
    assert!(source.is_empty(), "all material was used");
    Ok((outputs, revealed))
}

/// Garbles a stop on random values and compares with the clear run.
fn check(stop: &StopCircuit, instances: usize, seed: u8) {
    let circuit = stop.circuit();
    let mut prg = Prg::new(&[seed ^ 0x5a; 16]);
    let m = stop.ring_bits();
    let (server, client): (Vec<_>, Vec<_>) = (0..instances)
        .map(|_| {
            let row: Vec<i64> = (0..stop.row())
                .map(|_| (prg.next_u64() as i64) >> (64 - m) >> (prg.next_u32() % m))
                .collect();
            share(stop, &row, &mut prg)
        })
        .unzip();
    let want = clear_shares(stop, &server, &client);
    let inputs = [bits(stop, &server), bits(stop, &client)];
    let mut first: Option<Vec<u8>> = None;
    for backend in Backend::available() {
        let run = garble(circuit, [&inputs[0], &inputs[1]], backend, seed);
        // All engines garble to the same bytes.
        assert!(*first.get_or_insert(run.material.clone()) == run.material);
        for evaluating in Backend::available() {
            let (outputs, revealed) = evaluate(circuit, &run, evaluating).unwrap();
            let cost = circuit.cost();
            for l in 0..instances {
                for o in 0..cost.outputs {
                    let i = l * cost.outputs + o;
                    let got = circuit.modulus().sub(outputs[i], run.masks[i]);
                    assert_eq!(got, want.outputs[o][l], "{} {l} {o}", backend.name());
                }
                for (r, word) in want.revealed.iter().enumerate() {
                    assert_eq!(revealed[l * cost.reveals + r], word >> l & 1 == 1);
                }
            }
        }
    }
}

/// Checks that the outputs of some instances are negated for all constants that the circuit has,
/// that nothing else changes except what projections open, and that with nothing negated all bytes
/// are the usual ones.
#[test]
fn outputs_are_negated_where_the_garbler_says_so() {
    let tanh = StopCircuit::new(&Function::Tanh(Tanh::new(16, 10)), 1).unwrap();
    let root = Function::InverseRoot(InverseRoot::new(20, 1.5));
    let root = StopCircuit::new(&root, 1).unwrap();
    for stop in [gelu(), tanh, root] {
        let (circuit, modulus) = (stop.circuit(), stop.circuit().modulus());
        let mut prg = Prg::new(&[77; 16]);
        let instances = 19;
        let rows = (0..instances).map(|_| {
            let value = i64::from(prg.next_u32() as i16) >> (prg.next_u32() % 12);
            share(&stop, &[value], &mut prg)
        });
        let (server, client): (Vec<_>, Vec<_>) = rows.unzip();
        let want = clear_shares(&stop, &server, &client);
        let inputs = [bits(&stop, &server), bits(&stop, &client)];
        let inputs = [&inputs[0][..], &inputs[1]];
        let negated: Vec<bool> = (0..instances).map(|l| l % 3 == 1).collect();
        for backend in Backend::available() {
            let usual = garble(circuit, inputs, backend, 5);
            let none = garble_negated(circuit, inputs, &vec![false; instances], backend, 5);
            assert!(usual.material == none.material && usual.masks == none.masks);
            let run = garble_negated(circuit, inputs, &negated, backend, 5);
            assert!(usual.material != run.material);
            let (outputs, _) = evaluate(circuit, &run, backend).unwrap();
            for (l, negated) in negated.iter().enumerate() {
                let got = modulus.sub(outputs[l], run.masks[l]);
                let want = want.outputs[0][l];
                let want = if *negated { modulus.neg(want) } else { want };
                assert_eq!(got, want, "{} {l}", backend.name());
            }
        }
    }
}

fn gelu() -> StopCircuit {
    let gelu = Gelu::new(Activation::GeluErf, 16, 8, 9);
    StopCircuit::new(&Function::Gelu(gelu), 1).unwrap()
}

#[test]
fn engines_agree_with_the_clear_run() {
    for instances in [1, 3, 7, 8, 9, 23] {
        check(&gelu(), instances, instances as u8);
    }
    let function = |f| StopCircuit::new(&f, 1).unwrap();
    check(
        &function(Function::Relu {
            ring_bits: 12,
            fraction: 0,
        }),
        17,
        40,
    );
    check(
        &function(Function::InverseRoot(InverseRoot::new(20, 1.5))),
        17,
        41,
    );
    check(&function(Function::Tanh(Tanh::new(16, 10))), 17, 42);
    for row in [1, 2, 30] {
        let softmax = Function::Softmax(Softmax::new(15, 5, 0, 0));
        check(&StopCircuit::new(&softmax, row).unwrap(), 11, 43);
    }
    for row in [1, 2, 10] {
        check(&StopCircuit::argmax(16, row).unwrap(), 11, 44);
    }
}

#[test]
fn a_long_row_spans_many_segments() {
    let softmax = Function::Softmax(Softmax::new(15, 5, 0, 0));
    check(&StopCircuit::new(&softmax, 200).unwrap(), 2, 45);
}

#[test]
fn projections_into_rings() {
    // Both parties' bits, an AND and an XOR of them, into Z_2^m with signed weights.
    for m in [1, 7, 16, 57] {
        let mut b = Builder::new(Modulus::Ring(m));
        let x = b.inputs(Party::Garbler, 3);
        let y = b.inputs(Party::Evaluator, 3);
        let out = b.output();
        for i in 0..3 {
            let both = b.and(x[i], !y[i]);
            let differ = b.xor(x[i], y[i]);
            b.project(out, both, 5 << i);
            b.project(out, !differ, -(3 << i));
        }
        b.project(out, Bit::ONE, 9);
        b.add_constant(out, -2);
        let circuit = b.finish();
        let ring = circuit.modulus();
        let all: Vec<(u64, u64)> = (0..64).map(|i| (i % 8, i / 8)).collect();
        let spread = |v: Vec<u64>| -> Vec<bool> {
            v.iter()
                .flat_map(|v| (0..3).map(move |i| v >> i & 1 == 1))
                .collect()
        };
        let mine = spread(all.iter().map(|p| p.0).collect());
        let theirs = spread(all.iter().map(|p| p.1).collect());
        for backend in Backend::available() {
            let run = garble(&circuit, [&mine, &theirs], backend, 60);
            let (outputs, _) = evaluate(&circuit, &run, backend).unwrap();
            for (l, &(x, y)) in all.iter().enumerate() {
                let want = 5 * (x & !y) as i64 - 3 * (!(x ^ y) & 7) as i64 + 7;
                assert_eq!(ring.sub(outputs[l], run.masks[l]), ring.residue(want));
            }
        }
    }
}

#[test]
fn masks_hide_results() {
    // The same inputs under other labels: other shares on both sides.
    let stop = gelu();
    let inputs = bits(&stop, &vec![vec![77]; 8]);
    let runs = [70, 71].map(|seed| {
        let run = garble(stop.circuit(), [&inputs, &inputs], Backend::detect(), seed);
        let outputs = evaluate(stop.circuit(), &run, Backend::detect()).unwrap().0;
        (outputs, run.masks)
    });
    for l in 0..8 {
        assert_ne!(runs[0].0[l], runs[1].0[l]);
        assert_ne!(runs[0].1[l], runs[1].1[l]);
    }
}

/// Returns what a damaged run gives: an error, or the number of wrong outputs.
fn damaged(change: impl FnOnce(&mut Run)) -> Result<usize, EvaluateError> {
    let stop = gelu();
    let mut prg = Prg::new(&[80; 16]);
    let shares: Vec<Vec<u64>> = (0..16).map(|_| vec![prg.next_u64() & 0xffff]).collect();
    let inputs = bits(&stop, &shares);
    let mut run = garble(stop.circuit(), [&inputs, &inputs], Backend::detect(), 81);
    let right = evaluate(stop.circuit(), &run, Backend::detect()).unwrap().0;
    change(&mut run);
    let got = evaluate(stop.circuit(), &run, Backend::detect())?.0;
    Ok(right.iter().zip(&got).filter(|(a, b)| a != b).count())
}

#[test]
fn a_wrong_label_gives_one_wrong_masked_value() {
    assert_eq!(damaged(|run| run.active[0][5] ^= 1 << 77).unwrap(), 1);
    assert_eq!(damaged(|run| run.active[1][16] ^= 1).unwrap(), 1);
}

#[test]
fn a_wrong_nonce_gives_wrong_masked_values() {
    assert_eq!(damaged(|run| run.nonce ^= 1 << 100).unwrap(), 16);
}

#[test]
fn flipped_table_bits_stay_in_their_instance() {
    // Whether a row is used depends on a colour, so of the two rows of a gate some are not seen.
    let wrong = (0..64).map(|i| damaged(|run| run.material[16 * i + 3] ^= 0x40).unwrap());
    let wrong: Vec<usize> = wrong.collect();
    assert!(wrong.iter().all(|&w| w <= 1));
    assert!(wrong.iter().sum::<usize>() >= 16);
}

#[test]
fn truncated_material_is_an_error() {
    for keep in [0, 1, 1000, 20_000] {
        let result = damaged(|run| run.material.truncate(keep));
        assert!(matches!(result, Err(EvaluateError::Read(_))));
    }
    assert!(
        damaged(|run| {
            run.material.pop();
        })
        .is_err()
    );
}

#[test]
fn rows_beyond_the_modulus_are_an_error() {
    let cost = gelu().circuit().cost();
    let result = damaged(|run| {
        let start = 256 * cost.and_gates;
        run.material[start..start + 41].fill(0xff);
    });
    let message = result.unwrap_err().to_string();
    assert_eq!(
        message,
        "garbled rows: packed value 0 is not a residue of its modulus"
    );
}

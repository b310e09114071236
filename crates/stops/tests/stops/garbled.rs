//! What is special about garbled stops: chunks, the look of their material, limits.

use crate::parties::{run, run_stop, share, sound};
use primer_garble::stop::StopCircuit;
use primer_net::Medium;
use primer_plan::function::Function;
use primer_ring::prg::Prg;
use primer_stops::{ClientStop, Garbled, ServerStop, Stop, StopError};
use rand_core::Rng;
use std::io::{Read, Seek, Write};
use std::sync::Arc;

fn relu(ring_bits: u32, instances: u64) -> Garbled {
    let function = Function::Relu {
        ring_bits,
        fraction: 0,
    };
    let circuit = StopCircuit::new(&function, 1).unwrap();
    Garbled::new(Arc::new(circuit), instances).unwrap()
}

#[test]
fn many_chunks() {
    // 16-bit ReLU: 65,536 elements fill a chunk of the offline phase.
    let stop = relu(16, 2 * 65_536 + 1003);
    let mut prg = Prg::new(&[3; 16]);
    let values: Vec<i64> = (0..stop.elements())
        .map(|_| i64::from(prg.next_u32() as i16))
        .collect();
    let (server, client) = share(&values, 16, &mut prg);
    let got = run_stop(Medium::Memory, &stop, (&server, &client), [&sound; 2]).unwrap();
    let expected: Vec<i64> = values.iter().map(|x| *x.max(&0)).collect();
    assert!(got.results == expected);
    assert_eq!(got.bytes, stop.bytes());
    assert_eq!(stop.turns().len(), 2 * 3);
}

/// Streams the client's material through a file.
#[test]
fn material_survives_a_file() {
    let stop = relu(16, 40);
    let values: Vec<i64> = (-20..20).map(|i| 700 * i).collect();
    let (server, client) = share(&values, 16, &mut Prg::new(&[2; 16]));
    let masks = vec![12_345; 40];
    let (_, results) = run(
        Medium::Memory,
        |p| {
            let mut file = tempfile::tempfile().unwrap();
            ClientStop::prepare(&stop, &mut p.client(), &client, &masks, &mut file)?;
            file.flush().unwrap();
            file.rewind().unwrap();
            let pending = stop.listen(p.channel, &mut file, &[], &masks)?;
            assert_eq!(file.read(&mut [0]).unwrap(), 0);
            pending.answer(p.channel)
        },
        |p| {
            let mut stored = Vec::new();
            ServerStop::prepare(&stop, &mut p.server(), &mut stored)?;
            let waiting = stop.request(p.channel, &mut &stored[..], &server)?;
            p.channel.flush()?;
            waiting.receive(p.channel)
        },
    )
    .unwrap();
    for (result, x) in results.iter().zip(values) {
        let opened = primer_ring::modulus::add(*result, 12_345);
        assert_eq!(primer_ring::modulus::to_signed(opened), x.max(0));
    }
}

/// Checks that for equal values in equal shares the masks of the outputs, and the active labels of
/// equal bits, differ.
#[test]
fn material_looks_random() {
    let stop = relu(8, 64);
    let shares = vec![5; 64];
    let got = run_stop(Medium::Memory, &stop, (&shares, &shares), [&sound; 2]).unwrap();
    let distinct = |pieces: std::slice::ChunksExact<'_, u8>| {
        let count = pieces.len();
        let mut pieces: Vec<&[u8]> = pieces.collect();
        pieces.sort_unstable();
        pieces.dedup();
        assert_eq!(pieces.len(), count);
    };
    distinct(got.stored[1][32..].chunks_exact(8));
    distinct(got.stored[0][..64 * 8 * 16].chunks_exact(16));
}

#[test]
fn impossible_amounts_are_refused_before_anything_is_allocated() {
    let function = Function::Relu {
        ring_bits: 16,
        fraction: 0,
    };
    let circuit = Arc::new(StopCircuit::new(&function, 1).unwrap());
    for instances in [1 << 60, u64::MAX, 1 << 34] {
        let error = Garbled::new(Arc::clone(&circuit), instances).unwrap_err();
        assert!(matches!(error, StopError::Limit { .. }), "{error}");
    }
    let error = Garbled::new(circuit, 1 << 60).unwrap_err().to_string();
    let gates = 15u128 << 60;
    let want = format!(
        "{} instances of ReLU are {gates} AND gates, the limit is 8589934592",
        1u64 << 60
    );
    assert_eq!(error, want);
}

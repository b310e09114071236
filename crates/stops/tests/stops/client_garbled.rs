//! What is special about circuits that the client garbles: every share of a ring, signs, chunks,
//! their bytes. What each party sees is tested in `client_garbled_views`.

use crate::client_garbled_views::is_uniform;
use crate::parties::{run, run_stop, share, sound, stop_client, stop_server};
use primer_garble::stop::StopCircuit;
use primer_net::Medium;
use primer_ot::Variant;
use primer_plan::function::{Function, InverseRoot, Reciprocal};
use primer_ring::modulus::{self, P};
use primer_ring::prg::Prg;
use primer_ring::truncate::Truncation;
use primer_stops::{ClientGarbled, Garbled, Result, Stop, StopError, TwoPartyStop};
use rand_core::Rng;
use std::sync::Arc;

/// Makes ReLU stops for client's shares that are known offline, and for late ones.
pub(crate) fn relu(ring_bits: u32, instances: u64) -> [ClientGarbled; 2] {
    let function = Function::Relu {
        ring_bits,
        fraction: 0,
    };
    let circuit = StopCircuit::new(&function, 1).unwrap();
    let stop = ClientGarbled::new(Arc::new(circuit), instances).unwrap();
    [stop.clone(), stop.late()]
}

fn root(ring_bits: u32) -> (InverseRoot, Arc<StopCircuit>) {
    let root = InverseRoot::new(ring_bits, 1.0);
    let circuit = StopCircuit::new(&Function::InverseRoot(root.clone()), 1).unwrap();
    (root, Arc::new(circuit))
}

#[test]
fn all_values_and_all_shares_of_a_small_ring() {
    let (mut server, mut client, mut want) = (Vec::new(), Vec::new(), Vec::new());
    for v in -16i64..16 {
        for b in 0..32u64 {
            client.push(b);
            server.push((v as u64).wrapping_sub(b) & 31);
            want.push(v.max(0));
        }
    }
    // The random choices are new every time: all of their values meet all shares.
    for stop in relu(5, want.len() as u64) {
        for _ in 0..4 {
            let got = run_stop(Medium::Memory, &stop, (&server, &client), [&sound; 2]).unwrap();
            assert_eq!(got.results, want);
        }
    }
}

/// Computes the root of a sum of squares from any shares modulo p, truncated by each party on its
/// own.
#[test]
fn a_root_after_a_truncation_of_any_shares() {
    let (root, circuit) = root(22);
    let t = Truncation::to_ring(22).unwrap();
    let mut prg = Prg::new(&[31; 16]);
    let limit = ((1i64 << 21) - 2) << t.shift();
    let ends = [0, 1, P / 2, P - 2, P - 1];
    let pairs = (0..300).map(|i| {
        let x = (prg.next_u64() as i64 % limit).abs() >> (prg.next_u32() % 30);
        let r = match ends.get(i % 10) {
            Some(end) => *end,
            None => modulus::random(&mut prg),
        };
        (x, r)
    });
    let pairs: Vec<(i64, u64)> = pairs.collect();
    let shares = pairs.iter().map(|&(x, r)| {
        let a = modulus::sub(modulus::from_signed(x), r);
        (t.server(a), t.client(r))
    });
    let (server, client): (Vec<u64>, Vec<u64>) = shares.unzip();
    let stop = ClientGarbled::new(circuit, pairs.len() as u64).unwrap();
    for stop in [stop.clone(), stop.late()] {
        let got = run_stop(Medium::Memory, &stop, (&server, &client), [&sound; 2]).unwrap();
        for (y, (x, r)) in got.results.iter().zip(&pairs) {
            assert_eq!(*y, root.apply(t.shared(*x, *r)));
        }
    }
}

/// Runs a stop with signs; returns the opened results and what the server kept.
fn run_signed(
    stop: &ClientGarbled,
    (server, client): (&[u64], &[u64]),
    negated: &[bool],
) -> Result<(Vec<i64>, Vec<u8>)> {
    let draw = |_| modulus::random(&mut Prg::from_os());
    let masks: Vec<u64> = (0..stop.outputs()).map(draw).collect();
    let (_, (results, stored)) = run(
        Medium::Memory,
        |p| {
            let (part, mut stored) = (stop_client(stop), Vec::new());
            part.prepare_signed(&mut p.client(), &masks, negated, &mut stored)?;
            let pending = part.listen(p.channel, &mut &stored[..], client, &masks)?;
            pending.answer(p.channel)
        },
        |p| {
            let mut stored = Vec::new();
            stop_server(stop).prepare(&mut p.server(), &mut stored)?;
            let waiting = stop_server(stop).request(p.channel, &mut &stored[..], server)?;
            p.channel.flush()?;
            Ok((waiting.receive(p.channel)?, stored))
        },
    )?;
    let both = results.iter().zip(&masks);
    let opened = both.map(|(a, r)| modulus::to_signed(modulus::add(*a, *r)));
    Ok((opened.collect(), stored))
}

/// Computes roots with signs that only the client knows, over more than one batch. What the server
/// keeps is as long as without signs, and looks no different.
#[test]
fn roots_with_signs() {
    let (root, circuit) = root(22);
    let mut prg = Prg::new(&[32; 16]);
    let values: Vec<i64> = (0..300)
        .map(|_| i64::from(prg.next_u32() >> 11 >> (prg.next_u32() % 20)))
        .collect();
    let negated: Vec<bool> = values.iter().map(|_| prg.next_u32() & 1 == 1).collect();
    let (server, client) = share(&values, 22, &mut prg);
    let stop = ClientGarbled::new(circuit, values.len() as u64).unwrap();
    let stop = stop.late();
    let run = |negated: &[bool]| run_signed(&stop, (&server, &client), negated);
    let (results, stored) = run(&negated).unwrap();
    assert_eq!(stored.len() as u64, stop.stored().server);
    for ((y, x), negated) in results.iter().zip(&values).zip(&negated) {
        let want = root.apply(*x);
        assert_eq!(*y, if *negated { -want } else { want });
    }
    for all in [false, true] {
        let (_, stored) = run(&vec![all; values.len()]).unwrap();
        assert!(is_uniform(stored.iter().map(|byte| *byte as usize / 8)));
    }
    // A sign for each row, or none at all.
    let error = run(&negated[..299]).unwrap_err();
    assert!(
        matches!(error, StopError::Count { what: "signs", .. }),
        "{error}"
    );
}

/// Checks that only circuits that the client garbles can be negated, and only if its shares are
/// late.
#[test]
fn other_stops_cannot_be_negated() {
    let (_, circuit) = root(22);
    let stops: [&dyn TwoPartyStop; 2] = [
        &Garbled::new(Arc::clone(&circuit), 2).unwrap(),
        &ClientGarbled::new(circuit, 2).unwrap(),
    ];
    for stop in stops {
        let refused = run(
            Medium::Memory,
            |p| {
                let (part, mut sink) = (stop_client(stop), Vec::new());
                let refused = part.prepare_signed(&mut p.client(), &[0; 2], &[true; 2], &mut sink);
                Ok(refused.unwrap_err().to_string())
            },
            |_| Ok(()),
        );
        assert!(refused.unwrap().0.ends_with("cannot be negated"));
    }
}

#[test]
fn many_chunks() {
    // 16-bit ReLU: 65,536 elements fill a chunk of the offline phase.
    let count = 65_536 + 1003;
    let mut prg = Prg::new(&[3; 16]);
    let value = |_| i64::from(prg.next_u32() as i16);
    let values: Vec<i64> = (0..count).map(value).collect();
    let (server, client) = share(&values, 16, &mut prg);
    let expected: Vec<i64> = values.iter().map(|x| *x.max(&0)).collect();
    for stop in relu(16, count) {
        let got = run_stop(Medium::Memory, &stop, (&server, &client), [&sound; 2]).unwrap();
        assert!(got.results == expected);
        assert_eq!(got.bytes, stop.bytes());
        assert_eq!(stop.turns().len(), 2 * 2);
    }
}

/// Checks the figures of the protocol page for a root of 22 bits for each row of a norm.
#[test]
fn bytes_of_a_late_row() {
    let (_, circuit) = root(22);
    let n = 8000;
    let stop = ClientGarbled::new(Arc::clone(&circuit), n).unwrap();
    let stop = stop.late().over(Variant::SOFT_4);
    let (header, bytes) = (8, stop.bytes());
    assert_eq!(bytes.online_down, header + n * 22 / 8);
    assert_eq!(bytes.online_up, header + n * 704);
    // 22 transfers of 4 bytes; their frame has a position too.
    assert_eq!(bytes.offline_down, header + 8 + n * 88);
    let tables = circuit.circuit().garbled_len(n).unwrap();
    let masks = n * 41 / 8;
    assert_eq!(bytes.offline_up, 3 * header + 16 + tables + masks);
    assert_eq!(stop.stored().client, 48);
    assert_eq!(stop.stored().server, 32 + n * 22 * 16 + 16 + tables + masks);
    assert!(stop.is_late() && !stop.streams());
    let garbled = Garbled::new(circuit, n).unwrap();
    assert_eq!(stop.and_gates(), garbled.and_gates());
}

/// Checks those for a reciprocal of 38 bits for each row of softmax: compared with a circuit that
/// the server garbles, the client sends what it would receive, and keeps a bit instead of all of
/// it.
#[test]
fn bytes_of_a_row() {
    let function = Function::Reciprocal(Reciprocal::new(38, 1.0, 0, 7));
    let circuit = Arc::new(StopCircuit::new(&function, 1).unwrap());
    let n = 8000;
    let stop = ClientGarbled::new(Arc::clone(&circuit), n).unwrap();
    let stop = stop.over(Variant::SOFT_4);
    let (header, bytes) = (8, stop.bytes());
    assert_eq!(bytes.online_down, header + n * 38 / 8);
    assert_eq!(bytes.online_up, header + n * 608);
    assert_eq!(bytes.offline_down, header + 8 + n * 152);
    let tables = circuit.circuit().garbled_len(n).unwrap();
    let masks = n * 41 / 8;
    assert_eq!(bytes.offline_up, 3 * header + 16 + tables + masks);
    assert_eq!(stop.stored().client, 48 + n / 8);
    assert_eq!(stop.stored().server, 32 + n * 38 * 16 + 16 + tables + masks);
    assert!(!stop.is_late() && !stop.streams());
    let garbled = Garbled::new(circuit, n).unwrap().over(Variant::SOFT_4);
    assert_eq!(stop.and_gates(), garbled.and_gates());
    assert!(bytes.online() < garbled.bytes().online());
    assert_eq!(garbled.stored().client, n * 38 * 16 + 16 + tables);
}

#[test]
fn circuits_that_show_something_and_impossible_amounts_are_refused() {
    for row in [1, 3] {
        let argmax = StopCircuit::argmax(16, row).unwrap();
        let error = ClientGarbled::new(Arc::new(argmax), 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "argmax cannot be computed by client garbling"
        );
    }
    let (_, circuit) = root(22);
    for instances in [1 << 60, u64::MAX, 1 << 34] {
        let error = ClientGarbled::new(Arc::clone(&circuit), instances).unwrap_err();
        assert!(matches!(error, StopError::Limit { .. }), "{error}");
    }
}

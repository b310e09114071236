//! What is special about circuits that the client garbles: every share of a ring, chunks, their
//! bytes, and what each party sees.

use crate::parties::{Party, run, run_stop, share, sound, stop_client, stop_server};
use primer_garble::stop::StopCircuit;
use primer_net::Transport;
use primer_net::kind::client_garbled::{CHOICES, LABELS};
use primer_ot::Variant;
use primer_plan::function::{Function, InverseRoot};
use primer_ring::modulus::{self, P};
use primer_ring::prg::Prg;
use primer_ring::truncate::Truncation;
use primer_stops::{ClientGarbled, Garbled, Result, Stop, StopsError};
use rand_core::Rng;
use std::collections::HashSet;
use std::sync::Arc;

fn relu(ring_bits: u32, instances: u64) -> ClientGarbled {
    let function = Function::Relu {
        ring_bits,
        fraction: 0,
    };
    let circuit = StopCircuit::new(&function, 1).unwrap();
    ClientGarbled::new(Arc::new(circuit), instances).unwrap()
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
    let stop = relu(5, want.len() as u64);
    for _ in 0..4 {
        let got = run_stop(Transport::Memory, &stop, (&server, &client), [&sound; 2]).unwrap();
        assert_eq!(got.results, want);
    }
}

/// The root of a sum of squares: shares modulo p of any kind, truncated by each party on its own.
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
    let got = run_stop(Transport::Memory, &stop, (&server, &client), [&sound; 2]).unwrap();
    for (y, (x, r)) in got.results.iter().zip(&pairs) {
        assert_eq!(*y, root.apply(t.shared(*x, *r)));
    }
}

/// The server's and the client's part of a run with signs: what the results are, and what the
/// server kept.
fn run_signed(
    stop: &ClientGarbled,
    (server, client): (&[u64], &[u64]),
    negated: &[bool],
) -> Result<(Vec<i64>, Vec<u8>)> {
    let draw = |_| modulus::random(&mut Prg::from_os());
    let masks: Vec<u64> = (0..stop.outputs()).map(draw).collect();
    let (_, (results, stored)) = run(
        Transport::Memory,
        |p| {
            let (part, mut stored) = (stop_client(stop), Vec::new());
            part.prepare_signed(&mut p.client(), &masks, negated, &mut stored)?;
            let owing = part.listen(p.channel, &mut &stored[..], client, &masks)?;
            owing.answer(p.channel)
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

/// Roots with signs that only the client knows, over more than one batch; and what the server keeps
/// is as long as without, and looks no different.
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
        matches!(error, StopsError::Count { what: "signs", .. }),
        "{error}"
    );
}

/// Only circuits of the client's can be negated.
#[test]
fn other_stops_cannot_be_negated() {
    let stop = Garbled::new(root(22).1, 2).unwrap();
    let refused = run(
        Transport::Memory,
        |p| {
            let part = stop_client(&stop);
            let refused = part.prepare_signed(&mut p.client(), &[0; 2], &[true; 2], &mut vec![]);
            Ok(refused.unwrap_err().to_string())
        },
        |_| Ok(()),
    );
    assert!(refused.unwrap().0.ends_with("cannot be negated"));
}

#[test]
fn many_chunks() {
    // 16-bit ReLU: 65,536 elements fill a chunk of the offline phase.
    let stop = relu(16, 65_536 + 1003);
    let mut prg = Prg::new(&[3; 16]);
    let values: Vec<i64> = (0..stop.elements())
        .map(|_| i64::from(prg.next_u32() as i16))
        .collect();
    let (server, client) = share(&values, 16, &mut prg);
    let got = run_stop(Transport::Memory, &stop, (&server, &client), [&sound; 2]).unwrap();
    let expected: Vec<i64> = values.iter().map(|x| *x.max(&0)).collect();
    assert!(got.results == expected);
    assert_eq!(got.bytes, stop.bytes());
    assert_eq!(stop.turns().len(), 2 * 2);
}

/// The figures of the protocol page: a root of 22 bits for each row of a norm.
#[test]
fn bytes_of_a_row() {
    let (_, circuit) = root(22);
    let n = 8000;
    let stop = ClientGarbled::new(Arc::clone(&circuit), n).unwrap();
    let stop = stop.over(Variant::SOFT_4);
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
        assert!(matches!(error, StopsError::Limit { .. }), "{error}");
    }
}

const RING: u32 = 8;
const COUNT: usize = 4000;
/// Labels of one party.
const SIDE: usize = COUNT * RING as usize;
/// The server's stored seed, in front of its rows.
const SEED: usize = 32;

fn prepare_client(p: &mut Party<'_>, masks: &[u64]) -> Result<Vec<u8>> {
    let mut stored = Vec::new();
    let stop = relu(RING, COUNT as u64);
    stop_client(&stop).prepare(&mut p.client(), &[], masks, &mut stored)?;
    Ok(stored)
}

fn prepare_server(p: &mut Party<'_>) -> Result<Vec<u8>> {
    let mut stored = Vec::new();
    stop_server(&relu(RING, COUNT as u64)).prepare(&mut p.server(), &mut stored)?;
    Ok(stored)
}

/// What the client hears if the server's shares are all `share` and its seed is `seed`, if any.
fn choices(share: u64, seed: Option<[u8; SEED]>) -> Vec<u64> {
    let (choices, ()) = run(
        Transport::Memory,
        |p| {
            prepare_client(p, &[0; COUNT])?;
            let mut choices = vec![0; COUNT];
            p.channel
                .recv_residues(CHOICES, RING, 1 << RING, &mut choices)?;
            Ok(choices)
        },
        |p| {
            let mut stored = prepare_server(p)?;
            if let Some(seed) = seed {
                stored[..SEED].copy_from_slice(&seed);
            }
            let stop = relu(RING, COUNT as u64);
            stop_server(&stop).request(p.channel, &mut &stored[..], &[share; COUNT])?;
            Ok(p.channel.flush()?)
        },
    )
    .unwrap();
    choices
}

/// Whether the values of 32 equally likely cells look uniform: the statistic is 31 on average, with
/// a deviation of 7.9; a uniform sample fails once in 10^8 runs.
fn is_uniform(cells: impl Iterator<Item = usize>) -> bool {
    let mut counts = [0f64; 32];
    cells.for_each(|cell| counts[cell] += 1.0);
    let expected = counts.iter().sum::<f64>() / 32.0;
    let distance = counts.map(|c| (c - expected).powi(2) / expected);
    distance.iter().sum::<f64>() < 100.0
}

#[test]
fn the_client_sees_uniform_choices() {
    let heard = choices(0xa5, None);
    assert!(is_uniform(heard.iter().map(|d| *d as usize / 8)));
    assert!(is_uniform(heard.iter().map(|d| *d as usize % 32)));
    // Pads that are used twice show by how much the shares differ: the test is not blind.
    let (one, two) = (
        choices(0xa5, Some([7; SEED])),
        choices(0x0f, Some([7; SEED])),
    );
    let difference = one.iter().zip(&two).map(|(a, b)| a ^ b);
    assert!(difference.clone().all(|d| d == 0xa5 ^ 0x0f));
    assert!(!is_uniform(difference.map(|d| d as usize / 8)));
}

/// What the server hears of the same material, asked with these choices one after the other: all
/// labels as numbers. With them its stored rows and the client's offset.
fn labels(asked: &[u64]) -> (Vec<Vec<u128>>, Vec<u128>, u128) {
    let stop = relu(RING, COUNT as u64);
    let (delta, (heard, rows)) = run(
        Transport::Memory,
        |p| {
            let masks = [0; COUNT];
            let stored = prepare_client(p, &masks)?;
            for _ in asked {
                let part = stop_client(&stop);
                part.listen(p.channel, &mut &stored[..], &[0x3c; COUNT], &masks)?
                    .answer(p.channel)?;
            }
            Ok(p.sender.delta().label())
        },
        |p| {
            let stored = prepare_server(p)?;
            let mut heard = Vec::new();
            for choice in asked {
                let choices = [*choice; COUNT];
                p.channel
                    .send_residues(CHOICES, RING, choices.iter().copied())?;
                let mut bytes = vec![0; 2 * SIDE * 16];
                p.channel.recv_exact(LABELS, &mut bytes)?;
                heard.push(numbers(&bytes));
            }
            Ok((heard, numbers(&stored[SEED..][..SIDE * 16])))
        },
    )
    .unwrap();
    (heard, rows, delta)
}

fn numbers(bytes: &[u8]) -> Vec<u128> {
    let labels = bytes.chunks_exact(16);
    labels
        .map(|label| u128::from_le_bytes(label.try_into().unwrap()))
        .collect()
}

/// Whether two of these numbers, or a number and zero, differ by the offset.
fn shows(numbers: impl Iterator<Item = u128>, delta: u128) -> bool {
    let all: HashSet<u128> = numbers.chain([0]).collect();
    all.iter().any(|number| all.contains(&(number ^ delta)))
}

/// Of every wire the server has one label. Whatever it hears, keeps, and makes of them by XOR: no
/// two differ by the offset. Asked twice the client would show it.
#[test]
fn the_server_sees_one_label_of_each_wire() {
    let (heard, rows, delta) = labels(&[0x5a, 0x5b]);
    // Batches of eight: the server's bits, then the client's.
    let batch = 8 * RING as usize;
    let side = |labels: &[u128], side: usize| -> Vec<u128> {
        let batches = labels.chunks_exact(2 * batch);
        let one = batches.flat_map(|both| &both[side * batch..][..batch]);
        one.copied().collect()
    };
    let [first, second] = [0, 1].map(|i| [0, 1].map(|s| side(&heard[i], s)));
    let active: Vec<u128> = first[0].iter().zip(&rows).map(|(x, t)| x ^ t).collect();
    let seen = || (rows.iter().chain(&heard[0]).chain(&active)).copied();
    assert_eq!(seen().collect::<HashSet<_>>().len(), 4 * SIDE, "distinct");
    assert!(!shows(seen(), delta));
    assert!(is_uniform(seen().map(|label| (label >> 64) as usize % 32)));
    assert!(is_uniform(seen().map(|label| label as usize % 32)));
    // The lowest bit was asked for differently: of its wires there are both labels now.
    assert!(shows(seen().chain(heard[1].iter().copied()), delta));
    for (j, (x, y)) in first[0].iter().zip(&second[0]).enumerate() {
        let flipped = j % RING as usize == 0;
        assert_eq!(x ^ y, if flipped { delta } else { 0 });
    }
    assert_eq!(first[1], second[1]);
}

/// What the server ends with, for one value and the same shares throughout; and the masks of the
/// outputs under the client's that it was sent offline.
fn ends_with(mask: impl Fn() -> u64 + Sync) -> [Vec<u64>; 2] {
    let stop = relu(RING, COUNT as u64);
    let masks: Vec<u64> = (0..COUNT).map(|_| mask()).collect();
    let (_, (shares, packed)) = run(
        Transport::Memory,
        |p| {
            let stored = prepare_client(p, &masks)?;
            let part = stop_client(&stop);
            part.listen(p.channel, &mut &stored[..], &[0x3c; COUNT], &masks)?
                .answer(p.channel)
        },
        |p| {
            let stored = prepare_server(p)?;
            let packed = stored[stored.len() - COUNT * 41 / 8..].to_vec();
            let part = stop_server(&stop);
            let waiting = part.request(p.channel, &mut &stored[..], &[0x11; COUNT])?;
            p.channel.flush()?;
            Ok((waiting.receive(p.channel)?, packed))
        },
    )
    .unwrap();
    let mut sent = vec![0; COUNT];
    primer_ring::pack::unpack(&packed, 41, P, &mut sent).unwrap();
    [shares, sent]
}

fn residues(values: &[u64]) -> bool {
    is_uniform(values.iter().map(|v| (v * 32 / P) as usize))
}

#[test]
fn the_server_ends_with_uniform_shares() {
    let [shares, sent] = ends_with(|| modulus::random(&mut Prg::from_os()));
    assert!(residues(&shares) && residues(&sent));
    // Without masks it ends with the value, and what it was sent is masked by the garbling only.
    let [shares, sent] = ends_with(|| 0);
    assert!(shares.iter().all(|share| *share == 0x3c + 0x11));
    assert!(!residues(&shares) && residues(&sent));
}

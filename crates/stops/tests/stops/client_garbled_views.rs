//! What each party sees of circuits that the client garbles: uniform numbers, and of every wire one
//! label. Each test is also shown to fail where a pad or a mask is used twice or missing.

use crate::client_garbled::relu;
use crate::parties::{Party, run, run_stop, sound, stop_client, stop_server, timely};
use primer_garble::circuit::{Circuit, LANES};
use primer_garble::garbler::Garbler;
use primer_garble::stop::StopCircuit;
use primer_garble::{Label, Offset};
use primer_net::Medium;
use primer_plan::function::{Function, Reciprocal};
use primer_ring::modulus::{self, P};
use primer_ring::prg::Prg;
use primer_stops::{ClientGarbled, Result, Stop};
use primer_wire::kind::client_garbled::{CHOICES, LABELS};
use std::collections::HashSet;
use std::sync::Arc;

const RING: u32 = 8;
const COUNT: usize = 4000;
/// Labels of one party.
const SIDE: usize = COUNT * RING as usize;
/// Bytes of the server's stored seed, which precedes its rows.
const SEED: usize = 32;
/// The client's shares.
static SHARES: [u64; COUNT] = [0x3c; COUNT];

fn prepare_client(p: &mut Party<'_>, stop: &ClientGarbled, masks: &[u64]) -> Result<Vec<u8>> {
    let mut stored = Vec::new();
    let [early, _] = timely(stop, &SHARES);
    stop_client(stop).prepare(&mut p.client(), early, masks, &mut stored)?;
    Ok(stored)
}

/// Hears the server's choices and answers.
fn answer(p: &mut Party<'_>, stop: &ClientGarbled, stored: &[u8], masks: &[u64]) -> Result<()> {
    let [_, late] = timely(stop, &SHARES);
    let pending = stop_client(stop).listen(p.channel, &mut &*stored, late, masks)?;
    pending.answer(p.channel).map(drop)
}

fn prepare_server(p: &mut Party<'_>, stop: &ClientGarbled) -> Result<Vec<u8>> {
    let mut stored = Vec::new();
    stop_server(stop).prepare(&mut p.server(), &mut stored)?;
    Ok(stored)
}

/// Returns what the client receives if the server's shares are all `share` and its seed is `seed`,
/// if any.
fn choices(stop: &ClientGarbled, share: u64, seed: Option<[u8; SEED]>) -> Vec<u64> {
    let (choices, ()) = run(
        Medium::Memory,
        |p| {
            prepare_client(p, stop, &[0; COUNT])?;
            let mut choices = vec![0; COUNT];
            p.channel
                .recv_residues(CHOICES, RING, 1 << RING, &mut choices)?;
            Ok(choices)
        },
        |p| {
            let mut stored = prepare_server(p, stop)?;
            if let Some(seed) = seed {
                stored[..SEED].copy_from_slice(&seed);
            }
            stop_server(stop).request(p.channel, &mut &stored[..], &[share; COUNT])?;
            Ok(p.channel.flush()?)
        },
    )
    .unwrap();
    choices
}

/// Tells whether the values of 32 equally likely cells look uniform: the statistic is 31 on
/// average, with a deviation of 7.9; a uniform sample fails once in 10^8 runs.
pub(crate) fn is_uniform(cells: impl Iterator<Item = usize>) -> bool {
    let mut counts = [0f64; 32];
    cells.for_each(|cell| counts[cell] += 1.0);
    let expected = counts.iter().sum::<f64>() / 32.0;
    let distance = counts.map(|c| (c - expected).powi(2) / expected);
    distance.iter().sum::<f64>() < 100.0
}

#[test]
fn the_client_sees_uniform_choices() {
    for stop in relu(RING, COUNT as u64) {
        let heard = choices(&stop, 0xa5, None);
        assert!(is_uniform(heard.iter().map(|d| *d as usize / 8)));
        assert!(is_uniform(heard.iter().map(|d| *d as usize % 32)));
        // Pads that are used twice show by how much the shares differ: the test is not blind.
        let twice = |share| choices(&stop, share, Some([7; SEED]));
        let (one, two) = (twice(0xa5), twice(0x0f));
        let difference = one.iter().zip(&two).map(|(a, b)| a ^ b);
        assert!(difference.clone().all(|d| d == 0xa5 ^ 0x0f));
        assert!(!is_uniform(difference.map(|d| d as usize / 8)));
    }
}

/// What the server has of one preparation.
struct Seen {
    /// All labels as numbers, each time that it asked.
    heard: Vec<Vec<u128>>,
    /// Rows of its transfers.
    rows: Vec<u128>,
    /// What it keeps after them: the nonce and the circuits.
    circuits: Vec<u8>,
    /// The client's offset.
    delta: u128,
}

/// Returns what the server sees of the same material if it asks with the choices `asked`, one after
/// the other.
fn labels(stop: &ClientGarbled, asked: &[u64]) -> Seen {
    let parties = 1 + usize::from(stop.is_late());
    let (delta, (heard, stored)) = run(
        Medium::Memory,
        |p| {
            let masks = [0; COUNT];
            let stored = prepare_client(p, stop, &masks)?;
            for _ in asked {
                answer(p, stop, &stored, &masks)?;
            }
            Ok(p.sender.delta().label())
        },
        |p| {
            let stored = prepare_server(p, stop)?;
            let mut heard = Vec::new();
            for choice in asked {
                let choices = [*choice; COUNT];
                p.channel
                    .send_residues(CHOICES, RING, choices.iter().copied())?;
                let mut bytes = vec![0; parties * SIDE * 16];
                p.channel.recv_exact(LABELS, &mut bytes)?;
                heard.push(numbers(&bytes));
            }
            Ok((heard, stored))
        },
    )
    .unwrap();
    let (rows, circuits) = stored[SEED..].split_at(SIDE * 16);
    Seen {
        heard,
        rows: numbers(rows),
        circuits: circuits.to_vec(),
        delta,
    }
}

fn numbers(bytes: &[u8]) -> Vec<u128> {
    let labels = bytes.chunks_exact(16);
    labels
        .map(|label| u128::from_le_bytes(label.try_into().unwrap()))
        .collect()
}

/// Tells whether two of these numbers, or a number and zero, differ by the offset. Zero is the
/// server's label of a bit that the client knows offline.
fn shows(numbers: impl Iterator<Item = u128>, delta: u128) -> bool {
    let all: HashSet<u128> = numbers.chain([0]).collect();
    all.iter().any(|number| all.contains(&(number ^ delta)))
}

/// Checks that the server has one label of every wire: of all labels that it receives, keeps, and
/// makes from them by XOR, no two differ by the offset. A client that is asked twice would show it.
#[test]
fn the_server_sees_one_label_of_each_wire() {
    for stop in relu(RING, COUNT as u64) {
        let Seen {
            heard, rows, delta, ..
        } = labels(&stop, &[0x5a, 0x5b]);
        // Batches of eight: the server's bits, then the client's if they are late.
        let parties = 1 + usize::from(stop.is_late());
        let batch = 8 * RING as usize;
        let side = |labels: &[u128], side: usize| -> Vec<u128> {
            let batches = labels.chunks_exact(parties * batch);
            let one = batches.flat_map(|all| &all[side * batch..][..batch]);
            one.copied().collect()
        };
        let [first, second] = [0, 1].map(|i| side(&heard[i], 0));
        let active: Vec<u128> = first.iter().zip(&rows).map(|(x, t)| x ^ t).collect();
        let seen = || (rows.iter().chain(&heard[0]).chain(&active)).copied();
        let distinct = seen().collect::<HashSet<_>>().len();
        assert_eq!(distinct, (2 + parties) * SIDE, "distinct");
        assert!(!shows(seen(), delta));
        assert!(is_uniform(seen().map(|label| (label >> 64) as usize % 32)));
        assert!(is_uniform(seen().map(|label| label as usize % 32)));
        // The lowest bit was asked for differently: of its wires there are both labels now.
        assert!(shows(seen().chain(heard[1].iter().copied()), delta));
        for (j, (x, y)) in first.iter().zip(&second).enumerate() {
            let flipped = j % RING as usize == 0;
            assert_eq!(x ^ y, if flipped { delta } else { 0 });
        }
        if stop.is_late() {
            assert_eq!(side(&heard[0], 1), side(&heard[1], 1));
        }
    }
}

/// Returns the tables of one batch of a circuit, for the same share in all instances.
fn tables(
    circuit: &Circuit,
    (offset, nonce): (&Offset, Label),
    labels: &[Label],
    share: u64,
) -> Vec<u128> {
    let bit = |i: usize| share >> (i % RING as usize) & 1 == 1;
    let known: Vec<Label> = (0..labels.len())
        .map(|i| offset.choose(0, bit(i)))
        .collect();
    let mut masks = vec![0; LANES * circuit.cost().outputs];
    let mut sink = Vec::new();
    let mut garbler = Garbler::new(circuit, offset, nonce);
    (garbler.batch(labels, &known, &mut masks, &mut sink)).unwrap();
    numbers(&sink[..tables_len(circuit)])
}

/// Returns the number of bytes of the tables of a batch, which precede its rows.
fn tables_len(circuit: &Circuit) -> usize {
    circuit.cost().and_gates * LANES * 32
}

/// Garbles the same bits in all instances, of which the server has the same label: tables and rows
/// are uniform, and nowhere in them is the offset, or a difference by it. Garbled twice with the
/// same nonce and labels, for bits that differ, they would show it.
#[test]
fn known_bits_do_not_show_in_circuits() {
    let [stop, _] = relu(RING, COUNT as u64);
    let Seen {
        circuits, delta, ..
    } = labels(&stop, &[]);
    assert!(is_uniform(circuits.iter().map(|byte| *byte as usize / 8)));
    assert!(is_uniform(circuits.iter().map(|byte| *byte as usize % 32)));
    // The nonce, then the tables of the first batch.
    let circuit = stop.circuit().circuit();
    let sent = numbers(&circuits[16..][..tables_len(circuit)]);
    assert_eq!(sent.iter().collect::<HashSet<_>>().len(), sent.len());
    assert!(!shows(sent.into_iter(), delta));
    let mut prg = Prg::from_os();
    let offset = Offset::random(&mut prg);
    let delta = Label::from_le_bytes(*offset.to_bytes());
    let mut labels = [0; LANES * RING as usize];
    prg.fill(bytemuck::cast_slice_mut(&mut labels));
    for (nonces, shown) in [([1, 2], false), ([1, 1], true)] {
        let garbled = nonces.into_iter().zip([0x3c, 0xc3]);
        let both = garbled.flat_map(|(nonce, b)| tables(circuit, (&offset, nonce), &labels, b));
        assert_eq!(shows(both, delta), shown, "{nonces:?}");
    }
}

/// Returns what the server ends with, for one value and the same shares throughout; and the masks
/// of the outputs under the client's that it was sent offline.
fn ends_with(stop: &ClientGarbled, mask: impl Fn() -> u64 + Sync) -> [Vec<u64>; 2] {
    let masks: Vec<u64> = (0..COUNT).map(|_| mask()).collect();
    let (_, (shares, packed)) = run(
        Medium::Memory,
        |p| {
            let stored = prepare_client(p, stop, &masks)?;
            answer(p, stop, &stored, &masks)
        },
        |p| {
            let stored = prepare_server(p, stop)?;
            let packed = stored[stored.len() - COUNT * 41 / 8..].to_vec();
            let waiting = stop_server(stop).request(p.channel, &mut &stored[..], &[0x11; COUNT])?;
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
    for stop in relu(RING, COUNT as u64) {
        let [shares, sent] = ends_with(&stop, || modulus::random(&mut Prg::from_os()));
        assert!(residues(&shares) && residues(&sent));
        // Without masks it ends with the value, and what it was sent is masked by the garbling
        // only.
        let [shares, sent] = ends_with(&stop, || 0);
        assert!(shares.iter().all(|share| *share == 0x3c + 0x11));
        assert!(!residues(&shares) && residues(&sent));
    }
}

/// Checks that the client's bits of range flags are uniform whether rows have run dry or not, and
/// so are the server's, which differ from them by the flags. (That they are shares of the flags is
/// tested with the comparison, in `counted`.)
#[test]
fn flags_are_shared_by_uniform_bits() {
    let function = Function::Reciprocal(Reciprocal::new(20, 1.0, 0, 7));
    let circuit = Arc::new(StopCircuit::new(&function, 1).unwrap());
    let count = 1 << 14;
    let stop = ClientGarbled::new(circuit, count as u64).unwrap();
    for server in [5, 5000] {
        let shares = (vec![server; count], vec![3; count]);
        let shares = (&shares.0[..], &shares.1[..]);
        let got = run_stop(Medium::Memory, &stop, shares, [&sound; 2]).unwrap();
        let flags = &got.stored[0][48..];
        assert_eq!(flags.len(), count / 8);
        assert!(is_uniform(flags.iter().map(|byte| *byte as usize / 8)));
        assert!(is_uniform(flags.iter().map(|byte| *byte as usize % 32)));
    }
}

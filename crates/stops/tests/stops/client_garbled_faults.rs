//! A peer that misbehaves at a circuit that the client garbles, and damaged material: an error or a
//! wrong masked value, nothing else.

use crate::parties::{Damage, Party, run, run_stop, share, sound};
use primer_garble::stop::StopCircuit;
use primer_net::Medium;
use primer_plan::function::{Function, InverseRoot, Reciprocal};
use primer_ring::prg::Prg;
use primer_stops::{ClientGarbled, ClientStop, Result, ServerStop, Stop, StopError};
use primer_wire::NetError;
use primer_wire::kind::client_garbled::{CHOICES, LABELS, MASKS};
use primer_wire::kind::garbled::{GARBLED, NONCE};
use std::sync::Arc;

/// With `m` bits each the choices do not fill their last byte.
const COUNT: usize = 21;
const RING: usize = 22;

/// Returns a root, with its stops for client's shares that are known offline and for late ones.
fn roots() -> (InverseRoot, [ClientGarbled; 2]) {
    let root = InverseRoot::new(RING as u32, 1.0);
    let circuit = StopCircuit::new(&Function::InverseRoot(root.clone()), 1).unwrap();
    let stop = ClientGarbled::new(Arc::new(circuit), COUNT as u64).unwrap();
    (root, [stop.clone(), stop.late()])
}

/// Returns the number of bytes of all labels that the client sends.
fn labels_len(stop: &ClientGarbled) -> usize {
    let parties = 1 + usize::from(stop.is_late());
    parties * COUNT * RING * 16
}

/// Returns the number of bytes of the garbled circuits.
fn garbled_len(stop: &ClientGarbled) -> usize {
    let circuit = stop.circuit().circuit();
    circuit.garbled_len(COUNT as u64).unwrap() as usize
}

/// Runs a stop with stored bytes changed; returns how many results are wrong.
fn with_damage(stop: &ClientGarbled, damage: [Damage<'_>; 2]) -> Result<usize> {
    let (root, _) = roots();
    let values: Vec<i64> = (0..COUNT as i64).map(|i| 900 * i * i + 7).collect();
    let (server, client) = share(&values, RING as u32, &mut Prg::from_os());
    let got = run_stop(Medium::Memory, stop, (&server, &client), damage)?;
    let wrong = |(found, x): &(&i64, &i64)| **found != root.apply(**x);
    Ok(got.results.iter().zip(&values).filter(wrong).count())
}

#[test]
fn damaged_material_spoils_its_own_values_or_is_an_error() {
    for stop in roots().1 {
        let with_damage = |damage| with_damage(&stop, damage);
        assert_eq!(with_damage([&sound; 2]).unwrap(), 0);
        // The server keeps a seed, rows, the nonce, circuits and masks.
        let row = |stored: &mut Vec<u8>| stored[32 + 16 * 30] ^= 4;
        assert_eq!(with_damage([&sound, &row]).unwrap(), 1);
        // Where the masks begin.
        let end = stop.stored().server as usize - (COUNT * 41).div_ceil(8);
        let one = |stored: &mut Vec<u8>| stored[end] ^= 1;
        assert_eq!(with_damage([&sound, &one]).unwrap(), 1);
        let masks = |stored: &mut Vec<u8>| stored[end..].fill(0xff);
        // The client's offset follows its seed; its lowest bit is always set.
        let even = |stored: &mut Vec<u8>| stored[32] &= 0xfe;
        let faults: [([Damage<'_>; 2], &str); 2] = [
            ([&sound, &masks], "not a residue"),
            ([&even, &sound], "lowest bit"),
        ];
        for (damage, told) in faults {
            let text = with_damage(damage).unwrap_err().to_string();
            assert!(
                text.contains(told) && text.contains("the reciprocal square root is not usable"),
                "{text}"
            );
        }
    }
}

/// Checks that bits after the last range flag are refused: the client's flags do not fill their
/// last byte.
#[test]
fn bits_behind_the_last_flag_are_an_error() {
    let function = Function::Reciprocal(Reciprocal::new(RING as u32, 1.0, 0, 7));
    let circuit = Arc::new(StopCircuit::new(&function, 1).unwrap());
    let stop = ClientGarbled::new(circuit, COUNT as u64).unwrap();
    let shares = [500; COUNT];
    let ends_in = |bit: u8| {
        let damage = move |stored: &mut Vec<u8>| *stored.last_mut().unwrap() ^= bit;
        run_stop(Medium::Memory, &stop, (&shares, &shares), [&damage, &sound])
    };
    // The last flag is bit 4.
    assert!(ends_in(1 << 4).is_ok());
    let error = ends_in(1 << 5).err().unwrap();
    assert!(
        matches!(
            &error,
            StopError::Material {
                stop: "the reciprocal",
                ..
            }
        ),
        "{error}"
    );
}

/// Runs the true server against `client`.
fn server_against(
    stop: &ClientGarbled,
    client: impl FnOnce(&mut Party<'_>) -> Result<()> + Send,
) -> Result<Vec<u64>> {
    let (_, results) = run(Medium::Memory, client, |p| {
        let mut stored = Vec::new();
        ServerStop::prepare(stop, &mut p.server(), &mut stored)?;
        let waiting = stop.request(p.channel, &mut &stored[..], &[5; COUNT])?;
        p.channel.flush()?;
        waiting.receive(p.channel)
    })?;
    Ok(results)
}

/// Runs the true server against a client that sends circuits full of `byte` and masks full of
/// `masks`, then `labels` bytes as labels.
fn nonsense(stop: &ClientGarbled, [byte, masks]: [u8; 2], labels: usize) -> Result<Vec<u64>> {
    server_against(stop, |p| {
        p.sender.extend_vec(p.channel, COUNT * RING)?;
        p.channel.send(NONCE, &[0; 16])?;
        p.channel.send(GARBLED, &vec![byte; garbled_len(stop)])?;
        p.channel
            .send(MASKS, &vec![masks; (COUNT * 41).div_ceil(8)])?;
        p.channel
            .recv_exact(CHOICES, &mut [0; (COUNT * RING).div_ceil(8)])?;
        p.channel.send(LABELS, &vec![byte; labels])?;
        Ok(p.channel.flush()?)
    })
}

#[test]
fn nonsense_instead_of_circuits_is_an_error_or_a_wrong_masked_value() {
    for stop in roots().1 {
        let nonsense = |bytes| nonsense(&stop, bytes, labels_len(&stop));
        // All zeros are residues, and the server finishes without noticing; all ones are not.
        assert_eq!(nonsense([0, 0]).unwrap().len(), COUNT);
        let error = nonsense([0xff, 0]).unwrap_err();
        assert!(matches!(error, StopError::Material { .. }), "{error}");
        let error = nonsense([0, 0xff]).unwrap_err();
        let told = matches!(
            &error,
            StopError::Net(NetError::Residues { kind, .. }) if *kind == MASKS
        );
        assert!(told, "{error}");
    }
}

/// Sends wrong counts of labels, among them the labels of one party where both are due, and of both
/// where one is.
#[test]
fn a_wrong_count_of_labels_is_an_error() {
    for stop in roots().1 {
        let right = labels_len(&stop);
        for labels in [0, right / 2, right * 2, right + 16] {
            let error = nonsense(&stop, [0, 0], labels).unwrap_err();
            let told = matches!(
                &error,
                StopError::Net(NetError::WrongLength { announced, .. })
                    if *announced == labels as u64
            );
            assert!(told, "{error}");
        }
    }
}

#[test]
fn a_client_that_announces_too_much_is_refused_by_its_header() {
    let (_, [stop, _]) = roots();
    for announced in [1 << 55, 1 << 40, 0] {
        let error = server_against(&stop, |p| {
            p.sender.extend_vec(p.channel, COUNT * RING)?;
            p.channel.send(NONCE, &[0; 16])?;
            // Only the header leaves; the stream is abandoned.
            let _ = p.channel.send_stream(GARBLED, announced)?;
            Ok(p.channel.flush()?)
        });
        let error = error.unwrap_err();
        let told = matches!(
            error,
            StopError::Net(NetError::WrongLength { announced: a, .. }) if a == announced
        );
        assert!(told, "{error}");
    }
}

#[test]
fn a_client_that_ends_early_or_sends_another_kind_is_an_error() {
    let (_, [stop, _]) = roots();
    let error = server_against(&stop, |p| {
        p.sender.extend_vec(p.channel, COUNT * RING)?;
        p.channel.send(NONCE, &[0; 16])?;
        let length = garbled_len(&stop) as u64;
        let mut stream = p.channel.send_stream(GARBLED, length)?;
        stream.put(&[7; 1000])?;
        Ok(p.channel.flush()?)
    });
    let error = error.unwrap_err();
    assert!(
        matches!(error, StopError::Net(NetError::PeerGone { .. })),
        "{error}"
    );
    let error = server_against(&stop, |p| {
        p.sender.extend_vec(p.channel, COUNT * RING)?;
        p.channel.send(LABELS, &[0; 16])?;
        Ok(p.channel.flush()?)
    });
    let error = error.unwrap_err();
    assert!(
        matches!(error, StopError::Net(NetError::WrongKind { .. })),
        "{error}"
    );
}

#[test]
fn a_server_that_asks_wrongly_is_an_error() {
    let (_, [stop, _]) = roots();
    // Too few, too many, and bits after the last choice.
    let right = (COUNT * RING).div_ceil(8);
    for (length, name) in [
        (right - 1, "WrongLength"),
        (right + 1, "WrongLength"),
        (right, "Residues"),
    ] {
        let error = run(
            Medium::Memory,
            |p| {
                let masks = [0; COUNT];
                let mut stored = Vec::new();
                ClientStop::prepare(&stop, &mut p.client(), &[1; COUNT], &masks, &mut stored)?;
                let pending = stop.listen(p.channel, &mut &stored[..], &[], &masks)?;
                pending.answer(p.channel).map(drop)
            },
            |p| {
                ServerStop::prepare(&stop, &mut p.server(), &mut Vec::new())?;
                p.channel.send(CHOICES, &vec![0xff; length])?;
                Ok(p.channel.flush()?)
            },
        );
        let error = error.unwrap_err();
        assert!(format!("{error:?}").contains(name), "{error:?}");
    }
}

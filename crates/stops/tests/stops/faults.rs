//! A peer that misbehaves, and material that was damaged: an error or a wrong masked value, nothing
//! else.

use crate::parties::{Party, run, run_stop, share, sound};
use primer_garble::stop::StopCircuit;
use primer_net::Medium;
use primer_plan::function::{Activation, Function, Gelu};
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_stops::{ClientStop, Garbled, Requantise, Result, ServerStop, Stop, StopError};
use primer_wire::NetError;
use primer_wire::kind::garbled::{GARBLED, LABELS, NONCE, RESULTS};
use std::sync::Arc;

const COUNT: usize = 24;

fn gelu() -> (Gelu, Garbled) {
    let gelu = Gelu::new(Activation::GeluErf, 16, 8, 9);
    let circuit = StopCircuit::new(&Function::Gelu(gelu.clone()), 1).unwrap();
    let stop = Garbled::new(Arc::new(circuit), COUNT as u64).unwrap();
    (gelu, stop)
}

/// Runs a stop with the client's stored bytes changed; returns how many results are wrong.
fn with_damage(change: impl Fn(&mut Vec<u8>) + Sync) -> Result<usize> {
    let (gelu, stop) = gelu();
    let values: Vec<i64> = (0..COUNT as i64).map(|i| 900 * (i - 12) + 7).collect();
    let (server, client) = share(&values, 16, &mut Prg::from_os());
    let damage = [&change as crate::parties::Damage<'_>, &sound];
    let got = run_stop(Medium::Memory, &stop, (&server, &client), damage)?;
    let wrong = |(found, x): &(&i64, &i64)| **found != gelu.apply(**x);
    Ok(got.results.iter().zip(&values).filter(wrong).count())
}

#[test]
fn undamaged_material_is_right() {
    assert_eq!(with_damage(|_| {}).unwrap(), 0);
}

#[test]
fn a_wrong_label_spoils_one_value() {
    assert_eq!(with_damage(|stored| stored[16 * 20] ^= 4).unwrap(), 1);
}

#[test]
fn flipped_table_bits_spoil_at_most_their_own_value() {
    // The labels and the nonce.
    let labels = COUNT * 16 * 16 + 16;
    let mut spoiled = 0;
    for i in 0..20 {
        // A row is used or not, by its colour: about every other flip is seen.
        let wrong = with_damage(|stored| stored[labels + 160 * i] ^= 1).unwrap();
        assert!(wrong <= 1);
        spoiled += wrong;
    }
    assert!(spoiled > 0);
}

#[test]
fn truncated_material_is_an_error() {
    for keep in [0, 100, COUNT * 256, COUNT * 256 + 30_000] {
        let error = with_damage(|stored| stored.truncate(keep)).unwrap_err();
        assert!(matches!(error, StopError::Material { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.starts_with("the stored material of GELU is not usable"),
            "{text}"
        );
    }
}

#[test]
fn damaged_material_of_a_server_is_an_error_where_it_can_be_seen() {
    let shares = (&[0; COUNT][..], &[0; COUNT][..]);
    let (_, stop) = gelu();
    // The offset follows the seed; its lowest bit is always set.
    let even = |stored: &mut Vec<u8>| stored[32] &= 0xfe;
    let error = run_stop(Medium::Memory, &stop, shares, [&sound, &even]);
    let text = error.err().unwrap().to_string();
    assert!(text.contains("lowest bit"), "{text}");
    // Residues beyond the modulus.
    let stop = Requantise::new(16, COUNT).unwrap();
    let ones = |stored: &mut Vec<u8>| stored.fill(0xff);
    for damage in [
        [&ones as crate::parties::Damage<'_>, &sound],
        [&sound, &ones],
    ] {
        let error = run_stop(Medium::Memory, &stop, shares, damage)
            .err()
            .unwrap();
        let text = error.to_string();
        assert!(
            text.contains("requantisation is not usable") || text.contains("disappeared"),
            "{text}"
        );
    }
}

/// Runs the true client against `server` and returns the error.
fn client_against(server: impl FnOnce(&mut Party<'_>, &Garbled) -> Result<()> + Send) -> StopError {
    let (_, stop) = gelu();
    run(
        Medium::Memory,
        |p| run_client(p, &stop),
        |p| server(p, &stop),
    )
    .unwrap_err()
}

fn run_client(p: &mut Party<'_>, stop: &Garbled) -> Result<()> {
    let (shares, masks) = ([1; COUNT], [0; COUNT]);
    let mut stored = Vec::new();
    ClientStop::prepare(stop, &mut p.client(), &shares, &masks, &mut stored)?;
    let pending = stop.listen(p.channel, &mut &stored[..], &[], &masks)?;
    pending.answer(p.channel).map(|_| ())
}

fn prepare_server(p: &mut Party<'_>, stop: &Garbled) -> Result<Vec<u8>> {
    let mut stored = Vec::new();
    ServerStop::prepare(stop, &mut p.server(), &mut stored)?;
    Ok(stored)
}

/// Returns the number of bytes of the garbled circuits: what comes down offline, without the nonce
/// and two headers.
fn garbled_len(stop: &Garbled) -> u64 {
    stop.bytes().offline_down - 8 - 16 - 8
}

#[test]
fn a_server_that_announces_too_much_is_refused_by_its_header() {
    for announced in [1 << 55, 1 << 40, 0] {
        let error = client_against(|p, _| {
            p.sender.extend_vec(p.channel, 16 * COUNT)?;
            p.channel.send(NONCE, &[0; 16])?;
            // Only the header leaves; the stream is abandoned.
            let _ = p.channel.send_stream(GARBLED, announced)?;
            Ok(p.channel.flush()?)
        });
        let told = matches!(
            error,
            StopError::Net(NetError::WrongLength { announced: a, .. }) if a == announced
        );
        assert!(told, "{error}");
    }
}

#[test]
fn a_server_that_ends_early_is_an_error() {
    let error = client_against(|p, stop| {
        p.sender.extend_vec(p.channel, 16 * COUNT)?;
        p.channel.send(NONCE, &[0; 16])?;
        let mut stream = p.channel.send_stream(GARBLED, garbled_len(stop))?;
        stream.put(&[7; 1000])?;
        Ok(p.channel.flush()?)
    });
    assert!(
        matches!(error, StopError::Net(NetError::PeerGone { .. })),
        "{error}"
    );
}

#[test]
fn garbage_instead_of_circuits_is_an_error_or_a_wrong_masked_value() {
    // All ones are not residues; all zeros are, and then the client finishes without noticing.
    for byte in [0xff, 0] {
        let (_, stop) = gelu();
        let outcome = run(
            Medium::Memory,
            |p| run_client(p, &stop),
            |p| {
                p.sender.extend_vec(p.channel, 16 * COUNT)?;
                p.channel.send(NONCE, &[0; 16])?;
                p.channel
                    .send(GARBLED, &vec![byte; garbled_len(&stop) as usize])?;
                p.channel.send(LABELS, &vec![byte; COUNT * 256])?;
                let mut results = [0; COUNT];
                Ok(p.channel
                    .recv_residues(RESULTS, 41, modulus::P, &mut results)?)
            },
        );
        match (byte, outcome) {
            (0, outcome) => assert!(outcome.is_ok()),
            (_, Ok(_)) => panic!("rows beyond the modulus were taken"),
            (_, Err(StopError::Material { .. })) => {}
            (_, Err(error)) => panic!("{error}"),
        }
    }
}

#[test]
fn a_wrong_kind_or_count_of_labels_is_an_error() {
    let error = client_against(|p, stop| {
        prepare_server(p, stop)?;
        p.channel.send(LABELS, &[0; 16])?;
        Ok(p.channel.flush()?)
    });
    assert!(
        matches!(error, StopError::Net(NetError::WrongLength { .. })),
        "{error}"
    );
    let error = client_against(|p, stop| {
        prepare_server(p, stop)?;
        p.channel.send(GARBLED, &[0; 16])?;
        Ok(p.channel.flush()?)
    });
    assert!(
        matches!(error, StopError::Net(NetError::WrongKind { .. })),
        "{error}"
    );
}

#[test]
fn a_client_that_answers_nonsense_is_an_error() {
    let (_, stop) = gelu();
    for (length, name) in [(3, "WrongLength"), (123, "Residues")] {
        let error = run(
            Medium::Memory,
            |p| {
                let (shares, masks) = ([1; COUNT], [0; COUNT]);
                let mut stored = Vec::new();
                ClientStop::prepare(&stop, &mut p.client(), &shares, &masks, &mut stored)?;
                let mut labels = vec![0; COUNT * 256];
                p.channel.recv_exact(LABELS, &mut labels)?;
                p.channel.send(RESULTS, &vec![0xff; length])?;
                Ok(p.channel.flush()?)
            },
            |p| {
                let stored = prepare_server(p, &stop)?;
                let waiting = stop.request(p.channel, &mut &stored[..], &[0; COUNT])?;
                waiting.receive(p.channel)
            },
        )
        .unwrap_err();
        assert!(format!("{error:?}").contains(name), "{error:?}");
    }
}

#[test]
fn a_position_beyond_the_row_is_refused() {
    let circuit = StopCircuit::argmax(16, 3).unwrap();
    let stop = Garbled::new(Arc::new(circuit), 200).unwrap();
    let values = vec![5; stop.elements()];
    let (server, client) = share(&values, 16, &mut Prg::from_os());
    let labels = 16 * 16 * stop.elements();
    // Wrong labels make random positions; of 200 in 0..4, it is very unlikely that none is a 3.
    let damage = |stored: &mut Vec<u8>| {
        for label in stored[..labels].chunks_exact_mut(16) {
            label[0] ^= 4;
        }
    };
    let shown = run_stop(Medium::Memory, &stop, (&server, &client), [&damage, &sound]);
    let error = shown.err().unwrap();
    assert_eq!(error.to_string(), "argmax shows position 3 of a row of 3");
}

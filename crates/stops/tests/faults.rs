//! A peer that misbehaves, and material that was damaged: an error or a wrong masked value, nothing else.

mod common;

use common::{run, share};
use primer_garble::stop::Stop;
use primer_net::{Kind, NetError, Transport};
use primer_plan::function::{Activation, Function, Gelu};
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_stops::{ClientMaterial, Job, Result, ServerMaterial, StopsError};
use std::sync::Arc;

const NONCE: Kind = Kind::new(0x30, "garbling nonce");
const GARBLED: Kind = Kind::new(0x31, "garbled circuits");
const LABELS: Kind = Kind::new(0x32, "server labels");
const RESULTS: Kind = Kind::new(0x33, "masked results");

const COUNT: usize = 24;

fn gelu() -> (Gelu, Job) {
    let gelu = Gelu::new(Activation::GeluErf, 16, 8, 9);
    let stop = Stop::new(&Function::Gelu(gelu.clone()), 1).unwrap();
    (gelu, Job::new(Arc::new(stop), COUNT as u64).unwrap())
}

/// Runs a stop with the client's stored bytes changed; how many results are wrong.
fn with_damage(change: impl FnOnce(&mut Vec<u8>) + Send) -> Result<usize> {
    let (gelu, job) = gelu();
    let values: Vec<i64> = (0..COUNT as i64).map(|i| 900 * (i - 12) + 7).collect();
    let (server, client) = share(&values, 16, &mut Prg::from_os());
    let masks = vec![99; COUNT];
    let ((), results) = run(
        Transport::Memory,
        |p| {
            let mut stored = Vec::new();
            let c =
                ClientMaterial::prepare(p.channel, &mut p.receiver, &job, &client, &mut stored)?;
            change(&mut stored);
            c.finish(p.channel, &mut &stored[..], &masks)
        },
        |p| {
            let s = ServerMaterial::prepare(p.channel, &mut p.sender, &job, &mut p.prg)?;
            s.finish(p.channel, &server)
        },
    )?;
    let right = |(r, x): (&u64, &i64)| modulus::to_signed(modulus::add(*r, 99)) == gelu.apply(*x);
    Ok(results.iter().zip(&values).filter(|p| !right(*p)).count())
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
        assert!(matches!(error, StopsError::Material { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.starts_with("the stored material of GELU is not usable"),
            "{text}"
        );
    }
}

/// A client against a server of its own making.
fn client_against(
    server: impl FnOnce(&mut common::Party<'_>, &Job) -> Result<()> + Send,
) -> StopsError {
    let (_, job) = gelu();
    let job_of_server = job.clone();
    run(
        Transport::Memory,
        |p| {
            let shares = [1; COUNT];
            let mut stored = Vec::new();
            let c =
                ClientMaterial::prepare(p.channel, &mut p.receiver, &job, &shares, &mut stored)?;
            c.finish(p.channel, &mut &stored[..], &[0; COUNT])
        },
        |p| server(p, &job_of_server),
    )
    .unwrap_err()
}

#[test]
fn a_server_that_announces_too_much_is_refused_by_its_header() {
    for announced in [1 << 55, 1 << 40, 0] {
        let error = client_against(|p, job| {
            p.sender.extend_vec(p.channel, 16 * job.instances())?;
            p.channel.send(NONCE, &[0; 16])?;
            // Only the header leaves; the stream is abandoned.
            let _ = p.channel.send_stream(GARBLED, announced)?;
            Ok(p.channel.flush()?)
        });
        assert!(
            matches!(error, StopsError::Net(NetError::WrongLength { announced: a, .. }) if a == announced),
            "{error}"
        );
    }
}

#[test]
fn a_server_that_ends_early_is_an_error() {
    let error = client_against(|p, job| {
        p.sender.extend_vec(p.channel, 16 * job.instances())?;
        p.channel.send(NONCE, &[0; 16])?;
        let mut stream = p.channel.send_stream(GARBLED, {
            let up_and_down = job.cost();
            up_and_down.offline_down - 8 - 16 - 8
        })?;
        stream.put(&[7; 1000])?;
        Ok(p.channel.flush()?)
    });
    assert!(
        matches!(error, StopsError::Net(NetError::PeerGone { .. })),
        "{error}"
    );
}

#[test]
fn garbage_instead_of_circuits_is_an_error_or_a_wrong_masked_value() {
    // All ones are not residues; all zeros are, and then the client ends without noticing.
    for byte in [0xff, 0] {
        let (_, job) = gelu();
        let outcome = run(
            Transport::Memory,
            |p| {
                let mut stored = Vec::new();
                let shares = [1; COUNT];
                let c = ClientMaterial::prepare(
                    p.channel,
                    &mut p.receiver,
                    &job,
                    &shares,
                    &mut stored,
                )?;
                c.finish(p.channel, &mut &stored[..], &[0; COUNT])
            },
            |p| {
                p.sender.extend_vec(p.channel, 16 * COUNT)?;
                p.channel.send(NONCE, &[0; 16])?;
                let length = job.cost().offline_down - 8 - 16 - 8;
                p.channel.send(GARBLED, &vec![byte; length as usize])?;
                p.channel.send(LABELS, &vec![byte; COUNT * 256])?;
                let mut results = [0; COUNT];
                Ok(p.channel
                    .recv_residues(RESULTS, 41, modulus::P, &mut results)?)
            },
        );
        match (byte, outcome) {
            (0, outcome) => assert!(outcome.is_ok()),
            (_, Ok(_)) => panic!("rows beyond the modulus were taken"),
            (_, Err(StopsError::Material { .. })) => {}
            (_, Err(error)) => panic!("{error}"),
        }
    }
}

#[test]
fn a_wrong_kind_or_count_of_labels_is_an_error() {
    let error = client_against(|p, job| {
        ServerMaterial::prepare(p.channel, &mut p.sender, job, &mut p.prg)?;
        p.channel.send(LABELS, &[0; 16])?;
        Ok(p.channel.flush()?)
    });
    assert!(
        matches!(error, StopsError::Net(NetError::WrongLength { .. })),
        "{error}"
    );
    let error = client_against(|p, job| {
        ServerMaterial::prepare(p.channel, &mut p.sender, job, &mut p.prg)?;
        p.channel.send(GARBLED, &[0; 16])?;
        Ok(p.channel.flush()?)
    });
    assert!(
        matches!(error, StopsError::Net(NetError::WrongKind { .. })),
        "{error}"
    );
}

#[test]
fn a_client_that_answers_nonsense_is_an_error() {
    let (_, job) = gelu();
    for (length, name) in [(3, "WrongLength"), (123, "Residues")] {
        let error = run(
            Transport::Memory,
            |p| {
                let mut stored = Vec::new();
                let shares = [1; COUNT];
                ClientMaterial::prepare(p.channel, &mut p.receiver, &job, &shares, &mut stored)?;
                let mut labels = vec![0; COUNT * 256];
                p.channel.recv_exact(LABELS, &mut labels)?;
                p.channel.send(RESULTS, &vec![0xff; length])?;
                Ok(p.channel.flush()?)
            },
            |p| {
                let s = ServerMaterial::prepare(p.channel, &mut p.sender, &job, &mut p.prg)?;
                s.finish(p.channel, &[0; COUNT])
            },
        )
        .unwrap_err();
        assert!(format!("{error:?}").contains(name), "{error:?}");
    }
}

#[test]
fn wrong_counts_of_our_own_are_errors() {
    let (_, job) = gelu();
    let error = run(
        Transport::Memory,
        |p| {
            let result =
                ClientMaterial::prepare(p.channel, &mut p.receiver, &job, &[1; 3], &mut Vec::new());
            result.map(|_| ())
        },
        |_| Ok(()),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("GELU: 3 shares instead of {COUNT}")
    );
}

#[test]
fn a_position_beyond_the_row_is_refused() {
    let job = Job::new(Arc::new(Stop::argmax(16, 3).unwrap()), 200).unwrap();
    let values = vec![5; job.elements()];
    let (server, client) = share(&values, 16, &mut Prg::from_os());
    let shown = run(
        Transport::Memory,
        |p| {
            let mut stored = Vec::new();
            let material =
                ClientMaterial::prepare(p.channel, &mut p.receiver, &job, &client, &mut stored)?;
            // Wrong labels make random positions; of 200 in 0..4, hardly ever is none a 3.
            for label in stored[..16 * 16 * job.elements()].chunks_exact_mut(16) {
                label[0] ^= 4;
            }
            Ok(material.show(p.channel, &mut &stored[..]))
        },
        |p| {
            let material = ServerMaterial::prepare(p.channel, &mut p.sender, &job, &mut p.prg)?;
            material.finish(p.channel, &server)
        },
    );
    let error = shown.unwrap().0.unwrap_err();
    assert_eq!(error.to_string(), "argmax shows position 3 of a row of 3");
}

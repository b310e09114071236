//! A peer that misbehaves at a look-up, and material that was damaged: errors, at every place.

use crate::lookup::gelu;
use crate::parties::{Damage, Party, run, run_stop, sound};
use primer_net::Medium;
use primer_stops::{ClientStop, Lookups, Result, ServerStop, StopError};
use primer_wire::Kind;
use primer_wire::kind::lookup::{CHOICES, DELTAS, PRODUCTS};
use primer_wire::kind::one_hot::CORRECTIONS as STRINGS;
use primer_wire::kind::transfer::EXTENSION;

const COUNT: usize = 24;
/// Bytes of `COUNT` residues.
const RESIDUES: usize = 123;

fn stop() -> Lookups {
    // Nine bits: the last byte of packed shifts is not full for other counts.
    Lookups::new(&gelu(9, 4, [1; 2]), COUNT as u64).unwrap()
}

fn prepare_client(p: &mut Party<'_>, stop: &Lookups) -> Result<Vec<u8>> {
    let mut stored = Vec::new();
    let (shares, masks) = ([1; COUNT], [0; COUNT]);
    ClientStop::prepare(stop, &mut p.client(), &shares, &masks, &mut stored)?;
    Ok(stored)
}

fn prepare_server(p: &mut Party<'_>, stop: &Lookups) -> Result<Vec<u8>> {
    let mut stored = Vec::new();
    ServerStop::prepare(stop, &mut p.server(), &mut stored)?;
    Ok(stored)
}

/// Returns the error of a true client against `server`.
fn client_error(server: impl FnOnce(&mut Party<'_>, &Lookups) -> Result<()> + Send) -> StopError {
    let stop = stop();
    let client = |p: &mut Party<'_>| {
        let stored = prepare_client(p, &stop)?;
        let pending = stop.listen(p.channel, &mut &stored[..], &[], &[0; COUNT])?;
        pending.answer(p.channel).map(|_| ())
    };
    run(Medium::Memory, client, |p| server(p, &stop)).unwrap_err()
}

/// Returns the error of a true server against `client`.
fn server_error(client: impl FnOnce(&mut Party<'_>, &Lookups) -> Result<()> + Send) -> StopError {
    let stop = stop();
    let server = |p: &mut Party<'_>| {
        let stored = prepare_server(p, &stop)?;
        let waiting = stop.request(p.channel, &mut &stored[..], &[0; COUNT])?;
        p.channel.flush()?;
        waiting.receive(p.channel).map(|_| ())
    };
    run(Medium::Memory, |p| client(p, &stop), server).unwrap_err()
}

fn told(error: &StopError, what: &str) {
    assert!(format!("{error:?}").contains(what), "{what}: {error:?}");
}

#[test]
fn a_server_that_prepares_wrongly_is_an_error() {
    // Too few transfers for the strings, or another message.
    let error = client_error(|p, _| {
        p.channel.send(EXTENSION, &[0; 100])?;
        Ok(p.channel.flush()?)
    });
    told(&error, "WrongLength");
    let error = client_error(|p, _| {
        p.channel.send(DELTAS, &[0; 100])?;
        Ok(p.channel.flush()?)
    });
    told(&error, "WrongKind");
    // True strings, then the end.
    let error = client_error(|p, _| {
        let shape = primer_ot::onehot::Shape::new(9)?;
        let sink = |_: usize, _: &[u16], _: &[u8]| Ok::<_, StopError>(());
        let Party {
            channel,
            receiver,
            sender,
            prg,
            ..
        } = p;
        let both = (receiver, sender);
        primer_ot::onehot::with_offsets(both, channel, shape, COUNT, prg, sink)
    });
    told(&error, "PeerGone");
}

#[test]
fn a_client_that_prepares_wrongly_is_an_error() {
    let error = server_error(|p, _| {
        p.sender.extend_vec(p.channel, 9 * COUNT)?;
        p.channel.send(STRINGS, &[0; 100])?;
        Ok(p.channel.flush()?)
    });
    told(&error, "WrongLength");
    // True strings, then an extension of another length.
    let error = server_error(|p, _| {
        let shape = primer_ot::onehot::Shape::new(9)?;
        let Party {
            channel,
            receiver,
            sender,
            prg,
            ..
        } = p;
        let sink = |_: usize, _: &[u8]| Ok::<_, StopError>(());
        let both = (sender, receiver);
        primer_ot::onehot::with_indices(both, channel, shape, &[1; COUNT], prg, sink)?;
        channel.send(EXTENSION, &[0; 100])?;
        Ok(channel.flush()?)
    });
    told(&error, "WrongLength");
}

#[test]
fn a_server_that_asks_wrongly_is_an_error() {
    let shifts = COUNT * 9 / 8;
    /// What a server sends: kinds, lengths, and the byte that is repeated.
    type Messages<'a> = &'a [(Kind, usize, u8)];
    let cases: [(Messages<'_>, &str); 6] = [
        (&[(DELTAS, shifts - 1, 0)], "WrongLength"),
        (&[(PRODUCTS, shifts, 0)], "WrongKind"),
        (&[(DELTAS, shifts, 0xff)], "PeerGone"),
        (&[(DELTAS, shifts, 0), (PRODUCTS, 5, 0)], "WrongLength"),
        (
            &[(DELTAS, shifts, 0), (PRODUCTS, RESIDUES, 0xff)],
            "Residues",
        ),
        (&[(DELTAS, shifts, 0), (CHOICES, RESIDUES, 0)], "WrongKind"),
    ];
    for (messages, what) in cases {
        let error = client_error(|p, stop| {
            prepare_server(p, stop)?;
            for &(kind, length, byte) in messages {
                p.channel.send(kind, &vec![byte; length])?;
            }
            Ok(p.channel.flush()?)
        });
        told(&error, what);
    }
}

#[test]
fn a_client_that_answers_wrongly_is_an_error() {
    for (kind, length, what) in [
        (CHOICES, 2 * RESIDUES - 1, "WrongLength"),
        (CHOICES, 2 * RESIDUES, "Residues"),
        (PRODUCTS, 2 * RESIDUES, "WrongKind"),
    ] {
        let error = server_error(|p, stop| {
            prepare_client(p, stop)?;
            p.channel.recv(DELTAS, 1000)?;
            p.channel.recv(PRODUCTS, 1000)?;
            p.channel.send(kind, &vec![0xff; length])?;
            Ok(p.channel.flush()?)
        });
        told(&error, what);
    }
}

/// Stores pads beyond the modulus on either side; offsets may be any bits, so damage to them gives
/// a wrong masked value.
#[test]
fn damaged_material_is_an_error_where_it_can_be_seen() {
    let stop = stop();
    let shares = (&[0; COUNT][..], &[0; COUNT][..]);
    let tail = |stored: &mut Vec<u8>| {
        let end = stored.len();
        stored[end - RESIDUES..].fill(0xff);
    };
    for damage in [[&tail as Damage<'_>, &sound], [&sound, &tail]] {
        let error = run_stop(Medium::Memory, &stop, shares, damage);
        let text = error.err().unwrap().to_string();
        let seen = text.starts_with("the stored material of look-up is not usable");
        assert!(seen || text.contains("disappeared"), "{text}");
    }
    let offsets = COUNT * 64;
    let other = |stored: &mut Vec<u8>| stored[offsets] ^= 1;
    assert!(run_stop(Medium::Memory, &stop, shares, [&sound, &other]).is_ok());
}

//! The comparison of range flags: right, counted to the byte, one bit, and robust.

use crate::parties::{Party, run};
use primer_net::pair::Medium;
use primer_ot::Variant;
use primer_ring::prg::Prg;
use primer_stops::{Comparison, FlagShares, Result, StopError};
use primer_wire::kind::flags::{LABELS, SEED};
use primer_wire::{NetError, PhaseBytes, Traffic};

fn comparison() -> Comparison {
    Comparison::over(Variant::default().into())
}

fn shares(bits: &[bool]) -> FlagShares {
    let mut shares = FlagShares::with_capacity(bits.len());
    bits.iter().for_each(|bit| shares.push(*bit));
    shares
}

/// Runs the client's side: prepares, asks and receives.
fn client(p: &mut Party<'_>, bits: &[bool]) -> Result<bool> {
    let mut stored = Vec::new();
    comparison().client_prepare(&mut p.client(), &mut stored)?;
    assert_eq!(stored.len() as u64, comparison().stored().client);
    let asked = comparison().ask(p.channel, &mut &stored[..], &shares(bits), &mut p.prg)?;
    p.channel.flush()?;
    asked.receive(p.channel)
}

/// Runs the server's side: prepares and answers.
fn server(p: &mut Party<'_>, bits: &[bool]) -> Result<()> {
    let mut stored = Vec::new();
    comparison().server_prepare(&mut p.server(), &mut stored)?;
    assert_eq!(stored.len() as u64, comparison().stored().server);
    comparison().answer(p.channel, &mut &stored[..], &shares(bits))
}

fn told(ours: &[bool], theirs: &[bool]) -> bool {
    let verdict = run(Medium::Memory, |p| client(p, ours), |p| server(p, theirs));
    verdict.unwrap().0
}

#[test]
fn equal_strings_and_others() {
    let mut prg = Prg::from_os();
    for length in [0_usize, 1, 2, 63, 64, 65, 1000] {
        let bits: Vec<bool> = (0..length).map(|_| prg.seed()[0] & 1 == 1).collect();
        assert!(told(&bits, &bits), "{length}");
        for at in [0, length / 2, length.wrapping_sub(1)] {
            if at < length {
                let mut other = bits.clone();
                other[at] = !other[at];
                assert!(!told(&bits, &other), "{at} of {length}");
            }
        }
    }
    // Two that are set do not cancel each other.
    assert!(!told(&[true, true], &[false, false]));
}

/// Compares the bytes of both phases with those that the meter counts, for any number of flags.
#[test]
fn bytes_are_those_of_the_formula() {
    for flags in [1, 5000] {
        let flags = shares(&vec![true; flags]);
        let (found, ()) = run(
            Medium::Memory,
            |p| {
                let (mut stored, mut before) = (Vec::new(), Traffic::default());
                p.passed(&mut before);
                comparison().client_prepare(&mut p.client(), &mut stored)?;
                let (offline_up, offline_down, _) = p.passed(&mut before);
                let asked = comparison().ask(p.channel, &mut &stored[..], &flags, &mut p.prg)?;
                p.channel.flush()?;
                asked.receive(p.channel)?;
                let (online_up, online_down, rounds) = p.passed(&mut before);
                assert_eq!(rounds, 1);
                Ok(PhaseBytes {
                    offline_up,
                    offline_down,
                    online_up,
                    online_down,
                })
            },
            |p| {
                let mut stored = Vec::new();
                comparison().server_prepare(&mut p.server(), &mut stored)?;
                comparison().answer(p.channel, &mut &stored[..], &flags)
            },
        )
        .unwrap();
        assert_eq!(found, comparison().bytes());
    }
    assert_eq!(comparison().and_gates(), 39);
}

/// Checks what a client that deviates learns: it chooses subsets and parities as it likes, and is
/// told whether its guess is right, which one of 16 guesses of four shares is.
#[test]
fn a_guess_is_right_or_wrong() {
    let bits = |number: u8| (0..4).map(|i| number >> i & 1 == 1).collect::<Vec<bool>>();
    for guess in 0..16 {
        assert_eq!(told(&bits(guess), &bits(13)), guess == 13, "{guess}");
    }
}

#[test]
fn messages_of_another_length_are_errors() {
    let wrong = |error: StopError| {
        let told = matches!(error, StopError::Net(NetError::WrongLength { .. }));
        assert!(told, "{error}");
    };
    let error = run(
        Medium::Memory,
        |p| client(p, &[true]),
        |p| {
            let mut stored = Vec::new();
            comparison().server_prepare(&mut p.server(), &mut stored)?;
            p.channel.recv(SEED, 21)?;
            p.channel.send(LABELS, &[0; 1279])?;
            Ok(p.channel.flush()?)
        },
    );
    wrong(error.unwrap_err());
    for length in [0, 16, 20, 22] {
        let error = run(
            Medium::Memory,
            |p| {
                let mut stored = Vec::new();
                comparison().client_prepare(&mut p.client(), &mut stored)?;
                p.channel.send(SEED, &vec![0; length])?;
                Ok(p.channel.flush()?)
            },
            |p| server(p, &[true]),
        );
        wrong(error.unwrap_err());
    }
}

/// Checks that damaged material is an error or a wrong verdict, never a panic.
#[test]
fn damaged_material() {
    for (ours, theirs) in [(vec![0; 0], vec![0; 47]), (vec![7; 100], vec![0; 48])] {
        let error = run(
            Medium::Memory,
            |p| {
                let asked =
                    comparison().ask(p.channel, &mut &ours[..], &shares(&[true]), &mut p.prg)?;
                p.channel.flush()?;
                asked.receive(p.channel)
            },
            |p| comparison().answer(p.channel, &mut &theirs[..], &shares(&[true])),
        );
        let error = error.unwrap_err().to_string();
        assert!(error.contains("the comparison of range flags"), "{error}");
    }
}

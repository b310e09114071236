//! New transfers from old ones: right, fresh, counted, and checked where the receiver may deviate.

use primer_ot::*;
use primer_ring::prg::Prg;
use primer_wire::{Channel, run_pair};

/// Returns the variants of both directions: the first party receives in the first of them.
fn variants() -> [[Variant; 2]; 3] {
    [
        [Variant::default(), Variant::default()],
        [Variant::SOFT_4.checked(), Variant::SOFT_4],
        [Variant::SOFT_4, Variant::SOFT_4.checked()],
    ]
}

/// What a party has of transfers in both directions.
struct Both {
    receiver: CotReceiver,
    sender: CotSender,
}

fn set_up(channel: &mut Channel, first: bool, own: Variant, other: Variant, rng: &mut Prg) -> Both {
    let setup = |variant| Setup::new(variant, BaseOt::Ristretto);
    let delta = Delta::random(rng);
    let send = |channel: &mut Channel, rng: &mut Prg, delta| {
        CotSender::setup(setup(other), channel, delta, rng).unwrap()
    };
    let receive = |channel: &mut Channel, rng: &mut Prg| {
        CotReceiver::setup(setup(own), channel, rng).unwrap()
    };
    if first {
        let receiver = receive(channel, rng);
        let sender = send(channel, rng, delta);
        Both { receiver, sender }
    } else {
        let sender = send(channel, rng, delta);
        let receiver = receive(channel, rng);
        Both { receiver, sender }
    }
}

/// Renews both directions, the first party speaking first.
fn renew(
    old: &mut Both,
    channel: &mut Channel,
    first: bool,
    [own, other]: [Variant; 2],
    rng: &mut Prg,
) -> Result<Both> {
    if first {
        let drawn = old.receiver.draw(channel, rng)?;
        channel.flush()?;
        let met = old.sender.meet(channel)?;
        let sender = drawn.finish(channel, other)?;
        let receiver = met.finish(channel, own, rng)?;
        Ok(Both { receiver, sender })
    } else {
        let met = old.sender.meet(channel)?;
        let drawn = old.receiver.draw(channel, rng)?;
        let receiver = met.finish(channel, own, rng)?;
        let sender = drawn.finish(channel, other)?;
        Ok(Both { receiver, sender })
    }
}

/// Returns the rows of some transfers in both directions: received with choices, and sent.
fn use_both(both: &mut Both, channel: &mut Channel, first: bool, choices: &Bits) -> [Vec<u128>; 2] {
    let (received, sent);
    if first {
        received = both.receiver.extend_vec(channel, choices).unwrap();
        channel.flush().unwrap();
        sent = both.sender.extend_vec(channel, choices.len()).unwrap();
    } else {
        sent = both.sender.extend_vec(channel, choices.len()).unwrap();
        received = both.receiver.extend_vec(channel, choices).unwrap();
        channel.flush().unwrap();
    }
    [received.to_vec(), sent.to_vec()]
}

#[test]
fn rows_differ_by_offsets_that_are_new() {
    const N: usize = 1000;
    for [own, other] in variants() {
        let run = |first: bool, seed: u8| {
            move |channel: &mut Channel| {
                let mut rng = Prg::new(&[seed; 16]);
                let (own, other) = if first { (own, other) } else { (other, own) };
                let mut old = set_up(channel, first, own, other, &mut rng);
                let mut found = Vec::new();
                let mut offsets = vec![old.sender.delta().label()];
                for _ in 0..2 {
                    let mut new = renew(&mut old, channel, first, [own, other], &mut rng)?;
                    let choices = Bits::from_fn(N, |i| (i * i + usize::from(seed)) % 3 == 0);
                    offsets.push(new.sender.delta().label());
                    found.push(use_both(&mut new, channel, first, &choices));
                }
                Ok::<_, OtError>((offsets, found))
            }
        };
        let (ours, theirs) = run_pair(run(true, 1), run(false, 2)).unwrap();
        for ((offsets, found), (_, other), seed) in [(&ours, &theirs, 2), (&theirs, &ours, 1)] {
            let mut distinct = offsets.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), 3);
            for (round, ([_, sent], [received, _])) in found.iter().zip(other).enumerate() {
                for (i, (q, t)) in sent.iter().zip(received).enumerate() {
                    let chosen = (i * i + seed) % 3 == 0;
                    let offset = if chosen { offsets[round + 1] } else { 0 };
                    assert_eq!(q ^ t, offset);
                }
            }
            // Nothing of one renewal is in the other.
            assert!(found[0][1].iter().all(|row| !found[1][1].contains(row)));
        }
    }
}

#[test]
fn bytes_are_those_of_the_formula() {
    for [own, other] in variants() {
        let run = |first: bool| {
            move |channel: &mut Channel| {
                let mut rng = Prg::new(&[u8::from(first); 16]);
                let (own, other) = if first { (own, other) } else { (other, own) };
                let mut old = set_up(channel, first, own, other, &mut rng);
                let before = channel.meter().report();
                let _new = renew(&mut old, channel, first, [own, other], &mut rng)?;
                Ok::<_, OtError>(channel.meter().report().since(&before).total().bytes_sent)
            }
        };
        let (ours, theirs) = run_pair(run(true), run(false)).unwrap();
        assert_eq!(ours, cost::renewal(own));
        assert_eq!(theirs, cost::renewal(other));
    }
}

//! One-hot shares over a channel: their cost, and a peer that misbehaves.

use primer_net::kind::one_hot::CORRECTIONS;
use primer_net::kind::transfer::EXTENSION;
use primer_net::pair::{Transport, connect, run_parties, test_options};
use primer_net::{Channel, Kind, NetError, run_pair};
use primer_ot::onehot::{self, Shape};
use primer_ot::*;
use primer_ring::prg::Prg;
use proptest::prelude::*;

fn sender(variant: Variant, channel: &mut Channel) -> Result<CotSender> {
    let rng = &mut Prg::from_os();
    let delta = Delta::random(rng);
    CotSender::setup(Setup::new(variant, BaseOt::Ristretto), channel, delta, rng)
}

fn receiver(variant: Variant, channel: &mut Channel) -> Result<CotReceiver> {
    CotReceiver::setup(
        Setup::new(variant, BaseOt::Ristretto),
        channel,
        &mut Prg::from_os(),
    )
}

/// Shares for many elements, on several states, in several chunks: right, at the predicted cost.
fn check(variant: Variant, shape: Shape, count: usize) {
    check_with(1, variant, shape, count);
}

/// The same with so many threads of the sender, and one more of the receiver.
fn check_with(threads: usize, variant: Variant, shape: Shape, count: usize) {
    let indices: Vec<u16> = (0..count)
        .map(|i| (i * 7 % shape.indices()) as u16)
        .collect();
    let ((ours, sent), (offsets, theirs, received)) = run_pair(
        |channel| {
            let mut cot = sender(variant, channel)?;
            cot.set_threads(threads);
            let before = channel.meter().report();
            let mut all = Vec::new();
            onehot::send(&mut cot, channel, shape, &indices, |first, vectors| {
                assert_eq!(first * shape.vector_bytes(), all.len());
                all.extend_from_slice(vectors);
                Ok::<_, OtError>(())
            })?;
            Ok((all, channel.meter().report().since(&before).total()))
        },
        |channel| {
            let mut cot = receiver(variant, channel)?;
            cot.set_threads(threads + 1);
            let before = channel.meter().report();
            let (mut drawn, mut all) = (Vec::new(), Vec::new());
            let rng = &mut Prg::from_os();
            onehot::receive(
                &mut cot,
                channel,
                shape,
                count,
                rng,
                |first, offsets, vectors| {
                    assert_eq!(first, drawn.len());
                    drawn.extend_from_slice(offsets);
                    all.extend_from_slice(vectors);
                    Ok::<_, OtError>(())
                },
            )?;
            let traffic = channel.meter().report().since(&before).total();
            Ok::<_, OtError>((drawn, all, traffic))
        },
    )
    .unwrap();
    assert_eq!(offsets.len(), count);
    let bytes = shape.vector_bytes();
    for i in 0..count {
        let sum = (usize::from(indices[i]) + usize::from(offsets[i])) % shape.entries();
        let pairs = ours[i * bytes..]
            .iter()
            .zip(&theirs[i * bytes..])
            .take(bytes);
        for (place, (a, b)) in pairs.enumerate() {
            assert_eq!(
                a ^ b,
                u8::from(place == sum / 8) << (sum % 8),
                "element {i}"
            );
        }
    }
    let cost = cost::onehot(variant, &shape, count);
    assert_eq!(sent.bytes_sent, cost.from_sender);
    assert_eq!(sent.bytes_received, cost.from_receiver);
    assert_eq!(received.bytes_sent, cost.from_receiver);
    assert_eq!(received.bytes_received, cost.from_sender);
    assert_eq!(received.rounds, cost::onehot_rounds(&shape, count) as u64);
}

#[test]
fn shares_in_chunks_at_the_predicted_cost() {
    let shape = Shape::new(8).unwrap();
    check(Variant::SOFT_4, shape, 2 * shape.chunk() + 65);
    check(Variant::SOFT_4, shape, shape.chunk());
    check(Variant::SOFT_4, shape, 0);
    check(Variant::IKNP, shape, 100);
    check(Variant::SOFT_2.checked(), Shape::new(5).unwrap(), 1000);
    check(Variant::SOFT_4.checked(), Shape::carrying(9).unwrap(), 500);
}

/// Threads are the party's own affair: whatever their numbers, and for counts around every boundary
/// of batches and turns, the shares are right and the bytes the same.
#[test]
fn any_number_of_threads() {
    let shape = Shape::new(8).unwrap();
    for (threads, count) in [
        (0, 70),
        (2, 1023),
        (2, 1025),
        (3, 3 * 1024),
        (4, 9 * 1024 + 71),
    ] {
        check_with(threads, Variant::SOFT_4, shape, count);
    }
    check_with(2, Variant::SOFT_4, Shape::new(5).unwrap(), 5000);
    check_with(3, Variant::SOFT_4, shape, shape.chunk() + 65);
}

#[test]
fn the_budget_of_a_look_up() {
    let n = 10_000;
    let cost = cost::onehot(Variant::SOFT_4, &Shape::new(8).unwrap(), n);
    assert!((cost.from_sender + cost.from_receiver) as f64 / (n as f64) < 192.1);
}

#[test]
fn indices_out_of_range_are_our_mistake() {
    let (result, _) = run_parties(
        connect(Transport::Memory, &test_options()).unwrap(),
        |channel| {
            let mut cot = sender(Variant::SOFT_4, channel)?;
            let shape = Shape::carrying(4).unwrap();
            onehot::send(&mut cot, channel, shape, &[3, 16], |_, _| Ok(()))
        },
        |channel| receiver(Variant::SOFT_4, channel).map(drop),
    );
    assert!(matches!(
        result.unwrap_err(),
        OtError::NotResidues { what: "indices" }
    ));
}

/// A sink that fails ends the work with its own error.
#[test]
fn the_sinks_error_comes_back() {
    let (sent, received) = run_parties(
        connect(Transport::Memory, &test_options()).unwrap(),
        |channel| {
            let mut cot = sender(Variant::SOFT_4, channel)?;
            let shape = Shape::new(6).unwrap();
            onehot::send(
                &mut cot,
                channel,
                shape,
                &[1; 5000],
                |first, _| match first {
                    0 => Ok(()),
                    _ => Err(OtError::Inconsistent),
                },
            )
        },
        |channel| {
            let mut cot = receiver(Variant::SOFT_4, channel)?;
            let rng = &mut Prg::from_os();
            let shape = Shape::new(6).unwrap();
            onehot::receive(&mut cot, channel, shape, 5000, rng, |_, _, _| {
                Ok::<_, OtError>(())
            })
        },
    );
    assert!(matches!(sent.unwrap_err(), OtError::Inconsistent));
    // The peer sees a message that ends before its time.
    assert!(matches!(received.unwrap_err(), OtError::Net(_)));
}

/// Runs a real receiver against a peer that answers its extension as it likes.
fn hostile_sender(
    count: usize,
    attack: impl FnOnce(&mut Channel, Vec<u8>) -> std::result::Result<(), NetError> + Send,
) -> Result<()> {
    let shape = Shape::new(8).unwrap();
    let (result, ()) = run_parties(
        connect(Transport::Memory, &test_options()).unwrap(),
        |channel| {
            let mut cot = receiver(Variant::SOFT_4, channel)?;
            let rng = &mut Prg::from_os();
            onehot::receive(&mut cot, channel, shape, count, rng, |_, _, _| Ok(()))
        },
        |channel| {
            sender(Variant::SOFT_4, channel).unwrap();
            let extension = channel.recv(EXTENSION, 1 << 20).unwrap();
            let _ = attack(channel, extension);
        },
    );
    result
}

#[test]
fn wrong_corrections_are_refused() {
    let right = 160 * 70;
    assert!(hostile_sender(70, |c, _| c.send(CORRECTIONS, &vec![0; right])).is_ok());
    for wrong in [0, 1, right - 1, right + 1] {
        let error = hostile_sender(70, |c, _| c.send(CORRECTIONS, &vec![0; wrong]));
        let error = error.unwrap_err();
        assert!(
            matches!(error, OtError::Net(NetError::WrongLength { .. })),
            "{error}"
        );
    }
    let error = hostile_sender(70, |c, _| c.send_stream(CORRECTIONS, 1 << 50).map(drop));
    assert!(matches!(
        error.unwrap_err(),
        OtError::Net(NetError::WrongLength { announced, .. }) if announced == 1 << 50
    ));
    let error = hostile_sender(70, |c, _| c.send(EXTENSION, &vec![0; right]));
    assert!(matches!(
        error.unwrap_err(),
        OtError::Net(NetError::WrongKind { .. })
    ));
    let error = hostile_sender(70, |c, _| {
        c.send_stream(CORRECTIONS, right as u64)?
            .put(&vec![0; right / 2])
    });
    assert!(matches!(
        error.unwrap_err(),
        OtError::Net(NetError::PeerGone { .. })
    ));
}

/// Runs a real sender against a peer that sends this instead of an extension.
#[test]
fn wrong_extensions_are_refused() {
    let run = |kind: Kind, payload: Vec<u8>| {
        let (result, ()) = run_parties(
            connect(Transport::Memory, &test_options()).unwrap(),
            |channel| {
                let mut cot = sender(Variant::SOFT_4, channel)?;
                let shape = Shape::new(8).unwrap();
                onehot::send(&mut cot, channel, shape, &[9; 10], |_, _| Ok(()))
            },
            |channel| {
                receiver(Variant::SOFT_4, channel).unwrap();
                let _ = channel.send(kind, &payload);
                let _ = channel.recv(CORRECTIONS, 1 << 20);
            },
        );
        result
    };
    // Eighty transfers: ten bytes for each of 32 trees.
    let right = 8 + 32 * 10;
    assert!(run(EXTENSION, vec![0; right]).is_ok());
    for wrong in [0, 8, right - 1, right + 1] {
        let error = run(EXTENSION, vec![0; wrong]).unwrap_err();
        assert!(
            matches!(error, OtError::Net(NetError::WrongLength { .. })),
            "{error}"
        );
    }
    let error = run(EXTENSION, vec![1; right]).unwrap_err();
    assert!(matches!(error, OtError::OutOfStep { .. }), "{error}");
    let error = run(CORRECTIONS, vec![0; right]).unwrap_err();
    assert!(
        matches!(error, OtError::Net(NetError::WrongKind { .. })),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the peer sends in place of corrections, the receiver answers with an error or
    /// finishes.
    #[test]
    fn arbitrary_bytes_never_panic(
        kind in prop_oneof![Just(0x28u8), any::<u8>()],
        payload in proptest::collection::vec(any::<u8>(), 0..700),
        whole in any::<bool>(),
    ) {
        let payload = match whole {
            true => payload.iter().copied().cycle().take(480).collect(),
            false => payload,
        };
        let length = payload.len();
        let result = hostile_sender(3, move |channel, _| {
            channel.send_code(kind, &payload)
        });
        prop_assert_eq!(result.is_ok(), kind == CORRECTIONS.code() && length == 480);
    }
}

//! One-hot shares over a channel: their cost, and a peer that misbehaves.

use primer_net::pair::{Medium, connect};
use primer_ot::onehot::{self, Shape};
use primer_ot::*;
use primer_ring::prg::Prg;
use primer_wire::kind::one_hot::{BLOCKS, CORRECTIONS};
use primer_wire::kind::transfer::EXTENSION;
use primer_wire::pair::{run_parties, test_options};
use primer_wire::{Channel, Kind, NetError, run_pair};
use proptest::prelude::*;

/// The variants that the index party and the offset party receive.
type Variants = [Variant; 2];
const SOFT: Variants = [Variant::SOFT_4; 2];
const LEAN: Variants = [Variant::SOFT_4.checked(), Variant::SOFT_4];

const fn setup(variant: Variant) -> Setup {
    Setup::new(variant, BaseOt::Ristretto)
}

/// Sets up the transfers of the index party.
fn index_party([own, others]: Variants, channel: &mut Channel) -> Result<(CotSender, CotReceiver)> {
    let rng = &mut Prg::from_os();
    let delta = Delta::random(rng);
    let transfers = CotSender::setup(setup(others), channel, delta, rng)?;
    Ok((transfers, CotReceiver::setup(setup(own), channel, rng)?))
}

/// Sets up the transfers of the offset party.
fn offset_party(
    [others, own]: Variants,
    channel: &mut Channel,
) -> Result<(CotReceiver, CotSender)> {
    let rng = &mut Prg::from_os();
    let transfers = CotReceiver::setup(setup(own), channel, rng)?;
    let delta = Delta::random(rng);
    Ok((
        transfers,
        CotSender::setup(setup(others), channel, delta, rng)?,
    ))
}

/// Checks shares for many elements, on several states, in several chunks: right, at the predicted
/// cost.
fn check(variants: Variants, shape: Shape, count: usize) {
    check_with(1, variants, shape, count);
}

/// Checks the same with a number of threads for the index party, and one more for the other.
fn check_with(threads: usize, variants: Variants, shape: Shape, count: usize) {
    let indices: Vec<u16> = (0..count)
        .map(|i| (i * 7 % shape.entries()) as u16)
        .collect();
    let ((ours, sent), (offsets, theirs, received)) = run_pair(
        |channel| {
            let (mut transfers, mut labels) = index_party(variants, channel)?;
            transfers.set_threads(threads);
            let before = channel.meter().report();
            let mut all = Vec::new();
            let both = (&mut transfers, &mut labels);
            let rng = &mut Prg::from_os();
            onehot::with_indices(both, channel, shape, &indices, rng, |first, vectors| {
                assert_eq!(first * shape.vector_bytes(), all.len());
                all.extend_from_slice(vectors);
                Ok::<_, OtError>(())
            })?;
            Ok((all, channel.meter().report().since(&before).total()))
        },
        |channel| {
            let (mut transfers, mut labels) = offset_party(variants, channel)?;
            transfers.set_threads(threads + 1);
            let before = channel.meter().report();
            let (mut drawn, mut all) = (Vec::new(), Vec::new());
            let rng = &mut Prg::from_os();
            let both = (&mut transfers, &mut labels);
            let sink = |first, offsets: &[u16], vectors: &[u8]| {
                assert_eq!(first, drawn.len());
                drawn.extend_from_slice(offsets);
                all.extend_from_slice(vectors);
                Ok::<_, OtError>(())
            };
            onehot::with_offsets(both, channel, shape, count, rng, sink)?;
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
            let expected = u8::from(place == sum / 8) << (sum % 8);
            assert_eq!(a ^ b, expected, "element {i}");
        }
    }
    let [index, offset] = cost::onehot(variants, &shape, count);
    assert_eq!([sent.bytes_sent, sent.bytes_received], [index, offset]);
    assert_eq!(
        [received.bytes_sent, received.bytes_received],
        [offset, index]
    );
    assert_eq!(received.rounds, cost::onehot_rounds(&shape, count) as u64);
}

#[test]
fn shares_in_chunks_at_the_predicted_cost() {
    for bits in [5, 9] {
        let shape = Shape::new(bits).unwrap();
        check(SOFT, shape, 2 * shape.chunk() + 65);
        check(SOFT, shape, shape.chunk());
        check(SOFT, shape, 0);
    }
    check([Variant::IKNP; 2], Shape::new(8).unwrap(), 100);
    check(LEAN, Shape::new(10).unwrap(), 500);
    check([Variant::SOFT_2.checked(); 2], Shape::new(7).unwrap(), 1000);
}

/// Checks that each party may choose its number of threads: for all that are tried, and for counts
/// around every boundary of batches, the shares are right and the bytes the same.
#[test]
fn any_number_of_threads() {
    let shape = Shape::new(8).unwrap();
    for (threads, count) in [(0, 70), (2, 127), (2, 129), (3, 3 * 64), (4, 9 * 64 + 7)] {
        check_with(threads, SOFT, shape, count);
    }
    check_with(2, SOFT, Shape::new(5).unwrap(), 5000);
    check_with(3, SOFT, shape, shape.chunk() + 65);
}

/// Checks the bytes of a vector, its transfers included, for every length.
#[test]
fn the_budget_of_a_look_up() {
    let expected = [22.0, 32.0, 51.0, 74.0, 101.0, 140.0, 193.0];
    for (bits, expected) in (onehot::MIN_BITS..=onehot::MAX_BITS).zip(expected) {
        let n = 10_000;
        let [index, offset] = cost::onehot(SOFT, &Shape::new(bits).unwrap(), n);
        let each = (index + offset) as f64 / n as f64;
        assert!((expected..expected + 0.1).contains(&each), "{bits}: {each}");
    }
}

#[test]
fn indices_out_of_range_are_our_mistake() {
    let (result, _) = run_parties(
        connect(Medium::Memory, &test_options()).unwrap(),
        |channel| {
            let (mut transfers, mut labels) = index_party(SOFT, channel)?;
            let shape = Shape::new(4).unwrap();
            let (both, rng) = ((&mut transfers, &mut labels), &mut Prg::from_os());
            onehot::with_indices(both, channel, shape, &[3, 16], rng, |_, _| Ok(()))
        },
        |channel| offset_party(SOFT, channel).map(drop),
    );
    assert!(matches!(
        result.unwrap_err(),
        OtError::NotResidues { what: "indices" }
    ));
}

/// Checks that a sink that fails ends the work with its own error.
#[test]
fn the_sinks_error_comes_back() {
    let shape = Shape::new(9).unwrap();
    let count = shape.chunk() + 1;
    let (sent, received) = run_parties(
        connect(Medium::Memory, &test_options()).unwrap(),
        |channel| {
            let (mut transfers, mut labels) = index_party(SOFT, channel)?;
            let (both, rng) = ((&mut transfers, &mut labels), &mut Prg::from_os());
            onehot::with_indices(both, channel, shape, &vec![1; count], rng, |_, _| {
                Err(OtError::Inconsistent)
            })
        },
        |channel| {
            let (mut transfers, mut labels) = offset_party(SOFT, channel)?;
            let (both, rng) = ((&mut transfers, &mut labels), &mut Prg::from_os());
            onehot::with_offsets(both, channel, shape, count, rng, |_, _, _| {
                Ok::<_, OtError>(())
            })
        },
    );
    assert!(matches!(sent.unwrap_err(), OtError::Inconsistent));
    // The peer waits for a message that does not come.
    assert!(matches!(received.unwrap_err(), OtError::Net(_)));
}

/// Runs a real offset party against a peer that answers its extension as it likes.
fn hostile_index_party(
    count: usize,
    attack: impl FnOnce(&mut Channel, &mut CotReceiver) -> std::result::Result<(), OtError> + Send,
) -> Result<()> {
    let shape = Shape::new(8).unwrap();
    let (result, ()) = run_parties(
        connect(Medium::Memory, &test_options()).unwrap(),
        |channel| {
            let (mut transfers, mut labels) = offset_party(SOFT, channel)?;
            let (both, rng) = ((&mut transfers, &mut labels), &mut Prg::from_os());
            onehot::with_offsets(both, channel, shape, count, rng, |_, _, _| Ok(()))
        },
        |channel| {
            let (_, mut labels) = index_party(SOFT, channel).unwrap();
            channel.recv(EXTENSION, 1 << 20).unwrap();
            let _ = attack(channel, &mut labels);
        },
    );
    result
}

/// Returns the number of bytes of the corrections of `count` elements of 256 places, and of their
/// blocks.
fn lengths(count: usize) -> [usize; 2] {
    let shape = Shape::new(8).unwrap();
    [shape.correction_bytes(), shape.block_correction_bytes()].map(|bytes| count * bytes)
}

/// Sends true corrections and choices, receives the other's blocks, and sends `blocks` for its own.
fn to_the_end(
    channel: &mut Channel,
    labels: &mut CotReceiver,
    count: usize,
    (kind, blocks): (Kind, Vec<u8>),
) -> std::result::Result<(), OtError> {
    channel.send(CORRECTIONS, &vec![0; lengths(count)[0]])?;
    labels.extend_vec(channel, &Bits::from_fn(3 * count, |_| false))?;
    channel.recv(EXTENSION, 1 << 20)?;
    channel.recv(BLOCKS, 1 << 20)?;
    channel.send(kind, &blocks)?;
    Ok(channel.flush()?)
}

#[test]
fn wrong_corrections_are_refused() {
    let [corrections, blocks] = lengths(70);
    let wrong_length = |error: OtError| {
        let told = matches!(error, OtError::Net(NetError::WrongLength { .. }));
        assert!(told, "{error}");
    };
    let ends = |sent| hostile_index_party(70, |c, labels| to_the_end(c, labels, 70, sent));
    assert!(ends((BLOCKS, vec![0; blocks])).is_ok());
    for wrong in [0, 1, blocks - 1, blocks + 1] {
        wrong_length(ends((BLOCKS, vec![0; wrong])).unwrap_err());
    }
    let error = ends((CORRECTIONS, vec![0; blocks])).unwrap_err();
    assert!(
        matches!(error, OtError::Net(NetError::WrongKind { .. })),
        "{error}"
    );
    for wrong in [0, 1, corrections - 1, corrections + 1] {
        let error = hostile_index_party(70, |c, _| Ok(c.send(CORRECTIONS, &vec![0; wrong])?));
        wrong_length(error.unwrap_err());
    }
    let error = hostile_index_party(70, |c, _| {
        Ok(c.send_stream(CORRECTIONS, 1 << 50).map(drop)?)
    });
    assert!(matches!(
        error.unwrap_err(),
        OtError::Net(NetError::WrongLength { announced, .. }) if announced == 1 << 50
    ));
    let error = hostile_index_party(70, |c, _| Ok(c.send(EXTENSION, &vec![0; corrections])?));
    assert!(matches!(
        error.unwrap_err(),
        OtError::Net(NetError::WrongKind { .. })
    ));
    let error = hostile_index_party(70, |c, _| {
        let half = vec![0; corrections / 2];
        Ok(c.send_stream(CORRECTIONS, corrections as u64)?.put(&half)?)
    });
    assert!(matches!(
        error.unwrap_err(),
        OtError::Net(NetError::PeerGone { .. })
    ));
}

/// Runs a real index party against a peer that sends this instead of an extension.
#[test]
fn wrong_extensions_are_refused() {
    let run = |kind: Kind, payload: Vec<u8>| {
        let (result, ()) = run_parties(
            connect(Medium::Memory, &test_options()).unwrap(),
            |channel| {
                let (mut transfers, mut labels) = index_party(SOFT, channel)?;
                let shape = Shape::new(6).unwrap();
                let (both, rng) = ((&mut transfers, &mut labels), &mut Prg::from_os());
                onehot::with_indices(both, channel, shape, &[9; 16], rng, |_, _| Ok(()))
            },
            |channel| {
                offset_party(SOFT, channel).unwrap();
                let _ = channel.send(kind, &payload);
                let _ = channel.recv(CORRECTIONS, 1 << 20);
            },
        );
        result
    };
    // Ninety-six transfers: twelve bytes for each of 32 trees.
    let right = 8 + 32 * 12;
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

    /// Checks that for any bytes that the peer sends in place of corrections or blocks, the offset
    /// party answers with an error or finishes.
    #[test]
    fn arbitrary_bytes_never_panic(
        code in prop_oneof![Just(CORRECTIONS.code()), Just(BLOCKS.code()), any::<u8>()],
        payload in proptest::collection::vec(any::<u8>(), 0..700),
        whole in any::<bool>(),
        late in any::<bool>(),
    ) {
        let [corrections, blocks] = lengths(3);
        let (kind, right) = match late {
            true => (BLOCKS, blocks),
            false => (CORRECTIONS, corrections),
        };
        let payload: Vec<u8> = match whole && !payload.is_empty() {
            true => payload.iter().copied().cycle().take(right).collect(),
            false => payload,
        };
        let length = payload.len();
        let result = hostile_index_party(3, move |channel, labels| {
            if late {
                channel.send(CORRECTIONS, &vec![7; corrections])?;
                labels.extend_vec(channel, &Bits::from_fn(9, |i| i % 2 == 0))?;
                channel.recv(EXTENSION, 1 << 20)?;
                channel.recv(BLOCKS, 1 << 20)?;
            }
            channel.send_code(code, &payload)?;
            Ok(channel.flush()?)
        });
        // Corrections alone are not the end.
        let right = late && code == kind.code() && length == right;
        prop_assert_eq!(result.is_ok(), right);
    }
}

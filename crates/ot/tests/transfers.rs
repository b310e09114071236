//! Every transfer against its definition, its cost formula, and a peer that misbehaves.

use primer_net::pair::{Medium, connect, run_pair_over};
use primer_ot::cost::{self, TransferBytes};
use primer_ot::*;
use primer_ring::prg::Prg;
use primer_wire::kind::transfer::{CORRECTIONS, EXTENSION};
use primer_wire::pair::{run_parties, test_options};
use primer_wire::{Channel, NetError, Traffic, run_pair};
use proptest::prelude::*;
use rand_core::Rng;

const SETUP: Setup = Setup::new(Variant::IKNP, BaseOt::Ristretto);

const P: u64 = (1 << 41) - (1 << 16) + 1;

fn sender(channel: &mut Channel) -> Result<CotSender> {
    let rng = &mut Prg::from_os();
    CotSender::setup(SETUP, channel, Delta::random(rng), rng)
}

fn receiver(channel: &mut Channel) -> Result<CotReceiver> {
    CotReceiver::setup(SETUP, channel, &mut Prg::from_os())
}

fn check_rows(delta: u128, zeros: &[u128], choices: &Bits, labels: &[u128]) {
    assert_eq!((zeros.len(), labels.len()), (choices.len(), choices.len()));
    for (j, (&q, &t)) in zeros.iter().zip(labels).enumerate() {
        let mask = u128::from(choices.get(j)).wrapping_neg();
        assert!(t == q ^ (mask & delta), "transfer {j}");
    }
}

/// Sizes around every boundary: bytes, squares of 128, blocks of 2^14.
const SIZES: [usize; 13] = [
    0, 1, 7, 8, 9, 127, 128, 129, 1000, 16_383, 16_384, 16_385, 50_001,
];

fn check_extensions(variant: Variant, base: BaseOt) {
    let ((delta, zeros, sent), (labels, choices, received)) = run_pair(
        |channel| {
            let rng = &mut Prg::from_os();
            let delta = Delta::random(rng);
            let mut cot = CotSender::setup(Setup::new(variant, base), channel, delta, rng)?;
            assert_eq!(cot.variant(), variant);
            let before = channel.meter().report();
            let zeros = SIZES.map(|n| cot.extend_vec(channel, n).unwrap());
            assert_eq!(cot.spent(), SIZES.iter().sum::<usize>() as u64);
            let sent = channel.meter().report().since(&before).total();
            Ok::<_, OtError>((cot.delta().label(), zeros, sent))
        },
        |channel| {
            let rng = &mut Prg::from_os();
            let mut cot = CotReceiver::setup(Setup::new(variant, base), channel, rng)?;
            let choices = SIZES.map(|n| Bits::random(n, rng));
            let labels = choices
                .each_ref()
                .map(|c| cot.extend_vec(channel, c).unwrap());
            channel.flush()?;
            Ok((labels, choices, channel.meter().report().total()))
        },
    )
    .unwrap();
    assert_eq!(delta & 1, 1);
    for ((zeros, labels), choices) in zeros.iter().zip(&labels).zip(&choices) {
        check_rows(delta, zeros, choices, labels);
    }
    // No row appears twice: fresh streams for every extension.
    let mut all: Vec<u128> = zeros.iter().flat_map(|z| z.iter().copied()).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    let costs = SIZES.map(|n| cost::extension_as(variant, n).from_receiver);
    let expected: u64 = costs.iter().sum();
    assert_eq!(sent.bytes_received, expected);
    assert_eq!(sent.bytes_sent, 0);
    let setup = cost::setup_as(variant, base);
    assert_eq!(received.bytes_received, setup.from_sender);
    assert_eq!(received.bytes_sent, setup.from_receiver + expected);
}

#[test]
fn rows_are_labels_over_many_extensions() {
    for variant in Variant::ALL {
        check_extensions(variant, BaseOt::Ristretto);
    }
    check_extensions(Variant::IKNP, BaseOt::MlKem);
    check_extensions(Variant::SOFT_4.checked(), BaseOt::MlKem);
}

/// Checks that one of the parties is told at once if their variants differ.
#[test]
fn parties_with_different_variants_are_told() {
    for (i, ours) in Variant::ALL.into_iter().enumerate() {
        let theirs = Variant::ALL[(i + 1) % Variant::ALL.len()];
        let (sent, _) = run_parties(
            connect(Medium::Memory, &test_options()).unwrap(),
            |channel| {
                let rng = &mut Prg::from_os();
                let (base, delta) = (BaseOt::Ristretto, Delta::random(rng));
                let mut cot = CotSender::setup(Setup::new(ours, base), channel, delta, rng)?;
                cot.extend_vec(channel, 100).map(drop)
            },
            |channel| {
                let rng = &mut Prg::from_os();
                let mut cot =
                    CotReceiver::setup(Setup::new(theirs, BaseOt::Ristretto), channel, rng)?;
                cot.extend_vec(channel, &Bits::random(100, rng)).map(drop)
            },
        );
        let error = sent.unwrap_err();
        assert!(
            matches!(
                error,
                OtError::Net(NetError::WrongLength { .. } | NetError::WrongKind { .. })
                    | OtError::Inconsistent
            ),
            "{ours:?} {theirs:?}: {error}"
        );
    }
}

/// Checks that one connection carries an extension in each direction, over TLS.
#[test]
fn both_directions_on_one_connection() {
    const N: usize = 100_000;
    let party = |channel: &mut Channel, first: bool| {
        // The parties take turns: one's sender talks to the other's receiver.
        let choices = Bits::random(N, &mut Prg::from_os());
        let (mut out, mut inward, zeros, labels);
        if first {
            out = sender(channel)?;
            inward = receiver(channel)?;
            zeros = out.extend_vec(channel, N)?;
            labels = inward.extend_vec(channel, &choices)?;
        } else {
            inward = receiver(channel)?;
            out = sender(channel)?;
            labels = inward.extend_vec(channel, &choices)?;
            zeros = out.extend_vec(channel, N)?;
        }
        channel.flush()?;
        Ok::<_, OtError>((out.delta().label(), zeros, choices, labels))
    };
    let (left, right) = run_pair_over(
        Medium::Tls,
        &test_options(),
        |channel| party(channel, true),
        |channel| party(channel, false),
    )
    .unwrap();
    assert!(left.0 != right.0);
    check_rows(left.0, &left.1, &right.2, &right.3);
    check_rows(right.0, &right.1, &left.2, &left.3);
}

/// Compares a cost with what the two meters saw of a step, and its rounds.
fn check_cost(cost: TransferBytes, sender: Traffic, receiver: Traffic, receiver_rounds: u64) {
    assert_eq!(sender.bytes_sent, cost.from_sender);
    assert_eq!(sender.bytes_received, cost.from_receiver);
    assert_eq!(receiver.bytes_sent, cost.from_receiver);
    assert_eq!(receiver.bytes_received, cost.from_sender);
    assert_eq!(receiver.rounds, receiver_rounds);
}

fn phase(channel: &Channel, name: &str) -> Traffic {
    channel.meter().report().under(name)
}

fn run_product(n: usize, modulus: u64) {
    let rng = &mut Prg::new(&[n as u8; 16]);
    let differences: Vec<u64> = (0..n).map(|_| rng.next_u64() % modulus).collect();
    let offsets: Vec<u64> = (0..n).map(|_| rng.next_u64() % modulus).collect();
    let bits: Vec<bool> = (0..n).map(|_| rng.next_u32() & 1 == 1).collect();
    let ((sent, answers), (received, provisional, got)) = run_pair(
        |channel| {
            let mut cot = sender(channel)?;
            let material = {
                let _phase = channel.phase("offline");
                ProductSender::prepare(&mut cot, channel, (&offsets, &differences), modulus)?
            };
            let stored = material.into_bytes();
            let material = ProductSender::from_bytes(&stored, n, modulus)?;
            let _phase = channel.phase("online");
            let answering = material.listen(channel)?;
            let answers: Vec<u64> = answering.answers().collect();
            answering.answer(channel)?;
            let phases = ["offline", "online"].map(|name| phase(channel, name));
            Ok::<_, OtError>((phases, answers))
        },
        |channel| {
            let mut cot = receiver(channel)?;
            let material = {
                let _phase = channel.phase("offline");
                ProductReceiver::prepare(&mut cot, channel, &mut Prg::from_os(), n, modulus)?
            };
            let stored = material.into_bytes();
            let material = ProductReceiver::from_bytes(&stored, n, modulus)?;
            let _phase = channel.phase("online");
            let waiting = material.request(channel, &Bits::from_fn(n, |j| bits[j]))?;
            let provisional: Vec<u64> = waiting.provisional().collect();
            let got = waiting.receive(channel)?;
            let phases = ["offline", "online"].map(|name| phase(channel, name));
            Ok((phases, provisional, got))
        },
    )
    .unwrap();
    for j in 0..n {
        let expected = (offsets[j] + u64::from(bits[j]) * differences[j]) % modulus;
        assert_eq!(got[j], expected, "transfer {j}");
        assert_eq!(
            (provisional[j] + answers[j]) % modulus,
            expected,
            "shares of transfer {j}"
        );
    }
    check_cost(cost::product_offline(n, modulus), sent[0], received[0], 1);
    check_cost(cost::product_online(n, modulus), sent[1], received[1], 1);
}

#[test]
fn products_deliver_offset_plus_choice_times_difference() {
    run_product(20_000, P);
    run_product(1000, 1 << 41);
    run_product(333, 2);
    run_product(100, 1 << 56);
    run_product(0, P);
}

#[test]
fn online_bytes_keep_the_budget() {
    let n = 23_040;
    let per_element =
        |cost: TransferBytes| (cost.from_sender + cost.from_receiver) as f64 / n as f64;
    assert!(per_element(cost::product_online(n, P)) < 5.3);
}

/// Runs a real sender against a peer that sends what it likes.
fn hostile_receiver(
    n: usize,
    attack: impl FnOnce(&mut Channel) -> std::result::Result<(), NetError> + Send,
) -> OtError {
    let (result, _) = run_parties(
        connect(Medium::Memory, &test_options()).unwrap(),
        |channel| {
            let mut cot = sender(channel)?;
            cot.extend_vec(channel, n).map(drop)
        },
        |channel| {
            receiver(channel).unwrap();
            let _ = attack(channel);
        },
    );
    result.unwrap_err()
}

#[test]
fn wrong_extensions_are_refused() {
    let n = 1000;
    let right = 8 + 128 * 125;
    // A peer that announces 2^60 transfers' worth: the length is compared before anything else.
    let error = hostile_receiver(n, |c| c.send_stream(EXTENSION, 1 << 55).map(drop));
    assert!(matches!(
        error,
        OtError::Net(NetError::WrongLength { announced, expected, .. })
            if announced == 1 << 55 && expected == right
    ));
    let error = hostile_receiver(n, |c| c.send(EXTENSION, &vec![0; right as usize - 1]));
    assert!(matches!(error, OtError::Net(NetError::WrongLength { .. })));
    let error = hostile_receiver(n, |c| c.send(CORRECTIONS, &[]));
    assert!(matches!(
        error,
        OtError::Net(NetError::WrongKind { got: 0x23, .. })
    ));
    let error = hostile_receiver(n, |c| {
        let mut stream = c.send_stream(EXTENSION, right)?;
        stream.put(&[0; 5000])
    });
    assert!(matches!(error, OtError::Net(NetError::PeerGone { .. })));
    let error = hostile_receiver(n, |c| {
        let mut payload = vec![0; right as usize];
        payload[0] = 77;
        c.send(EXTENSION, &payload)
    });
    assert!(matches!(
        error,
        OtError::OutOfStep {
            expected: 0,
            got: 77
        }
    ));
}

#[test]
fn parties_out_of_step_are_told() {
    let error = run_pair(
        |channel| {
            let mut cot = sender(channel)?;
            let _other = sender(channel)?;
            cot.extend_vec(channel, 64)?;
            cot.extend_vec(channel, 100).map(drop)
        },
        |channel| {
            let mut cot = receiver(channel)?;
            let mut other = receiver(channel)?;
            cot.extend_vec(channel, &Bits::random(64, &mut Prg::from_os()))?;
            // The peer goes on with the first state; this party goes on with the other.
            other.extend_vec(channel, &Bits::random(100, &mut Prg::from_os()))?;
            Ok(channel.flush()?)
        },
    )
    .unwrap_err();
    assert!(
        matches!(
            error,
            OtError::OutOfStep {
                expected: 64,
                got: 0
            }
        ),
        "{error}"
    );
}

#[test]
fn wrong_counts_and_corrections_are_refused() {
    let (sent, received) = run_parties(
        connect(Medium::Memory, &test_options()).unwrap(),
        |channel| {
            let mut cot = sender(channel)?;
            let mut prepare = |offsets: &[u64], differences: &[u64], modulus| {
                let messages = (offsets, differences);
                ProductSender::prepare(&mut cot, channel, messages, modulus)
            };
            prepare(&[0; 10], &[5; 10], P)?;
            let second = prepare(&[0; 10], &[5; 10], P)?;
            let [a, c, d] = [
                prepare(&[0; 10], &[5; 11], P),
                prepare(&[0; 10], &[0; 10], 1),
                prepare(&[0], &[P], P),
            ];
            let b = second.answer(channel).unwrap_err();
            Ok::<_, OtError>([a.err().unwrap(), b, c.err().unwrap(), d.err().unwrap()])
        },
        |channel| {
            let rng = &mut Prg::from_os();
            let mut cot = receiver(channel)?;
            let first = ProductReceiver::prepare(&mut cot, channel, rng, 10, P)?;
            ProductReceiver::prepare(&mut cot, channel, rng, 10, P)?;
            let error = first.request(channel, &Bits::random(11, rng)).err();
            channel.send(CORRECTIONS, &[0, 4])?;
            Ok::<_, OtError>(error.unwrap())
        },
    );
    let [a, b, c, d] = sent.unwrap();
    assert_eq!(a.to_string(), "11 differences for 10 prepared transfers");
    assert!(matches!(b, OtError::Padding { bits: 10 }), "{b}");
    assert!(matches!(c, OtError::Modulus { modulus: 1 }), "{c}");
    assert!(matches!(d, OtError::NotResidues { .. }), "{d}");
    let error = received.unwrap();
    assert!(
        matches!(error, OtError::Count { expected: 10, .. }),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Checks that for any bytes that the peer sends in place of an extension, the sender answers
    /// with an error or finishes.
    #[test]
    fn arbitrary_bytes_never_panic(
        kind in prop_oneof![Just(EXTENSION.code()), any::<u8>()],
        payload in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let (result, ()) = run_parties(
            connect(Medium::Memory, &test_options()).unwrap(),
            |channel| {
                let mut cot = sender(channel)?;
                cot.extend_vec(channel, 16).map(|rows| rows.len())
            },
            |channel| {
                receiver(channel).unwrap();
                let _ = channel.send_code(kind, &payload);
            },
        );
        if let Ok(rows) = result {
            prop_assert_eq!(rows, 16);
            prop_assert_eq!(payload.len(), 8 + 256);
        }
    }
}

/// Checks choices known offline and numbers known online: both forms, with one and with several
/// pads a transfer.
#[test]
fn pads_serve_products_and_choices() {
    const N: usize = 1000;
    for each in [1, 3] {
        let number = |i: usize, salt: u64| (i as u64 * 0x1_2345_6789 + salt) % P;
        let ((sent, shares, taken), (pads, choices)) = run_pair(
            |channel| {
                let mut cot = sender(channel)?;
                // Another use before it, so that positions do not start at zero.
                cot.extend_vec(channel, 5)?;
                let before = channel.meter().report();
                let pads = PadSender::prepare(&mut cot, channel, N, each, P)?;
                let traffic = channel.meter().report().since(&before).total();
                assert_eq!(traffic.bytes_received, cost::extension(N).from_receiver);
                assert_eq!(traffic.bytes_sent, 0);
                let pads = PadSender::from_bytes(&pads.into_bytes(), N, each, P)?;
                let products = (0..N * each).map(|i| pads.product(i, number(i, 5)));
                let (sent, shares): (Vec<_>, Vec<_>) = products.unzip();
                let taken = (0..N * each).map(|i| pads.choice(i, [number(i, 7), number(i, 8)]));
                Ok::<_, OtError>((sent, shares, taken.collect::<Vec<_>>()))
            },
            |channel| {
                let mut cot = receiver(channel)?;
                cot.extend_vec(channel, &Bits::from_fn(5, |_| true))?;
                let choices = Bits::random(N, &mut Prg::from_os());
                let kept = Bits::from_fn(N, |i| choices.get(i));
                let pads = PadReceiver::prepare(&mut cot, channel, choices, each, P)?;
                channel.flush()?;
                Ok((
                    PadReceiver::from_bytes(&pads.into_bytes(), N, each, P)?,
                    kept,
                ))
            },
        )
        .unwrap();
        for i in 0..N * each {
            let chosen = choices.get(i / each);
            assert_eq!(pads.mask(i), u64::from(chosen).wrapping_neg());
            let product = (shares[i] + pads.product(i, sent[i])) % P;
            assert_eq!(product, u64::from(chosen) * number(i, 5));
            let wanted = number(i, if chosen { 8 } else { 7 });
            assert_eq!(pads.choice(i, taken[i]), wanted);
        }
        // Pads of one row differ: no message repeats although numbers could.
        let mut all = sent.clone();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), sent.len());
    }
}

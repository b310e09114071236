//! Products of bits that come late: right, at the stated cost, and silent about the bits.

use primer_net::pair::{Medium, connect};
use primer_ot::cost::{self, TransferBytes};
use primer_ot::*;
use primer_ring::prg::Prg;
use primer_wire::kind::bit_product::{CORRELATION, OPENED};
use primer_wire::pair::{run_parties, test_options};
use primer_wire::{Channel, NetError, Traffic, run_pair};

const SETUP: Setup = Setup::new(Variant::IKNP, BaseOt::Ristretto);

const P: u64 = (1 << 41) - (1 << 16) + 1;

fn sender(channel: &mut Channel) -> Result<CotSender> {
    let rng = &mut Prg::from_os();
    CotSender::setup(SETUP, channel, Delta::random(rng), rng)
}

fn receiver(channel: &mut Channel) -> Result<CotReceiver> {
    CotReceiver::setup(SETUP, channel, &mut Prg::from_os())
}

fn phases(channel: &Channel) -> [Traffic; 2] {
    ["offline", "online"].map(|name| channel.meter().report().under(name))
}

fn check_cost(cost: TransferBytes, sender: Traffic, receiver: Traffic) {
    assert_eq!(sender.bytes_sent, cost.from_sender);
    assert_eq!(sender.bytes_received, cost.from_receiver);
    assert_eq!(receiver.bytes_sent, cost.from_receiver);
    assert_eq!(receiver.bytes_received, cost.from_sender);
    assert_eq!(receiver.rounds, 1);
}

fn run_products(n: usize, modulus: u64) {
    // All four pairs of bits, for any random ones.
    let (ours, theirs) = (|j: usize| j & 1 == 1, |j: usize| j & 2 == 2);
    let ((sent, left), (received, right)) = run_pair(
        |channel| {
            let mut cot = sender(channel)?;
            let stored = {
                let _phase = channel.phase("offline");
                let rng = &mut Prg::from_os();
                BitSender::prepare(&mut cot, channel, rng, n, modulus)?.into_bytes()
            };
            let material = BitSender::from_bytes(&stored, n, modulus)?;
            let _phase = channel.phase("online");
            let answering = material.listen(channel)?;
            let shares = answering.answer(channel, &Bits::from_fn(n, ours))?;
            channel.flush()?;
            Ok::<_, OtError>((phases(channel), shares))
        },
        |channel| {
            let mut cot = receiver(channel)?;
            let stored = {
                let _phase = channel.phase("offline");
                let rng = &mut Prg::from_os();
                BitReceiver::prepare(&mut cot, channel, rng, n, modulus)?.into_bytes()
            };
            let material = BitReceiver::from_bytes(&stored, n, modulus)?;
            let _phase = channel.phase("online");
            let waiting = material.request(channel, &Bits::from_fn(n, theirs))?;
            channel.flush()?;
            let shares = waiting.receive(channel)?;
            Ok((phases(channel), shares))
        },
    )
    .unwrap();
    assert_eq!((left.len(), right.len()), (n, n));
    for (j, (x, y)) in left.iter().zip(right.iter()).enumerate() {
        let product = u64::from(ours(j) && theirs(j));
        assert_eq!((x + y) % modulus, product % modulus, "product {j}");
    }
    let offline = cost::bit_product_offline_as(Variant::default(), n, modulus);
    check_cost(offline, sent[0], received[0]);
    check_cost(cost::bit_product_online(n), sent[1], received[1]);
}

#[test]
fn shares_add_up_to_the_product_of_the_bits() {
    run_products(20_000, P);
    run_products(1000, 1 << 41);
    run_products(333, 2);
    run_products(100, 1 << 56);
    run_products(0, P);
}

/// What each party receives while the bits never change: opened bits, and the sender's correlation.
struct Views {
    from_receiver: Vec<bool>,
    from_sender: Vec<bool>,
    correlation: Vec<u64>,
}

const N: usize = 20_000;

/// Runs the true parties; `damage` changes what they stored, the sender's first.
fn views(damage: [fn(&mut [u8]); 2]) -> Views {
    let bits = |bit: bool| Bits::from_fn(N, move |_| bit);
    let hear = |channel: &mut Channel| {
        let mut opened = vec![0; N / 8];
        channel.recv_exact(OPENED, &mut opened)?;
        let bits = Bits::from_bytes(opened, N)?;
        Ok::<_, OtError>((0..N).map(|j| bits.get(j)).collect::<Vec<bool>>())
    };
    // What the receiver gets from the true sender: first a view of its correlation.
    let (_, correlation) = run_pair(
        |channel| {
            let mut cot = sender(channel)?;
            BitSender::prepare(&mut cot, channel, &mut Prg::from_os(), N, P).map(drop)
        },
        |channel| {
            let mut cot = receiver(channel)?;
            cot.extend_vec(channel, &bits(true))?;
            channel.flush()?;
            let mut correlation = vec![0; N];
            channel.recv_residues(CORRELATION, 41, P, &mut correlation)?;
            Ok::<_, OtError>(correlation)
        },
    )
    .unwrap();
    let (from_receiver, _) = run_pair(
        |channel| {
            let mut cot = sender(channel)?;
            BitSender::prepare(&mut cot, channel, &mut Prg::from_os(), N, P)?;
            hear(channel)
        },
        |channel| {
            let mut cot = receiver(channel)?;
            let rng = &mut Prg::from_os();
            let mut stored = BitReceiver::prepare(&mut cot, channel, rng, N, P)?.into_bytes();
            damage[1](&mut stored);
            BitReceiver::from_bytes(&stored, N, P)?.request(channel, &bits(true))?;
            Ok::<_, OtError>(channel.flush()?)
        },
    )
    .unwrap();
    let (_, from_sender) = run_pair(
        |channel| {
            let mut cot = sender(channel)?;
            let rng = &mut Prg::from_os();
            let mut stored = BitSender::prepare(&mut cot, channel, rng, N, P)?.into_bytes();
            damage[0](&mut stored);
            let answering = BitSender::from_bytes(&stored, N, P)?.listen(channel)?;
            answering.answer(channel, &bits(true))?;
            Ok::<_, OtError>(channel.flush()?)
        },
        |channel| {
            let mut cot = receiver(channel)?;
            let material = BitReceiver::prepare(&mut cot, channel, &mut Prg::from_os(), N, P)?;
            material.request(channel, &bits(true))?;
            channel.flush()?;
            hear(channel)
        },
    )
    .unwrap();
    Views {
        from_receiver,
        from_sender,
        correlation,
    }
}

/// Tells whether coins are fair: the number of heads is within six deviations.
fn is_fair(coins: &[bool]) -> bool {
    let heads = coins.iter().filter(|coin| **coin).count() as f64;
    (heads - N as f64 / 2.0).abs() < 6.0 * (N as f64).sqrt() / 2.0
}

#[test]
fn opened_bits_are_fair_coins_and_correlations_uniform() {
    let views = views([|_| (), |_| ()]);
    assert!(is_fair(&views.from_receiver) && is_fair(&views.from_sender));
    for bit in 0..40 {
        let coins: Vec<bool> = views
            .correlation
            .iter()
            .map(|tau| tau >> bit & 1 == 1)
            .collect();
        assert!(is_fair(&coins), "bit {bit} of the correlation");
    }
}

/// Checks that the same test notices if the random bits are missing.
#[test]
fn without_random_bits_the_bits_are_seen() {
    let zero = |stored: &mut [u8]| stored[..N / 8].fill(0);
    let views = views([zero, zero]);
    assert!(views.from_receiver.iter().all(|bit| *bit));
    assert!(views.from_sender.iter().all(|bit| *bit));
}

#[test]
fn what_is_not_a_residue_or_a_bit_is_refused() {
    let against = |attack: fn(&mut Channel) -> std::result::Result<(), NetError>| {
        let (_, received) = run_parties(
            connect(Medium::Memory, &test_options()).unwrap(),
            |channel| {
                let mut cot = sender(channel)?;
                cot.extend_vec(channel, 10)?;
                attack(channel)?;
                channel.flush()?;
                // Stays to receive the bits, if the receiver still has something to send.
                let _ = channel.recv(OPENED, 2);
                Ok::<_, OtError>(())
            },
            |channel| {
                let mut cot = receiver(channel)?;
                let rng = &mut Prg::from_os();
                let material = BitReceiver::prepare(&mut cot, channel, rng, 10, P)?;
                let waiting = material.request(channel, &Bits::random(10, rng))?;
                channel.flush()?;
                waiting.receive(channel).map(drop)
            },
        );
        received.unwrap_err()
    };
    let error = against(|channel| channel.send(CORRELATION, &[0xff; 52]));
    assert!(
        matches!(error, OtError::Net(NetError::Residues { .. })),
        "{error:?}"
    );
    let error = against(|channel| channel.send(CORRELATION, &[0; 51]));
    assert!(
        matches!(error, OtError::Net(NetError::WrongLength { .. })),
        "{error:?}"
    );
    let error = against(|channel| {
        channel.send(CORRELATION, &[0; 52])?;
        channel.send(OPENED, &[0, 4])
    });
    assert!(matches!(error, OtError::Padding { bits: 10 }), "{error}");
    let (sent, received) = run_parties(
        connect(Medium::Memory, &test_options()).unwrap(),
        |channel| {
            let (mut cot, rng) = (sender(channel)?, &mut Prg::from_os());
            let material = BitSender::prepare(&mut cot, channel, rng, 10, P)?;
            let answering = material.listen(channel)?;
            answering.answer(channel, &Bits::random(9, rng)).map(drop)
        },
        |channel| {
            let (mut cot, rng) = (receiver(channel)?, &mut Prg::from_os());
            let wrong = BitReceiver::prepare(&mut cot, channel, rng, 10, P)?;
            // Padding beyond the last bit.
            channel.send(OPENED, &[0, 3])?;
            channel.flush()?;
            wrong.request(channel, &Bits::random(11, rng)).map(drop)
        },
    );
    for error in [sent.unwrap_err(), received.unwrap_err()] {
        let told = matches!(error, OtError::Count { expected: 10, .. });
        assert!(told, "{error}");
    }
}

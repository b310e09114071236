//! What is special about a lift: every share of a ring, its bytes, what the client's share is, what
//! each party sees, and peers that send wrong messages.

use crate::parties::{Damage, Party, run, run_stop, share, sound, stop_client, stop_server};
use primer_net::Medium;
use primer_ot::{Bits, PadReceiver};
use primer_ring::modulus::{self, P};
use primer_ring::prg::Prg;
use primer_stops::lift::second_part;
use primer_stops::{Lift, Lifted, Requantise, Result, Stop, StopError};
use primer_wire::NetError;
use primer_wire::kind::lift::{CHOICES, TURNED};
use proptest::prelude::*;
use rand_core::Rng;

/// Lifts shared ring values; returns the opened results.
fn opened(m: u32, server: &[u64], client: &[u64]) -> Vec<i64> {
    let stop = Lift::new(m, server.len()).unwrap();
    let got = run_stop(Medium::Memory, &stop, (server, client), [&sound; 2]);
    got.unwrap().results
}

#[test]
fn all_values_and_all_shares_of_a_small_ring() {
    let (mut server, mut client, mut want) = (Vec::new(), Vec::new(), Vec::new());
    for v in -16i64..16 {
        for b in 0..64u64 {
            client.push(b);
            server.push((v as u64).wrapping_sub(b) & 63);
            want.push(v);
        }
    }
    // The random bits are new every time: both of their values meet all shares.
    for _ in 0..8 {
        assert_eq!(opened(6, &server, &client), want);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_ring(m in 3u32..=40, seed in any::<[u8; 16]>()) {
        let mut prg = Prg::new(&seed);
        let values: Vec<i64> = (0..200)
            .map(|_| (prg.next_u64() as i64) >> (64 - (m - 1)))
            .collect();
        let (server, client) = share(&values, m, &mut prg);
        prop_assert_eq!(opened(m, &server, &client), values);
    }
}

#[test]
fn unusable_rings_are_refused() {
    for bits in [0, 2, 41, 64] {
        let error = Lift::new(bits, 1).unwrap_err();
        assert!(matches!(error, StopError::Ring(b) if b == bits));
    }
}

/// Checks the bytes: a bit down and nothing up online; offline a residue more than a
/// requantisation.
#[test]
fn bytes_per_element() {
    let n = 8000;
    let (lift, known) = (
        Lift::new(16, n as usize).unwrap(),
        Requantise::new(16, n as usize).unwrap(),
    );
    let (bytes, others) = (lift.bytes(), known.bytes());
    assert_eq!((bytes.online_up, bytes.online_down), (0, 8 + n / 8));
    assert_eq!(bytes.offline_down, others.offline_down);
    assert_eq!(bytes.offline_up - others.offline_up, n * 41 / 8);
    assert_eq!(lift.stored().client, 2 * n);
    assert_eq!(lift.stored().server, known.stored().server);
}

const COUNT: usize = 20_000;
const RING: u32 = 12;
/// Shares of one value, 905: 3001 + 2000 in Z_4096. The server's has its top bit set once `2^10` is
/// added, the client's has not.
const SHARES: [u64; 2] = [3001, 2000];

/// What lifts of one value with the same shares leave and show.
struct Views {
    /// What the server receives, unchanged.
    received: Vec<u64>,
    /// What it decrypts of that.
    chosen: Vec<u64>,
    server: Lifted,
    client: Lifted,
}

/// Runs such lifts with the server's stored material changed.
fn views(damage: Damage<'_>, masks: &[u64]) -> Views {
    let stop = Lift::new(RING, COUNT).unwrap();
    let client = |p: &mut Party<'_>| {
        let mut stored = Vec::new();
        let shares = [SHARES[1]; COUNT];
        stop_client(&stop).prepare(&mut p.client(), &shares, masks, &mut stored)?;
        let mut pending = stop_client(&stop).listen(p.channel, &mut &stored[..], &[], masks)?;
        Ok(pending.lifted().unwrap())
    };
    let (client_view, server_view) = run(Medium::Memory, client, |p| {
        let mut stored = Vec::new();
        stop_server(&stop).prepare(&mut p.server(), &mut stored)?;
        damage(&mut stored);
        let shares = [SHARES[0]; COUNT];
        let mut asked = stop_server(&stop).request(p.channel, &mut &stored[..], &shares)?;
        p.channel.flush()?;
        Ok(asked.lifted().unwrap())
    })
    .unwrap();
    // The same server, message by message.
    let (_, (received, chosen)) = run(Medium::Memory, client, |p| {
        let choices = Bits::random(COUNT, &mut p.prg);
        let pads = PadReceiver::prepare(&mut p.receiver, p.channel, choices, 1, P)?;
        let mut received = vec![0; 2 * COUNT];
        p.channel.recv_residues(CHOICES, 41, P, &mut received)?;
        let chosen = (0..COUNT).map(|i| pads.choice(i, [received[2 * i], received[2 * i + 1]]));
        let chosen = chosen.collect();
        p.channel.send(TURNED, &[0; COUNT / 8])?;
        p.channel.flush()?;
        Ok((received, chosen))
    })
    .unwrap();
    Views {
        received,
        chosen,
        server: server_view,
        client: client_view,
    }
}

fn random_masks() -> Vec<u64> {
    let mut prg = Prg::from_os();
    (0..COUNT).map(|_| modulus::random(&mut prg)).collect()
}

/// Tells whether the values of 32 equally likely cells look uniform: the statistic is 31 on
/// average, with a deviation of 7.9; a uniform sample fails once in 10^8 runs.
fn is_uniform(cells: impl Iterator<Item = usize>) -> bool {
    let mut counts = [0f64; 32];
    cells.for_each(|cell| counts[cell] += 1.0);
    let expected = counts.iter().sum::<f64>() / 32.0;
    let distance = counts.map(|c| (c - expected).powi(2) / expected);
    distance.iter().sum::<f64>() < 100.0
}

fn residues(values: &[u64]) -> bool {
    is_uniform(values.iter().map(|v| (v * 32 / P) as usize))
}

fn bits(values: &Bits) -> bool {
    is_uniform(values.bytes().iter().map(|byte| usize::from(*byte) / 8))
}

#[test]
fn each_party_sees_uniform_messages() {
    let views = views(&sound, &random_masks());
    assert!(bits(&views.client.turned));
    assert!(residues(&views.received) && residues(&views.chosen));
    assert!(residues(&views.server.shares));
}

/// Leaves out random bits, so that the client sees the server's top bits, and a mask, so that the
/// server sees the client's share: the test above would notice.
#[test]
fn whatever_hides_something_is_missed() {
    let zero = |stored: &mut Vec<u8>| stored[..COUNT / 8].fill(0);
    let bare = views(&zero, &random_masks());
    assert!(bare.client.turned.bytes().iter().all(|byte| *byte == 0xff));
    let bare = views(&sound, &[0; COUNT]);
    assert!(!residues(&bare.chosen) && !residues(&bare.server.shares));
    // The pads still hide what was not chosen.
    assert!(residues(&bare.received));
}

/// Checks that the client's share is its mask, or includes the second part as well, and that both
/// parties know which.
#[test]
fn shares_are_masks_but_for_what_was_turned() {
    let masks = random_masks();
    let views = views(&sound, &masks);
    let (server, client) = (&views.server, &views.client);
    assert_eq!(server.turned.bytes(), client.turned.bytes());
    let turned = (0..COUNT).filter(|i| client.turned.get(*i)).count();
    assert!((COUNT / 3..2 * COUNT / 3).contains(&turned));
    for (i, &mask) in masks.iter().enumerate() {
        let second = second_part(RING, SHARES[1], mask);
        let expected = match client.turned.get(i) {
            true => modulus::add(mask, second),
            false => mask,
        };
        assert_eq!(client.shares[i], expected);
        assert_eq!(modulus::add(expected, server.shares[i]), 905);
    }
}

const FEW: usize = 11;

/// Runs the true client against a server that prepares as it should and then sends `said`.
fn client_hears(said: &[u8]) -> StopError {
    let stop = Lift::new(RING, FEW).unwrap();
    let client = |p: &mut Party<'_>| -> Result<()> {
        let mut stored = Vec::new();
        stop_client(&stop).prepare(&mut p.client(), &[1; FEW], &[0; FEW], &mut stored)?;
        let heard = stop_client(&stop).listen(p.channel, &mut &stored[..], &[], &[0; FEW]);
        heard.map(|_| ())
    };
    let server = |p: &mut Party<'_>| {
        stop_server(&stop).prepare(&mut p.server(), &mut Vec::new())?;
        p.channel.send(TURNED, said)?;
        Ok(p.channel.flush()?)
    };
    run(Medium::Memory, client, server).unwrap_err()
}

/// Runs the true server against a client that extends as it should and then sends `said`.
fn server_hears(said: &[u8]) -> StopError {
    let stop = Lift::new(RING, FEW).unwrap();
    let client = |p: &mut Party<'_>| {
        p.sender.extend_vec(p.channel, FEW)?;
        p.channel.send(CHOICES, said)?;
        Ok(p.channel.flush()?)
    };
    let server = |p: &mut Party<'_>| stop_server(&stop).prepare(&mut p.server(), &mut Vec::new());
    run(Medium::Memory, client, server).unwrap_err()
}

#[test]
fn nonsense_of_a_peer_is_an_error() {
    for said in [&[0][..], &[0; 3]] {
        let error = client_hears(said);
        let told = matches!(error, StopError::Net(NetError::WrongLength { .. }));
        assert!(told, "{error}");
    }
    let error = client_hears(&[0, 0x80]).to_string();
    assert!(error.contains("11"), "bits beyond the last: {error}");
    let length = (2 * FEW * 41).div_ceil(8);
    for said in [length - 1, length + 1] {
        let error = server_hears(&vec![0; said]);
        let told = matches!(error, StopError::Net(NetError::WrongLength { .. }));
        assert!(told, "{error}");
    }
    let error = format!("{:?}", server_hears(&vec![0xff; length]));
    assert!(error.contains("Residues"), "{error}");
}

/// Stores residues beyond the modulus and bits beyond the last.
#[test]
fn damaged_material_is_refused() {
    let stop = Lift::new(RING, FEW).unwrap();
    let ones = |stored: &mut Vec<u8>| stored.fill(0xff);
    let shares = (&[1; FEW][..], &[2; FEW][..]);
    for damage in [[&ones as Damage<'_>, &sound], [&sound, &ones]] {
        let error = run_stop(Medium::Memory, &stop, shares, damage).err();
        let text = error.unwrap().to_string();
        let told = text.contains("material of lift is not usable");
        assert!(told || text.contains("disappeared"), "{text}");
    }
}

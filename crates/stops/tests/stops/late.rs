//! What is special about late requantisation: every share of a ring, its bytes, truncated products
//! of secrets, and what each party sees.

use crate::parties::{Damage, run, run_stop, share, sound, stop_client, stop_server};
use primer_net::Medium;
use primer_ring::modulus::{self, P};
use primer_ring::prg::Prg;
use primer_ring::truncate::Truncation;
use primer_stops::{LateRequantise, Requantise, Stop, StopError};
use primer_wire::PhaseBytes;
use primer_wire::kind::bit_product::OPENED;
use primer_wire::kind::late::RESULTS;
use proptest::prelude::*;
use rand_core::Rng;

/// Requantises shared ring values; returns the opened results and the bytes that passed.
fn requantised(m: u32, server: &[u64], client: &[u64]) -> (Vec<i64>, PhaseBytes) {
    let stop = LateRequantise::new(m, server.len()).unwrap();
    let got = run_stop(Medium::Memory, &stop, (server, client), [&sound; 2]).unwrap();
    (got.results, got.bytes)
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
    // The random bits are new every time: all of their values meet all shares.
    for _ in 0..8 {
        let (got, bytes) = requantised(6, &server, &client);
        assert_eq!(got, want);
        let stop = LateRequantise::new(6, want.len()).unwrap();
        assert_eq!(bytes, stop.bytes());
    }
}

/// Compares the bytes with those of a requantisation whose client's share is known: one bit more
/// online, and the same offline.
#[test]
fn bytes_per_element() {
    let n = 8000;
    let (late, known) = (
        LateRequantise::new(16, n).unwrap(),
        Requantise::new(16, n).unwrap(),
    );
    let (late_bytes, known_bytes) = (late.bytes(), known.bytes());
    assert_eq!(late_bytes.offline(), known_bytes.offline());
    let header = 8;
    let more = late_bytes.online() - known_bytes.online();
    assert_eq!(more, header + n as u64 / 8);
    assert!(late.stored().client < known.stored().client);
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
        prop_assert_eq!(requantised(m, &server, &client).0, values);
    }
}

/// Goes the whole way from Z_p to Z_p, for any shares of an accumulator and for those at the ends
/// of Z_p: the result is what the reference computes with the client's share, bit for bit.
#[test]
fn after_a_truncation_of_any_shares() {
    let t = Truncation::to_ring(16).unwrap();
    let mut prg = Prg::new(&[31; 16]);
    let limit = ((1i64 << 14) - 2) << t.shift();
    let ends = [0, 1, P / 2, P - 2, P - 1];
    let pairs = (0..500).map(|i| {
        let x = prg.next_u64() as i64 % limit;
        let r = match ends.get(i % 10) {
            Some(end) => *end,
            None => modulus::random(&mut prg),
        };
        (x, r)
    });
    let pairs: Vec<(i64, u64)> = pairs.collect();
    let shares = pairs.iter().map(|&(x, r)| {
        let a = modulus::sub(modulus::from_signed(x), r);
        (t.server(a), t.client(r))
    });
    let (server, client): (Vec<u64>, Vec<u64>) = shares.unzip();
    let (got, _) = requantised(16, &server, &client);
    for (v, (x, r)) in got.iter().zip(&pairs) {
        assert_eq!(*v, t.shared(*x, *r));
        assert!((v * (1 << t.shift()) - x).abs() < 2 << t.shift());
    }
}

#[test]
fn unusable_rings_are_refused() {
    for bits in [0, 2, 41, 64] {
        let error = LateRequantise::new(bits, 1).unwrap_err();
        assert!(matches!(error, StopError::Ring(b) if b == bits));
    }
}

const COUNT: usize = 20_000;
const RING: u32 = 12;

/// What the parties receive in requantisations of one value with the same shares: the server's
/// opened bits, the client's, its message, and what the server computes from it.
struct Views {
    opened: [Vec<u8>; 2],
    results: Vec<u64>,
    shares: Vec<u64>,
}

/// Runs such requantisations with the client's and the server's stored material changed.
fn views(damage: [Damage<'_>; 2], mask: impl Fn() -> u64 + Sync) -> Views {
    let stop = LateRequantise::new(RING, COUNT).unwrap();
    let (server, client) = (vec![3001; COUNT], vec![2000; COUNT]);
    let masks: Vec<u64> = (0..COUNT).map(|_| mask()).collect();
    let prepare = |p: &mut crate::parties::Party<'_>| {
        let mut stored = Vec::new();
        stop_client(&stop).prepare(&mut p.client(), &[], &masks, &mut stored)?;
        Ok::<_, StopError>(stored)
    };
    let hear = |p: &mut crate::parties::Party<'_>| {
        let mut opened = vec![0; COUNT / 8];
        p.channel.recv_exact(OPENED, &mut opened)?;
        Ok::<_, StopError>(opened)
    };
    let answer = |p: &mut crate::parties::Party<'_>| {
        let mut stored = prepare(p)?;
        damage[0](&mut stored);
        let part = stop_client(&stop);
        part.listen(p.channel, &mut &stored[..], &client, &masks)?
            .answer(p.channel)
    };
    let request = |p: &mut crate::parties::Party<'_>| {
        let mut stored = Vec::new();
        stop_server(&stop).prepare(&mut p.server(), &mut stored)?;
        damage[1](&mut stored);
        let waiting = stop_server(&stop).request(p.channel, &mut &stored[..], &server)?;
        p.channel.flush()?;
        Ok::<_, StopError>(waiting)
    };
    // The client's view of the true server.
    let (from_server, ()) = run(
        Medium::Memory,
        |p| {
            prepare(p)?;
            hear(p)
        },
        |p| request(p).map(drop),
    )
    .unwrap();
    // The server's view of the true client, as it comes and as it is used.
    let (_, (from_client, results)) = run(Medium::Memory, answer, |p| {
        request(p)?;
        let (opened, mut results) = (hear(p)?, vec![0; COUNT]);
        p.channel.recv_residues(RESULTS, 41, P, &mut results)?;
        Ok((opened, results))
    })
    .unwrap();
    let (_, shares) = run(Medium::Memory, answer, |p| request(p)?.receive(p.channel)).unwrap();
    Views {
        opened: [from_server, from_client],
        results,
        shares,
    }
}

fn random_mask() -> u64 {
    modulus::random(&mut Prg::from_os())
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

fn bytes(values: &[u8]) -> bool {
    is_uniform(values.iter().map(|byte| usize::from(*byte) / 8))
}

#[test]
fn each_party_sees_uniform_messages() {
    let views = views([&sound; 2], random_mask);
    assert!(views.opened.iter().all(|opened| bytes(opened)));
    assert!(residues(&views.results) && residues(&views.shares));
}

/// Leaves out random bits, which shows the top bits of the shares, and a mask, which shows the
/// value: the test above would notice.
#[test]
fn whatever_hides_something_is_missed() {
    let zero = |stored: &mut Vec<u8>| stored[..COUNT / 8].fill(0);
    let bare = views([&zero, &zero], || 0);
    // 3001 + 1024 and 2000 in Z_4096: the first has its top bit set, the second not.
    assert!(bare.opened[0].iter().all(|byte| *byte == 0xff));
    assert!(bare.opened[1].iter().all(|byte| *byte == 0));
    assert!(!residues(&views([&sound; 2], || 0).shares));
    let all = |stored: &mut Vec<u8>| stored.fill(0);
    assert!(!residues(&views([&all, &sound], || 0).results));
}

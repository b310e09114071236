//! Requantisation between two parties.

mod common;

use common::{run, share};
use primer_net::Transport;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_ring::truncate::Truncation;
use primer_stops::{Cost, RequantiseClient, RequantiseServer, StopsError, requantise};
use proptest::prelude::*;
use rand_core::Rng;

/// Requantises shared ring values; the opened results, and the bytes that passed.
fn requantised(m: u32, server: &[u64], client: &[u64]) -> (Vec<i64>, Cost) {
    let n = server.len();
    let masks: Vec<u64> = (0..n)
        .map(|_| modulus::random(&mut Prg::from_os()))
        .collect();
    let (cost, results) = run(
        Transport::Memory,
        |p| {
            let mut seen = p.channel.meter().report().total();
            let c = RequantiseClient::prepare(p.channel, &mut p.sender, m, client, &masks)?;
            let (offline_up, offline_down) = p.passed(&mut seen);
            c.finish(p.channel)?;
            let (online_up, online_down) = p.passed(&mut seen);
            Ok(Cost {
                offline_up,
                offline_down,
                online_up,
                online_down,
            })
        },
        |p| {
            let s = RequantiseServer::prepare(p.channel, &mut p.receiver, m, n, &mut p.prg)?;
            s.finish(p.channel, server)
        },
    )
    .unwrap();
    let open = |(&a, &r): (&u64, &u64)| modulus::to_signed(modulus::add(a, r));
    (results.iter().zip(&masks).map(open).collect(), cost)
}

#[test]
fn all_values_and_all_shares_of_a_small_ring() {
    let m = 6;
    let mut server = Vec::new();
    let mut client = Vec::new();
    let mut want = Vec::new();
    for v in -16i64..16 {
        for b in 0..64u64 {
            client.push(b);
            server.push((v as u64).wrapping_sub(b) & 63);
            want.push(v);
        }
    }
    let (got, cost) = requantised(m, &server, &client);
    assert_eq!(got, want);
    assert_eq!(cost, requantise::cost(want.len()));
}

#[test]
fn online_bytes_per_element() {
    let n = 10_000;
    let zeros = vec![0; n];
    let (got, cost) = requantised(16, &zeros, &zeros);
    assert!(got.iter().all(|&v| v == 0));
    let online = (cost.online_up + cost.online_down) as f64 / n as f64;
    assert!(online <= 12.0 && (online - 5.25).abs() < 0.01, "{online}");
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

#[test]
fn after_a_truncation() {
    // The whole way from Z_p to Z_p: the value divided by 2^s, within the truncation's two units.
    let t = Truncation::to_ring(16).unwrap();
    let mut prg = Prg::new(&[31; 16]);
    let limit = ((1i64 << 14) - 2) << t.shift();
    let values: Vec<i64> = (0..500).map(|_| prg.next_u64() as i64 % limit).collect();
    let (server, client): (Vec<u64>, Vec<u64>) = values
        .iter()
        .map(|&x| {
            let r = modulus::random(&mut prg);
            let a = modulus::sub(modulus::from_signed(x), r);
            (t.server(a), t.client(r))
        })
        .unzip();
    let (got, _) = requantised(16, &server, &client);
    for (v, x) in got.iter().zip(&values) {
        assert!((v * (1 << t.shift()) - x).abs() < 2 << t.shift());
    }
}

#[test]
fn unusable_rings_and_counts_are_refused() {
    let error = run(
        Transport::Memory,
        |p| RequantiseClient::prepare(p.channel, &mut p.sender, 2, &[0], &[0]).map(|_| ()),
        |_| Ok(()),
    )
    .unwrap_err();
    assert!(matches!(error, StopsError::Ring(2)));
    let error = run(
        Transport::Memory,
        |p| RequantiseClient::prepare(p.channel, &mut p.sender, 9, &[0], &[0, 0]).map(|_| ()),
        |_| Ok(()),
    )
    .unwrap_err();
    assert!(matches!(
        error,
        StopsError::Count {
            expected: 1,
            got: 2,
            ..
        }
    ));
}

#[test]
fn material_survives_storage() {
    let values: Vec<i64> = (-50..50).map(|i| i * 100).collect();
    let (server, client) = share(&values, 16, &mut Prg::new(&[8; 16]));
    let masks = vec![1 << 40; values.len()];
    let n = values.len();
    let ((), results) = run(
        Transport::Memory,
        |p| {
            let c = RequantiseClient::prepare(p.channel, &mut p.sender, 16, &client, &masks)?;
            let bytes = c.into_bytes();
            assert_eq!(bytes.len() as u64, requantise::stored_len(n).0);
            assert!(RequantiseClient::from_bytes(&bytes[1..], n).is_err());
            assert!(RequantiseClient::from_bytes(&bytes, n - 1).is_err());
            assert!(RequantiseClient::from_bytes(&bytes, usize::MAX).is_err());
            RequantiseClient::from_bytes(&bytes, n)?.finish(p.channel)
        },
        |p| {
            let s = RequantiseServer::prepare(p.channel, &mut p.receiver, 16, n, &mut p.prg)?;
            let bytes = s.into_bytes();
            assert_eq!(bytes.len() as u64, requantise::stored_len(n).1);
            assert!(RequantiseServer::from_bytes(&bytes, 16, n + 1).is_err());
            RequantiseServer::from_bytes(&bytes, 16, n)?.finish(p.channel, &server)
        },
    )
    .unwrap();
    for (result, v) in results.iter().zip(values) {
        assert_eq!(modulus::to_signed(modulus::add(*result, 1 << 40)), v);
    }
}

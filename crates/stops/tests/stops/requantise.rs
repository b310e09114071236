//! What is special about requantisation: every share of a ring, its bytes, truncated values.

use crate::parties::{run_stop, share, sound};
use primer_net::Medium;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_ring::truncate::Truncation;
use primer_stops::{Requantise, Stop, StopError};
use primer_wire::PhaseBytes;
use proptest::prelude::*;
use rand_core::Rng;

/// Requantises shared ring values; returns the opened results and the bytes that passed.
fn requantised(m: u32, server: &[u64], client: &[u64]) -> (Vec<i64>, PhaseBytes) {
    let stop = Requantise::new(m, server.len()).unwrap();
    let got = run_stop(Medium::Memory, &stop, (server, client), [&sound; 2]).unwrap();
    (got.results, got.bytes)
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
    let (got, bytes) = requantised(m, &server, &client);
    assert_eq!(got, want);
    assert_eq!(bytes, Requantise::new(m, want.len()).unwrap().bytes());
}

#[test]
fn online_bytes_per_element() {
    let n = 10_000;
    let zeros = vec![0; n];
    let (got, bytes) = requantised(16, &zeros, &zeros);
    assert!(got.iter().all(|&v| v == 0));
    let online = (bytes.online_up + bytes.online_down) as f64 / n as f64;
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
fn unusable_rings_are_refused() {
    for bits in [0, 2, 41, 64] {
        let error = Requantise::new(bits, 1).unwrap_err();
        assert!(matches!(error, StopError::Ring(b) if b == bits));
    }
}

//! One layer's worth of GELU over loopback, timed.
//!
//! `cargo test --release -p primer-stops --test layer -- --ignored --nocapture`

mod common;

use common::{run, share};
use primer_garble::measure::typical_gelu;
use primer_net::Transport;
use primer_plan::function::{Activation, Gelu};
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_stops::{ClientMaterial, Job, RequantiseClient, RequantiseServer, ServerMaterial};
use rand_core::Rng;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// 30 tokens, 3,072 features.
const ELEMENTS: usize = 30 * 3072;
const RUNS: usize = 5;

fn best(times: &[(Duration, Duration)]) -> (f64, f64) {
    let least = |f: fn(&(Duration, Duration)) -> Duration| times.iter().map(f).min().unwrap();
    (least(|t| t.0).as_secs_f64(), least(|t| t.1).as_secs_f64())
}

#[test]
#[ignore = "a measurement: 300 MB of garbled circuits, several times over, in release"]
fn gelu_of_one_layer() {
    let job = Job::new(Arc::new(typical_gelu()), ELEMENTS as u64).unwrap();
    let reference = Gelu::new(Activation::GeluErf, 16, 8, 9);
    let mut prg = Prg::new(&[1; 16]);
    let values: Vec<i64> = (0..ELEMENTS)
        .map(|_| i64::from(prg.next_u32() as i16))
        .collect();
    let (server, client) = share(&values, 16, &mut prg);
    let masks: Vec<u64> = (0..ELEMENTS).map(|_| modulus::random(&mut prg)).collect();
    for transport in [Transport::Tcp, Transport::Tls] {
        let (times, ()) = run(
            transport,
            |p| {
                let mut times = Vec::new();
                let mut stored = Vec::with_capacity(job.stored_len() as usize);
                for _ in 0..RUNS {
                    stored.clear();
                    let start = Instant::now();
                    let c = ClientMaterial::prepare(
                        p.channel,
                        &mut p.receiver,
                        &job,
                        &client,
                        &mut stored,
                    )?;
                    let offline = start.elapsed();
                    // The server is ready to go on.
                    p.channel.recv(SYNC, 1)?;
                    p.channel.send(SYNC, &[1])?;
                    let start = Instant::now();
                    c.finish(p.channel, &mut &stored[..], &masks)?;
                    // The server has its results: the end of the stop for both.
                    p.channel.recv(SYNC, 1)?;
                    times.push((offline, start.elapsed()));
                }
                Ok(times)
            },
            |p| {
                for _ in 0..RUNS {
                    let s = ServerMaterial::prepare(p.channel, &mut p.sender, &job, &mut p.prg)?;
                    p.channel.send(SYNC, &[1])?;
                    p.channel.recv(SYNC, 1)?;
                    let results = s.finish(p.channel, &server)?;
                    p.channel.send(SYNC, &[1])?;
                    p.channel.flush()?;
                    for ((a, r), x) in results.iter().zip(&masks).zip(&values) {
                        let y = modulus::to_signed(modulus::add(*a, *r));
                        assert_eq!(y, reference.apply(*x));
                    }
                }
                Ok(())
            },
        )
        .unwrap();
        let (offline, online) = best(&times);
        let cost = job.cost();
        println!(
            "{ELEMENTS} GELUs over {transport:?}: offline {offline:.3} s, online {online:.3} s; {cost:?}"
        );
        assert!(online <= 0.35, "online takes {online} s");
    }
}

#[test]
#[ignore = "a measurement, in release"]
fn requantisation_of_one_layer() {
    let values: Vec<i64> = (0..ELEMENTS as i64).map(|i| i % 16_000 - 8000).collect();
    let mut prg = Prg::new(&[2; 16]);
    let (server, client) = share(&values, 16, &mut prg);
    let masks: Vec<u64> = (0..ELEMENTS).map(|_| modulus::random(&mut prg)).collect();
    let (times, ()) = run(
        Transport::Tcp,
        |p| {
            let mut times = Vec::new();
            for _ in 0..RUNS {
                let start = Instant::now();
                let c = RequantiseClient::prepare(p.channel, &mut p.sender, 16, &client, &masks)?;
                p.channel.recv(SYNC, 1)?;
                let offline = start.elapsed();
                p.channel.send(SYNC, &[1])?;
                let start = Instant::now();
                c.finish(p.channel)?;
                p.channel.recv(SYNC, 1)?;
                times.push((offline, start.elapsed()));
            }
            Ok(times)
        },
        |p| {
            for _ in 0..RUNS {
                let s = RequantiseServer::prepare(
                    p.channel,
                    &mut p.receiver,
                    16,
                    ELEMENTS,
                    &mut p.prg,
                )?;
                p.channel.send(SYNC, &[1])?;
                p.channel.recv(SYNC, 1)?;
                let results = s.finish(p.channel, &server)?;
                p.channel.send(SYNC, &[1])?;
                p.channel.flush()?;
                assert_eq!(results.len(), ELEMENTS);
            }
            Ok(())
        },
    )
    .unwrap();
    let (offline, online) = best(&times);
    let cost = primer_stops::requantise::cost(ELEMENTS);
    println!("{ELEMENTS} requantisations: offline {offline:.3} s, online {online:.3} s; {cost:?}");
}

const SYNC: primer_net::Kind = primer_net::Kind::new(0x7f, "test step");

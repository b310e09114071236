//! One layer's worth of stops over loopback, timed.
//!
//! `cargo test --release -p primer-stops --test layer -- --ignored --nocapture`

mod common;

use common::{run, share};
use primer_garble::measure::{typical_gelu, typical_softmax};
use primer_garble::stop::Stop;
use primer_net::Transport;
use primer_plan::function::{Activation, Function, Gelu, SoftmaxScratch};
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

/// Runs a job several times over a transport; the best times of offline and online.
fn timed(
    transport: Transport,
    job: &Job,
    values: &[i64],
    reference: impl Fn(&[i64]) -> Vec<i64> + Sync,
) -> (f64, f64) {
    let mut prg = Prg::new(&[1; 16]);
    let (server, client) = share(values, job.stop().ring_bits(), &mut prg);
    let masks: Vec<u64> = (0..job.outputs())
        .map(|_| modulus::random(&mut prg))
        .collect();
    let want: Vec<i64> = values
        .chunks(job.stop().row())
        .flat_map(reference)
        .collect();
    let (times, ()) = run(
        transport,
        |p| {
            let mut times = Vec::new();
            let mut stored = Vec::with_capacity(job.stored_len() as usize);
            for _ in 0..RUNS {
                stored.clear();
                let start = Instant::now();
                let c =
                    ClientMaterial::prepare(p.channel, &mut p.receiver, job, &client, &mut stored)?;
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
                let s = ServerMaterial::prepare(p.channel, &mut p.sender, job, &mut p.prg)?;
                p.channel.send(SYNC, &[1])?;
                p.channel.recv(SYNC, 1)?;
                let results = s.finish(p.channel, &server)?;
                p.channel.send(SYNC, &[1])?;
                p.channel.flush()?;
                for ((a, r), y) in results.iter().zip(&masks).zip(&want) {
                    assert_eq!(modulus::to_signed(modulus::add(*a, *r)), *y);
                }
            }
            Ok(())
        },
    )
    .unwrap();
    let (offline, online) = best(&times);
    let (n, name) = (job.elements(), job.stop().name());
    println!(
        "{n} x {name} over {transport:?}: offline {offline:.3} s, online {online:.3} s; {:?}",
        job.cost()
    );
    (offline, online)
}

#[test]
#[ignore = "a measurement: 290 MB of garbled circuits, several times over, in release"]
fn gelu_of_one_layer() {
    let job = Job::new(Arc::new(typical_gelu()), ELEMENTS as u64).unwrap();
    let reference = Gelu::new(Activation::GeluErf, 16, 8, 10);
    let mut prg = Prg::new(&[3; 16]);
    let values: Vec<i64> = (0..ELEMENTS)
        .map(|_| i64::from(prg.next_u32() as i16))
        .collect();
    for transport in [Transport::Tcp, Transport::Tls] {
        let (_, online) = timed(transport, &job, &values, |x| vec![reference.apply(x[0])]);
        assert!(online <= 0.35, "online takes {online} s");
    }
}

#[test]
#[ignore = "a measurement, in release"]
fn softmax_of_one_layer() {
    // 12 heads, 30 rows of 30.
    let softmax = typical_softmax();
    let stop = Stop::new(&Function::Softmax(softmax.clone()), 30).unwrap();
    let job = Job::new(Arc::new(stop), 12 * 30).unwrap();
    let mut prg = Prg::new(&[4; 16]);
    let values: Vec<i64> = (0..job.elements())
        .map(|_| i64::from(prg.next_u32() as i16) >> 5)
        .collect();
    timed(Transport::Tcp, &job, &values, |row| {
        let mut out = vec![0; row.len()];
        softmax.apply(row, &mut out, &mut SoftmaxScratch::default());
        out
    });
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

//! One layer's worth of stops over loopback, timed.
//!
//! `cargo run --release -p primer-stops --example layer`
//!
//! 92,160 elements (a BERT-base layer at 30 tokens), one core for each party, TCP on loopback,
//! nothing else running, best of five: GELU by the server's circuits, 16-bit ring, 94 gates: 0.245
//! s offline (TLS 0.339) and 0.113 s online (0.117), 23.6 MB up and 295.6 MB down, then 0.47 and
//! 23.6 MB. Requantisation: 0.006 and 0.003 s, 0.47 MB up and 1.47 MB down, then 0.47 and 0.01 MB.
//! Softmax, 360 rows of 30: 0.061 and 0.019 s, 2.6 MB up and 77.8 MB down, then 0.06 and 2.6 MB.
//!
//! Look-ups: TLS on loopback, one thread a party, on a two-core AMD EPYC (Zen 3) with a load of 7
//! to 12 beside, so ratios say more than seconds; ranges of three runs, each the best of five. A
//! table of 256, `k = 4`: 0.30 – 0.38 s and 18.4 MB offline, 0.043 – 0.059 s and 1.5 MB online, 4.4
//! MB kept by the client. GELU by gates with IKNP in the same runs: 1.21 – 1.55 s and 319.2 MB,
//! 0.50 – 0.66 s and 24.1 MB, 319.2 MB.

#[path = "../tests/stops/parties.rs"]
#[allow(dead_code)]
mod parties;

use parties::{run_over, share, stop_client, stop_server, timely};
use primer_garble::measure::{typical_gelu, typical_softmax};
use primer_garble::stop::StopCircuit;
use primer_net::Medium;
use primer_ot::Variant;
use primer_plan::function::{Activation, Function, Gelu, SoftmaxScratch};
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_stops::{Garbled, Lookups, Requantise, Stop, TwoPartyStop, measure};
use primer_wire::kind::trial::FIRST as SYNC;
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

/// Runs a stop several times over a transport; returns the best offline and online times.
fn timed(
    transport: Medium,
    stop: &dyn TwoPartyStop,
    ring_bits: u32,
    values: &[i64],
    want: &[i64],
) -> (f64, f64) {
    timed_over(Variant::default(), transport, stop, ring_bits, values, want)
}

/// Runs a stop as [`timed`] does, with transfers of `variant`.
fn timed_over(
    variant: Variant,
    transport: Medium,
    stop: &dyn TwoPartyStop,
    ring_bits: u32,
    values: &[i64],
    want: &[i64],
) -> (f64, f64) {
    let mut prg = Prg::new(&[1; 16]);
    let (server, client) = share(values, ring_bits, &mut prg);
    let masks: Vec<u64> = (0..stop.outputs())
        .map(|_| modulus::random(&mut prg))
        .collect();
    let (times, ()) = run_over(
        variant,
        transport,
        |p| {
            let mut times = Vec::new();
            let mut stored = Vec::with_capacity(stop.stored().client as usize);
            let [early, late] = timely(stop, &client);
            for _ in 0..RUNS {
                stored.clear();
                let start = Instant::now();
                stop_client(stop).prepare(&mut p.client(), early, &masks, &mut stored)?;
                let offline = start.elapsed();
                // The server is ready to go on.
                p.channel.recv(SYNC, 1)?;
                p.channel.send(SYNC, &[1])?;
                let start = Instant::now();
                let pending =
                    stop_client(stop).listen(p.channel, &mut &stored[..], late, &masks)?;
                pending.answer(p.channel)?;
                // The server has its results: the end of the stop for both.
                p.channel.recv(SYNC, 1)?;
                times.push((offline, start.elapsed()));
            }
            Ok(times)
        },
        |p| {
            for _ in 0..RUNS {
                let mut stored = Vec::new();
                stop_server(stop).prepare(&mut p.server(), &mut stored)?;
                p.channel.send(SYNC, &[1])?;
                p.channel.recv(SYNC, 1)?;
                let waiting = stop_server(stop).request(p.channel, &mut &stored[..], &server)?;
                p.channel.flush()?;
                let results = waiting.receive(p.channel)?;
                p.channel.send(SYNC, &[1])?;
                p.channel.flush()?;
                for ((a, r), y) in results.iter().zip(&masks).zip(want) {
                    assert_eq!(modulus::to_signed(modulus::add(*a, *r)), *y);
                }
            }
            Ok(())
        },
    )
    .unwrap();
    let (offline, online) = best(&times);
    println!(
        "{} x {} over {transport:?}: offline {offline:.3} s, online {online:.3} s; {:?}",
        stop.elements(),
        stop.name(),
        stop.bytes()
    );
    (offline, online)
}

fn gelu_of_one_layer() {
    let stop = Garbled::new(Arc::new(typical_gelu()), ELEMENTS as u64).unwrap();
    let reference = Gelu::new(Activation::GeluErf, 16, 8, 10);
    let mut prg = Prg::new(&[3; 16]);
    let values: Vec<i64> = (0..ELEMENTS)
        .map(|_| i64::from(prg.next_u32() as i16))
        .collect();
    let want: Vec<i64> = values.iter().map(|x| reference.apply(*x)).collect();
    for transport in [Medium::Tcp, Medium::Tls] {
        timed(transport, &stop, 16, &values, &want);
    }
}

fn softmax_of_one_layer() {
    // 12 heads, 30 rows of 30.
    let softmax = typical_softmax();
    let function = Function::Softmax(softmax.clone());
    let circuit = StopCircuit::new(&function, 30).unwrap();
    let stop = Garbled::new(Arc::new(circuit), 12 * 30).unwrap();
    let mut prg = Prg::new(&[4; 16]);
    let values: Vec<i64> = (0..12 * 30 * 30)
        .map(|_| i64::from(prg.next_u32() as i16) >> 5)
        .collect();
    let mut want = vec![0; values.len()];
    for (row, out) in values.chunks(30).zip(want.chunks_mut(30)) {
        softmax.apply(row, out, &mut SoftmaxScratch::default());
    }
    timed(Medium::Tcp, &stop, function.ring_bits(), &values, &want);
}

fn requantisation_of_one_layer() {
    let values: Vec<i64> = (0..ELEMENTS as i64).map(|i| i % 16_000 - 8000).collect();
    let stop = Requantise::new(16, ELEMENTS).unwrap();
    timed(Medium::Tcp, &stop, 16, &values, &values);
}

/// Measures the same layer by gates and by look-ups, in turn, over TLS.
fn look_ups_of_one_layer() {
    let variant = Variant::SOFT_4;
    let table = measure::typical_gelu();
    let lookups = Lookups::new(&table, ELEMENTS as u64).unwrap().over(variant);
    let garbled = Garbled::new(Arc::new(typical_gelu()), ELEMENTS as u64).unwrap();
    let reference = Gelu::new(Activation::GeluErf, 16, 8, 10);
    let mut prg = Prg::new(&[3; 16]);
    let fine: Vec<i64> = (0..ELEMENTS)
        .map(|_| i64::from(prg.next_u32() as i16))
        .collect();
    let coarse: Vec<i64> = fine.iter().map(|x| x >> 8).collect();
    let by_gates: Vec<i64> = fine.iter().map(|x| reference.apply(*x)).collect();
    let by_table: Vec<i64> = coarse.iter().map(|x| table.tables[0].at(*x)).collect();
    let gates = timed(Medium::Tls, &garbled, 16, &fine, &by_gates);
    let looked_up = timed_over(variant, Medium::Tls, &lookups, 8, &coarse, &by_table);
    let (old, new) = (garbled.bytes(), lookups.bytes());
    println!(
        "times faster: offline {:.1}, online {:.1}; \
         times fewer bytes: offline {:.1}, online {:.1}; stored by the client: {} and {}",
        gates.0 / looked_up.0,
        gates.1 / looked_up.1,
        old.offline() as f64 / new.offline() as f64,
        old.online() as f64 / new.online() as f64,
        garbled.stored().client,
        lookups.stored().client,
    );
}

fn main() {
    gelu_of_one_layer();
    softmax_of_one_layer();
    requantisation_of_one_layer();
    look_ups_of_one_layer();
}

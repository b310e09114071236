//! Correlated transfers per second over memory, and the pieces of an extension.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use primer_ot::transpose::transpose;
use primer_ot::{BaseOt, CotReceiver, CotSender, Delta, OtError, Setup, Variant, measure};
use primer_ring::prg::Prg;
use primer_wire::run_pair;
use std::hint::black_box;
use std::time::Duration;

const N: usize = 1 << 20;

fn extension(c: &mut Criterion) {
    let mut group = c.benchmark_group("extension");
    group.sample_size(10);
    group.throughput(Throughput::Elements(N as u64));
    // Processor time of both parties, not wall-clock time.
    for variant in Variant::ALL {
        group.bench_function(format!("both parties, {variant}"), |bencher| {
            bencher.iter_custom(|runs| {
                let rate = measure(variant, N, runs as usize)
                    .expect("memory does not fail")
                    .ot_m_per_s;
                Duration::from_secs_f64(runs as f64 * N as f64 / (rate * 1e6))
            });
        });
    }
    group.bench_function("transpose", |bencher| {
        let rows = 1 << 14;
        let columns = vec![0x5a; 16 * rows];
        let mut out = vec![0; rows];
        bencher.iter(|| {
            for _ in 0..N / rows {
                transpose(black_box(&columns), rows / 8, &mut out);
            }
        });
    });
    group.finish();
}

fn setup(c: &mut Criterion) {
    let mut group = c.benchmark_group("setup");
    group.sample_size(10);
    for base in [BaseOt::MlKem, BaseOt::Ristretto] {
        group.bench_function(format!("{base:?}"), |bencher| {
            bencher.iter(|| {
                run_pair(
                    |channel| {
                        let rng = &mut Prg::from_os();
                        CotSender::setup(
                            Setup::new(Variant::default(), base),
                            channel,
                            Delta::random(rng),
                            rng,
                        )
                        .map(drop)
                    },
                    |channel| {
                        CotReceiver::setup(
                            Setup::new(Variant::default(), base),
                            channel,
                            &mut Prg::from_os(),
                        )
                        .map(drop)
                    },
                )
                .map_err(|error: OtError| error.to_string())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, extension, setup);
criterion_main!(benches);

//! Bytes per second through each transport, in pieces of three sizes of one long stream.
//!
//! What is measured is processor time of the busier of the two parties: the throughput of two free
//! cores, also when the machine has other work.
//!
//! AMD Zen 3 under heavy other load, medians of ten runs, GiB/s over memory, TCP and TLS: pieces of
//! 32 B 3.6, 1.8, 0.68; of 16 KiB 6.9, 2.0, 0.50; of 1 MiB 2.1, 4.0, 0.64.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use primer_net::pair::{Medium, connect};
use primer_wire::clock::ThreadClock;
use primer_wire::kind::trial::FIRST as BULK;
use primer_wire::pair::test_options;
use primer_wire::{NetError, run_parties};
use std::hint::black_box;
use std::time::Duration;

const LENGTH: u64 = 256 << 20;

fn stream_once(transport: Medium, piece: usize) -> Duration {
    let ends = connect(transport, &test_options()).expect("loopback");
    let (sent, received) = run_parties(
        ends,
        |channel| {
            let clock = ThreadClock::start();
            let data = vec![1; piece];
            let mut stream = channel.send_stream(BULK, LENGTH)?;
            while stream.left() > 0 {
                stream.put(&data)?;
            }
            channel.flush()?;
            Ok::<_, NetError>(clock.elapsed())
        },
        |channel| {
            let clock = ThreadClock::start();
            let mut data = vec![0; piece];
            let mut stream = channel.recv_stream(BULK, LENGTH)?;
            while stream.left() > 0 {
                stream.get(&mut data)?;
                black_box(&data);
            }
            Ok::<_, NetError>(clock.elapsed())
        },
    );
    sent.expect("sent").max(received.expect("received"))
}

fn throughput(c: &mut Criterion) {
    let mut group = c.benchmark_group("stream");
    group.throughput(Throughput::Bytes(LENGTH));
    group.sample_size(10);
    for transport in Medium::ALL {
        for piece in [32, 16 << 10, 1 << 20] {
            let id = BenchmarkId::new(format!("{transport:?}"), piece);
            group.bench_function(id, |bencher| {
                bencher.iter_custom(|n| (0..n).map(|_| stream_once(transport, piece)).sum());
            });
        }
    }
    group.finish();
}

criterion_group!(benches, throughput);
criterion_main!(benches);

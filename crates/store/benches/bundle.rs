//! What a store costs: bytes per second while a bundle is written and read, and the fixed price of
//! each operation.
//!
//! Two cores of a Zen 3 with ten to sixteen processes beside (means, so they scale with the share
//! of a core): seal 1.08 GiB/s and open 0.94 GiB/s in memory, draft and commit 256 MiB with syncs
//! 0.41 GiB/s, spend and read 256 MiB from the page cache 0.64 GiB/s. Best of 20 samples: open a
//! store of 100 bundles 0.9 ms, list them 0.4 ms, refuse an unknown name 0.2 ms, draft and commit 1
//! kB with all syncs 1.9 ms, spend it 2.6 ms.
#![allow(missing_docs)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use primer_ring::prg::Prg;
use primer_store::seal::{BundleKey, Opener, SALT_BYTES, Sealer};
use primer_store::{BundleId, BundleStore, Meta, Store};
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::time::Duration;

const BYTES: usize = 256 << 20;
const PART: usize = 1 << 20;

fn meta(id: BundleId) -> Meta {
    Meta {
        id,
        peer: [1; 32],
        program: [2; 32],
        tokens: 32,
        created: 0,
        expires: 1000,
        attachment: vec![0; 6000],
    }
}

fn stored(store: &Store, bytes: usize) -> BundleId {
    let id = BundleId::random(&mut Prg::from_os());
    let mut draft = store.draft(meta(id)).unwrap();
    let part = vec![7; PART.min(bytes)];
    for _ in 0..bytes / part.len() {
        draft.write_all(&part).unwrap();
    }
    draft.commit().unwrap();
    id
}

fn read_through(source: &mut impl Read) {
    let mut part = vec![0; PART];
    while source.read(&mut part).unwrap() > 0 {
        black_box(&part);
    }
}

fn bulk(c: &mut Criterion) {
    let key = || BundleKey::derive(&[1; 32], BundleId::from_bytes([2; 16]), &[3; SALT_BYTES]);
    let mut group = c.benchmark_group("bulk");
    group
        .throughput(Throughput::Bytes(BYTES as u64))
        .sample_size(10);
    let part = vec![7; PART];
    group.bench_function("seal", |b| {
        b.iter(|| {
            let mut sealer = Sealer::new(io::sink(), key());
            for _ in 0..BYTES / PART {
                sealer.write_all(&part).unwrap();
            }
            sealer.finish().unwrap()
        });
    });
    let mut sealer = Sealer::new(Vec::new(), key());
    for _ in 0..BYTES / PART {
        sealer.write_all(&part).unwrap();
    }
    let sealed = sealer.finish().unwrap().0;
    group.bench_function("open", |b| {
        b.iter(|| read_through(&mut Opener::new(&sealed[..], key(), sealed.len() as u64).unwrap()));
    });
    drop(sealed);
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    group.bench_function("draft and commit, with sync", |b| {
        b.iter_batched(
            || {
                store
                    .list()
                    .unwrap()
                    .iter()
                    .for_each(|e| store.delete(e.id, 0).unwrap())
            },
            |()| stored(&store, BYTES),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("spend and read, file in the page cache", |b| {
        b.iter_batched(
            || stored(&store, BYTES),
            |id| read_through(&mut store.spend(id, &[1; 32], 1).unwrap()),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn operations(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    for _ in 0..100 {
        stored(&store, 1000);
    }
    let mut group = c.benchmark_group("operation, 100 bundles stored");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(5));
    group.bench_function("open the store", |b| {
        b.iter(|| Store::open(dir.path()).unwrap())
    });
    group.bench_function("list", |b| b.iter(|| store.list().unwrap()));
    let unknown = BundleId::from_bytes([0; 16]);
    group.bench_function("refuse", |b| {
        b.iter(|| store.spend(unknown, &[1; 32], 1).is_err())
    });
    group.bench_function("draft and commit 1 kB", |b| b.iter(|| stored(&store, 1000)));
    group.bench_function("spend 1 kB", |b| {
        b.iter_batched(
            || stored(&store, 1000),
            |id| store.spend(id, &[1; 32], 1).unwrap(),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, bulk, operations);
criterion_main!(benches);

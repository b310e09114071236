//! Garbling and evaluating real stops, on every engine of this processor. Rates are AND gates per
//! second.
//!
//! One core of two (AMD EPYC, Zen 3, shared with other work), means under load, of GELU in one run:
//! VAES 58 M AND/s garbling and 62 evaluating, AES-NI 17 and 33, portable 8 and 9. The best of many
//! runs of the whole GELU stop, projections, packing and copying included, is 83 and 110 with VAES
//! (`cargo test --release -p primer-garble --test budgets -- --ignored --nocapture`).

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use primer_garble::circuit::{Circuit, LANES, Party};
use primer_garble::evaluator::Evaluator;
use primer_garble::garbler::Garbler;
use primer_garble::measure::{typical_gelu, typical_softmax};
use primer_garble::stop::StopCircuit;
use primer_garble::{Backend, Label, Offset};
use primer_plan::function::Function;
use primer_ring::prg::Prg;
use std::time::Duration;

/// A batch of eight instances, garbled.
struct Fixture {
    offset: Offset,
    nonce: Label,
    labels: [Vec<Label>; 2],
    masks: Vec<u64>,
    material: Vec<u8>,
}

impl Fixture {
    fn new(circuit: &Circuit) -> Self {
        let mut prg = Prg::new(&[1; 16]);
        let offset = Offset::random(&mut prg);
        let mut label = || Label::from_le_bytes(prg.seed());
        let nonce = label();
        let labels = [Party::Garbler, Party::Evaluator].map(|party| {
            (0..LANES * circuit.inputs(party))
                .map(|_| label())
                .collect()
        });
        let mut fixture = Self {
            offset,
            nonce,
            labels,
            masks: vec![0; LANES * circuit.cost().outputs],
            material: Vec::new(),
        };
        fixture.garble(circuit, Backend::detect());
        fixture
    }

    fn garble(&mut self, circuit: &Circuit, backend: Backend) {
        self.material.clear();
        let mut garbler = Garbler::with_backend(circuit, &self.offset, self.nonce, backend);
        let [server, client] = &self.labels;
        garbler
            .batch(server, client, &mut self.masks, &mut self.material)
            .expect("memory takes everything");
    }
}

fn stop(criterion: &mut Criterion, name: &str, circuit: &Circuit) {
    let mut fixture = Fixture::new(circuit);
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(
        (LANES * circuit.cost().and_gates) as u64,
    ));
    for backend in Backend::available() {
        group.bench_function(format!("garble/{}", backend.name()), |b| {
            b.iter(|| fixture.garble(circuit, backend));
        });
        group.bench_function(format!("evaluate/{}", backend.name()), |b| {
            let mut outputs = vec![0; fixture.masks.len()];
            b.iter_batched(
                || Evaluator::with_backend(circuit, fixture.nonce, backend),
                |mut evaluator| {
                    let [server, client] = &fixture.labels;
                    let source = &mut &fixture.material[..];
                    evaluator.batch(server, client, source, &mut outputs, &mut [])
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn all(criterion: &mut Criterion) {
    stop(criterion, "gelu", typical_gelu().circuit());
    let softmax =
        StopCircuit::new(&Function::Softmax(typical_softmax()), 30).expect("30 is a row length");
    stop(criterion, "softmax30", softmax.circuit());
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = all
}
criterion_main!(benches);

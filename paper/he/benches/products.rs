//! Criterion benches of the homomorphic layer, one thread: `cargo bench -p primer-paper-he`.
//!
//! The same operations beside published libraries are in `yardsticks/he`.

use criterion::{Criterion, criterion_group, criterion_main};
use primer_paper_he::error::HeError;
use primer_paper_he::measure::Primitives;
use primer_paper_he::params;
use primer_paper_he::product::{ClientKeys, KeyNeeds, Method, Product, Relation, ServerKeys};
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use rand_core::Rng;
use std::collections::VecDeque;
use std::time::Duration;

fn scheme(c: &mut Criterion) {
    let mut rng = Prg::new(&[1; 16]);
    let scheme = Primitives::new(&params::products(), [1], &mut rng);
    let slots: Vec<u64> = (0..8192).map(|_| modulus::random(&mut rng)).collect();
    let ct = scheme.expand(&scheme.encrypt(&slots, &mut rng));
    let mut rotations = scheme.rotations();
    c.bench_function("encrypt", |b| b.iter(|| scheme.encrypt(&slots, &mut rng)));
    c.bench_function("rotate", |b| b.iter(|| rotations.rotate(&ct, 1).unwrap()));
    c.bench_function("rotation key", |b| {
        b.iter(|| scheme.make_key(1, &mut rng));
    });
}

fn products(c: &mut Criterion) {
    const ROWS: usize = 30;
    let mut rng = Prg::new(&[2; 16]);
    let sizes = [(384, 384), (768, 768), (768, 3072), (3072, 768)];
    let products = sizes.map(|(inputs, outputs)| {
        let relation = Relation::Dense {
            rows: ROWS,
            inputs,
            outputs,
        };
        Product::new(&Method::tokens_first(), relation).unwrap()
    });
    let needs: KeyNeeds = products.iter().collect();
    let client = ClientKeys::generate(&needs, &mut rng);
    let mut messages = VecDeque::new();
    let published = client.publish(&mut rng, |_, bytes| {
        messages.push_back(bytes.to_vec());
        Ok::<_, HeError>(())
    });
    published.unwrap();
    let receive = |_, _| Ok::<_, HeError>(messages.pop_front().unwrap());
    let mut server = ServerKeys::receive(&needs, receive).unwrap();
    let mut group = c.benchmark_group("product of 30 tokens");
    group.sample_size(10);
    for ((inputs, outputs), product) in sizes.into_iter().zip(&products) {
        let w = Matrix::from_fn(inputs, outputs, |_, _| (rng.next_u32() as i16) >> 1);
        let x = Matrix::from_fn(ROWS, inputs, |_, _| modulus::random(&mut rng));
        let mask = Matrix::from_fn(ROWS, outputs, |_, _| modulus::random(&mut rng));
        let mut room = usize::MAX;
        let weights = product.prepare_within(&w, &mut room).unwrap();
        let query = &product.queries()[0];
        let query = query
            .read(&query.encrypt(&client, &x, &mut rng).unwrap())
            .unwrap();
        group.bench_function(format!("{inputs}x{outputs}"), |b| {
            b.iter(|| {
                let queries = [&query];
                product
                    .answer(&mut server, &queries, &weights, &mask, &mut rng)
                    .unwrap()
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = scheme, products
}
criterion_main!(benches);

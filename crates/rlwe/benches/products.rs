//! Criterion benches of products of two secrets, one thread: `cargo bench -p primer-rlwe`.

use criterion::{Criterion, criterion_group, criterion_main};
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_rlwe::error::HeError;
use primer_rlwe::product::{ClientKeys, KeyNeeds, Operand, Product, Relation, ServerKeys, Weights};
use std::collections::VecDeque;
use std::time::Duration;

/// Measures scores, mixing and row sums of a BERT-base layer with 30 tokens.
fn products(c: &mut Criterion) {
    let heads = |operand, rows, inputs, outputs| Relation::Heads {
        heads: 12,
        operand,
        rows,
        inputs,
        outputs,
    };
    let sums = Relation::RowSums {
        rows: 30,
        cols: 768,
    };
    let relations = [
        ("scores", heads(Operand::Columns, 30, 64, 30), (30, 768)),
        ("mixing", heads(Operand::Rows, 30, 30, 64), (360, 30)),
        ("row sums", sums, (30, 768)),
    ];
    let products = relations.map(|(name, r, size)| (name, Product::new(r).unwrap(), size));
    let needs: KeyNeeds = products.iter().map(|(_, product, _)| product).collect();
    let mut rng = Prg::new(&[2; 16]);
    let client = ClientKeys::generate(&needs, &mut rng);
    let mut messages = VecDeque::new();
    let published = client.publish(&mut rng, |bytes| {
        messages.push_back(bytes.to_vec());
        Ok::<_, HeError>(())
    });
    published.unwrap();
    let receive = |_| Ok::<_, HeError>(messages.pop_front().unwrap());
    let mut server = ServerKeys::receive(&needs, receive).unwrap();
    let mut group = c.benchmark_group("product of 30 tokens");
    group.sample_size(10);
    for (name, product, (rows, cols)) in &products {
        let mut random = |rows, cols| Matrix::from_fn(rows, cols, |_, _| modulus::random(&mut rng));
        let x = random(*rows, *cols);
        let (blocks, u) = match *product.relation() {
            Relation::Heads {
                heads,
                inputs,
                outputs,
                ..
            } => {
                let blocks = (0..heads).map(|_| random(inputs, outputs));
                (blocks.collect(), Matrix::zeros(0, 0))
            }
            _ => (Vec::new(), random(*rows, *cols)),
        };
        let weights = match product.relation() {
            Relation::Heads { .. } => product.prepare(Weights::Heads(&blocks)),
            _ => product.prepare(Weights::RowSums(&u)),
        };
        let weights = weights.unwrap();
        let query = &product.queries()[0];
        group.bench_function(format!("{name}, query"), |b| {
            b.iter(|| query.encrypt(&client, &x, &mut rng).unwrap());
        });
        let asked = query.encrypt(&client, &x, &mut rng).unwrap();
        let received = query.read(&asked).unwrap();
        group.bench_function(format!("{name}, answer"), |b| {
            b.iter(|| product.split(&mut server, &[&received], &weights, &mut rng));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    targets = products
}
criterion_main!(benches);

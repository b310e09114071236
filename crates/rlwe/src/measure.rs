//! The figure behind the cost of products, measured on this machine with one thread, through the
//! face that the protocol uses.
//!
//! Milliseconds of one thread of a shared two-core machine, release build, best of 75 (single runs
//! were up to half as long again), to encrypt, to read, encode and answer, and to open: 12 heads of
//! 30×64×30 2.5, 5.7, 2.8 (1.54 MB up, 1.06 MB down); elements of 30×3072 6.4, 11.1, 3.5 (3.69 and
//! 1.28 MB). All heads of a BERT-base layer with 30 tokens take the server 0.047 s, a seventh of
//! the paper's packing (`primer bench --kernels`).

use crate::error::HeError;
use crate::product::{ClientKeys, Operand, Product, Relation, ServerKeys, Weights};
use primer_ring::matrix::Matrix;
use primer_ring::measure::best_by;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use std::collections::VecDeque;

/// Returns seconds of the server for the products of heads of a BERT-base layer with 30 tokens, two
/// for scores and two for mixing, by a clock that counts seconds: the weights, which belong to one
/// inference, are prepared, and queries that were read are answered.
///
/// # Errors
/// None that the fixed shapes could cause; passed on rather than hidden.
pub fn heads(repetitions: usize, clock: impl Fn() -> f64, rng: &mut Prg) -> Result<f64, HeError> {
    let shape = |operand, rows, inputs, outputs| Relation::Heads {
        heads: 12,
        operand,
        rows,
        inputs,
        outputs,
    };
    let scores = shape(Operand::Columns, 30, 64, 30);
    let turned = shape(Operand::Turned, 64, 30, 30);
    let mixed = shape(Operand::Rows, 30, 30, 64);
    let mut seconds = 0.0;
    for (relation, inputs, outputs, size) in [
        (scores, 64, 30, (30, 768)),
        (scores, 64, 30, (30, 768)),
        (turned, 30, 30, (30, 768)),
        (mixed, 30, 64, (360, 30)),
    ] {
        let product = Product::new(relation)?;
        let (client, mut server) = pair(&product, rng)?;
        let mut random = |rows, cols| Matrix::from_fn(rows, cols, |_, _| modulus::random(rng));
        let blocks: Vec<_> = (0..12).map(|_| random(inputs, outputs)).collect();
        let x = random(size.0, size.1);
        let query = &product.queries()[0];
        let query = query.read(&query.encrypt(&client, &x, rng)?)?;
        let mut last = Ok(());
        seconds += best_by(&clock, repetitions, || {
            let weights = product.prepare(Weights::Heads(&blocks));
            let told =
                weights.and_then(|weights| product.split(&mut server, &[&query], &weights, rng));
            last = told.map(drop);
        });
        last?;
    }
    Ok(seconds)
}

/// Makes both parties' keys for a product.
fn pair(product: &Product, rng: &mut Prg) -> Result<(ClientKeys, ServerKeys), HeError> {
    let needs = product.keys();
    let client = ClientKeys::generate(&needs, rng);
    let mut messages = VecDeque::new();
    client.publish(rng, |bytes| {
        messages.push_back(bytes.to_vec());
        Ok::<_, HeError>(())
    })?;
    let receive = |_| Ok::<_, HeError>(messages.pop_front().unwrap_or_default());
    let server = ServerKeys::receive(&needs, receive)?;
    Ok((client, server))
}

//! What a product costs, in bytes and seconds, as a formula.
//!
//! With `a` ciphertexts in the query and `b` in the answer, of `s` coefficients each,
//!
//! ```text
//! up       a·(16 + 30·L·N/8)
//! down     b·(N·b1/8 + s·b0/8)      of split answers  b·N·w
//! seconds  a·QUERY + b·ANSWER + 2·N·L·(products of ciphertexts)·TERM
//! ```
//!
//! The last term is the same however a dense product is cut; `a·b` is fixed by `km ≤ F`. So blocks
//! are chosen by the first two, a second counting as much as the bytes that a link moves in it.
//! The bytes are exact. The constants of seconds are estimates; a test holds what chooses blocks,
//! their ratios, against the processor's clock.

use super::noise::Margins;
use super::shape::Blocks;
use crate::params::Params;
use crate::wire;

/// Bytes that cost as much as a second: those of a link of 200 megabits.
const LINK: f64 = 25e6;
/// Seconds of both parties for one limb of a query's ciphertext: encryption, expansion, packing.
const QUERY: f64 = 1.2e-4;
/// Seconds of both parties for one limb of an answer's ciphertext: zero, rounding, decryption.
const ANSWER: f64 = 1.0e-4;
/// Seconds of one multiply-add modulo one prime.
const TERM: f64 = 0.9e-10;

/// Bytes up and down, and seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    pub(crate) up: f64,
    pub(crate) down: f64,
    pub(crate) seconds: f64,
}

/// The cost of ciphertexts alone, which is all that packings of one product differ in; each of an
/// answer's has `bytes`.
pub(crate) fn ciphertexts(params: &Params, queries: usize, answers: usize, bytes: usize) -> Cost {
    let limbs = params.data_primes() as f64;
    Cost {
        up: (queries * wire::ciphertext_len(params)) as f64,
        down: (answers * bytes) as f64,
        seconds: limbs * (queries as f64 * QUERY + answers as f64 * ANSWER),
    }
}

/// The cost of a dense product.
pub(crate) fn dense(params: &Params, blocks: &Blocks) -> Cost {
    let (queries, answers) = (blocks.queries(), blocks.answers());
    let runs = blocks.lanes.runs();
    let sent = blocks.lanes.of_run(0).len() * blocks.width;
    let margins = Margins::of(params);
    let answer = margins.map_or(0, |margins| margins.answer_len(params.degree(), sent));
    let mut cost = ciphertexts(params, runs * queries, runs * answers, answer);
    let terms = 2 * params.degree() * params.data_primes() * runs * queries * answers;
    cost.seconds += terms as f64 * TERM;
    cost
}

/// What is to be as small as possible, in seconds.
pub(crate) fn price(cost: Cost) -> f64 {
    cost.seconds + (cost.up + cost.down) / LINK
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::{ClientKeys, KeyNeeds, Method, Product, Relation, ServerKeys, WeightSize};
    use primer_ring::matrix::Matrix;
    use primer_ring::modulus;
    use primer_ring::prg::Prg;
    use rustix::time::{ClockId, clock_gettime};

    const SHAPES: [(usize, usize, usize); 5] = [
        (30, 768, 768),
        (30, 1536, 256),
        (30, 64, 3072),
        (100, 200, 768),
        (240, 384, 384),
    ];

    fn dense((rows, inputs, outputs): (usize, usize, usize)) -> (Product, Cost) {
        let relation = Relation::Dense {
            rows,
            inputs,
            outputs,
        };
        let method = Method::subring(WeightSize::Columns(1));
        let product = Product::new(&method, relation).unwrap();
        let blocks = Blocks::choose(method.params(), rows, inputs, outputs);
        (product, super::dense(method.params(), &blocks))
    }

    #[test]
    fn bytes_are_those_of_messages() {
        for shape in SHAPES {
            let (product, cost) = dense(shape);
            assert_eq!(product.queries()[0].wire_len() as f64, cost.up + 39.0);
            // Only the last answer may have fewer outputs than the others.
            let down = product.answer_len() as f64 - 39.0;
            assert!(
                down <= cost.down && down > 0.97 * cost.down,
                "{shape:?}: {down} {cost:?}"
            );
        }
    }

    /// Processor time of this thread, in seconds.
    fn processor() -> f64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    }

    /// Processor time of both parties for one product, the best of some.
    fn measured(product: &Product, (rows, inputs, outputs): (usize, usize, usize)) -> f64 {
        let mut rng = Prg::new(&[3; 16]);
        let needs: KeyNeeds = product.keys();
        let client = ClientKeys::generate(&needs, &mut rng);
        let mut keys = Vec::new();
        let send = |_, bytes: &[u8]| {
            keys.push(bytes.to_vec());
            Ok::<_, crate::error::HeError>(())
        };
        client.publish(&mut rng, send).unwrap();
        let receive = |_, _| Ok::<_, crate::error::HeError>(keys.remove(0));
        let mut server = ServerKeys::receive(&needs, receive).unwrap();
        let x = Matrix::from_fn(rows, inputs, |_, _| modulus::random(&mut rng));
        let mask = Matrix::zeros(rows, outputs);
        let mut room = usize::MAX;
        let weights = product.prepare_within(&Matrix::zeros(inputs, outputs), &mut room);
        let weights = weights.unwrap();
        let query = &product.queries()[0];
        let once = |_| {
            let start = processor();
            let asked = query.encrypt(&client, &x, &mut rng).unwrap();
            let read = query.read(&asked).unwrap();
            let told = product.answer(&mut server, &[&read], &weights, &mask, &mut rng);
            product.decrypt(&client, &told.unwrap()).unwrap();
            processor() - start
        };
        (0..9).map(once).fold(f64::INFINITY, f64::min)
    }

    /// One factor, the machine's, leads from the formula to the clock for products of all shapes:
    /// many queries, many answers, long sums.
    #[test]
    #[ignore = "measures processor time, which means something in a release build only"]
    fn seconds_are_in_the_proportion_of_a_clock() {
        let factors = SHAPES.map(|shape| {
            let (product, cost) = dense(shape);
            let seconds = measured(&product, shape);
            let factor = seconds / cost.seconds;
            println!(
                "{shape:?}: {seconds:.4} s, formula {:.4} s, {factor:.2}",
                cost.seconds
            );
            factor
        });
        let mean = (factors.iter().map(|f| f.ln()).sum::<f64>() / factors.len() as f64).exp();
        assert!((0.25..4.0).contains(&mean), "{mean}");
        for (shape, factor) in SHAPES.into_iter().zip(factors) {
            let off = factor / mean;
            assert!((0.6..1.6).contains(&off), "{shape:?} is off by {off:.2}");
        }
    }
}

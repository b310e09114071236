//! Products with other parameters than the ones in use.

use super::{ClientKeys, KeyNeeds, Operand, Product, Relation, ServerKeys, Weights};
use crate::error::HeError;
use crate::params::Params;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;

/// Checks that with four primes a single product of BERT-base would be wrong once in a hundred
/// thousand times.
#[test]
fn four_primes_are_not_enough() {
    let four = Params::new(8192, 4).unwrap();
    let heads = |operand, rows, inputs, outputs| Relation::Heads {
        heads: 12,
        operand,
        rows,
        inputs,
        outputs,
    };
    let (rows, cols) = (30, 768);
    for relation in [
        heads(Operand::Columns, 30, 64, 30),
        heads(Operand::Turned, 64, 30, 30),
        heads(Operand::Rows, 30, 30, 64),
        Relation::ScaledRows {
            rows: 360,
            cols: 30,
        },
        Relation::RowSums { rows, cols },
        Relation::Hadamard { rows, cols },
        Relation::ScaledRows { rows, cols },
    ] {
        let refused = Product::with_params(&four, relation).err();
        let Some(HeError::Odds { odds_bits, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert!((-18.5..-14.0).contains(&odds_bits), "{odds_bits}");
    }
}

#[test]
fn a_session_may_use_several_parameter_sets() {
    let (small, large) = (Params::split(), Params::new(16384, 7).unwrap());
    let (rows, cols) = (20, 30);
    let relation = Relation::ScaledRows { rows, cols };
    let products = [&large, &small].map(|set| Product::with_params(set, relation).unwrap());
    let needs: KeyNeeds = products.iter().chain(&products).collect();
    // In the order in which they were named.
    let fingerprints = [large.fingerprint(), small.fingerprint()];
    assert!(needs.fingerprints().eq(fingerprints));
    let mut rng = Prg::new(&[5; 16]);
    let client = ClientKeys::generate(&needs, &mut rng);
    let mut messages = Vec::new();
    let send = |bytes: &[u8]| {
        messages.push(bytes.to_vec());
        Ok::<_, HeError>(())
    };
    client.publish(&mut rng, send).unwrap();
    let mut messages = messages.into_iter();
    let receive = |_| Ok::<_, HeError>(messages.next().unwrap());
    let mut server = ServerKeys::receive(&needs, receive).unwrap();
    for product in &products {
        let x = Matrix::from_fn(rows, cols, |_, _| modulus::random(&mut rng));
        let values = [x, Matrix::zeros(rows, 1)];
        let one = Matrix::from_fn(rows, cols, |_, _| 1);
        let (u, v) = (&one, &one);
        let encoded = product.prepare(Weights::ScaledRows { u, v }).unwrap();
        let received = product.queries().iter().zip(&values).map(|(query, value)| {
            let bytes = query.encrypt(&client, value, &mut rng).unwrap();
            query.read(&bytes).unwrap()
        });
        let received: Vec<_> = received.collect();
        let received: Vec<_> = received.iter().collect();
        let told = product.split(&mut server, &received, &encoded, &mut rng);
        let (answer, share) = told.unwrap();
        let ours = product.decrypt(&client, &answer).unwrap();
        let [x, _] = &values;
        for t in 0..rows {
            for j in 0..cols {
                let sum = modulus::add(ours.get(t, j), share.get(t, j));
                assert_eq!(sum, x.get(t, j), "{product:?}");
            }
        }
    }
    let [first, second] = &products;
    assert_ne!(first.queries()[0], second.queries()[0]);
    // Keys of one set do not serve the other.
    let keys = ClientKeys::generate(&first.keys(), &mut rng);
    let value = Matrix::zeros(rows, cols);
    let refused = second.queries()[0].encrypt(&keys, &value, &mut rng).err();
    assert!(matches!(refused, Some(HeError::MissingSet { .. })));
}

//! The bytes that travel, and both shares, are those of every release: hashes of them, by fixed
//! seeds. A change that is meant is a change of the protocol.

mod common;

use common::{published, receive, residues, value_sizes, weight_sizes, weights};
use primer_ring::prg::Prg;
use primer_rlwe::product::{ClientKeys, KeyNeeds, Operand, Product, Relation};

/// Halves of hashes: of the public key, then of each relation's queries, answer and shares.
const GOLDEN: [&str; 7] = [
    "54b486300588e1d86d3a43f7ae72cfdd",
    "258714044417f8a7d4445c10e0bfa9f3",
    "1d919158cedcd39a250f9b1f8d830293",
    "a8ddc60312f7d3c946eb4fcd5744031f",
    "f84fcdc796657521b33ff2b6775458d5",
    "59a0ef0dcbd4e1bc080b449ad127a175",
    "ebe58819c3b513dd7a986afe175dc039",
];

#[test]
fn bytes_and_shares_are_those_of_every_release() {
    let (rows, cols) = (30, 50);
    let heads = |operand| Relation::Heads {
        heads: 3,
        operand,
        rows,
        inputs: 9,
        outputs: 7,
    };
    let products = [
        heads(Operand::Columns),
        heads(Operand::Rows),
        heads(Operand::Turned),
        Relation::RowSums { rows, cols },
        Relation::ScaledRows { rows, cols },
        Relation::Hadamard { rows, cols },
    ];
    let products = products.map(|relation| Product::new(relation).unwrap());
    let needs: KeyNeeds = products.iter().collect();
    let (mut ours, mut theirs) = (Prg::new(&[1; 16]), Prg::new(&[2; 16]));
    let client = ClientKeys::generate(&needs, &mut ours);
    let messages = published(&client, &mut ours);
    let mut found = vec![short(&messages)];
    let mut server = receive(&needs, messages).unwrap();
    let mut rng = Prg::new(&[3; 16]);
    for product in &products {
        let relation = product.relation();
        let mut draw = |sizes: Vec<_>| -> Vec<_> {
            let sizes = sizes.into_iter();
            sizes.map(|size| residues(&mut rng, size)).collect()
        };
        let (x, w) = (draw(value_sizes(relation)), draw(weight_sizes(relation)));
        let encoded = product.prepare(weights(relation, &w)).unwrap();
        let asked = product.queries().iter().zip(&x);
        let mut told: Vec<_> = asked
            .map(|(query, x)| query.encrypt(&client, x, &mut ours).unwrap())
            .collect();
        let received = product.queries().iter().zip(&told);
        let received: Vec<_> = received.map(|(q, bytes)| q.read(bytes).unwrap()).collect();
        let received: Vec<_> = received.iter().collect();
        let answered = product.split(&mut server, &received, &encoded, &mut theirs);
        let (answer, share) = answered.unwrap();
        let opened = product.decrypt(&client, &answer).unwrap();
        told.push(answer);
        for share in [share, opened] {
            let numbers = share.data().iter();
            told.push(numbers.flat_map(|x| x.to_le_bytes()).collect());
        }
        found.push(short(&told));
    }
    assert_eq!(found, GOLDEN);
}

/// Returns half of the hash of some messages together.
fn short(messages: &[Vec<u8>]) -> String {
    let mut hash = blake3::Hasher::new();
    for message in messages {
        hash.update(message);
    }
    hash.finalize().to_hex()[..32].to_owned()
}

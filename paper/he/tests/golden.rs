//! The bytes that travel, and what the client opens, are those of every release: hashes of them, by
//! fixed seeds. A change that is meant is a change of the protocol.

mod common;

use common::{published, receive, residues, value_sizes, weight_sizes, weights};
use primer_paper_he::product::{ClientKeys, KeyNeeds, Method, Operand, Product, Relation};
use primer_ring::prg::Prg;

/// Halves of hashes: of the keys, then of each relation's queries, answer, mask and product.
const TOKENS_FIRST: [&str; 9] = [
    "0ef321bb8ea90e8080ca7c24966219b9",
    "cb57d81b3dd158e3610578086ac0d406",
    "63be597f6a1b2eb983d1418fd765424d",
    "99cf466ef7c398ac7d31c1e5c2f78c78",
    "7f52e6a7922d05880745cb137a48eb2f",
    "e9422986d9fd2c79f9d1e18e33b5d6d2",
    "3bdfc7a234e6c56c3c0945da5d3bb469",
    "d76bbbcf06d7fd9004cda846cad0bcac",
    "bba48e9471fedaa115e00ffd90b24687",
];
/// The same, features-first.
const FEATURES_FIRST: [&str; 9] = [
    "8ea9cc40e7f7d1a726a350d66a478fc2",
    "3ad2f49c2bc7792935f22a19dec9d562",
    "1cdec63b49845be963ed89fed93e0e69",
    "757da457220e7a43524b4e05e0aa1f1d",
    "4b00c3cb3b6e70eedf49a6c715717d6c",
    "e4770a6474830b086d20c49b67c4af90",
    "84fe9a4d199b69ca13b12e76a39cbeeb",
    "0eb657023c489d0ad6ab8e051c1dc184",
    "3396b81cba0d64a7c0ef644f1ffb9e2e",
];

#[test]
fn bytes_are_those_of_every_release() {
    assert_eq!(hashes(&Method::tokens_first()), TOKENS_FIRST);
    assert_eq!(hashes(&Method::features_first(40)), FEATURES_FIRST);
}

fn hashes(method: &Method) -> Vec<String> {
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
        Relation::Dense {
            rows,
            inputs: 70,
            outputs: 40,
        },
        Relation::Centred { rows, cols },
    ];
    let products = products.map(|relation| Product::new(method, relation).unwrap());
    let needs: KeyNeeds = products.iter().collect();
    let (mut ours, mut theirs) = (Prg::new(&[1; 16]), Prg::new(&[2; 16]));
    let client = ClientKeys::generate(&needs, &mut ours);
    let messages = published(&client, &mut ours);
    let keys: Vec<_> = messages.iter().map(|(_, bytes)| bytes.clone()).collect();
    let mut found = vec![short(&keys)];
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
        let mask = draw(vec![relation.size()]).remove(0);
        let answer = product.answer(&mut server, &received, &encoded, &mask, &mut theirs);
        let answer = answer.unwrap();
        let opened = product.decrypt(&client, &answer).unwrap();
        told.push(answer);
        for matrix in [mask, opened] {
            let numbers = matrix.data().iter();
            told.push(numbers.flat_map(|x| x.to_le_bytes()).collect());
        }
        found.push(short(&told));
    }
    found
}

/// Returns half of the hash of some messages together.
fn short(messages: &[Vec<u8>]) -> String {
    let mut hash = blake3::Hasher::new();
    for message in messages {
        hash.update(message);
    }
    hash.finalize().to_hex()[..32].to_owned()
}

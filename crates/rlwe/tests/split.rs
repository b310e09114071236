//! Split answers: odds, bytes, threads, and messages that are damaged. That shares add up for every
//! relation is in `product.rs`; what travels, and how often shares are wrong, in the unit tests of
//! `split`.

mod common;

use common::{Session, published, receive, residues, value_sizes, weight_sizes, weights};
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_rlwe::error::HeError;
use primer_rlwe::product::{ClientKeys, KeyNeeds, ODDS, Operand, Product, Relation, check_odds};

fn heads(operand: Operand, heads: usize, (rows, inputs, outputs): Size) -> Relation {
    Relation::Heads {
        heads,
        operand,
        rows,
        inputs,
        outputs,
    }
}

type Size = (usize, usize, usize);

/// Returns the products of a layer of `cols` features and `count` heads.
fn layer(tokens: usize, cols: usize, count: usize) -> Vec<Relation> {
    let width = cols / count;
    let scores = heads(Operand::Columns, count, (tokens, width, tokens));
    let rows = tokens;
    let norm = [
        Relation::RowSums { rows, cols },
        Relation::Hadamard { rows, cols },
        Relation::ScaledRows { rows, cols },
        Relation::Hadamard { rows, cols },
    ];
    let mut all = vec![
        scores,
        scores,
        heads(Operand::Turned, count, (width, tokens, tokens)),
        heads(Operand::Rows, count, (tokens, tokens, width)),
        Relation::ScaledRows {
            rows: count * tokens,
            cols: tokens,
        },
    ];
    all.extend(norm);
    all.extend(norm);
    all
}

fn products(relations: Vec<Relation>) -> Vec<Product> {
    let made = relations.into_iter().map(Product::new);
    made.collect::<Result<_, _>>().unwrap()
}

/// Checks that every model up to BERT-large with 512 tokens has right shares but for 2^-30, with
/// some margin.
#[test]
fn wrong_shares_are_rare_in_every_model() {
    for (layers, cols, count, tokens, most) in [
        (6, 384, 12, 30, -33.0),
        (12, 768, 12, 30, -33.0),
        (12, 768, 12, 128, -32.0),
        (12, 768, 12, 512, -32.0),
        (24, 1024, 16, 30, -32.0),
        (24, 1024, 16, 512, -31.0),
    ] {
        let layer = products(layer(tokens, cols, count));
        let all: Vec<_> = std::iter::repeat_n(layer, layers).flatten().collect();
        check_odds(&all).unwrap();
        let odds: f64 = all.iter().map(Product::odds).sum();
        println!("{layers} x {cols}, {tokens} tokens: 2^{:.1}", odds.log2());
        assert!(odds.log2() < most && odds < ODDS, "{}", odds.log2());
        // Enough of them are too many.
        let often = (ODDS / odds) as usize + 1;
        let refused = check_odds(std::iter::repeat_n(&all, often).flatten());
        assert!(matches!(refused, Err(HeError::Odds { .. })), "{refused:?}");
    }
}

#[test]
fn bytes_are_those_of_the_documentation() {
    let needs: KeyNeeds = products(layer(30, 768, 12)).iter().collect();
    let [set] = needs.sets() else {
        panic!("all products have one set")
    };
    assert_eq!(set.public_len(), 38 + 5 * 30_720);
    let short = products(layer(30, 768, 12));
    let long = products(layer(512, 768, 12));
    for (products, widths) in [(short, &[13][..]), (long, &[13, 14])] {
        for product in products {
            let ciphertexts = product.answer_len() - 39;
            let whole = |width: &u64| ciphertexts.is_multiple_of(width * 8192);
            assert!(widths.iter().any(whole), "{product:?}: {ciphertexts}");
            let queries = product.queries().iter();
            assert!(
                queries
                    .clone()
                    .all(|q| (q.wire_len() - 39).is_multiple_of(16 + 5 * 30_720))
            );
        }
    }
}

#[test]
fn threads_change_nothing() {
    let (rows, cols) = (40, 900);
    for relation in [
        heads(Operand::Columns, 5, (600, 9, 7)),
        Relation::RowSums { rows: 600, cols },
        Relation::ScaledRows { rows, cols },
        Relation::Hadamard { rows, cols },
    ] {
        common::same_by_all_threads(&Product::new(relation).unwrap());
    }
}

/// Checks that what goes to the client depends on the seeds of its queries and on nothing that it
/// encrypted.
#[test]
fn answers_do_not_depend_on_what_was_encrypted() {
    let (rows, cols) = (30, 50);
    for relation in [
        heads(Operand::Columns, 3, (30, 9, 7)),
        Relation::RowSums { rows, cols },
        Relation::ScaledRows { rows, cols },
        Relation::Hadamard { rows, cols },
    ] {
        let product = Product::new(relation).unwrap();
        let mut session = Session::new(&product.keys(), 1);
        let mut rng = Prg::new(&[2; 16]);
        let sizes = weight_sizes(&relation).into_iter();
        let w: Vec<_> = sizes.map(|size| residues(&mut rng, size)).collect();
        let encoded = product.prepare(weights(&relation, &w)).unwrap();
        let asked = product.queries().iter().zip(value_sizes(&relation));
        let asked: Vec<_> = asked
            .map(|(query, size)| {
                let x = residues(&mut rng, size);
                query.encrypt(&session.client, &x, &mut rng).unwrap()
            })
            .collect();
        // As it is; with one residue changed in every ciphertext; with zeros for all of `c0`.
        let told = [0, 1, 2].map(|change| {
            let received = product.queries().iter().zip(&asked).map(|(query, bytes)| {
                let mut bytes = bytes.clone();
                for ciphertext in bytes[39..].chunks_exact_mut(16 + 5 * 30_720) {
                    match change {
                        0 => {}
                        1 => ciphertext[20] ^= 1,
                        _ => ciphertext[16..].fill(0),
                    }
                }
                query.read(&bytes).unwrap()
            });
            let received: Vec<_> = received.collect();
            let received: Vec<_> = received.iter().collect();
            let (server, coins) = (&mut session.server, &mut Prg::new(&[3; 16]));
            product.split(server, &received, &encoded, coins).unwrap()
        });
        let [(first, share), changed @ ..] = told;
        for (answer, other) in changed {
            assert!(answer == first, "{product:?}");
            assert!(other != share, "{product:?}");
        }
    }
}

/// Checks that messages of another form are refused. Any ciphertext of the right form is as good as
/// any other: what is damaged in it, or made with another key, gives shares of something else.
#[test]
fn damage_is_refused_or_gives_other_shares() {
    for relation in [
        heads(Operand::Rows, 3, (30, 9, 7)),
        Relation::RowSums { rows: 30, cols: 50 },
    ] {
        let product = &Product::new(relation).unwrap();
        let needs = product.keys();
        let mut session = Session::new(&needs, 1);
        let mut rng = Prg::new(&[2; 16]);
        let sizes = value_sizes(&relation).into_iter();
        let x: Vec<_> = sizes.map(|size| residues(&mut rng, size)).collect();
        let sizes = weight_sizes(&relation).into_iter();
        let w: Vec<_> = sizes.map(|size| residues(&mut rng, size)).collect();
        let encoded = product.prepare(weights(&relation, &w)).unwrap();
        let query = &product.queries()[0];
        let asked = query.encrypt(&session.client, &x[0], &mut rng).unwrap();
        let (answer, share) = session.split(product, &x, &encoded).unwrap();
        common::refuses_cut_and_flipped(product, &session.client, (&asked, &answer));
        let mut beyond = asked.clone();
        beyond[60..68].fill(0xff);
        assert!(matches!(query.read(&beyond), Err(HeError::Packed(_))));

        let want = common::sum(&product.decrypt(&session.client, &answer).unwrap(), &share);
        // Hardly an entry is right.
        let differs = |sum: &Matrix<u64>| {
            let same = sum.data().iter().zip(want.data());
            same.filter(|(a, b)| a == b).count() <= want.data().len() / 16
        };
        // A high bit of one coefficient of c1, and all of it.
        let (mut one, mut all) = (answer.clone(), answer.clone());
        one[39 + 12] ^= 0x80;
        all[39..].fill(0xff);
        for damaged in [one, all] {
            let ours = product.decrypt(&session.client, &damaged).unwrap();
            assert!(differs(&common::sum(&ours, &share)), "{relation}");
        }
        // A seed, and a residue of c0, of a query.
        for at in [40, 39 + 16 + 1] {
            let mut damaged = asked.clone();
            damaged[at] ^= 1;
            let received = query.read(&damaged).unwrap();
            let told = product.split(&mut session.server, &[&received], &encoded, &mut rng);
            let (answer, share) = told.unwrap();
            let ours = product.decrypt(&session.client, &answer).unwrap();
            assert!(differs(&common::sum(&ours, &share)), "{relation}");
        }
        // Another client's secret, and another client's keys at the server.
        let stranger = ClientKeys::generate(&needs, &mut rng);
        let ours = product.decrypt(&stranger, &answer).unwrap();
        assert!(differs(&common::sum(&ours, &share)), "{relation}");
        let received = query.read(&asked).unwrap();
        let mut other = receive(&needs, published(&stranger, &mut rng)).unwrap();
        let told = product.split(&mut other, &[&received], &encoded, &mut rng);
        let (answer, share) = told.unwrap();
        let ours = product.decrypt(&session.client, &answer).unwrap();
        assert!(differs(&common::sum(&ours, &share)), "{relation}");
        assert!(want.data().iter().all(|&x| x < modulus::P));
    }
}

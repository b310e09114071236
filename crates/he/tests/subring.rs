//! Products without rotations: the residual's term, sizes of weights, bytes, the life of a client,
//! and messages that are damaged.

mod common;

use common::{Session, published, receive, residues, schoolbook, value_sizes, weights};
use primer_he::error::HeError;
use primer_he::params::Params;
use primer_he::product::{
    ClientKeys, KeyNeeds, Method, Operand, Product, Relation, WeightSize, Weights, check_lifetime,
    lifetime,
};
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use proptest::prelude::*;
use rand_core::Rng;

fn lean() -> Method {
    Method::subring(WeightSize::Columns(LENGTH))
}

/// The length of a column.
const LENGTH: u64 = 12_000;

fn dense(rows: usize, inputs: usize, outputs: usize) -> Product {
    let relation = Relation::Dense {
        rows,
        inputs,
        outputs,
    };
    Product::new(&lean(), relation).unwrap()
}

/// Weights small enough for such columns.
fn small(rng: &mut Prg, rows: usize, cols: usize) -> Matrix<i16> {
    let most = (LENGTH as usize / (rows + 1).isqrt()).min(1 << 14) as i32;
    Matrix::from_fn(rows, cols, |_, _| {
        (rng.next_u32() as i32).rem_euclid(2 * most - 1) as i16 - most as i16 + 1
    })
}

fn lifted(w: &Matrix<i16>) -> Matrix<u64> {
    w.map(|&v| modulus::from_signed(v.into()))
}

fn expected(
    relation: &Relation,
    x: &[Matrix<u64>],
    w: &[Matrix<u64>],
    mask: &Matrix<u64>,
) -> Matrix<u64> {
    Matrix::from_fn(mask.rows(), mask.cols(), |t, j| {
        modulus::add(schoolbook(relation, x, w, t, j), mask.get(t, j))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn small_weights_of_any_shape(
        rows in 1usize..600,
        inputs in 1usize..200,
        outputs in 1usize..80,
        seed in any::<[u8; 16]>(),
    ) {
        let mut rng = Prg::new(&seed);
        let product = dense(rows, inputs, outputs);
        let mut session = Session::new(&product.keys(), seed[0]);
        let w = small(&mut rng, inputs, outputs);
        let x = [residues(&mut rng, (rows, inputs))];
        let mask = residues(&mut rng, (rows, outputs));
        let want = expected(product.relation(), &x, &[lifted(&w)], &mask);
        for mut room in [usize::MAX, 0] {
            let encoded = product.prepare_within(&w, &mut room).unwrap();
            prop_assert!(session.run(&product, &x, &encoded, &mask) == want);
        }
    }

    #[test]
    fn residuals_share_a_query(
        rows in 1usize..70,
        inputs in 60usize..300,
        cols in 1usize..60,
        seed in any::<[u8; 16]>(),
    ) {
        let mut rng = Prg::new(&seed);
        // The query of a product that widens a lot is cut into narrow blocks.
        let wide = dense(rows, cols, 7 * cols);
        let product = dense(rows, inputs, cols).with_residual(Some(&wide.queries()[0]));
        let product = match product {
            Ok(product) => product,
            // Its blocks may still be wider than the stride of the answer.
            Err(HeError::Range { .. }) => return Ok(()),
            Err(error) => panic!("{error}"),
        };
        prop_assert_eq!(&product.queries()[1], &wide.queries()[0]);
        let relation = product.relation();
        let mut session = Session::new(&product.keys(), seed[0]);
        let w = small(&mut rng, 2 * inputs, cols);
        let w = Matrix::from_fn(inputs, cols, |i, o| w.get(i, o));
        let gain: Vec<u64> = (0..cols).map(|j| modulus::from_signed(500 - j as i64)).collect();
        let mean: Vec<u64> = (0..cols).map(|j| modulus::from_signed(j as i64 - 9)).collect();
        let x: Vec<_> = value_sizes(relation).into_iter().map(|s| residues(&mut rng, s)).collect();
        let mask = residues(&mut rng, relation.size());
        let row = |v: &[u64]| Matrix::from_vec(1, cols, v.to_vec());
        let all = [lifted(&w), row(&gain), row(&mean)];
        let want = expected(relation, &x, &all, &mask);
        let encoded = product.prepare(weights(relation, &all)).unwrap();
        prop_assert!(session.run(&product, &x, &encoded, &mask) == want);
        for mut room in [usize::MAX, 0] {
            let encoded = product.prepare_residual_within(&w, (&gain, &mean), &mut room).unwrap();
            prop_assert!(session.run(&product, &x, &encoded, &mask) == want);
        }
    }
}

#[test]
fn weights_beyond_their_size_are_refused() {
    let product = dense(30, 64, 3);
    let columns = |length: i16| Matrix::from_fn(64, 3, |_, _| length / 8);
    assert!(product.prepare_within(&columns(12_000), &mut 0).is_ok());
    let refused = product.prepare_within(&columns(12_008), &mut 0).err();
    assert!(matches!(refused, Some(HeError::WeightSize { .. })));
    let residues = Matrix::from_fn(64, 3, |_, _| 1u64 << 39);
    let refused = product.prepare(Weights::Dense(&residues)).err();
    assert!(matches!(refused, Some(HeError::WeightSize { .. })));
    // A residual's term counts as well.
    let product = dense(30, 64, 20);
    let product = product
        .with_residual(Some(&dense(30, 20, 300).queries()[0]))
        .unwrap();
    let (none, gain) = (vec![0; 20], vec![1 << 15; 20]);
    let refused = product.prepare_residual_within(&Matrix::zeros(64, 20), (&gain, &none), &mut 0);
    assert!(matches!(refused.err(), Some(HeError::WeightSize { .. })));
}

#[test]
fn residuals_that_do_not_fit_are_refused() {
    let shared = dense(30, 20, 300).queries()[0].clone();
    let unsupported = |product: &Product| {
        let refused = product.with_residual(Some(&shared)).err();
        assert!(
            matches!(refused, Some(HeError::Unsupported { .. })),
            "{refused:?}"
        );
    };
    unsupported(&dense(30, 64, 21));
    unsupported(&dense(31, 64, 20));
    unsupported(&common::dense(30, 64, 20));
    let other = Method::subring(WeightSize::Columns(1 << 13));
    let relation = *dense(30, 64, 20).relation();
    unsupported(&Product::new(&other, relation).unwrap());
    // A block wider than the stride of the answer.
    let narrow = dense(30, 3, 20);
    let refused = narrow
        .with_residual(Some(&dense(30, 20, 1).queries()[0]))
        .err();
    assert!(
        matches!(refused, Some(HeError::Range { .. })),
        "{refused:?}"
    );
}

/// A BERT-base inference: products with weights of columns up to 12,000, and those of two secrets.
fn bert_base(rows: usize, bundles: usize) -> Vec<Product> {
    let rows_of_all = rows * bundles;
    let mut products = vec![dense(rows_of_all, 30524, 768)];
    let secrets = Method::split();
    for _ in 0..12 {
        let qkv = dense(rows_of_all, 768, 2304);
        let up = dense(rows_of_all, 768, 3072);
        products.push(
            dense(rows_of_all, 768, 768)
                .with_residual(Some(&qkv.queries()[0]))
                .unwrap(),
        );
        products.push(
            dense(rows_of_all, 3072, 768)
                .with_residual(Some(&up.queries()[0]))
                .unwrap(),
        );
        products.extend([qkv, up]);
        let heads = |operand, rows, inputs, outputs| Relation::Heads {
            heads: 12,
            operand,
            rows,
            inputs,
            outputs,
        };
        for _ in 0..bundles {
            let relations = [
                heads(Operand::Columns, rows, 64, rows),
                heads(Operand::Columns, rows, 64, rows),
                heads(Operand::Turned, 64, rows, rows),
                heads(Operand::Rows, rows, rows, 64),
            ];
            let relations = relations.into_iter();
            products.extend(relations.map(|r| Product::new(&secrets, r).unwrap()));
        }
        let (rows, cols) = (rows_of_all, 768);
        for relation in [
            Relation::RowSums { rows, cols },
            Relation::ScaledRows { rows, cols },
        ] {
            let product = Product::new(&secrets, relation).unwrap();
            products.extend([product.clone(), product]);
        }
    }
    products
}

/// Bytes of an inference. Queries that are shared are counted once: a residual's second with the
/// product that reads the same value, the matrix of scaled rows with that of row sums.
fn bytes(products: &[Product]) -> u64 {
    let of = |product: &Product| {
        let queries = match product.relation() {
            Relation::Residual { .. } => &product.queries()[..1],
            Relation::ScaledRows { .. } => &product.queries()[1..],
            _ => product.queries(),
        };
        product.answer_len() + queries.iter().map(|q| q.wire_len()).sum::<u64>()
    };
    products.iter().map(of).sum()
}

#[test]
fn a_life_of_bert_base_is_within_its_distance() {
    let products = bert_base(30, 1);
    check_lifetime(&products, 1).unwrap();
    let thrice = products.iter().chain(&products).chain(&products);
    assert!(matches!(
        check_lifetime(thrice, 1),
        Err(HeError::Distance { .. })
    ));
    // The paper's packings hide less, and so serve for fewer.
    let embedding = common::dense(30, 30_522, 768);
    let once = lifetime([&embedding], 1);
    assert!((100.0..1000.0).contains(&once), "{once}");
    assert!(lifetime([&common::dense(30, 768, 768)], 1) > 1e4);
    // A vocabulary of a quarter of a million.
    assert!(lifetime([&common::dense(30, 250_002, 768)], 1) < 10.0);
}

#[test]
fn bytes_are_those_of_the_documentation() {
    let (query, whole) = (16 + 4 * 30_720, 8192 * 52 / 8);
    let product = dense(30, 768, 768);
    let Some(queries) = product.queries()[0].wire_len().checked_sub(39) else {
        panic!("a query has a header")
    };
    assert_eq!(queries % query, 0);
    let queries = queries / query;
    let stride = 768u64.div_ceil(queries);
    let answers = 768u64.div_ceil(768u64.div_ceil(768u64.div_ceil(256 / stride)));
    let useful = (product.answer_len() - 39) - answers * whole;
    // 46 bits for each result, and less than a byte of padding for each ciphertext.
    let results = 30 * 768 * 46 / 8;
    assert!(
        (results..results + answers).contains(&useful),
        "{useful} {results}"
    );
    let products = bert_base(30, 1);
    let needs: KeyNeeds = products.iter().collect();
    let keys: u64 = needs.sets().iter().map(|set| set.public_len()).sum();
    // Four encryptions of zero with four primes, one with five.
    assert_eq!(keys, 2 * 38 + (4 * 4 + 5) * 30_720);
    assert!(needs.sets().iter().all(|set| set.rotations_len().is_none()));
    // Alone, and for each of eight together.
    let (alone, eights) = (bytes(&products), bytes(&bert_base(30, 8)) / 8);
    println!("{alone} {eights}");
    assert!(alone < 860_000_000 && eights < 450_000_000);
}

#[test]
fn what_cannot_be_hidden_is_not_specified() {
    let four = Params::without_rotations(8192, 4).unwrap();
    let large = Method::subring(WeightSize::Columns(1 << 24)).with_params(four);
    let refused = Product::new(&large, *dense(30, 768, 768).relation()).err();
    assert!(matches!(refused, Some(HeError::NoiseBudget { .. })));
    let three = Params::without_rotations(8192, 3).unwrap();
    let refused = Product::new(&lean().with_params(three), *dense(1, 1, 1).relation()).err();
    assert!(matches!(refused, Some(HeError::Primes { .. })));
    // 128-bit security is not an option either.
    let beyond = Params::without_rotations(4096, 4).err();
    assert!(matches!(beyond, Some(HeError::Insecure { .. })));
}

#[test]
fn threads_change_nothing() {
    let method = Method::subring(WeightSize::Residues);
    let dense = Relation::Dense {
        rows: 600,
        inputs: 9,
        outputs: 90,
    };
    let (rows, cols) = (40, 900);
    for relation in [dense, Relation::Centred { rows, cols }] {
        let product = Product::new(&method, relation).unwrap();
        common::same_by_all_threads(&product);
    }
}

#[test]
fn damaged_and_foreign_messages_are_refused() {
    let method = Method::subring(WeightSize::Residues);
    let product = &Product::new(&method, *dense(200, 40, 33).relation()).unwrap();
    let needs = product.keys();
    let mut session = Session::new(&needs, 1);
    let mut rng = Prg::new(&[2; 16]);
    let sizes = value_sizes(product.relation()).into_iter();
    let x: Vec<_> = sizes.map(|size| residues(&mut rng, size)).collect();
    let sizes = common::weight_sizes(product.relation()).into_iter();
    let w: Vec<_> = sizes.map(|size| residues(&mut rng, size)).collect();
    let encoded = product.prepare(weights(product.relation(), &w)).unwrap();
    let mask = residues(&mut rng, product.relation().size());
    let query = &product.queries()[0];
    let asked = query.encrypt(&session.client, &x[0], &mut rng).unwrap();
    let answer = session.answer(product, &x, &encoded, &mask).unwrap();
    common::refuses_cut_and_flipped(product, &session.client, (&asked, &answer));
    let mut beyond = asked.clone();
    beyond[60..68].fill(0xff);
    assert!(matches!(query.read(&beyond), Err(HeError::Packed(_))));
    // Well formed and not what was sent: noise, at the latest in the answer.
    let exhausted = |result: Result<Matrix<u64>, HeError>| {
        assert!(
            matches!(result, Err(HeError::NoiseExhausted { .. })),
            "{product:?}"
        );
    };
    // A seed, and a residue of c0.
    for at in [40, 39 + 16 + 1] {
        let mut damaged = asked.clone();
        damaged[at] ^= 1;
        let received = query.read(&damaged).unwrap();
        let told = product.answer(&mut session.server, &[&received], &encoded, &mask, &mut rng);
        exhausted(product.decrypt(&session.client, &told.unwrap()));
    }
    // One coefficient of c1, which meets the whole secret, by half a unit of the plaintext: bit 10
    // of 52.
    let mut damaged = answer.clone();
    let last = damaged.len() - 6;
    damaged[last] ^= 0x40;
    exhausted(product.decrypt(&session.client, &damaged));
    // Another client's secret, and another client's keys at the server.
    let stranger = ClientKeys::generate(&needs, &mut rng);
    exhausted(product.decrypt(&stranger, &answer));
    let received = query.read(&asked).unwrap();
    let mut other = receive(&needs, published(&stranger, &mut rng)).unwrap();
    let told = product.answer(&mut other, &[&received], &encoded, &mask, &mut rng);
    exhausted(product.decrypt(&session.client, &told.unwrap()));
}

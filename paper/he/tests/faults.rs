//! Products with other parties' keys, the wrong sizes, and bytes that are damaged: errors that say
//! so, never a panic.

mod common;

use common::{Session, dense, published, receive, residues};
use primer_paper_he::error::HeError;
use primer_paper_he::params;
use primer_paper_he::product::{ClientKeys, Method, Operand, Product, Relation, Weights};
use primer_ring::matrix::Matrix;
use primer_ring::prg::Prg;
use primer_rlwe::error::HeError as Common;

#[test]
fn damaged_and_foreign_messages_are_refused() {
    let product = dense(200, 40, 33);
    let needs = product.keys();
    let mut session = Session::new(&needs, 1);
    let mut rng = Prg::new(&[2; 16]);
    let x = residues(&mut rng, (200, 40));
    let w = residues(&mut rng, (40, 33));
    let mask = residues(&mut rng, (200, 33));
    let encoded = product.prepare(Weights::Dense(&w)).unwrap();
    let query = &product.queries()[0];
    let asked = query.encrypt(&session.client, &x, &mut rng).unwrap();
    let answer = session.answer(&product, &[x], &encoded, &mask).unwrap();
    for len in [0, 1, 21, 22, 38, asked.len() - 1] {
        assert!(query.read(&asked[..len]).is_err(), "{len} bytes of a query");
    }
    for len in [0, 1, 21, 22, 38, answer.len() - 1] {
        let read = product.decrypt(&session.client, &answer[..len]);
        assert!(read.is_err(), "{len} bytes of an answer");
    }
    // Header and layout, and a residue that is none.
    for i in 0..39 {
        let flip = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            bytes[i] ^= 1;
            bytes
        };
        assert!(query.read(&flip(&asked)).is_err(), "byte {i}");
        let read = product.decrypt(&session.client, &flip(&answer));
        assert!(read.is_err(), "byte {i}");
    }
    let mut beyond = asked.clone();
    beyond[60..68].fill(0xff);
    assert!(matches!(
        query.read(&beyond),
        Err(HeError::Common(Common::Packed(_)))
    ));
    // Well formed and not what was sent: noise, at the latest in the answer.
    let exhausted = |result: Result<Matrix<u64>, HeError>| {
        assert!(matches!(result, Err(HeError::NoiseExhausted { .. })));
    };
    let mut damaged = asked.clone();
    damaged[42] ^= 1;
    let received = query.read(&damaged).unwrap();
    let told = product.answer(&mut session.server, &[&received], &encoded, &mask, &mut rng);
    exhausted(product.decrypt(&session.client, &told.unwrap()));
    let mut damaged = answer.clone();
    let second_half = 39 + 2 * 30_720;
    damaged[second_half + 15] ^= 1;
    exhausted(product.decrypt(&session.client, &damaged));
    // Another client's secret, and another client's keys at the server.
    let stranger = ClientKeys::generate(&needs, &mut rng);
    exhausted(product.decrypt(&stranger, &answer));
    let received = query.read(&asked).unwrap();
    let mut other = receive(&needs, published(&stranger, &mut rng)).unwrap();
    let told = product.answer(&mut other, &[&received], &encoded, &mask, &mut rng);
    exhausted(product.decrypt(&session.client, &told.unwrap()));
}

#[test]
fn misfits_are_errors() {
    let product = dense(200, 40, 33);
    let mut session = Session::new(&product.keys(), 6);
    let mut rng = Prg::new(&[7; 16]);
    let (w, other) = (residues(&mut rng, (40, 33)), residues(&mut rng, (40, 32)));
    let mismatch = |error: Option<HeError>| {
        assert!(
            matches!(error, Some(HeError::Common(Common::Mismatch { .. }))),
            "{error:?}"
        );
    };
    let foreign = |error: Option<HeError>| {
        assert!(
            matches!(error, Some(HeError::Common(Common::OtherProduct { .. }))),
            "{error:?}"
        );
    };
    mismatch(product.prepare(Weights::Dense(&other)).err());
    foreign(product.prepare(Weights::RowSums(&w)).err());
    let small = Matrix::zeros(40, 32);
    mismatch(product.prepare_within(&small, &mut 0).err());
    let sums = Relation::RowSums { rows: 40, cols: 33 };
    let sums = Product::new(&Method::tokens_first(), sums).unwrap();
    foreign(sums.prepare_within(&Matrix::zeros(40, 33), &mut 0).err());

    let query = &product.queries()[0];
    for size in [(199, 40), (200, 41)] {
        let value = residues(&mut rng, size);
        mismatch(query.encrypt(&session.client, &value, &mut rng).err());
    }
    let encoded = product.prepare(Weights::Dense(&w)).unwrap();
    let x = [residues(&mut rng, (200, 40))];
    let mask = residues(&mut rng, (200, 33));
    let wide = residues(&mut rng, (200, 34));
    mismatch(session.answer(&product, &x, &encoded, &wide).err());
    mismatch(session.answer(&product, &[], &encoded, &mask).err());
    let wider = dense(200, 40, 34);
    foreign(session.answer(&wider, &x, &encoded, &wide).err());
    // A query of another shape, though of the same length.
    let heads = Relation::Heads {
        heads: 2,
        operand: Operand::Columns,
        rows: 200,
        inputs: 20,
        outputs: 10,
    };
    let heads = Product::new(&Method::tokens_first(), heads).unwrap();
    assert_eq!(heads.queries()[0].wire_len(), query.wire_len());
    let bytes = query.encrypt(&session.client, &x[0], &mut rng).unwrap();
    let received = query.read(&bytes).unwrap();
    let blocks = [residues(&mut rng, (20, 10)), residues(&mut rng, (20, 10))];
    let encoded = heads.prepare(Weights::Heads(&blocks)).unwrap();
    let mask = residues(&mut rng, (200, 20));
    let told = heads.answer(&mut session.server, &[&received], &encoded, &mask, &mut rng);
    foreign(told.err());
}

#[test]
fn what_cannot_be_computed_is_not_specified() {
    let method = Method::tokens_first();
    let refused = |method: &Method, relation| Product::new(method, relation).unwrap_err();
    let (rows, cols) = (200, 40);
    let dense = |rows, inputs, outputs| Relation::Dense {
        rows,
        inputs,
        outputs,
    };
    let heads = |heads, inputs, outputs| Relation::Heads {
        heads,
        operand: Operand::Rows,
        rows,
        inputs,
        outputs,
    };
    for relation in [
        dense(0, 1, 1),
        dense(1, 0, 1),
        dense(1, 1, 0),
        dense(usize::MAX, 1, 1),
        dense(1, usize::MAX, 1),
        heads(0, 1, 1),
        heads(usize::MAX, 1, 1),
        heads(2, usize::MAX, 1),
        heads(2, 1, 0),
        Relation::Centred { rows, cols: 0 },
        Relation::RowSums { rows: 0, cols },
        Relation::ScaledRows {
            rows,
            cols: usize::MAX,
        },
    ] {
        assert!(matches!(
            refused(&method, relation),
            HeError::Common(Common::Range { .. })
        ));
    }
    let nothing = Method::features_first(0);
    assert!(matches!(
        refused(&nothing, dense(1, 1, 1)),
        HeError::Common(Common::Range { .. })
    ));
    // Too small a modulus for flooding: known before anything is encrypted.
    let rotating = [
        dense(200, 40, 40),
        heads(2, 20, 10),
        Relation::Centred { rows, cols },
    ];
    let slotwise = [
        Relation::RowSums { rows, cols },
        Relation::ScaledRows { rows, cols },
    ];
    for (primes, relations) in [(5, &rotating[..]), (4, &slotwise)] {
        let small = params::rotating(8192, primes).unwrap();
        let small = method.clone().with_params(small);
        for relation in relations {
            assert!(matches!(
                refused(&small, *relation),
                HeError::NoiseBudget { .. }
            ));
        }
    }
}

#[test]
fn bytes_are_those_of_the_documentation() {
    let (limb, kinds) = (30_720, Method::tokens_first());
    let product = |relation| Product::new(&kinds, relation).unwrap();
    let up = |ciphertexts: u64| 39 + ciphertexts * (16 + 6 * limb);
    let down = |ciphertexts: u64| 39 + ciphertexts * 4 * limb;
    let base = dense(30, 768, 768);
    assert_eq!(base.queries()[0].wire_len(), up(3));
    assert_eq!((up(3), down(3)), (553_047, 368_679));
    assert_eq!(base.answer_len(), down(3));
    let needs = base.keys();
    assert_eq!(needs.sets()[0].rotations().len(), 46);
    assert_eq!(needs.sets()[0].public_len(), 38 + 4 * limb);
    let keys = 26 + 46 * (20 + 42 * limb);
    assert_eq!(needs.sets()[0].rotations_len(), Some(keys));
    // Scores and mixing of twelve heads; the values turned have 64 rows.
    let heads = |operand, rows, inputs, outputs| Relation::Heads {
        heads: 12,
        operand,
        rows,
        inputs,
        outputs,
    };
    for (relation, asked, answered) in [
        (heads(Operand::Columns, 30, 64, 30), 3, 3),
        (heads(Operand::Rows, 30, 30, 64), 3, 3),
        (heads(Operand::Turned, 64, 30, 30), 3, 3),
        // At 128 tokens a head is wider than a cell.
        (heads(Operand::Columns, 128, 64, 128), 12, 24),
    ] {
        let product = product(relation);
        assert_eq!(product.queries()[0].wire_len(), up(asked), "{product:?}");
        assert_eq!(product.answer_len(), down(answered), "{product:?}");
    }
    let (rows, cols) = (30, 768);
    let scaled = product(Relation::ScaledRows { rows, cols });
    let asked: Vec<_> = scaled.queries().iter().map(|q| q.wire_len()).collect();
    assert_eq!((asked, scaled.answer_len()), (vec![up(3), up(1)], down(3)));
    let sums = product(Relation::RowSums { rows, cols });
    assert_eq!(sums.answer_len(), down(1));
    assert_eq!(dense(1, 768, 768).queries()[0].wire_len(), up(2));
    let features = Product::new(&Method::features_first(768), *base.relation()).unwrap();
    assert_eq!(features.queries()[0].wire_len(), up(30));
    assert_eq!(features.answer_len(), down(30));
}

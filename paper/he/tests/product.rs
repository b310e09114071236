//! The conformance suite of products: every method computes every relation, as the schoolbook does.
//!
//! A new method proves itself by joining [`methods`].

mod common;

use common::{Session, residues, schoolbook, value_sizes, weight_sizes, weights};
use primer_paper_he::product::{KeyNeeds, Method, Operand, Product, Relation};
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use rand_core::Rng;

/// Returns all methods there are, with numbers of rows that are worth a visit: one, some, and more
/// than a method takes at once.
fn methods() -> [(Method, [usize; 3]); 2] {
    [
        (Method::tokens_first(), [1, 50, 257]),
        (Method::features_first(100), [1, 2, 3]),
    ]
}

/// Returns every relation with a number of rows, with random widths.
fn relations(rows: usize, rng: &mut Prg) -> Vec<Relation> {
    let mut draw = |most: u32| 1 + (rng.next_u32() % most) as usize;
    let mut all = vec![
        Relation::Dense {
            rows,
            inputs: 100 + draw(200),
            outputs: draw(300),
        },
        Relation::Dense {
            rows,
            inputs: draw(99),
            outputs: 1,
        },
        Relation::Centred {
            rows,
            cols: draw(300),
        },
        Relation::RowSums {
            rows,
            cols: draw(300),
        },
        Relation::ScaledRows {
            rows,
            cols: draw(300),
        },
        Relation::ScaledRows { rows, cols: 1 },
        Relation::Hadamard {
            rows,
            cols: draw(300),
        },
    ];
    for operand in [Operand::Columns, Operand::Rows, Operand::Turned] {
        for heads in [1, 3] {
            all.push(Relation::Heads {
                heads,
                operand,
                rows,
                inputs: 2 * draw(25) - 1,
                outputs: draw(50),
            });
        }
    }
    all
}

#[test]
fn every_method_computes_every_relation() {
    for (index, (method, rows)) in methods().into_iter().enumerate() {
        let mut rng = Prg::new(&[index as u8; 16]);
        let relations = rows.into_iter().flat_map(|rows| relations(rows, &mut rng));
        let products: Vec<_> = relations
            .map(|relation| Product::new(&method, relation).unwrap())
            .collect();
        // The keys that products name are all that there are.
        let needs: KeyNeeds = products.iter().collect();
        let mut session = Session::new(&needs, 7);
        for product in &products {
            conforms(&mut session, product, &mut rng);
        }
    }
}

fn conforms(session: &mut Session, product: &Product, rng: &mut Prg) {
    let relation = product.relation();
    assert_eq!((product.rows(), product.cols()), relation.size());
    let mut draw = |sizes: Vec<_>| -> Vec<_> {
        let sizes = sizes.into_iter();
        sizes.map(|size| residues(rng, size)).collect()
    };
    let (x, w) = (draw(value_sizes(relation)), draw(weight_sizes(relation)));
    let mask = draw(vec![relation.size()]).remove(0);
    let encoded = product.prepare(weights(relation, &w)).unwrap();
    let got = session.run(product, &x, &encoded, &mask);
    assert_eq!((got.rows(), got.cols()), relation.size());
    for t in 0..got.rows() {
        for j in 0..got.cols() {
            let want = modulus::add(schoolbook(relation, &x, &w, t, j), mask.get(t, j));
            assert_eq!(got.get(t, j), want, "{product:?} at {t}, {j}");
        }
    }
}

#[test]
fn weights_of_a_model_are_kept_or_encoded_anew() {
    for (method, rows) in methods() {
        let relation = Relation::Dense {
            rows: rows[1],
            inputs: 130,
            outputs: 70,
        };
        let product = Product::new(&method, relation).unwrap();
        let mut session = Session::new(&product.keys(), 1);
        let mut rng = Prg::new(&[9; 16]);
        let small = Matrix::from_fn(130, 70, |_, _| (rng.next_u32() as i16) >> 1);
        let x = vec![residues(&mut rng, (rows[1], 130))];
        let w = vec![small.map(|&v| modulus::from_signed(v.into()))];
        let mask = residues(&mut rng, relation.size());
        let mut room = 100 << 20;
        let kept = product.prepare_within(&small, &mut room).unwrap();
        assert_eq!(room + kept.memory(), 100 << 20);
        // Not enough by one byte: nothing is taken.
        let mut little = kept.memory() - 1;
        let streamed = product.prepare_within(&small, &mut little).unwrap();
        assert_eq!(little + 1, kept.memory());
        assert_eq!(streamed.memory(), 2 * 130 * 70);
        for encoded in [kept, streamed] {
            let got = session.run(&product, &x, &encoded, &mask);
            let want = Matrix::from_fn(rows[1], 70, |t, j| {
                modulus::add(schoolbook(&relation, &x, &w, t, j), mask.get(t, j))
            });
            assert!(got == want, "{product:?}");
        }
    }
}

#[test]
fn equal_readings_of_a_value_are_one_query() {
    let heads = |operand, outputs| Relation::Heads {
        heads: 4,
        operand,
        rows: 30,
        inputs: 16,
        outputs,
    };
    let dense = |rows, outputs| Relation::Dense {
        rows,
        inputs: 64,
        outputs,
    };
    let (rows, cols) = (30, 64);
    for (method, _) in methods() {
        let products = |relations: &[Relation]| -> Vec<Product> {
            let all = relations.iter();
            all.map(|r| Product::new(&method, *r).unwrap()).collect()
        };
        let same = products(&[
            dense(30, 64),
            dense(30, 3),
            Relation::Centred { rows, cols },
            Relation::RowSums { rows, cols },
            Relation::ScaledRows { rows, cols },
            Relation::Hadamard { rows, cols },
        ]);
        let whole = same[0].queries()[0].clone();
        assert!(same.iter().all(|product| product.queries()[0] == whole));
        let others = products(&[
            dense(1, 64),
            heads(Operand::Columns, 30),
            heads(Operand::Columns, 16),
            heads(Operand::Rows, 16),
            heads(Operand::Turned, 30),
        ]);
        let mut all: Vec<_> = others.iter().map(|p| p.queries()[0].clone()).collect();
        all.push(whole);
        for scaled in products(&[Relation::ScaledRows { rows, cols }]) {
            assert_eq!(scaled.queries().len(), 2);
            all.push(scaled.queries()[1].clone());
        }
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
    // The same matrix by another method is another query.
    let by = |method| Product::new(&method, dense(30, 64)).unwrap().queries()[0].clone();
    assert_ne!(by(Method::tokens_first()), by(Method::features_first(64)));
    assert_ne!(
        by(Method::features_first(32)),
        by(Method::features_first(64))
    );
}

#[test]
fn one_encryption_serves_several_products() {
    for (method, rows) in methods() {
        let (rows, cols) = (rows[1], 40);
        let dense = Relation::Dense {
            rows,
            inputs: cols,
            outputs: 7,
        };
        let sums = Relation::RowSums { rows, cols };
        let scaled = Relation::ScaledRows { rows, cols };
        let products =
            [dense, sums, scaled].map(|relation| Product::new(&method, relation).unwrap());
        let mut session = Session::new(&products.iter().collect(), 2);
        let mut rng = Prg::new(&[3; 16]);
        let x = vec![
            residues(&mut rng, (rows, cols)),
            residues(&mut rng, (rows, 1)),
        ];
        let received = |product: &Product, which: usize, rng: &mut Prg| {
            let query = &product.queries()[which];
            let bytes = query.encrypt(&session.client, &x[which], rng).unwrap();
            query.read(&bytes).unwrap()
        };
        let shared = received(&products[0], 0, &mut rng);
        for product in &products {
            let relation = product.relation();
            let sizes = weight_sizes(relation).into_iter();
            let w: Vec<_> = sizes.map(|size| residues(&mut rng, size)).collect();
            let encoded = product.prepare(weights(relation, &w)).unwrap();
            let mask = Matrix::zeros(product.rows(), product.cols());
            let factor = (product.queries().len() > 1).then(|| received(product, 1, &mut rng));
            let queries: Vec<_> = std::iter::once(&shared).chain(&factor).collect();
            let server = &mut session.server;
            let told = product.answer(server, &queries, &encoded, &mask, &mut rng);
            let got = product.decrypt(&session.client, &told.unwrap()).unwrap();
            let want = Matrix::from_fn(product.rows(), product.cols(), |t, j| {
                schoolbook(relation, &x, &w, t, j)
            });
            assert!(got == want, "{product:?}");
        }
    }
}

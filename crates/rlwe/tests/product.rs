//! The conformance suite of products: every relation is computed as the schoolbook does.

mod common;

use common::{Session, residues, schoolbook, sum, value_sizes, weight_sizes, weights};
use primer_ring::matrix::Matrix;
use primer_ring::prg::Prg;
use primer_rlwe::product::{KeyNeeds, Operand, Product, Relation};
use rand_core::Rng;

/// Numbers of rows that are worth a visit: one, some, and more than a ciphertext takes.
const ROWS: [usize; 3] = [1, 50, 513];

/// Returns every relation with a number of rows, with random widths.
fn relations(rows: usize, rng: &mut Prg) -> Vec<Relation> {
    let mut draw = |most: u32| 1 + (rng.next_u32() % most) as usize;
    let mut all = vec![
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
fn every_relation_is_computed() {
    let mut rng = Prg::new(&[2; 16]);
    let relations = ROWS.into_iter().flat_map(|rows| relations(rows, &mut rng));
    let products: Vec<_> = relations.map(|r| Product::new(r).unwrap()).collect();
    // The keys that products name are all that there are.
    let needs: KeyNeeds = products.iter().collect();
    let mut session = Session::new(&needs, 7);
    for product in &products {
        conforms(&mut session, product, &mut rng);
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
    let encoded = product.prepare(weights(relation, &w)).unwrap();
    let got = session.run(product, &x, &encoded);
    assert_eq!((got.rows(), got.cols()), relation.size());
    for t in 0..got.rows() {
        for j in 0..got.cols() {
            let want = schoolbook(relation, &x, &w, t, j);
            assert_eq!(got.get(t, j), want, "{product:?} at {t}, {j}");
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
    let (rows, cols) = (30, 64);
    let products = |relations: &[Relation]| -> Vec<Product> {
        let all = relations.iter();
        all.map(|r| Product::new(*r).unwrap()).collect()
    };
    let same = products(&[
        Relation::RowSums { rows, cols },
        Relation::ScaledRows { rows, cols },
        Relation::Hadamard { rows, cols },
    ]);
    let whole = same[0].queries()[0].clone();
    assert!(same.iter().all(|product| product.queries()[0] == whole));
    let others = products(&[
        Relation::RowSums { rows: 1, cols },
        heads(Operand::Columns, 30),
        heads(Operand::Columns, 16),
        heads(Operand::Rows, 16),
        heads(Operand::Turned, 30),
    ]);
    let mut all: Vec<_> = others.iter().map(|p| p.queries()[0].clone()).collect();
    all.push(whole);
    let [_, scaled, _] = &same[..] else {
        panic!("three products")
    };
    assert_eq!(scaled.queries().len(), 2);
    all.push(scaled.queries()[1].clone());
    let distinct: std::collections::HashSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
}

#[test]
fn one_encryption_serves_several_products() {
    let (rows, cols) = (50, 40);
    let relations = [
        Relation::RowSums { rows, cols },
        Relation::ScaledRows { rows, cols },
    ];
    let products = relations.map(|relation| Product::new(relation).unwrap());
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
        let factor = (product.queries().len() > 1).then(|| received(product, 1, &mut rng));
        let queries: Vec<_> = std::iter::once(&shared).chain(&factor).collect();
        let told = product.split(&mut session.server, &queries, &encoded, &mut rng);
        let (answer, share) = told.unwrap();
        let got = sum(&product.decrypt(&session.client, &answer).unwrap(), &share);
        let want = Matrix::from_fn(product.rows(), product.cols(), |t, j| {
            schoolbook(relation, &x, &w, t, j)
        });
        assert!(got == want, "{product:?}");
    }
}

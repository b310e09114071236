//! Products of the wrong sizes, and of other products: errors that say so, never a panic. Damaged
//! bytes and foreign keys are in `split.rs`.

mod common;

use common::{Session, residues};
use primer_ring::prg::Prg;
use primer_rlwe::error::HeError;
use primer_rlwe::product::{Operand, Product, Relation, Weights};

#[test]
fn misfits_are_errors() {
    let (rows, cols) = (200, 40);
    let product = Product::new(Relation::Hadamard { rows, cols }).unwrap();
    let mut session = Session::new(&product.keys(), 6);
    let mut rng = Prg::new(&[7; 16]);
    let u = residues(&mut rng, (rows, cols));
    let mismatch = |error: Option<HeError>| {
        assert!(matches!(error, Some(HeError::Mismatch { .. })), "{error:?}");
    };
    let foreign = |error: Option<HeError>| {
        assert!(
            matches!(error, Some(HeError::OtherProduct { .. })),
            "{error:?}"
        );
    };
    for size in [(199, 40), (200, 39)] {
        let other = residues(&mut rng, size);
        mismatch(product.prepare(Weights::Hadamard(&other)).err());
    }
    foreign(product.prepare(Weights::RowSums(&u)).err());
    let heads = |operand, heads, inputs, outputs| {
        Product::new(Relation::Heads {
            heads,
            operand,
            rows,
            inputs,
            outputs,
        })
    };
    let two = heads(Operand::Columns, 2, 20, 10).unwrap();
    let block = residues(&mut rng, (20, 10));
    let blocks = vec![block.clone(), block.clone(), residues(&mut rng, (20, 11))];
    for wrong in [&blocks[..1], &blocks, &blocks[1..]] {
        mismatch(two.prepare(Weights::Heads(wrong)).err());
    }

    let query = &product.queries()[0];
    for size in [(199, 40), (200, 41)] {
        let value = residues(&mut rng, size);
        mismatch(query.encrypt(&session.client, &value, &mut rng).err());
    }
    let encoded = product.prepare(Weights::Hadamard(&u)).unwrap();
    let x = [residues(&mut rng, (rows, cols))];
    mismatch(session.split(&product, &[], &encoded).err());
    let sums = Product::new(Relation::RowSums { rows, cols }).unwrap();
    foreign(session.split(&sums, &x, &encoded).err());
    // Queries of another shape, one of them of the same length.
    let asked = query.encrypt(&session.client, &x[0], &mut rng).unwrap();
    let received = query.read(&asked).unwrap();
    let encoded = two.prepare(Weights::Heads(&blocks[..2])).unwrap();
    let told = two.split(&mut session.server, &[&received], &encoded, &mut rng);
    foreign(told.err());
    let [columns, stacked] = [Operand::Columns, Operand::Rows]
        .map(|operand| heads(operand, 2, 20, 10).unwrap().queries()[0].clone());
    assert_eq!(columns.wire_len(), stacked.wire_len());
    let value = residues(&mut rng, (2 * rows, 20));
    let asked = stacked.encrypt(&session.client, &value, &mut rng).unwrap();
    let received = stacked.read(&asked).unwrap();
    let told = two.split(&mut session.server, &[&received], &encoded, &mut rng);
    foreign(told.err());
}

#[test]
fn what_cannot_be_computed_is_not_specified() {
    let (rows, cols) = (200, 40);
    let heads = |rows, heads, inputs, outputs| Relation::Heads {
        heads,
        operand: Operand::Rows,
        rows,
        inputs,
        outputs,
    };
    for relation in [
        heads(0, 1, 1, 1),
        heads(usize::MAX, 1, 1, 1),
        heads(rows, 0, 1, 1),
        heads(rows, usize::MAX, 1, 1),
        heads(rows, 2, usize::MAX, 1),
        heads(rows, 2, 0, 1),
        heads(rows, 2, 1, 0),
        Relation::RowSums { rows: 0, cols },
        Relation::RowSums { rows, cols: 0 },
        Relation::Hadamard { rows, cols: 0 },
        Relation::ScaledRows {
            rows,
            cols: usize::MAX,
        },
    ] {
        let refused = Product::new(relation).unwrap_err();
        assert!(matches!(refused, HeError::Range { .. }), "{relation:?}");
    }
    // So large that shares would be wrong too often.
    let many = Relation::Hadamard {
        rows: 1 << 16,
        cols: 1 << 24,
    };
    let refused = Product::new(many).unwrap_err();
    assert!(matches!(refused, HeError::Odds { .. }), "{refused:?}");
}

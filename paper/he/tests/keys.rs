//! Keys of products: each names its own, they are enough, and they come as announced.

mod common;

use common::{Session, dense, published, receive, residues, value_sizes, weight_sizes, weights};
use primer_paper_he::error::HeError;
use primer_paper_he::params;
use primer_paper_he::product::{
    ClientKeys, KeyNeeds, Method, Product, Relation, ServerKeys, Weights,
};
use primer_ring::matrix::Matrix;
use primer_ring::prg::Prg;
use primer_rlwe::error::HeError as Common;

#[test]
fn keys_are_read_as_announced_or_not_at_all() {
    let needs = dense(200, 40, 33).keys();
    let mut rng = Prg::new(&[3; 16]);
    let client = ClientKeys::generate(&needs, &mut rng);
    let messages = published(&client, &mut rng);
    assert!(receive(&needs, messages.clone()).is_ok());
    for (which, at) in [(0, 0), (0, 4), (0, 5), (0, 21), (1, 0), (1, 5), (1, 22)] {
        let mut damaged = messages.clone();
        damaged[which].1[at] ^= 1;
        assert!(receive(&needs, damaged).is_err(), "{which}, byte {at}");
    }
    for which in [0, 1] {
        for len in [0, 21, 30, messages[which].1.len() - 1] {
            let mut cut = messages.clone();
            cut[which].1.truncate(len);
            assert!(receive(&needs, cut).is_err(), "{which}, {len} bytes");
        }
    }
    // Keys of other rotations: as many as are needed, and not those.
    let mut other = messages.clone();
    let one = (other[1].1.len() - 26) / needs.sets()[0].rotations().len();
    let at = other[1].1.len() - one;
    let steps = &mut other[1].1[at..][..4];
    let highest = needs.sets()[0].rotations().last().unwrap();
    assert_eq!(steps, highest.to_le_bytes());
    steps.copy_from_slice(&(highest + 1).to_le_bytes());
    let error = receive(&needs, other).err();
    assert_eq!(error, Some(HeError::MissingKey { steps: highest }));
    // What the caller says goes through.
    let error = ServerKeys::receive(&needs, |_, len| {
        assert_eq!(len, needs.sets()[0].public_len());
        Err(HeError::NoiseExhausted { index: 3 })
    });
    assert_eq!(error.err(), Some(HeError::NoiseExhausted { index: 3 }));
}

#[test]
fn products_name_their_keys() {
    let method = Method::tokens_first();
    let (rows, cols) = (200, 40);
    let product = |relation| Product::new(&method, relation).unwrap();
    // Cells of 32 slots: eight baby steps, giant steps from -4 to 3.
    let all: Vec<i32> = vec![-32, -24, -16, -8, 1, 2, 3, 4, 5, 6, 7, 8, 16, 24];
    let rotations = |needs: &KeyNeeds| needs.sets()[0].rotations().collect::<Vec<_>>();
    assert_eq!(rotations(&dense(200, 40, 7).keys()), all);
    let sums = product(Relation::RowSums { rows, cols });
    assert_eq!(rotations(&sums.keys()), [1, 2, 4, 8, 16]);
    let scaled = product(Relation::ScaledRows { rows, cols });
    assert_eq!(rotations(&scaled.keys()), []);
    assert_eq!(scaled.keys().sets()[0].rotations_len(), None);
    let mut both = sums.keys();
    both.add(&dense(200, 40, 7));
    assert_eq!(rotations(&both), all);

    // Keys of another product: the one that is missing is named.
    let mut session = Session::new(&sums.keys(), 4);
    let mut rng = Prg::new(&[4; 16]);
    let mut answer = |product: &Product| {
        let sizes = |sizes: Vec<_>, rng: &mut Prg| -> Vec<_> {
            sizes.into_iter().map(|size| residues(rng, size)).collect()
        };
        let relation = product.relation();
        let x = sizes(value_sizes(relation), &mut rng);
        let w = sizes(weight_sizes(relation), &mut rng);
        let encoded = product.prepare(weights(relation, &w)).unwrap();
        let mask = residues(&mut rng, relation.size());
        session.answer(product, &x, &encoded, &mask)
    };
    assert!(answer(&sums).is_ok() && answer(&scaled).is_ok());
    let error = answer(&dense(200, 40, 7)).err();
    assert_eq!(error, Some(HeError::MissingKey { steps: 3 }));
    let other = method
        .clone()
        .with_params(params::rotating(16384, 7).unwrap());
    let other = Product::new(&other, Relation::ScaledRows { rows, cols }).unwrap();
    assert!(matches!(
        answer(&other),
        Err(HeError::Common(Common::MissingSet { .. }))
    ));
}

#[test]
fn a_session_may_use_several_parameter_sets() {
    let (small, large) = (params::products(), params::rotating(16384, 7).unwrap());
    let (rows, cols) = (20, 30);
    let relation = Relation::ScaledRows { rows, cols };
    let by = |params| Product::new(&Method::tokens_first().with_params(params), relation).unwrap();
    let products = [by(large.clone()), by(small.clone())];
    let needs: KeyNeeds = products.iter().chain(&products).collect();
    // In the order in which they were named.
    let fingerprints = [large.fingerprint(), small.fingerprint()];
    assert!(needs.fingerprints().eq(fingerprints));
    let mut session = Session::new(&needs, 5);
    for product in &products {
        let mut rng = Prg::new(&[6; 16]);
        let x = [residues(&mut rng, (rows, cols)), Matrix::zeros(rows, 1)];
        let one = Matrix::from_fn(rows, cols, |_, _| 1);
        let (u, v) = (&one, &one);
        let encoded = product.prepare(Weights::ScaledRows { u, v }).unwrap();
        let got = session.run(product, &x, &encoded, &Matrix::zeros(rows, cols));
        assert!(got == x[0], "{product:?}");
    }
    let [first, second] = &products;
    assert_ne!(first.queries()[0], second.queries()[0]);
}

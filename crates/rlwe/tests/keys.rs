//! Keys of products: they are enough, and they come as announced.

mod common;

use common::{Session, published, receive, residues};
use primer_ring::prg::Prg;
use primer_rlwe::error::HeError;
use primer_rlwe::product::{ClientKeys, KeyNeeds, Product, Relation, ServerKeys, Weights};

#[test]
fn keys_are_read_as_announced_or_not_at_all() {
    let (rows, cols) = (200, 40);
    let needs = Product::new(Relation::RowSums { rows, cols })
        .unwrap()
        .keys();
    let mut rng = Prg::new(&[3; 16]);
    let client = ClientKeys::generate(&needs, &mut rng);
    let messages = published(&client, &mut rng);
    let [public] = &messages[..] else {
        panic!("a public key, and nothing else")
    };
    assert!(receive(&needs, messages.clone()).is_ok());
    for at in [0, 4, 5, 21] {
        let mut damaged = public.clone();
        damaged[at] ^= 1;
        assert!(receive(&needs, vec![damaged]).is_err(), "byte {at}");
    }
    for len in [0, 21, 30, public.len() - 1] {
        let cut = public[..len].to_vec();
        assert!(receive(&needs, vec![cut]).is_err(), "{len} bytes");
    }
    // What the caller says goes through.
    let error = ServerKeys::receive(&needs, |len| {
        assert_eq!(len, needs.sets()[0].public_len());
        Err(HeError::VanishingKey)
    });
    assert_eq!(error.err(), Some(HeError::VanishingKey));
}

#[test]
fn all_products_share_their_keys() {
    let (rows, cols) = (30, 50);
    let relations = [
        Relation::RowSums { rows, cols },
        Relation::Hadamard { rows, cols },
    ];
    let [sums, elements] = relations.map(|relation| Product::new(relation).unwrap());
    let mut both = sums.keys();
    both.add(&elements);
    assert_eq!(both, sums.keys());
    assert!(both.fingerprints().eq(elements.keys().fingerprints()));
    let mut session = Session::new(&sums.keys(), 4);
    let mut rng = Prg::new(&[4; 16]);
    let [x, u] = [(); 2].map(|()| residues(&mut rng, (rows, cols)));
    let encoded = elements.prepare(Weights::Hadamard(&u)).unwrap();
    assert!(
        session
            .split(&elements, std::slice::from_ref(&x), &encoded)
            .is_ok()
    );
    // Without keys: the set that is missing is named, by both parties.
    let missing = |error: Option<HeError>| {
        assert!(
            matches!(error, Some(HeError::MissingSet { .. })),
            "{error:?}"
        );
    };
    let query = &elements.queries()[0];
    let asked = query.encrypt(&session.client, &x, &mut rng).unwrap();
    let received = query.read(&asked).unwrap();
    let mut nothing = Session::new(&KeyNeeds::default(), 5);
    missing(query.encrypt(&nothing.client, &x, &mut rng).err());
    let told = elements.split(&mut nothing.server, &[&received], &encoded, &mut rng);
    missing(told.err());
    missing(elements.decrypt(&nothing.client, &[]).err());
}

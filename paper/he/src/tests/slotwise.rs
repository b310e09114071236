//! Products slot by slot, sums of rows and centred products against the schoolbook.

use super::{pair, residues};
use crate::centred::PreparedCentred;
use crate::packing::chunks::Chunks;
use crate::packing::layout::Layout;
use crate::packing::matrix::EncryptedMatrix;
use crate::params;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;

#[test]
fn slotwise_products_and_row_sums() {
    let params = params::products();
    for layout in [
        Layout::tokens_first(&params, 50).unwrap(),
        Layout::features_first(&params, 2, 300).unwrap(),
        Layout::tokens_first(&params, 257).unwrap(),
        Layout::tokens_first(&params, 512).unwrap(),
    ] {
        let tokens = layout.tokens();
        let cols = if tokens > 256 { 50 } else { 300 };
        let mut p = pair(&layout, 6);
        let (x, u, v, mask) = (
            residues(&mut p.rng, tokens, cols),
            residues(&mut p.rng, tokens, cols),
            residues(&mut p.rng, tokens, cols),
            residues(&mut p.rng, tokens, cols),
        );
        let scalars = residues(&mut p.rng, 1, tokens);
        let chunks = Chunks::even(&layout, cols);
        let sent = EncryptedMatrix::encrypt(&p.secret, &layout, &chunks, &x, &mut p.rng).unwrap();
        let repeated =
            EncryptedMatrix::encrypt_repeated(&p.secret, &layout, scalars.data(), &mut p.rng)
                .unwrap();
        let terms = [(&sent, &u), (&repeated, &v)];
        let (answer, counters) = p
            .server
            .slotwise(&layout, &terms, &mask, &mut p.rng)
            .unwrap();
        assert_eq!(counters.rotations, 0);
        let want = Matrix::from_fn(tokens, cols, |t, j| {
            let first = modulus::mul(x.get(t, j), u.get(t, j));
            let second = modulus::mul(scalars.get(0, t), v.get(t, j));
            modulus::add(modulus::add(first, second), mask.get(t, j))
        });
        assert!(answer.decrypt(&p.secret).unwrap() == want);

        let mask = residues(&mut p.rng, tokens, 1);
        let (answer, counters) = p.server.row_sums(&sent, &u, &mask, &mut p.rng).unwrap();
        assert_eq!(
            counters.rotations,
            counters.answers * layout.period().trailing_zeros() as usize
        );
        let want = Matrix::from_fn(tokens, 1, |t, _| {
            (0..cols).fold(mask.get(t, 0), |acc, j| {
                modulus::add(acc, modulus::mul(x.get(t, j), u.get(t, j)))
            })
        });
        assert!(answer.decrypt(&p.secret).unwrap() == want);
    }
}

#[test]
fn diagonal_with_centring() {
    centred_case(50, 300);
    centred_case(257, 50);
    centred_case(512, 40);
}

fn centred_case(tokens: usize, cols: usize) {
    let params = params::products();
    let layout = Layout::tokens_first(&params, tokens).unwrap();
    let mut p = pair(&layout, 7);
    let x = residues(&mut p.rng, tokens, cols);
    let mask = residues(&mut p.rng, tokens, cols);
    let (g, h) = (residues(&mut p.rng, 1, cols), residues(&mut p.rng, 1, cols));
    let prepared = PreparedCentred::new(&params, &layout, g.data(), h.data()).unwrap();
    let chunks = Chunks::even(&layout, cols);
    let sent = EncryptedMatrix::encrypt(&p.secret, &layout, &chunks, &x, &mut p.rng).unwrap();
    let (answer, counters) = p
        .server
        .centred(&sent, &prepared, &mask, &mut p.rng)
        .unwrap();
    assert_eq!(counters.answers, EncryptedMatrix::count(&layout, &chunks));
    let want = Matrix::from_fn(tokens, cols, |t, j| {
        let centre = (0..cols).fold(0, |acc, i| {
            modulus::add(acc, modulus::mul(h.get(0, i), x.get(t, i)))
        });
        let scaled = modulus::mul(g.get(0, j), x.get(t, j));
        modulus::add(modulus::sub(scaled, centre), mask.get(t, j))
    });
    assert!(answer.decrypt(&p.secret).unwrap() == want);
}

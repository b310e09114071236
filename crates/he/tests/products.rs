//! Matrix products against the schoolbook.

use primer_he::evaluate::Evaluator;
use primer_he::keys::{GaloisKeys, PublicKey, SecretKey};
use primer_he::packing::layout::Layout;
use primer_he::packing::matrix::EncryptedMatrix;
use primer_he::packing::weights::PreparedWeights;
use primer_he::params::Params;
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use rand_core::Rng;

fn schoolbook(x: &Matrix<u64>, w: &Matrix<i16>, mask: &Matrix<u64>) -> Matrix<u64> {
    Matrix::from_fn(x.rows(), w.cols(), |t, o| {
        (0..w.rows()).fold(mask.get(t, o), |acc, i| {
            modulus::add(acc, modulus::mul(x.get(t, i), modulus::from_signed(w.get(i, o).into())))
        })
    })
}

#[test]
fn dense() {
    let params = Params::products();
    let mut rng = Prg::new(&[9; 16]);
    let secret = SecretKey::generate(&params, &mut rng);
    for (tokens_first, tokens, d_in, d_out) in
        [(true, 30, 300, 100), (true, 5, 40, 700), (true, 100, 100, 200), (false, 2, 70, 40), (false, 1, 600, 30)]
    {
        let layout = if tokens_first {
            Layout::tokens_first(&params, tokens).unwrap()
        } else {
            Layout::features_first(&params, tokens, d_in.max(d_out)).unwrap()
        };
        let public = PublicKey::generate(&secret, &mut rng);
        let galois = GaloisKeys::generate(&secret, layout.rotations(), &mut rng);
        let mut server = Evaluator::new(public, galois).unwrap();
        let w = Matrix::from_fn(d_in, d_out, |_, _| (rng.next_u32() as i16) >> 1);
        let x = Matrix::from_fn(tokens, d_in, |_, _| modulus::random(&mut rng));
        let r = Matrix::from_fn(tokens, d_out, |_, _| modulus::random(&mut rng));
        let weights = PreparedWeights::dense(&params, &layout, &w).unwrap();
        let input = EncryptedMatrix::encrypt(&secret, &layout, weights.input_chunks(), &x, &mut rng).unwrap();
        let start = std::time::Instant::now();
        let (answer, counters) = server.linear(&input, &weights, Some(&r), &mut rng).unwrap();
        println!("{:?} {:?} 2^{:.1}", start.elapsed(), counters, weights.noise().log2());
        assert!(answer.decrypt(&secret).unwrap() == schoolbook(&x, &w, &r));
    }
}

//! Slot semantics: the same slots, products and rotations as in the `fhe` library.

use fhe::bfv::{
    BfvParametersBuilder, Ciphertext, Encoding, EvaluationKeyBuilder, Plaintext, SecretKey,
};
use fhe_traits::{FheDecoder, FheDecrypter, FheEncoder, FheEncrypter};
use primer_he::packing::layout::Layout;
use primer_he::packing::matrix::EncryptedMatrix;
use primer_he::packing::weights::PreparedWeights;
use primer_he::params::Params;
use primer_he::{ciphertext::SeededCiphertext, evaluate::Evaluator, keys, switch::Rotator};
use primer_ring::matrix::Matrix;
use primer_ring::modulus::{self, P};
use primer_ring::prg::Prg;

const DEGREE: usize = 8192;

struct Oracle {
    params: std::sync::Arc<fhe::bfv::BfvParameters>,
    secret: SecretKey,
}

impl Oracle {
    fn new() -> Self {
        let params = BfvParametersBuilder::new()
            .set_degree(DEGREE)
            .set_plaintext_modulus(P)
            .set_moduli_sizes(&[60, 60, 60])
            .build_arc()
            .unwrap();
        let secret = SecretKey::random(&params, &mut rand::rng());
        Self { params, secret }
    }

    fn plain(&self, slots: &[u64]) -> Plaintext {
        Plaintext::try_encode(slots, Encoding::simd(), &self.params).unwrap()
    }

    fn encrypt(&self, slots: &[u64]) -> Ciphertext {
        self.secret
            .try_encrypt(&self.plain(slots), &mut rand::rng())
            .unwrap()
    }

    fn decrypt(&self, ct: &Ciphertext) -> Vec<u64> {
        Vec::<u64>::try_decode(&self.secret.try_decrypt(ct).unwrap(), Encoding::simd()).unwrap()
    }
}

fn random(rng: &mut Prg, n: usize) -> Vec<u64> {
    (0..n).map(|_| modulus::random(rng)).collect()
}

#[test]
fn rotations_move_the_same_slots() {
    let (oracle, params) = (Oracle::new(), Params::products());
    let mut rng = Prg::new(&[1; 16]);
    let slots = random(&mut rng, DEGREE);
    let secret = keys::SecretKey::generate(&params, &mut rng);
    let ours = SeededCiphertext::encrypt_slots(&secret, &slots, &mut rng).expand(&params);
    let theirs = oracle.encrypt(&slots);
    let steps = [1usize, 7, 64, 1000];
    let our_keys = keys::GaloisKeys::generate(&secret, steps.map(|s| s as i32), &mut rng);
    let mut builder = EvaluationKeyBuilder::new(&oracle.secret).unwrap();
    for s in steps {
        builder.enable_column_rotation(s).unwrap();
    }
    let their_keys = builder.build(&mut rand::rng()).unwrap();
    assert!(ours.decrypt_slots(&secret).unwrap() == oracle.decrypt(&theirs));
    for s in steps {
        let ours = Rotator::new(&our_keys)
            .rotate(&ours, s as i32)
            .unwrap()
            .decrypt_slots(&secret)
            .unwrap();
        let theirs = oracle.decrypt(&their_keys.rotates_columns_by(&theirs, s).unwrap());
        assert!(ours == theirs, "rotation by {s}");
    }
}

#[test]
fn products_and_sums_are_the_same() {
    let (oracle, params) = (Oracle::new(), Params::products());
    let mut rng = Prg::new(&[2; 16]);
    let layout = Layout::tokens_first(&params, 256).unwrap();
    let secret = keys::SecretKey::generate(&params, &mut rng);
    let public = keys::PublicKey::generate(&secret, &mut rng);
    let galois = keys::GaloisKeys::generate(&secret, layout.rotations(), &mut rng);
    let mut server = Evaluator::new(public, galois).unwrap();
    // One column of values for each token: slot-wise products of the whole ciphertext.
    let matrix = |rng: &mut Prg| Matrix::from_vec(256, 32, random(rng, DEGREE));
    let (x, u, mask) = (matrix(&mut rng), matrix(&mut rng), matrix(&mut rng));
    let chunks = primer_he::packing::layout::Chunks::even(&layout, 32);
    let sent = EncryptedMatrix::encrypt(&secret, &layout, &chunks, &x, &mut rng).unwrap();
    let (answer, _) = server
        .slotwise(&layout, &[(&sent, &u)], &mask, &mut rng)
        .unwrap();
    let theirs =
        &(&oracle.encrypt(x.data()) * &oracle.plain(u.data())) + &oracle.plain(mask.data());
    assert!(answer.decrypt(&secret).unwrap().data() == oracle.decrypt(&theirs));
    // And a dense product, from diagonals that the oracle rotates and multiplies one by one.
    let w = Matrix::from_fn(4, 4, |r, c| (5 * r + c) as i16 - 9);
    let x = Matrix::from_fn(256, 32, |t, j| if j < 4 { x.get(t, j) } else { 0 });
    let prepared = PreparedWeights::dense(&params, &layout, &w).unwrap();
    let sent = EncryptedMatrix::encrypt(
        &secret,
        &layout,
        prepared.input_chunks(),
        &x.columns(0, 4),
        &mut rng,
    )
    .unwrap();
    let (answer, _) = server.linear(&sent, &prepared, None, &mut rng).unwrap();
    let mut builder = EvaluationKeyBuilder::new(&oracle.secret).unwrap();
    for s in (1..4).chain(DEGREE / 2 - 3..DEGREE / 2) {
        builder.enable_column_rotation(s).unwrap();
    }
    let their_keys = builder.build(&mut rand::rng()).unwrap();
    let theirs = oracle.encrypt(x.data());
    let mut sum: Option<Ciphertext> = None;
    for r in -3i32..=3 {
        let diagonal: Vec<u64> = (0..DEGREE)
            .map(|s| {
                let (f, from) = ((s % 32) as i32, (s % 32) as i32 + r);
                let inside = (0..4).contains(&f) && (0..4).contains(&from);
                if inside {
                    modulus::from_signed(w.get(from as usize, f as usize).into())
                } else {
                    0
                }
            })
            .collect();
        let rotated = match r {
            0 => theirs.clone(),
            r => their_keys
                .rotates_columns_by(&theirs, r.rem_euclid(DEGREE as i32 / 2) as usize)
                .unwrap(),
        };
        let term = &rotated * &oracle.plain(&diagonal);
        sum = Some(sum.map_or(term.clone(), |s| &s + &term));
    }
    let slots = oracle.decrypt(&sum.unwrap());
    let theirs = Matrix::from_fn(256, 4, |t, j| slots[32 * t + j]);
    assert!(answer.decrypt(&secret).unwrap() == theirs);
}

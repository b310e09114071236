//! Slot semantics: the same slots, products and rotations as in the `fhe` library.

use fhe::bfv::{
    BfvParametersBuilder, Ciphertext, Encoding, EvaluationKeyBuilder, Plaintext, SecretKey,
};
use fhe_traits::{FheDecoder, FheDecrypter, FheEncoder, FheEncrypter};
use primer_paper_he::error::HeError;
use primer_paper_he::measure::Primitives;
use primer_paper_he::params;
use primer_paper_he::product::{
    ClientKeys, EncodedWeights, KeyNeeds, Method, Product, Relation, ServerKeys, Weights,
};
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
    let (oracle, params) = (Oracle::new(), params::products());
    let mut rng = Prg::new(&[1; 16]);
    let slots = random(&mut rng, DEGREE);
    let steps = [1usize, 7, 64, 1000];
    let scheme = Primitives::new(&params, steps.map(|s| s as i32), &mut rng);
    let ours = scheme.expand(&scheme.encrypt(&slots, &mut rng));
    let theirs = oracle.encrypt(&slots);
    let mut builder = EvaluationKeyBuilder::new(&oracle.secret).unwrap();
    for s in steps {
        builder.enable_column_rotation(s).unwrap();
    }
    let their_keys = builder.build(&mut rand::rng()).unwrap();
    assert!(scheme.decrypt(&ours).unwrap() == oracle.decrypt(&theirs));
    for s in steps {
        let ours = scheme.rotations().rotate(&ours, s as i32).unwrap();
        let ours = scheme.decrypt(&ours).unwrap();
        let theirs = oracle.decrypt(&their_keys.rotates_columns_by(&theirs, s).unwrap());
        assert!(ours == theirs, "rotation by {s}");
    }
}

/// Both parties of our side.
struct Session {
    client: ClientKeys,
    server: ServerKeys,
    rng: Prg,
}

impl Session {
    fn new(needs: &KeyNeeds, mut rng: Prg) -> Self {
        let client = ClientKeys::generate(needs, &mut rng);
        let mut messages = Vec::new();
        let send = |_, bytes: &[u8]| {
            messages.push(bytes.to_vec());
            Ok::<_, HeError>(())
        };
        client.publish(&mut rng, send).unwrap();
        let mut messages = messages.into_iter();
        let receive = |_, _| Ok::<_, HeError>(messages.next().unwrap());
        Self {
            server: ServerKeys::receive(needs, receive).unwrap(),
            client,
            rng,
        }
    }

    fn run(
        &mut self,
        product: &Product,
        values: &[&Matrix<u64>],
        weights: &EncodedWeights,
        mask: &Matrix<u64>,
    ) -> Matrix<u64> {
        let received = product.queries().iter().zip(values).map(|(query, value)| {
            let bytes = query.encrypt(&self.client, value, &mut self.rng);
            query.read(&bytes.unwrap()).unwrap()
        });
        let received: Vec<_> = received.collect();
        let queries: Vec<_> = received.iter().collect();
        let answer = product.answer(&mut self.server, &queries, weights, mask, &mut self.rng);
        product.decrypt(&self.client, &answer.unwrap()).unwrap()
    }
}

#[test]
fn products_and_sums_are_the_same() {
    let oracle = Oracle::new();
    let mut rng = Prg::new(&[2; 16]);
    let (rows, cols) = (256, 32);
    let scaled = Relation::ScaledRows { rows, cols };
    let dense = Relation::Dense {
        rows,
        inputs: 4,
        outputs: 4,
    };
    let [scaled, dense] =
        [scaled, dense].map(|r| Product::new(&Method::tokens_first(), r).unwrap());
    let mut session = Session::new(&[&scaled, &dense].into_iter().collect(), Prg::new(&[3; 16]));
    // One column of values for each token: slot-wise products of the whole ciphertext.
    let matrix = |rng: &mut Prg| Matrix::from_vec(rows, cols, random(rng, DEGREE));
    let (x, u, mask) = (matrix(&mut rng), matrix(&mut rng), matrix(&mut rng));
    let nothing = Matrix::zeros(rows, 1);
    let weights = scaled.prepare(Weights::ScaledRows { u: &mask, v: &u });
    let ours = session.run(&scaled, &[&x, &nothing], &weights.unwrap(), &mask);
    let theirs =
        &(&oracle.encrypt(x.data()) * &oracle.plain(u.data())) + &oracle.plain(mask.data());
    assert!(ours.data() == oracle.decrypt(&theirs));
    // And a dense product, from diagonals that the oracle rotates and multiplies one by one.
    let w = Matrix::from_fn(4, 4, |r, c| (5 * r + c) as i16 - 9);
    let x = Matrix::from_fn(256, 32, |t, j| if j < 4 { x.get(t, j) } else { 0 });
    let mut room = 1 << 30;
    let weights = dense.prepare_within(&w, &mut room).unwrap();
    let ours = session.run(
        &dense,
        &[&x.columns(0, 4)],
        &weights,
        &Matrix::zeros(rows, 4),
    );
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
    assert!(ours == theirs);
}

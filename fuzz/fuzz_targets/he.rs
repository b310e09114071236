//! Homomorphic messages: true ones with changes, or any bytes. What is accepted encodes to the same bytes, and an answer
//! that is accepted can be decrypted or is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::{Script, edited};
use primer_he::evaluate::Evaluator;
use primer_he::keys::{GaloisKeys, PublicKey, SecretKey};
use primer_he::packing::layout::{Chunks, Layout};
use primer_he::packing::matrix::{EncryptedAnswer, EncryptedMatrix};
use primer_he::packing::weights::PreparedWeights;
use primer_he::params::Params;
use primer_ring::matrix::Matrix;
use primer_ring::prg::Prg;
use std::sync::{Arc, LazyLock};

struct True {
    params: Arc<Params>,
    secret: SecretKey,
    layout: Layout,
    chunks: Chunks,
    messages: [Vec<u8>; 4],
}

const TOKENS: usize = 256;

static TRUE: LazyLock<True> = LazyLock::new(|| {
    let params = Params::products();
    let rng = &mut Prg::new(&[1; 16]);
    let secret = SecretKey::generate(&params, rng);
    let layout = Layout::tokens_first(&params, TOKENS).unwrap();
    let chunks = Chunks::even(&layout, 1);
    let public = PublicKey::generate(&secret, rng);
    let keys = GaloisKeys::generate(&secret, layout.rotations(), rng);
    let one_key = GaloisKeys::generate(&secret, layout.rotations().into_iter().take(1), rng);
    let matrix = Matrix::from_fn(TOKENS, 1, |t, _| t as u64);
    let matrix = EncryptedMatrix::encrypt(&secret, &layout, &chunks, &matrix, rng).unwrap();
    let messages = [
        public.to_bytes(),
        one_key.to_bytes(),
        matrix.to_bytes(&params),
    ];
    let weights = PreparedWeights::dense(&params, &layout, &Matrix::from_fn(1, 1, |_, _| 3i16));
    let mut evaluator = Evaluator::new(public, keys).unwrap();
    let (answer, _) = evaluator
        .linear(&matrix, &weights.unwrap(), None, rng)
        .unwrap();
    let [public, keys, matrix] = messages;
    True {
        messages: [public, keys, matrix, answer.to_bytes(&params)],
        params,
        secret,
        layout,
        chunks,
    }
});

fuzz_target!(|bytes: &[u8]| {
    let True {
        params,
        secret,
        layout,
        chunks,
        messages,
    } = &*TRUE;
    let mut script = Script(bytes);
    let choice = script.byte();
    let kind = usize::from(choice & 3);
    let told = match choice & 4 {
        // Headers are short, so their bytes are places worth a visit.
        0 => edited(&messages[kind], &[0], &mut script),
        _ => script.0.to_vec(),
    };
    let again = match kind {
        0 => PublicKey::from_bytes(params, &told).map(|key| key.to_bytes()),
        1 => GaloisKeys::from_bytes(params, &told).map(|keys| keys.to_bytes()),
        2 => EncryptedMatrix::from_bytes(params, layout, chunks, &told)
            .map(|matrix| matrix.to_bytes(params)),
        _ => EncryptedAnswer::from_bytes(params, layout, chunks, &told).map(|answer| {
            let _ = answer.decrypt(secret);
            answer.to_bytes(params)
        }),
    };
    if let Ok(again) = again {
        assert!(again == told, "one value, one encoding");
    }
});

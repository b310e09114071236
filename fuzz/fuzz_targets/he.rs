//! Homomorphic messages: true ones with changes, or any bytes. What is accepted encodes to the same
//! bytes, a query that is accepted is answered, and an answer that is accepted can be decrypted or
//! is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::{Script, edited};
use primer_paper_he::error::HeError;
use primer_paper_he::product::{
    ClientKeys, EncodedWeights, Method, Product, Relation, ServerKeys, Weights,
};
use primer_paper_he::recoded;
use primer_ring::matrix::Matrix;
use primer_ring::prg::Prg;
use std::sync::{LazyLock, Mutex};

struct True {
    product: Product,
    weights: EncodedWeights,
    client: ClientKeys,
    server: Mutex<ServerKeys>,
    messages: [Vec<u8>; 4],
}

const TOKENS: usize = 256;

static TRUE: LazyLock<True> = LazyLock::new(|| {
    let relation = Relation::Dense {
        rows: TOKENS,
        inputs: 1,
        outputs: 1,
    };
    let product = Product::new(&Method::tokens_first(), relation).unwrap();
    let rng = &mut Prg::new(&[1; 16]);
    let client = ClientKeys::generate(&product.keys(), rng);
    let mut keys = Vec::new();
    let send = |_, bytes: &[u8]| {
        keys.push(bytes.to_vec());
        Ok::<_, HeError>(())
    };
    client.publish(rng, send).unwrap();
    let mut sent = keys.clone().into_iter();
    let receive = |_, _| Ok::<_, HeError>(sent.next().unwrap());
    let mut server = ServerKeys::receive(&product.keys(), receive).unwrap();
    // One rotation key is enough to play with, and faster to read: a header, how many, the keys.
    let one = (keys[1].len() - 26) / product.keys().sets()[0].rotations().len();
    keys[1].truncate(26 + one);
    keys[1][22..26].copy_from_slice(&1u32.to_le_bytes());
    let [public, rotations] = keys.try_into().unwrap();

    let value = Matrix::from_fn(TOKENS, 1, |t, _| t as u64);
    let query = product.queries()[0].encrypt(&client, &value, rng).unwrap();
    let received = product.queries()[0].read(&query).unwrap();
    let weights = Weights::Dense(&Matrix::from_fn(1, 1, |_, _| 3));
    let weights = product.prepare(weights).unwrap();
    let mask = Matrix::zeros(TOKENS, 1);
    let answer = product.answer(&mut server, &[&received], &weights, &mask, rng);
    True {
        messages: [public, rotations, query, answer.unwrap()],
        server: Mutex::new(server),
        product,
        weights,
        client,
    }
});

fuzz_target!(|bytes: &[u8]| {
    let True {
        product,
        weights,
        client,
        server,
        messages,
    } = &*TRUE;
    let mut script = Script(bytes);
    let choice = script.byte();
    let kind = choice & 3;
    let told = match choice & 4 {
        // Headers are short, so their bytes are places worth a visit.
        0 => edited(&messages[usize::from(kind)], &[0], &mut script),
        _ => script.0.to_vec(),
    };
    if let Ok(again) = recoded(kind, product.method().params(), (TOKENS, 1), &told) {
        assert!(again == told, "one value, one encoding");
    }
    match kind {
        2 => {
            if let Ok(received) = product.queries()[0].read(&told) {
                let (rng, mask) = (&mut Prg::new(&[2; 16]), Matrix::zeros(TOKENS, 1));
                let mut server = server.lock().unwrap();
                let answer = product.answer(&mut server, &[&received], weights, &mask, rng);
                assert!(answer.is_ok(), "any ciphertext can be computed with");
            }
        }
        3 => drop(product.decrypt(client, &told)),
        _ => {}
    }
});

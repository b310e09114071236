//! Messages of products of two secrets: true ones with changes, or any bytes. A query that is
//! accepted is answered, and an answer of the right form is opened, the same by one thread as by
//! two.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::{Script, edited};
use primer_ring::matrix::Matrix;
use primer_ring::prg::Prg;
use primer_rlwe::error::HeError;
use primer_rlwe::product::{
    ClientKeys, EncodedWeights, KeyNeeds, Operand, Product, Received, Relation, ServerKeys, Weights,
};
use std::sync::{LazyLock, Mutex};

/// A product, what belongs to it, and its true messages.
struct Case {
    product: Product,
    weights: EncodedWeights,
    queries: Vec<Vec<u8>>,
    answer: Vec<u8>,
}

struct True {
    clients: [ClientKeys; 2],
    server: Mutex<ServerKeys>,
    cases: Vec<Case>,
}

fn numbers(rows: usize, cols: usize) -> Matrix<u64> {
    Matrix::from_fn(rows, cols, |r, c| (r * cols + c) as u64)
}

fn answer(
    case: (&Product, &EncodedWeights),
    server: &mut ServerKeys,
    queries: &[Received],
) -> Result<Vec<u8>, HeError> {
    let (product, weights) = case;
    let (queries, mut rng): (Vec<_>, _) = (queries.iter().collect(), Prg::new(&[2; 16]));
    Ok(product.split(server, &queries, weights, &mut rng)?.0)
}

static TRUE: LazyLock<True> = LazyLock::new(|| {
    let (rows, cols, outputs) = (10, 600, 4);
    let heads = Relation::Heads {
        heads: 2,
        operand: Operand::Columns,
        rows,
        inputs: 3,
        outputs,
    };
    let relations = [
        heads,
        Relation::RowSums { rows, cols },
        Relation::ScaledRows { rows, cols },
        Relation::Hadamard { rows, cols },
    ];
    let products = relations.map(|r| Product::new(r).unwrap());
    let needs: KeyNeeds = products.iter().collect();
    // The same secret twice.
    let mut clients = [(); 2].map(|()| ClientKeys::generate(&needs, &mut Prg::new(&[1; 16])));
    clients[1].set_threads(2);
    let rng = &mut Prg::new(&[3; 16]);
    let mut keys = Vec::new();
    let send = |bytes: &[u8]| {
        keys.push(bytes.to_vec());
        Ok::<_, HeError>(())
    };
    clients[0].publish(rng, send).unwrap();
    let mut keys = keys.into_iter();
    let receive = |_| Ok::<_, HeError>(keys.next().unwrap());
    let mut server = ServerKeys::receive(&needs, receive).unwrap();
    server.set_threads(2);

    let cases = products.into_iter().map(|product| {
        let wide = numbers(rows, cols);
        let (values, weights) = match product.relation() {
            Relation::Heads { .. } => {
                let w = [numbers(3, outputs), numbers(3, outputs)];
                (vec![numbers(rows, 6)], product.prepare(Weights::Heads(&w)))
            }
            Relation::RowSums { .. } => {
                let weights = product.prepare(Weights::RowSums(&wide));
                (vec![wide], weights)
            }
            Relation::ScaledRows { .. } => {
                let (u, v) = (&wide, &wide);
                let weights = product.prepare(Weights::ScaledRows { u, v });
                (vec![wide, numbers(rows, 1)], weights)
            }
            _ => {
                let weights = product.prepare(Weights::Hadamard(&wide));
                (vec![wide], weights)
            }
        };
        let weights = weights.unwrap();
        let asked = product.queries().iter().zip(&values);
        let queries: Vec<_> = asked
            .map(|(query, value)| query.encrypt(&clients[0], value, rng).unwrap())
            .collect();
        let received = product.queries().iter().zip(&queries);
        let received: Vec<_> = received.map(|(q, bytes)| q.read(bytes).unwrap()).collect();
        let answer = answer((&product, &weights), &mut server, &received).unwrap();
        Case {
            product,
            weights,
            queries,
            answer,
        }
    });
    let cases = cases.collect();
    True {
        cases,
        server: Mutex::new(server),
        clients,
    }
});

fuzz_target!(|bytes: &[u8]| {
    let True {
        clients,
        server,
        cases,
    } = &*TRUE;
    let mut script = Script(bytes);
    let choice = script.byte();
    let case = &cases[usize::from(choice & 3)];
    let changed = |whole: &[u8], script: &mut Script<'_>| match choice & 4 {
        // Headers are short, so their bytes are places worth a visit; a seed follows them.
        0 => edited(whole, &[0], script),
        _ => script.0.to_vec(),
    };
    if choice & 8 == 0 {
        let told = changed(&case.answer, &mut script);
        let [one, two] = clients.each_ref().map(|c| case.product.decrypt(c, &told));
        assert!(one == two, "as many threads as one likes");
        return;
    }
    let which = usize::from(choice >> 4) % case.queries.len();
    let told = changed(&case.queries[which], &mut script);
    let received = case
        .product
        .queries()
        .iter()
        .enumerate()
        .map(|(i, query)| query.read(if i == which { &told } else { &case.queries[i] }));
    if let Ok(received) = received.collect::<Result<Vec<_>, _>>() {
        let mut server = server.lock().unwrap();
        let answer = answer((&case.product, &case.weights), &mut server, &received);
        let answer = answer.expect("any ciphertext can be computed with");
        assert_eq!(answer.len(), case.answer.len());
    }
});

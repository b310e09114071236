//! Both parties of a session, in one thread and through bytes; and relations by hand.
#![allow(dead_code)] // Each test file uses its own part.

use primer_paper_he::error::HeError;
use primer_paper_he::product::{
    ClientKeys, EncodedWeights, KeyKind, KeyNeeds, Method, Operand, Product, Received, Relation,
    ServerKeys, Weights,
};
use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;

pub(crate) struct Session {
    pub(crate) client: ClientKeys,
    pub(crate) server: ServerKeys,
    pub(crate) rng: Prg,
}

/// Returns the messages that a client publishes.
pub(crate) fn published(client: &ClientKeys, rng: &mut Prg) -> Vec<(KeyKind, Vec<u8>)> {
    let mut messages = Vec::new();
    let send = |kind, bytes: &[u8]| {
        messages.push((kind, bytes.to_vec()));
        Ok::<_, HeError>(())
    };
    client.publish(rng, send).unwrap();
    messages
}

/// Returns the keys of a server that is told such messages, of the announced kind and length.
pub(crate) fn receive(
    needs: &KeyNeeds,
    messages: Vec<(KeyKind, Vec<u8>)>,
) -> Result<ServerKeys, HeError> {
    let mut messages = messages.into_iter();
    ServerKeys::receive(needs, |kind, _| {
        let (sent, bytes) = messages.next().expect("a message is left");
        assert_eq!(sent, kind);
        Ok(bytes)
    })
}

impl Session {
    pub(crate) fn new(needs: &KeyNeeds, seed: u8) -> Self {
        let mut rng = Prg::new(&[seed; 16]);
        let client = ClientKeys::generate(needs, &mut rng);
        let messages = published(&client, &mut rng);
        let lengths = needs.sets().iter().flat_map(|set| {
            let public = (KeyKind::Public, set.public_len());
            let rotations = set.rotations_len().map(|len| (KeyKind::Rotations, len));
            std::iter::once(public).chain(rotations)
        });
        let sent = messages.iter().map(|(kind, m)| (*kind, m.len() as u64));
        assert!(lengths.eq(sent));
        Self {
            server: receive(needs, messages).unwrap(),
            client,
            rng,
        }
    }

    /// Runs one product, from values to the decrypted answer.
    pub(crate) fn run(
        &mut self,
        product: &Product,
        values: &[Matrix<u64>],
        weights: &EncodedWeights,
        mask: &Matrix<u64>,
    ) -> Matrix<u64> {
        let answer = self.answer(product, values, weights, mask).unwrap();
        assert_eq!(answer.len() as u64, product.answer_len());
        product.decrypt(&self.client, &answer).unwrap()
    }

    fn ask(&mut self, product: &Product, values: &[Matrix<u64>]) -> Result<Vec<Received>, HeError> {
        let queries = product.queries().iter().zip(values).map(|(query, value)| {
            let bytes = query.encrypt(&self.client, value, &mut self.rng)?;
            assert_eq!(bytes.len() as u64, query.wire_len());
            query.read(&bytes)
        });
        queries.collect()
    }

    /// Returns the bytes of an answer.
    pub(crate) fn answer(
        &mut self,
        product: &Product,
        values: &[Matrix<u64>],
        weights: &EncodedWeights,
        mask: &Matrix<u64>,
    ) -> Result<Vec<u8>, HeError> {
        let queries = self.ask(product, values)?;
        let queries: Vec<_> = queries.iter().collect();
        product.answer(&mut self.server, &queries, weights, mask, &mut self.rng)
    }
}

/// Returns a dense product, tokens-first.
pub(crate) fn dense(rows: usize, inputs: usize, outputs: usize) -> Product {
    let relation = Relation::Dense {
        rows,
        inputs,
        outputs,
    };
    Product::new(&Method::tokens_first(), relation).unwrap()
}

pub(crate) fn residues(rng: &mut Prg, (rows, cols): (usize, usize)) -> Matrix<u64> {
    Matrix::from_fn(rows, cols, |_, _| modulus::random(rng))
}

/// Returns the sizes of the client's matrices. A dense product reads the first rows of a larger
/// one.
pub(crate) fn value_sizes(relation: &Relation) -> Vec<(usize, usize)> {
    match *relation {
        Relation::Dense { rows, inputs, .. } => vec![(rows + 2, inputs)],
        Relation::Centred { rows, cols }
        | Relation::RowSums { rows, cols }
        | Relation::Hadamard { rows, cols } => vec![(rows, cols)],
        Relation::Heads {
            heads,
            operand,
            rows,
            inputs,
            ..
        } => vec![match operand {
            Operand::Columns => (rows, heads * inputs),
            Operand::Rows => (heads * rows, inputs),
            Operand::Turned => (inputs, heads * rows),
        }],
        Relation::ScaledRows { rows, cols } => vec![(rows, cols), (rows, 1)],
    }
}

/// Returns the sizes of the server's matrices.
pub(crate) fn weight_sizes(relation: &Relation) -> Vec<(usize, usize)> {
    match *relation {
        Relation::Dense {
            inputs, outputs, ..
        } => vec![(inputs, outputs)],
        Relation::Centred { cols, .. } => vec![(1, cols); 2],
        Relation::Heads {
            heads,
            inputs,
            outputs,
            ..
        } => vec![(inputs, outputs); heads],
        Relation::RowSums { rows, cols } | Relation::Hadamard { rows, cols } => {
            vec![(rows, cols)]
        }
        Relation::ScaledRows { rows, cols } => vec![(rows, cols); 2],
    }
}

pub(crate) fn weights<'a>(relation: &Relation, matrices: &'a [Matrix<u64>]) -> Weights<'a> {
    match relation {
        Relation::Dense { .. } => Weights::Dense(&matrices[0]),
        Relation::Centred { .. } => Weights::Centred {
            gain: matrices[0].data(),
            mean: matrices[1].data(),
        },
        Relation::Heads { .. } => Weights::Heads(matrices),
        Relation::RowSums { .. } => Weights::RowSums(&matrices[0]),
        Relation::ScaledRows { .. } => Weights::ScaledRows {
            u: &matrices[0],
            v: &matrices[1],
        },
        Relation::Hadamard { .. } => Weights::Hadamard(&matrices[0]),
    }
}

/// Returns one entry of a relation, by its definition.
pub(crate) fn schoolbook(
    relation: &Relation,
    x: &[Matrix<u64>],
    w: &[Matrix<u64>],
    t: usize,
    j: usize,
) -> u64 {
    let sum = |count: usize, term: &dyn Fn(usize) -> (u64, u64)| {
        (0..count).fold(0, |acc, i| {
            let (a, b) = term(i);
            modulus::add(acc, modulus::mul(a, b))
        })
    };
    match *relation {
        Relation::Dense { inputs, .. } => sum(inputs, &|i| (x[0].get(t, i), w[0].get(i, j))),
        Relation::Centred { cols, .. } => {
            let mean = sum(cols, &|i| (w[1].get(0, i), x[0].get(t, i)));
            modulus::sub(modulus::mul(w[0].get(0, j), x[0].get(t, j)), mean)
        }
        Relation::Heads {
            operand,
            rows,
            inputs,
            outputs,
            ..
        } => {
            let h = j / outputs;
            let entry = |i: usize| match operand {
                Operand::Columns => x[0].get(t, h * inputs + i),
                Operand::Rows => x[0].get(h * rows + t, i),
                Operand::Turned => x[0].get(i, h * rows + t),
            };
            sum(inputs, &|i| (entry(i), w[h].get(i, j % outputs)))
        }
        Relation::RowSums { cols, .. } => sum(cols, &|i| (x[0].get(t, i), w[0].get(t, i))),
        Relation::ScaledRows { .. } => modulus::add(
            modulus::mul(x[1].get(t, 0), w[0].get(t, j)),
            modulus::mul(x[0].get(t, j), w[1].get(t, j)),
        ),
        Relation::Hadamard { .. } => modulus::mul(x[0].get(t, j), w[0].get(t, j)),
    }
}

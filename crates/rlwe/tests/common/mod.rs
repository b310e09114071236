//! Both parties of a session, in one thread and through bytes; and relations by hand.
#![allow(dead_code)] // Each test file uses its own part.

use primer_ring::matrix::Matrix;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_rlwe::error::HeError;
use primer_rlwe::product::{
    ClientKeys, EncodedWeights, KeyNeeds, Operand, Product, Received, Relation, ServerKeys, Weights,
};

pub(crate) struct Session {
    pub(crate) client: ClientKeys,
    pub(crate) server: ServerKeys,
    pub(crate) rng: Prg,
}

/// Returns the messages that a client publishes.
pub(crate) fn published(client: &ClientKeys, rng: &mut Prg) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let send = |bytes: &[u8]| {
        messages.push(bytes.to_vec());
        Ok::<_, HeError>(())
    };
    client.publish(rng, send).unwrap();
    messages
}

/// Returns the keys of a server that is told such messages.
pub(crate) fn receive(needs: &KeyNeeds, messages: Vec<Vec<u8>>) -> Result<ServerKeys, HeError> {
    let mut messages = messages.into_iter();
    ServerKeys::receive(needs, |_| Ok(messages.next().expect("a message is left")))
}

impl Session {
    pub(crate) fn new(needs: &KeyNeeds, seed: u8) -> Self {
        let mut rng = Prg::new(&[seed; 16]);
        let client = ClientKeys::generate(needs, &mut rng);
        let messages = published(&client, &mut rng);
        let lengths = needs.sets().iter().map(|set| set.public_len());
        assert!(lengths.eq(messages.iter().map(|m| m.len() as u64)));
        Self {
            server: receive(needs, messages).unwrap(),
            client,
            rng,
        }
    }

    /// Runs one product, from values to the sum of both shares.
    pub(crate) fn run(
        &mut self,
        product: &Product,
        values: &[Matrix<u64>],
        weights: &EncodedWeights,
    ) -> Matrix<u64> {
        let (answer, share) = self.split(product, values, weights).unwrap();
        assert_eq!(answer.len() as u64, product.answer_len());
        let ours = product.decrypt(&self.client, &answer).unwrap();
        sum(&ours, &share)
    }

    fn ask(&mut self, product: &Product, values: &[Matrix<u64>]) -> Result<Vec<Received>, HeError> {
        let queries = product.queries().iter().zip(values).map(|(query, value)| {
            let bytes = query.encrypt(&self.client, value, &mut self.rng)?;
            assert_eq!(bytes.len() as u64, query.wire_len());
            query.read(&bytes)
        });
        queries.collect()
    }

    /// Returns the bytes of an answer, and the server's share.
    pub(crate) fn split(
        &mut self,
        product: &Product,
        values: &[Matrix<u64>],
        weights: &EncodedWeights,
    ) -> Result<(Vec<u8>, Matrix<u64>), HeError> {
        let queries = self.ask(product, values)?;
        let queries: Vec<_> = queries.iter().collect();
        product.split(&mut self.server, &queries, weights, &mut self.rng)
    }
}

/// Adds two matrices.
pub(crate) fn sum(a: &Matrix<u64>, b: &Matrix<u64>) -> Matrix<u64> {
    Matrix::from_fn(a.rows(), a.cols(), |r, c| {
        modulus::add(a.get(r, c), b.get(r, c))
    })
}

pub(crate) fn residues(rng: &mut Prg, (rows, cols): (usize, usize)) -> Matrix<u64> {
    Matrix::from_fn(rows, cols, |_, _| modulus::random(rng))
}

/// Returns the sizes of the client's matrices.
pub(crate) fn value_sizes(relation: &Relation) -> Vec<(usize, usize)> {
    match *relation {
        Relation::RowSums { rows, cols } | Relation::Hadamard { rows, cols } => {
            vec![(rows, cols)]
        }
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

/// Runs a product of random matrices by all numbers of threads: more than there is work for, none,
/// and one again.
pub(crate) fn same_by_all_threads(product: &Product) {
    let (relation, mut rng) = (product.relation(), Prg::new(&[4; 16]));
    let mut session = Session::new(&product.keys(), 3);
    let mut draw = |sizes: Vec<_>| -> Vec<_> {
        let sizes = sizes.into_iter();
        sizes.map(|size| residues(&mut rng, size)).collect()
    };
    let (x, w) = (draw(value_sizes(relation)), draw(weight_sizes(relation)));
    let encoded = product.prepare(weights(relation, &w)).unwrap();
    let want = Matrix::from_fn(product.rows(), product.cols(), |t, j| {
        schoolbook(relation, &x, &w, t, j)
    });
    for (ours, theirs) in [(1, 3), (2, 1), (100, 100), (0, 0)] {
        session.client.set_threads(ours);
        session.server.set_threads(theirs);
        let got = session.run(product, &x, &encoded);
        assert!(got == want, "{relation} by {ours} and {theirs} threads");
    }
}

/// Checks that a query and an answer are refused that are cut short or have a header with a flipped
/// bit.
pub(crate) fn refuses_cut_and_flipped(
    product: &Product,
    client: &ClientKeys,
    (asked, answer): (&[u8], &[u8]),
) {
    let query = &product.queries()[0];
    for len in [0, 1, 21, 22, 38, 39, asked.len() - 1] {
        assert!(query.read(&asked[..len]).is_err(), "{len} bytes of a query");
    }
    for len in [0, 1, 21, 22, 38, 39, answer.len() - 1] {
        let read = product.decrypt(client, &answer[..len]);
        assert!(read.is_err(), "{len} bytes of an answer");
    }
    for i in 0..39 {
        for flip in [1, 0x80] {
            let flipped = |bytes: &[u8]| {
                let mut bytes = bytes.to_vec();
                bytes[i] ^= flip;
                bytes
            };
            assert!(query.read(&flipped(asked)).is_err(), "byte {i}");
            assert!(
                product.decrypt(client, &flipped(answer)).is_err(),
                "byte {i}"
            );
        }
    }
}

//! Encrypted masks and answers on the channel.
//!
//! All homomorphic work is a list of *exchanges*: the client sends some of its masks, encrypted, and gets one answer.
//! It sends each mask once in each form that is needed; exchanges that read the same mask share it. Both sides
//! derive layouts from the program, so nothing about them is negotiated.

use crate::error::Result;
use crate::kinds::{ANSWER, ENCRYPTED};
use crate::masks::Masks;
use crate::program::{Form, Program};
use crate::share::Share;
use primer_he::evaluate::Evaluator;
use primer_he::keys::SecretKey;
use primer_he::packing::layout::{Chunks, Layout};
use primer_he::packing::matrix::{EncryptedAnswer, EncryptedMatrix};
use primer_net::Channel;
use primer_plan::graph::{Graph, ValueId};
use primer_ring::prg::Prg;
use std::collections::{HashMap, HashSet};

/// Whose mask: of a value, or of the one-hot input.
pub(crate) type Owner = Option<ValueId>;

/// A mask that is encrypted: whose, in which form, and its columns in that form.
#[derive(Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) owner: Owner,
    pub(crate) form: Form,
    pub(crate) cols: usize,
}

/// Masks that go up and one answer that comes down.
pub(crate) struct Exchange {
    pub(crate) offers: Vec<Offer>,
    /// The answer's size.
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// How it lies in its ciphertexts.
    pub(crate) layout: Layout,
    pub(crate) chunks: Chunks,
}

impl Exchange {
    /// For an answer of a size, its columns cut as `chunks` says.
    pub(crate) fn new(
        program: &Program,
        offers: Vec<Offer>,
        (rows, cols): (usize, usize),
        chunks: impl FnOnce(&Layout) -> Chunks,
    ) -> Result<Self> {
        let layout = program.layout(rows)?;
        Ok(Self {
            offers,
            rows,
            cols,
            layout,
            chunks: chunks(&layout),
        })
    }
}

/// A mask as a form wants it.
fn arrange(graph: &Graph, form: Form, mask: &Share) -> Share {
    let (n, heads, width) = (graph.tokens, graph.shape.heads, graph.shape.head_size());
    match form {
        Form::Transposed => Share::from_fn(width, heads * n, |c, at| {
            mask.get(at % n, (at / n) * width + c)
        }),
        // Probabilities have their heads on top of each other.
        Form::Heads { .. } if mask.rows() == heads * n => {
            Share::from_fn(n, heads * mask.cols(), |i, at| {
                mask.get((at / mask.cols()) * n + i, at % mask.cols())
            })
        }
        Form::First => mask.first_rows(1),
        Form::Rows | Form::Heads { .. } | Form::Repeated => mask.first_rows(n),
    }
}

/// The client's side: encrypts and decrypts.
pub(crate) struct Asker<'a> {
    program: &'a Program,
    secret: &'a SecretKey,
    sent: HashSet<(Owner, Form)>,
}

impl<'a> Asker<'a> {
    pub(crate) fn new(program: &'a Program, secret: &'a SecretKey) -> Self {
        Self {
            program,
            secret,
            sent: HashSet::new(),
        }
    }

    /// Sends the masks of an exchange, unless that was done before.
    pub(crate) fn offer(
        &mut self,
        channel: &mut Channel,
        exchange: &Exchange,
        masks: &mut Masks,
        rng: &mut Prg,
    ) -> Result<()> {
        for Offer { owner, form, cols } in &exchange.offers {
            if !self.sent.insert((*owner, *form)) {
                continue;
            }
            let mask = arrange(self.program.plan().graph(), *form, &masks.of(*owner));
            let (layout, chunks) = self.program.packing(*form, *cols)?;
            let matrix = match form {
                Form::Repeated => {
                    EncryptedMatrix::encrypt_repeated(self.secret, &layout, mask.data(), rng)?
                }
                _ => EncryptedMatrix::encrypt(self.secret, &layout, &chunks, &mask, rng)?,
            };
            channel.send(ENCRYPTED, &matrix.to_bytes(self.program.params()))?;
        }
        Ok(())
    }

    /// Receives and decrypts an answer.
    pub(crate) fn answer(&self, channel: &mut Channel, exchange: &Exchange) -> Result<Share> {
        let Exchange { layout, chunks, .. } = exchange;
        let params = self.program.params();
        let mut bytes = vec![0; EncryptedAnswer::wire_len(params, layout, chunks)];
        channel.recv_exact(ANSWER, &mut bytes)?;
        let answer = EncryptedAnswer::from_bytes(params, layout, chunks, &bytes)?;
        Ok(answer.decrypt(self.secret)?.into())
    }
}

/// The server's side: computes on what the client encrypted.
pub(crate) struct Answerer<'a> {
    pub(crate) program: &'a Program,
    pub(crate) evaluator: &'a mut Evaluator,
    received: HashMap<(Owner, Form), EncryptedMatrix>,
}

impl<'a> Answerer<'a> {
    pub(crate) fn new(program: &'a Program, evaluator: &'a mut Evaluator) -> Self {
        Self {
            program,
            evaluator,
            received: HashMap::new(),
        }
    }

    /// Receives the masks of an exchange that are not here already.
    pub(crate) fn accept(&mut self, channel: &mut Channel, exchange: &Exchange) -> Result<()> {
        let params = self.program.params();
        for Offer { owner, form, cols } in &exchange.offers {
            if self.received.contains_key(&(*owner, *form)) {
                continue;
            }
            let (layout, chunks) = self.program.packing(*form, *cols)?;
            let mut bytes = vec![0; EncryptedMatrix::wire_len(params, &layout, &chunks)];
            channel.recv_exact(ENCRYPTED, &mut bytes)?;
            let matrix = EncryptedMatrix::from_bytes(params, &layout, &chunks, &bytes)?;
            self.received.insert((*owner, *form), matrix);
        }
        Ok(())
    }

    /// The evaluator, and a mask that was accepted.
    pub(crate) fn with(&mut self, owner: Owner, form: Form) -> (&mut Evaluator, &EncryptedMatrix) {
        let matrix = self
            .received
            .get(&(owner, form))
            .expect("accepted before it is used");
        (self.evaluator, matrix)
    }

    /// The evaluator, and two masks that were accepted.
    pub(crate) fn with_two(
        &mut self,
        first: (Owner, Form),
        second: (Owner, Form),
    ) -> (&mut Evaluator, &EncryptedMatrix, &EncryptedMatrix) {
        let get = |key| self.received.get(&key).expect("accepted before it is used");
        (self.evaluator, get(first), get(second))
    }

    /// Sends an answer.
    pub(crate) fn reply(&self, channel: &mut Channel, answer: &EncryptedAnswer) -> Result<()> {
        Ok(channel.send(ANSWER, &answer.to_bytes(self.program.params()))?)
    }

    /// Forgets the masks of a value that nothing reads any more.
    pub(crate) fn forget(&mut self, owner: Owner) {
        self.received.retain(|(of, _), _| *of != owner);
    }
}

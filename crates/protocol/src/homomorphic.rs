//! Encrypted masks and answers on the channel.
//!
//! The client sends each of its masks once in each form that is needed; products that read the same
//! mask share it. Both sides derive layouts from the program, so nothing about them is negotiated.

use crate::error::Result;
use crate::kinds::{ANSWER, ENCRYPTED};
use crate::scheme::{Form, Program};
use crate::share::Share;
use primer_he::evaluate::Evaluator;
use primer_he::keys::SecretKey;
use primer_he::packing::layout::{Chunks, Layout};
use primer_he::packing::matrix::{EncryptedAnswer, EncryptedMatrix};
use primer_net::Channel;
use primer_plan::graph::ValueId;
use primer_ring::prg::Prg;
use std::collections::{HashMap, HashSet};

/// Whose mask: of a value, or of the one-hot input.
pub(crate) type Owner = Option<ValueId>;

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

    /// Sends a mask in a form, unless that was done before. `mask` is already arranged as the form says.
    pub(crate) fn offer(
        &mut self,
        channel: &mut Channel,
        rng: &mut Prg,
        owner: Owner,
        form: Form,
        mask: impl FnOnce() -> Share,
    ) -> Result<()> {
        if !self.sent.insert((owner, form)) {
            return Ok(());
        }
        let mask = mask();
        let (layout, chunks) = self.program.packing(form, mask.cols())?;
        let matrix = match form {
            Form::Repeated => {
                EncryptedMatrix::encrypt_repeated(self.secret, &layout, mask.data(), rng)?
            }
            _ => EncryptedMatrix::encrypt(self.secret, &layout, &chunks, &mask, rng)?,
        };
        Ok(channel.send(ENCRYPTED, &matrix.to_bytes(self.program.params()))?)
    }

    /// Receives and decrypts an answer.
    pub(crate) fn answer(
        &self,
        channel: &mut Channel,
        layout: &Layout,
        chunks: &Chunks,
    ) -> Result<Share> {
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

    /// Receives a mask of `cols` columns in a form, unless it is here already.
    pub(crate) fn accept(
        &mut self,
        channel: &mut Channel,
        owner: Owner,
        form: Form,
        cols: usize,
    ) -> Result<()> {
        if self.received.contains_key(&(owner, form)) {
            return Ok(());
        }
        let params = self.program.params();
        let (layout, chunks) = self.program.packing(form, cols)?;
        let mut bytes = vec![0; EncryptedMatrix::wire_len(params, &layout, &chunks)];
        channel.recv_exact(ENCRYPTED, &mut bytes)?;
        let matrix = EncryptedMatrix::from_bytes(params, &layout, &chunks, &bytes)?;
        self.received.insert((owner, form), matrix);
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

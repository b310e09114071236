//! The two roles on one walk: garbler and evaluator do the same steps in the same order.
//!
//! A [`Role`] runs batches of a circuit and takes in what the garbler gives. Everything that the
//! garbler makes goes into one stream of bytes, in the order of the walk: labels of given bits,
//! tables of gates. The evaluator, walking the same way, finds each where it needs it, and no
//! length is ever sent.
//!
//! Every circuit is opened with a nonce of its own, from a public seed, so that no two gates of an
//! inference have a key of the hash in common (`docs/garbling.md`, section 2).

use crate::error::{Result, from_sink};
use crate::given::{Given, values};
use crate::labels::Labels;
use primer_garble::circuit::Circuit;
use primer_garble::evaluator::Evaluator;
use primer_garble::garbler::Garbler;
use primer_garble::{Label, Offset};
use primer_model::quantise::IntModel;
use primer_plan::plan::Plan;
use primer_ring::prg::Prg;
use std::io::{Read, Write};
use zeroize::{Zeroize, Zeroizing};

/// Labels made or read at a time.
const BLOCK: usize = 1 << 14;

/// Garbling or evaluating.
pub(crate) trait Role {
    /// A circuit that is being run.
    type Run<'c>
    where
        Self: 'c;

    /// Returns the label of the zero wire.
    fn zero(&self) -> Label;

    /// Begins to run a circuit.
    fn open<'c>(&mut self, circuit: &'c Circuit) -> Self::Run<'c>
    where
        Self: 'c;

    /// Runs a few instances: labels of all inputs in, labels of what is kept out, instance by
    /// instance.
    fn batch<'c>(
        &mut self,
        run: &mut Self::Run<'c>,
        inputs: &[Label],
        kept: &mut [Label],
    ) -> Result<()>
    where
        Self: 'c;

    /// Returns the labels of what the garbler gives.
    fn give(&mut self, given: &Given) -> Result<Labels>;
}

/// Gates and given bits that passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) and_gates: u64,
    pub(crate) given_bits: u64,
}

/// What both roles have, for a whole inference.
pub(crate) struct Common {
    /// Where nonces come from.
    nonces: Prg,
    zero: Label,
    pub(crate) passed: Passed,
}

impl Common {
    /// Begins with the public seed and this party's label of the zero wire.
    pub(crate) fn new(seed: &[u8; 16], zero: Label) -> Self {
        Self {
            nonces: Prg::new(seed),
            zero,
            passed: Passed::default(),
        }
    }

    fn nonce(&mut self) -> Label {
        Label::from_le_bytes(self.nonces.seed())
    }

    fn ran(&mut self, circuit: &Circuit, inputs: usize) {
        let instances = inputs / circuit.cost().garbler_inputs.max(1);
        self.passed.and_gates += (instances * circuit.cost().and_gates) as u64;
    }
}

impl Drop for Common {
    fn drop(&mut self) {
        self.zero.zeroize();
    }
}

/// Makes tables.
pub(crate) struct Garbling<'a> {
    pub(crate) common: &'a mut Common,
    pub(crate) offset: &'a Offset,
    /// Where zero labels come from.
    pub(crate) labels: &'a mut Prg,
    pub(crate) plan: &'a Plan,
    pub(crate) model: &'a IntModel,
    pub(crate) sink: &'a mut dyn Write,
}

impl Role for Garbling<'_> {
    type Run<'c>
        = (&'c Circuit, Garbler<'c>)
    where
        Self: 'c;

    fn zero(&self) -> Label {
        self.common.zero
    }

    fn open<'c>(&mut self, circuit: &'c Circuit) -> Self::Run<'c>
    where
        Self: 'c,
    {
        let nonce = self.common.nonce();
        (circuit, Garbler::new(circuit, self.offset, nonce))
    }

    fn batch<'c>(
        &mut self,
        (circuit, garbler): &mut Self::Run<'c>,
        inputs: &[Label],
        kept: &mut [Label],
    ) -> Result<()>
    where
        Self: 'c,
    {
        self.common.ran(circuit, inputs.len());
        let garbled = garbler.batch_keeping(inputs, &[], &mut [], kept, &mut self.sink);
        garbled.map_err(from_sink)
    }

    fn give(&mut self, given: &Given) -> Result<Labels> {
        self.common.passed.given_bits += given.input_bits();
        let values = values(self.plan, self.model, given)?;
        let mut zeros = Zeroizing::new(vec![0; given.count * given.bits]);
        let mut active = Zeroizing::new(vec![0; BLOCK]);
        for (block, zeros) in zeros.chunks_mut(BLOCK).enumerate() {
            self.labels.fill(bytemuck::cast_slice_mut(zeros));
            let active = &mut active[..zeros.len()];
            for (i, (active, zero)) in active.iter_mut().zip(zeros).enumerate() {
                *zero = Label::from_le(*zero);
                let at = block * BLOCK + i;
                let bit = values[at / given.bits] >> (at % given.bits) & 1 == 1;
                *active = self.offset.choose(*zero, bit).to_le();
            }
            let sent = self.sink.write_all(bytemuck::cast_slice(active));
            sent.map_err(from_sink)?;
        }
        Ok(Labels::new(given.cols, given.bits, zeros))
    }
}

/// Reads tables.
pub(crate) struct Evaluating<'a> {
    pub(crate) common: &'a mut Common,
    pub(crate) source: &'a mut dyn Read,
}

impl Role for Evaluating<'_> {
    type Run<'c>
        = (&'c Circuit, Evaluator<'c>)
    where
        Self: 'c;

    fn zero(&self) -> Label {
        self.common.zero
    }

    fn open<'c>(&mut self, circuit: &'c Circuit) -> Self::Run<'c>
    where
        Self: 'c,
    {
        let nonce = self.common.nonce();
        (circuit, Evaluator::new(circuit, nonce))
    }

    fn batch<'c>(
        &mut self,
        (circuit, evaluator): &mut Self::Run<'c>,
        inputs: &[Label],
        kept: &mut [Label],
    ) -> Result<()>
    where
        Self: 'c,
    {
        self.common.ran(circuit, inputs.len());
        let source = &mut self.source;
        Ok(evaluator.batch_keeping(inputs, &[], source, &mut [], &mut [], kept)?)
    }

    fn give(&mut self, given: &Given) -> Result<Labels> {
        self.common.passed.given_bits += given.input_bits();
        let mut labels = Zeroizing::new(vec![0; given.count * given.bits]);
        self.source
            .read_exact(bytemuck::cast_slice_mut(&mut labels))?;
        labels.iter_mut().for_each(|l| *l = Label::from_le(*l));
        Ok(Labels::new(given.cols, given.bits, labels))
    }
}

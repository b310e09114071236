//! The garbler: batches of up to eight instances, streamed segment by segment.
//!
//! Every batch and every segment of the circuit sends, in this order: the tables of its AND gates
//! (gate by gate, first halves of all instances, then second halves), the rows of its projections
//! (packed, projection by projection), and the decoding bits of revealed wires. Never more than one
//! segment is in memory.

use crate::circuit::{Circuit, LANES};
use crate::engine::{Backend, GarbleSegment, Label};
use crate::label::Offset;
use crate::workspace::Workspace;
use primer_ring::pack::pack;
use std::io::{self, Write};
use zeroize::Zeroizing;

/// Bytes of one AND gate of a full batch.
const TABLE: usize = 32 * LANES;

/// Garbles one batch after the other.
///
/// One nonce serves one garbler and is never used again: it makes the keys of the garbler's hashes
/// unique to it.
pub struct Garbler<'c> {
    work: Workspace<'c>,
    offset: &'c Offset,
    rows: Vec<u64>,
    tables: Vec<u8>,
    bytes: Vec<u8>,
}

impl<'c> Garbler<'c> {
    /// Makes a garbler with a fresh nonce.
    pub fn new(circuit: &'c Circuit, offset: &'c Offset, nonce: Label) -> Self {
        Self::with_backend(circuit, offset, nonce, Backend::detect())
    }

    /// Makes a garbler on a given engine.
    pub fn with_backend(
        circuit: &'c Circuit,
        offset: &'c Offset,
        nonce: Label,
        backend: Backend,
    ) -> Self {
        Self {
            work: Workspace::new(circuit, nonce, backend),
            offset,
            rows: Vec::new(),
            tables: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Garbles the next instances, at most [`LANES`] of them.
    ///
    /// The zero labels are given instance by instance. `masks` receives the garbler's part of every
    /// arithmetic output, instance by instance: the evaluator will hold the output plus the mask.
    ///
    /// # Errors
    /// Those of the sink.
    ///
    /// # Panics
    /// If the numbers of labels or masks do not belong to one number of instances.
    pub fn batch(
        &mut self,
        garbler_labels: &[Label],
        evaluator_labels: &[Label],
        masks: &mut [u64],
        sink: &mut impl Write,
    ) -> io::Result<()> {
        let inputs = [garbler_labels, evaluator_labels];
        self.garble(inputs, &[0; LANES], masks, &mut [], sink)
    }

    /// Does the same as [`Self::batch`] with the outputs of some instances negated: `negated` has
    /// one entry for each instance. Nothing that the evaluator sees depends on it, and no branch
    /// does.
    ///
    /// # Errors
    /// Those of the sink.
    ///
    /// # Panics
    /// As [`Self::batch`], and if `negated` does not have an entry for each instance.
    pub fn batch_negated(
        &mut self,
        garbler_labels: &[Label],
        evaluator_labels: &[Label],
        negated: &[bool],
        masks: &mut [u64],
        sink: &mut impl Write,
    ) -> io::Result<()> {
        let lanes = (self.work).instances(garbler_labels, evaluator_labels);
        assert_eq!(negated.len(), lanes, "one for each instance");
        let mut all = Zeroizing::new([0; LANES]);
        for (all, negated) in all.iter_mut().zip(negated) {
            *all = u64::from(*negated).wrapping_neg();
        }
        let inputs = [garbler_labels, evaluator_labels];
        self.garble(inputs, &all, masks, &mut [], sink)?;
        // The evaluator adds constants as they are: it holds c where it should hold -c.
        let circuit = self.work.circuit;
        let modulus = circuit.modulus();
        let instances = masks.chunks_exact_mut(circuit.cost().outputs.max(1));
        for (instance, negated) in instances.zip(all.iter()) {
            for (mask, constant) in instance.iter_mut().zip(&circuit.constants) {
                let twice = modulus.add(*constant, *constant);
                *mask = modulus.add(*mask, twice & negated);
            }
        }
        Ok(())
    }

    /// Does the same as [`Self::batch`] for circuits with outputs that stay labels: `kept` receives
    /// their zero labels, instance by instance.
    ///
    /// # Errors
    /// Those of the sink.
    ///
    /// # Panics
    /// As [`Self::batch`].
    pub fn batch_keeping(
        &mut self,
        garbler_labels: &[Label],
        evaluator_labels: &[Label],
        masks: &mut [u64],
        kept: &mut [Label],
        sink: &mut impl Write,
    ) -> io::Result<()> {
        let inputs = [garbler_labels, evaluator_labels];
        self.garble(inputs, &[0; LANES], masks, kept, sink)
    }

    fn garble(
        &mut self,
        inputs: [&[Label]; 2],
        negated: &[u64; LANES],
        masks: &mut [u64],
        kept: &mut [Label],
        sink: &mut impl Write,
    ) -> io::Result<()> {
        let circuit = self.work.circuit;
        let lanes = self.work.instances(inputs[0], inputs[1]);
        let outputs = circuit.cost().outputs;
        assert_eq!(masks.len(), lanes * outputs, "one mask for each output");
        let places = lanes * circuit.cost().kept;
        assert_eq!(kept.len(), places, "one place for each kept label");
        self.work.sums.fill([0; LANES]);
        for segment in &circuit.segments {
            self.tables.resize(TABLE * segment.and_gates, 0);
            self.rows.resize(LANES * segment.projections, 0);
            let mut decoding = vec![0; segment.reveals];
            self.work.backend.garble(&mut GarbleSegment {
                batch: (self.work).segment(segment, inputs),
                delta: self.offset.label(),
                negated,
                tables: &mut self.tables,
                rows: &mut self.rows,
                decoding: &mut decoding,
            });
            let total = segment.bytes(lanes, circuit.modulus()).total();
            self.send(lanes, &decoding, total, sink)?;
        }
        self.work.read_sums(masks);
        self.work.read_kept(kept);
        Ok(())
    }

    fn send(
        &mut self,
        lanes: usize,
        decoding: &[u8],
        total: usize,
        sink: &mut impl Write,
    ) -> io::Result<()> {
        let width = self.work.circuit.modulus().width();
        self.bytes.clear();
        if lanes == LANES {
            sink.write_all(&self.tables)?;
        } else {
            for half in self.tables.chunks_exact(16 * LANES) {
                self.bytes.extend_from_slice(&half[..16 * lanes]);
            }
        }
        if lanes == LANES {
            pack(self.rows.iter().copied(), width, &mut self.bytes);
        } else {
            let rows = self.rows.chunks_exact(LANES).flat_map(|r| &r[..lanes]);
            let rows: Vec<u64> = rows.copied().collect();
            pack(rows.into_iter(), width, &mut self.bytes);
        }
        let bits = decoding
            .iter()
            .flat_map(|d| (0..lanes).map(move |l| d >> l & 1));
        let bits: Vec<u64> = bits.map(u64::from).collect();
        pack(bits.into_iter(), 1, &mut self.bytes);
        let before = if lanes == LANES { self.tables.len() } else { 0 };
        debug_assert_eq!(before + self.bytes.len(), total);
        sink.write_all(&self.bytes)
    }
}

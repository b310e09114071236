//! The garbler: batches of up to eight instances, streamed segment by segment.
//!
//! For every batch and every segment of the circuit there leave, in this order: the tables of its
//! AND gates (gate by gate, first halves of all instances, then second halves), the rows of its
//! projections (packed, projection by projection), and the decoding bits of revealed wires. Never
//! more than one segment is in memory.

use crate::circuit::{Circuit, LANES, Party};
use crate::engine::{Backend, Batch, GarbleSegment, Label, Wire};
use crate::label::Offset;
use primer_ring::pack::pack;
use std::io::{self, Write};
use zeroize::Zeroize;

/// Bytes of one AND gate of a full batch.
const TABLE: usize = 32 * LANES;

/// Garbles one batch after the other.
///
/// One nonce serves one garbler and is never used again: it is what makes the keys of its hashes
/// its own.
pub struct Garbler<'c> {
    circuit: &'c Circuit,
    backend: Backend,
    offset: &'c Offset,
    nonce: Label,
    gate_keys: u64,
    projection_keys: u64,
    wires: Vec<Wire>,
    sums: Vec<[u64; LANES]>,
    rows: Vec<u64>,
    tables: Vec<u8>,
    bytes: Vec<u8>,
}

impl<'c> Garbler<'c> {
    /// A garbler with a fresh nonce.
    pub fn new(circuit: &'c Circuit, offset: &'c Offset, nonce: Label) -> Self {
        Self::with_backend(circuit, offset, nonce, Backend::detect())
    }

    /// A garbler on a given engine.
    pub fn with_backend(
        circuit: &'c Circuit,
        offset: &'c Offset,
        nonce: Label,
        backend: Backend,
    ) -> Self {
        Self {
            circuit,
            backend,
            offset,
            nonce,
            gate_keys: 0,
            projection_keys: 0,
            wires: vec![Wire::default(); circuit.slots()],
            sums: vec![[0; LANES]; circuit.cost().outputs],
            rows: Vec::new(),
            tables: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Garbles the next instances, at most [`LANES`] of them.
    ///
    /// The zero labels are given instance by instance. `masks` receives what the garbler keeps of
    /// every arithmetic output, instance by instance: the evaluator will hold the output plus it.
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
        let circuit = self.circuit;
        let lanes = instances(circuit, garbler_labels, evaluator_labels);
        let outputs = circuit.cost().outputs;
        assert_eq!(masks.len(), lanes * outputs, "one mask for each output");
        self.sums.fill([0; LANES]);
        for segment in &circuit.segments {
            let sizes = segment.bytes(lanes, circuit.modulus());
            self.tables.resize(TABLE * segment.and_gates, 0);
            self.rows.resize(LANES * segment.projections, 0);
            let mut decoding = vec![0; segment.reveals];
            self.backend.garble(&mut GarbleSegment {
                batch: Batch {
                    circuit,
                    segment,
                    nonce: self.nonce,
                    gate_keys: self.gate_keys,
                    projection_keys: self.projection_keys,
                    inputs: [garbler_labels, evaluator_labels],
                    wires: &mut self.wires,
                    sums: &mut self.sums,
                },
                delta: self.offset.label(),
                tables: &mut self.tables,
                rows: &mut self.rows,
                decoding: &mut decoding,
            });
            self.gate_keys += 2 * segment.and_gates as u64;
            self.projection_keys += segment.projections as u64;
            self.send(lanes, &decoding, sizes.total(), sink)?;
        }
        for (l, mask) in masks.chunks_exact_mut(outputs.max(1)).enumerate() {
            for (mask, sums) in mask.iter_mut().zip(&self.sums) {
                *mask = sums[l];
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        lanes: usize,
        decoding: &[u8],
        total: usize,
        sink: &mut impl Write,
    ) -> io::Result<()> {
        let width = self.circuit.modulus().width();
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

impl Drop for Garbler<'_> {
    fn drop(&mut self) {
        self.wires.zeroize();
        self.sums.zeroize();
    }
}

/// The number of instances that the labels are for.
pub(crate) fn instances(circuit: &Circuit, garbler: &[Label], evaluator: &[Label]) -> usize {
    let of = |labels: &[Label], party| labels.len() / circuit.inputs(party).max(1);
    let lanes = of(garbler, Party::Garbler).max(of(evaluator, Party::Evaluator));
    assert!(
        (1..=LANES).contains(&lanes)
            && garbler.len() == lanes * circuit.inputs(Party::Garbler)
            && evaluator.len() == lanes * circuit.inputs(Party::Evaluator),
        "a batch has labels for 1 to {LANES} whole instances"
    );
    lanes
}

//! The evaluator: reads what the garbler streamed and evaluates it, segment by segment.

use crate::circuit::{Circuit, LANES, SegmentBytes};
use crate::engine::{Backend, Batch, EvaluateSegment, Label, Wire};
use crate::garbler::instances;
use primer_ring::pack::{PackError, unpack};
use std::io::{self, Read};
use thiserror::Error;
use zeroize::Zeroize;

/// Why an evaluation stopped.
#[derive(Debug, Error)]
pub enum EvaluateError {
    /// The garbled material ended early or could not be read.
    #[error("garbled material: {0}")]
    Read(#[from] io::Error),
    /// A packed row is not a residue.
    #[error("garbled rows: {0}")]
    Rows(#[from] PackError),
}

/// Evaluates one batch after the other.
pub struct Evaluator<'c> {
    circuit: &'c Circuit,
    backend: Backend,
    nonce: Label,
    gate_keys: u64,
    projection_keys: u64,
    wires: Vec<Wire>,
    sums: Vec<[u64; LANES]>,
    bytes: Vec<u8>,
    spread: Vec<u8>,
    rows: Vec<u64>,
}

impl<'c> Evaluator<'c> {
    /// An evaluator for the garbler's nonce.
    pub fn new(circuit: &'c Circuit, nonce: Label) -> Self {
        Self::with_backend(circuit, nonce, Backend::detect())
    }

    /// An evaluator on a given engine.
    pub fn with_backend(circuit: &'c Circuit, nonce: Label, backend: Backend) -> Self {
        Self {
            circuit,
            backend,
            nonce,
            gate_keys: 0,
            projection_keys: 0,
            wires: vec![Wire::default(); circuit.slots()],
            sums: vec![[0; LANES]; circuit.cost().outputs],
            bytes: Vec::new(),
            spread: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Evaluates the next instances, at most [`LANES`] of them, as many as the garbler did.
    ///
    /// Labels are the active ones, instance by instance. `outputs` receives every arithmetic
    /// output plus the garbler's mask, `revealed` the revealed bits, instance by instance.
    ///
    /// # Errors
    /// [`EvaluateError`] if the material ends early or holds numbers that are no residues. Wrong
    /// bytes that are neither give wrong results, masked as right ones are.
    ///
    /// # Panics
    /// If the numbers of labels and results do not belong to one number of instances.
    pub fn batch(
        &mut self,
        garbler_labels: &[Label],
        evaluator_labels: &[Label],
        source: &mut impl Read,
        outputs: &mut [u64],
        revealed: &mut [bool],
    ) -> Result<(), EvaluateError> {
        let circuit = self.circuit;
        let lanes = instances(circuit, garbler_labels, evaluator_labels);
        let cost = circuit.cost();
        assert_eq!(
            outputs.len(),
            lanes * cost.outputs,
            "one place for each output"
        );
        assert_eq!(
            revealed.len(),
            lanes * cost.reveals,
            "one place for each revealed bit"
        );
        for (sums, &constant) in self.sums.iter_mut().zip(&circuit.constants) {
            *sums = [constant; LANES];
        }
        let mut shown = 0;
        for segment in &circuit.segments {
            let sizes = segment.bytes(lanes, circuit.modulus());
            self.bytes.resize(sizes.total(), 0);
            source.read_exact(&mut self.bytes)?;
            let mut decoding = vec![0; segment.reveals];
            self.unpack(lanes, sizes, segment.projections, &mut decoding)?;
            let tables = if lanes == LANES {
                &self.bytes[..sizes.tables]
            } else {
                &self.spread
            };
            self.backend.evaluate(&mut EvaluateSegment {
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
                tables,
                rows: &self.rows,
                decoding: &mut decoding,
            });
            self.gate_keys += 2 * segment.and_gates as u64;
            self.projection_keys += segment.projections as u64;
            for bits in decoding {
                for l in 0..lanes {
                    revealed[l * cost.reveals + shown] = bits >> l & 1 == 1;
                }
                shown += 1;
            }
        }
        for (l, out) in outputs.chunks_exact_mut(cost.outputs.max(1)).enumerate() {
            for (out, sums) in out.iter_mut().zip(&self.sums) {
                *out = sums[l];
            }
        }
        Ok(())
    }

    /// Brings the rows of `lanes` instances to full width.
    fn unpack(
        &mut self,
        lanes: usize,
        sizes: SegmentBytes,
        projections: usize,
        decoding: &mut [u8],
    ) -> Result<(), PackError> {
        let (tables, rest) = self.bytes.split_at(sizes.tables);
        let (rows, bits) = rest.split_at(sizes.rows);
        let modulus = self.circuit.modulus();
        self.rows.clear();
        self.rows.resize(lanes * projections, 0);
        unpack(rows, modulus.width(), modulus.order(), &mut self.rows)?;
        let mut flat = vec![0; lanes * decoding.len()];
        unpack(bits, 1, 2, &mut flat)?;
        for (d, bits) in decoding.iter_mut().zip(flat.chunks_exact(lanes)) {
            *d = bits
                .iter()
                .enumerate()
                .fold(0, |d, (l, &b)| d | (b as u8) << l);
        }
        if lanes < LANES {
            self.spread.clear();
            for half in tables.chunks_exact(16 * lanes) {
                self.spread.extend_from_slice(half);
                self.spread
                    .resize(self.spread.len() + 16 * (LANES - lanes), 0);
            }
            let narrow = std::mem::take(&mut self.rows);
            for row in narrow.chunks_exact(lanes) {
                self.rows.extend_from_slice(row);
                self.rows.resize(self.rows.len() + LANES - lanes, 0);
            }
        }
        Ok(())
    }
}

impl Drop for Evaluator<'_> {
    fn drop(&mut self) {
        self.wires.zeroize();
        self.sums.zeroize();
    }
}

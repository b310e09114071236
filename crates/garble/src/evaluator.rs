//! The evaluator: reads what the garbler streamed and evaluates it, segment by segment.

use crate::circuit::{Circuit, LANES, SegmentBytes};
use crate::engine::{Backend, EvaluateSegment, Label};
use crate::workspace::Workspace;
use primer_ring::pack::{PackError, unpack};
use std::io::{self, Read};
use thiserror::Error;

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
    work: Workspace<'c>,
    bytes: Vec<u8>,
    spread: Vec<u8>,
    rows: Vec<u64>,
}

impl<'c> Evaluator<'c> {
    /// Makes an evaluator for the garbler's nonce.
    pub fn new(circuit: &'c Circuit, nonce: Label) -> Self {
        Self::with_backend(circuit, nonce, Backend::detect())
    }

    /// Makes an evaluator on a given engine.
    pub fn with_backend(circuit: &'c Circuit, nonce: Label, backend: Backend) -> Self {
        Self {
            work: Workspace::new(circuit, nonce, backend),
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
    /// [`EvaluateError`] if the material ends early or holds numbers that are not residues. Other
    /// wrong bytes give wrong results, masked as right ones are.
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
        self.batch_keeping(
            garbler_labels,
            evaluator_labels,
            source,
            outputs,
            revealed,
            &mut [],
        )
    }

    /// Does the same as [`Self::batch`] for circuits with outputs that stay labels: `kept` receives
    /// them, instance by instance.
    ///
    /// # Errors
    /// As [`Self::batch`].
    ///
    /// # Panics
    /// As [`Self::batch`].
    pub fn batch_keeping(
        &mut self,
        garbler_labels: &[Label],
        evaluator_labels: &[Label],
        source: &mut impl Read,
        outputs: &mut [u64],
        revealed: &mut [bool],
        kept: &mut [Label],
    ) -> Result<(), EvaluateError> {
        let circuit = self.work.circuit;
        let lanes = self.work.instances(garbler_labels, evaluator_labels);
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
        let places = lanes * cost.kept;
        assert_eq!(kept.len(), places, "one place for each kept label");
        for (sums, &constant) in self.work.sums.iter_mut().zip(&circuit.constants) {
            *sums = [constant; LANES];
        }
        let mut shown = 0;
        for segment in &circuit.segments {
            let sizes = segment.bytes(lanes, circuit.modulus());
            self.bytes.resize(sizes.total(), 0);
            source.read_exact(&mut self.bytes)?;
            let mut decoding = vec![0; segment.reveals];
            self.unpack(lanes, sizes, segment.projections, &mut decoding)?;
            let tables = match lanes {
                LANES => &self.bytes[..sizes.tables],
                _ => &self.spread,
            };
            self.work.backend.evaluate(&mut EvaluateSegment {
                batch: (self.work).segment(segment, [garbler_labels, evaluator_labels]),
                tables,
                rows: &self.rows,
                decoding: &mut decoding,
            });
            for bits in decoding {
                for l in 0..lanes {
                    revealed[l * cost.reveals + shown] = bits >> l & 1 == 1;
                }
                shown += 1;
            }
        }
        self.work.read_sums(outputs);
        self.work.read_kept(kept);
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
        let modulus = self.work.circuit.modulus();
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

//! What garbler and evaluator have in common: the wires of a batch and the position in the key
//! streams.

use crate::circuit::{Circuit, LANES, Party, Segment};
use crate::engine::{Backend, Batch, Label, Wire};
use zeroize::Zeroize;

/// The state of a run over the batches of one garbled stop.
pub(crate) struct Workspace<'c> {
    pub(crate) circuit: &'c Circuit,
    pub(crate) backend: Backend,
    nonce: Label,
    gate_keys: u64,
    projection_keys: u64,
    wires: Vec<Wire>,
    pub(crate) sums: Vec<[u64; LANES]>,
    kept: Vec<Wire>,
}

impl<'c> Workspace<'c> {
    pub(crate) fn new(circuit: &'c Circuit, nonce: Label, backend: Backend) -> Self {
        Self {
            circuit,
            backend,
            nonce,
            gate_keys: 0,
            projection_keys: 0,
            wires: vec![Wire::default(); circuit.slots()],
            sums: vec![[0; LANES]; circuit.cost().outputs],
            kept: vec![Wire::default(); circuit.cost().kept],
        }
    }

    /// Returns the next segment; this spends its keys.
    pub(crate) fn segment<'a>(
        &'a mut self,
        segment: &'a Segment,
        inputs: [&'a [Label]; 2],
    ) -> Batch<'a> {
        let (gate_keys, projection_keys) = (self.gate_keys, self.projection_keys);
        self.gate_keys += 2 * segment.and_gates as u64;
        self.projection_keys += segment.projections as u64;
        Batch {
            circuit: self.circuit,
            segment,
            nonce: self.nonce,
            gate_keys,
            projection_keys,
            inputs,
            wires: &mut self.wires,
            sums: &mut self.sums,
            kept: &mut self.kept,
        }
    }

    /// Reads the sums of the arithmetic outputs, instance by instance.
    pub(crate) fn read_sums(&self, out: &mut [u64]) {
        let outputs = self.sums.len().max(1);
        for (l, instance) in out.chunks_exact_mut(outputs).enumerate() {
            for (value, sums) in instance.iter_mut().zip(&self.sums) {
                *value = sums[l];
            }
        }
    }

    /// Reads the labels of the kept outputs, instance by instance.
    pub(crate) fn read_kept(&self, out: &mut [Label]) {
        let kept = self.kept.len().max(1);
        for (l, instance) in out.chunks_exact_mut(kept).enumerate() {
            for (label, wire) in instance.iter_mut().zip(&self.kept) {
                *label = wire.0[l];
            }
        }
    }

    /// Returns the number of instances that labels are for.
    ///
    /// # Panics
    /// If they are not for 1 to [`LANES`] whole instances.
    pub(crate) fn instances(&self, garbler: &[Label], evaluator: &[Label]) -> usize {
        let [ours, theirs] = [Party::Garbler, Party::Evaluator].map(|p| self.circuit.inputs(p));
        let lanes = (garbler.len() / ours.max(1)).max(evaluator.len() / theirs.max(1));
        assert!(
            (1..=LANES).contains(&lanes)
                && garbler.len() == lanes * ours
                && evaluator.len() == lanes * theirs,
            "a batch has labels for 1 to {LANES} whole instances"
        );
        lanes
    }
}

impl Drop for Workspace<'_> {
    fn drop(&mut self) {
        self.wires.zeroize();
        self.sums.zeroize();
        self.kept.zeroize();
    }
}

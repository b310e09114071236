//! Encoding of diagonals, in two steps: coefficients modulo p, then values modulo one prime after
//! the other.
//!
//! The first step is the same for all primes; the second writes the numbers as
//! [`primer_lattice::kernel::weighted`] reads them, for one prime only, so that they are still in a
//! cache when they are used.

use crate::folded::{FoldedNtt, FoldedSlots};
use crate::packing::layout::Layout;
use crate::packing::weights::{PreparedPart, PreparedWeights, runs};
use crate::params::Params;
use primer_lattice::kernel::elementwise;
use primer_lattice::kernel::weighted::Runs;
use primer_lattice::simd::Simd;
use zeroize::Zeroize;

/// The diagonals of a group of inputs by coefficients: `[output, giant][input, baby][period]`, in
/// two parts.
#[derive(Default)]
pub(crate) struct Coefficients {
    low: Vec<u32>,
    high: Vec<u32>,
    /// Diagonals with nothing in them.
    empty: Vec<bool>,
}

impl Coefficients {
    /// Overwrites what was encoded.
    pub(crate) fn wipe(&mut self) {
        self.low.zeroize();
        self.high.zeroize();
    }
}

/// Tables and buffers of one layout.
pub(crate) struct Encoder {
    period: usize,
    simd: Simd,
    slots: FoldedSlots,
    ntts: Vec<FoldedNtt>,
    runs: Runs,
    values: Vec<u64>,
    /// The diagonals of one giant step modulo one prime: `[baby][period]`.
    tile: Vec<u32>,
}

impl Encoder {
    pub(crate) fn new(params: &Params, layout: &Layout) -> Self {
        let period = layout.period();
        let ntts = (0..params.all_primes())
            .map(|j| FoldedNtt::new(params.prime(j), period, params.simd()))
            .collect();
        Self {
            period,
            simd: params.simd(),
            slots: FoldedSlots::new(period),
            ntts,
            runs: runs(params, layout),
            values: vec![0; period],
            tile: vec![0; layout.baby_steps() * period],
        }
    }

    /// Tells whether the tables are those of a layout.
    pub(crate) fn fits(&self, layout: &Layout) -> bool {
        self.period == layout.period() && self.tile.len() == layout.baby_steps() * self.period
    }

    /// Encodes the diagonals of a group modulo p.
    pub(crate) fn coefficients(
        &mut self,
        plan: &PreparedWeights,
        part: &PreparedPart,
        index: usize,
        weight: &impl Fn(usize, usize, usize) -> u64,
        out: &mut Coefficients,
    ) {
        let (layout, period) = (&plan.layout, self.period);
        let (baby, range) = (layout.baby_steps(), part.groups[index].clone());
        let diagonals = part.part.outputs.len() * part.giants.len() * range.len() * baby;
        out.low.resize(diagonals * period, 0);
        out.high.resize(diagonals * period, 0);
        out.empty.clear();
        for output in part.part.outputs.clone() {
            for giant in part.giants.clone() {
                let step = giant * baby as i32;
                for input in range.clone() {
                    let (ins, outs) = (plan.inputs.columns(input), plan.outputs.columns(output));
                    for b in 0..baby as i32 {
                        self.values.fill(0);
                        let mut any = false;
                        for f in layout.reached(step + b, ins.len(), outs.len()) {
                            let Some(from) = layout.source(f, step + b).filter(|&s| s < ins.len())
                            else {
                                continue;
                            };
                            let entry = plan.shape.entry(ins.start + from, outs.start + f);
                            if let Some((block, r, c)) = entry {
                                any = true;
                                let at = (f as i32 + step).rem_euclid(period as i32);
                                self.values[at as usize] = weight(block, r, c);
                            }
                        }
                        let at = out.empty.len() * period;
                        if any {
                            let low = &mut out.low[at..at + period];
                            self.slots
                                .encode(&self.values, low, &mut out.high[at..at + period]);
                        }
                        out.empty.push(!any);
                    }
                }
            }
        }
    }

    /// Counts the numbers of a group modulo one prime.
    pub(crate) fn len(&self, coefficients: &Coefficients) -> usize {
        coefficients.empty.len() * self.period
    }

    /// Writes the values modulo prime `j`: `[kernel group][output, giant][input, baby][…]`, with
    /// `terms` inputs and babies.
    pub(crate) fn modulo(
        &mut self,
        j: usize,
        coefficients: &Coefficients,
        terms: usize,
        out: &mut [u32],
    ) {
        let period = self.period;
        let baby = self.tile.len() / period;
        assert!(out.len() == self.len(coefficients));
        for (index, empty) in coefficients.empty.chunks_exact(baby).enumerate() {
            for (b, &empty) in empty.iter().enumerate() {
                let tile = &mut self.tile[b * period..][..period];
                if empty {
                    tile.fill(0);
                    continue;
                }
                let at = (index * baby + b) * period;
                let parts = [
                    &coefficients.low[at..][..period],
                    &coefficients.high[at..][..period],
                ];
                self.ntts[j].forward(self.simd, parts, tile);
            }
            self.place(index * baby, coefficients.empty.len(), terms, out);
        }
    }

    /// Copies a tile of baby steps, the first of which is diagonal `first` of all, to where the
    /// kernel reads it.
    fn place(&self, first: usize, diagonals: usize, terms: usize, out: &mut [u32]) {
        let (per, groups, period) = (self.runs.per_block(), self.runs.groups(), self.period);
        let baby = self.tile.len() / period;
        let (output, term) = (first / terms, first % terms);
        let at = |group: usize| ((group * (diagonals / terms) + output) * terms + term) * per;
        if per == 1 && baby.is_multiple_of(8) {
            elementwise::transpose(self.simd, &self.tile, period, &mut out[at(0)..], diagonals);
            return;
        }
        for group in 0..groups {
            let out = &mut out[at(group)..][..baby * per];
            for (b, out) in out.chunks_exact_mut(per).enumerate() {
                out.copy_from_slice(&self.tile[b * period + group * per..][..per]);
            }
        }
    }
}

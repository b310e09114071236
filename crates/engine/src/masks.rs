//! The client's own randomness: its share of every value.
//!
//! The client's share of a product and of a stop's result is a mask that it draws. It comes from
//! the bundle's seed or, where a linear step reads the value by a hint, out of a lattice function
//! ([`crate::silent`]): then it is given, and kept in the bundle. Its share of a linear step is a
//! linear image of masks. All of it is known before there is a text.

use crate::bits::Pad;
use crate::exchange::MaskSource;
use crate::local::{self, Party};
use crate::padding::Padding;
use crate::program::Program;
use crate::secrets;
use crate::seeds::{Seeds, Use};
use crate::share::Share;
use primer_plan::graph::ValueId;
use primer_plan::role::ValueRole;
use primer_ring::prg::Prg;
use primer_stops::TwoPartyStop;
use std::collections::HashMap;
use std::sync::Arc;

pub(crate) struct Masks {
    program: Program,
    seeds: Seeds,
    /// Linear images, masks that were given, and what was drawn and may be needed again.
    shares: HashMap<ValueId, Arc<Share>>,
}

impl Masks {
    pub(crate) fn new(program: &Program, seeds: Seeds) -> Self {
        Self {
            program: program.clone(),
            seeds,
            shares: HashMap::new(),
        }
    }

    /// Draws what the input is padded with.
    pub(crate) fn pad(&self) -> Pad {
        Pad::draw(&self.seeds, self.program.bits())
    }

    /// Draws the client's shares of the padding.
    pub(crate) fn padding(&self) -> Padding {
        Padding::draw(&self.program, &self.seeds)
    }

    /// Returns what the client draws subsets of range flags with.
    pub(crate) fn subsets(&self) -> Prg {
        self.seeds.subsets()
    }

    /// Returns the client's share of a value.
    pub(crate) fn get(&mut self, id: ValueId) -> Arc<Share> {
        if let Some(share) = self.shares.get(&id) {
            return Arc::clone(share);
        }
        assert!(self.program.hinted(Some(id)).is_none(), "it is given");
        let value = self.program.plan().graph().value(id);
        let share = Arc::new(match value.role {
            // Not drawn: it follows from the padding, of which there is a mask already.
            ValueRole::Kept => local::kept(Party::Client, &self.padding().residues),
            _ => self.seeds.share(Use::Value(id), value.rows, value.cols),
        });
        self.shares.insert(id, Arc::clone(&share));
        share
    }

    /// Returns what of the client's an exchange encrypts.
    pub(crate) fn of(&mut self, source: MaskSource) -> Arc<Share> {
        match source {
            MaskSource::Mask(id) => self.get(id),
            MaskSource::Second(id) => {
                let program = self.program.clone();
                Arc::new(secrets::second_part(&program, self, id))
            }
        }
    }

    /// Gives the client's share of a linear step or of a lifted value, or its mask of a value.
    pub(crate) fn insert(&mut self, id: ValueId, share: Share) {
        self.shares.insert(id, Arc::new(share));
    }

    /// Returns the client's share of what a stop makes of its input; empty if it shows its result
    /// instead.
    pub(crate) fn of_stop(&mut self, stop: &dyn TwoPartyStop, output: ValueId) -> Arc<Share> {
        if stop.outputs() == 0 {
            return Arc::new(Share::zeros(0, 0));
        }
        let share = self.get(output);
        match share.rows() * share.cols() == stop.outputs() {
            true => share,
            // It computes some rows only.
            false => Arc::new(share.first_rows(stop.outputs() / share.cols())),
        }
    }

    /// Drops the shares of values that no step from this one on reads.
    pub(crate) fn forget_before(&mut self, step: usize) {
        let last_uses = self.program.last_uses();
        self.shares.retain(|id, _| last_uses[id.index()] >= step);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::reveal::Reveal;
    use crate::share::tests::looks_uniform;
    use primer_model::calibrate::calibrate;
    use primer_model::fold::FloatWeights;
    use primer_model::quantise::IntModel;
    use primer_model::synthetic::{bert_shape, checkpoint};
    use primer_ring::prg::Prg;
    use primer_text::{Input, TextEncoder};

    /// Makes a program of a tiny model of one layer.
    pub(crate) fn program() -> Program {
        let mut shape = bert_shape(1, 16, 2);
        shape.vocab = 6;
        let weights = FloatWeights::fold(&shape, &checkpoint(&shape, &[3; 16]));
        let words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb";
        let text = TextEncoder::from_vocabulary(words.as_bytes(), None).unwrap();
        let scales = calibrate(&weights, &text, "a b\nb", |_, _| ()).unwrap();
        let model = IntModel::quantise(&weights, scales).unwrap();
        Program::of(&model, 2, Reveal::Outputs).unwrap()
    }

    /// Returns what the server gets of the padding of a fixed text, over many runs.
    fn views(seed: impl Fn(&mut Prg) -> Seeds) -> Vec<u64> {
        let program = program();
        let input = Input {
            ids: vec![3, 0],
            types: vec![1, 0],
            length: 1,
            removed: 0,
            second: vec![None; 2],
        };
        let mut rng = Prg::new(&[5; 16]);
        let mut padding = Vec::new();
        for _ in 0..4000 {
            let masks = Masks::new(&program, seed(&mut rng));
            padding.extend(masks.padding().of(&input).residues.data());
        }
        padding
    }

    #[test]
    fn the_server_sees_uniform_padding() {
        assert!(looks_uniform(&views(|rng| Seeds::new(rng.secret_seed()))));
    }

    #[test]
    fn padding_under_one_mask_is_not_uniform() {
        assert!(!looks_uniform(&views(|_| Seeds::new([9; 32]))));
    }
}

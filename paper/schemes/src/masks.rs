//! The client's own randomness: its share of every value.
//!
//! The client's share of a product and of a stop's result is a mask that it draws from the bundle's
//! seed; its share of a linear step is a linear image of masks. All of it is known before there is
//! a text.
//!
//! Which tokens are padding is shared too: `m` is one for a padded token, and the parties hold
//! `m̂ + ρ = m`. What is linear in it (scores that are lowered, tokens that are kept) each party
//! computes alone.

use crate::exchange::Owner;
use crate::program::Program;
use crate::seeds::{Seeds, Use};
use primer_engine::share::Share;
use primer_plan::graph::ValueId;
use primer_plan::role::ValueRole;
use primer_ring::modulus;
use primer_stops::TwoPartyStop;
use primer_text::Input;
use std::collections::HashMap;
use std::sync::Arc;

pub(crate) struct Masks {
    program: Program,
    seeds: Seeds,
    /// Linear images, and what was drawn and may be needed again.
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

    /// Draws the mask of the one-hot rows.
    fn input(&self) -> Arc<Share> {
        let graph = self.program.plan().graph();
        Arc::new(self.seeds.share(Use::Input, graph.tokens, graph.one_hot()))
    }

    /// Draws the client's share of the padding.
    pub(crate) fn padding(&self) -> Share {
        let tokens = self.program.plan().graph().tokens;
        self.seeds.share(Use::Padding, 1, tokens)
    }

    /// Returns the client's share of a value.
    pub(crate) fn get(&mut self, id: ValueId) -> Arc<Share> {
        if let Some(share) = self.shares.get(&id) {
            return Arc::clone(share);
        }
        let value = self.program.plan().graph().value(id);
        let share = Arc::new(match value.role {
            // Not drawn: it follows from the padding, of which there is a mask already.
            ValueRole::Kept => kept(0, &self.padding()),
            _ => self.seeds.share(Use::Value(id), value.rows, value.cols),
        });
        self.shares.insert(id, Arc::clone(&share));
        share
    }

    /// Returns the mask that an exchange encrypts.
    pub(crate) fn of(&mut self, owner: Owner) -> Arc<Share> {
        match owner {
            None => self.input(),
            Some(id) => self.get(id),
        }
    }

    /// Gives the client's share of a linear step.
    pub(crate) fn insert(&mut self, id: ValueId, share: Share) {
        self.shares.insert(id, Arc::new(share));
    }

    /// Returns the client's share of what a stop makes of its input; empty if it shows its result
    /// instead.
    pub(crate) fn of_stop(&mut self, stop: &dyn TwoPartyStop, output: ValueId) -> Arc<Share> {
        match stop.outputs() {
            0 => Arc::new(Share::zeros(0, 0)),
            _ => self.get(output),
        }
    }

    /// Drops the shares of values that no step from this one on reads.
    pub(crate) fn forget_before(&mut self, step: usize) {
        let last_uses = self.program.last_uses();
        self.shares.retain(|id, _| last_uses[id.index()] >= step);
    }

    /// Returns the one-hot rows, minus their mask: what the server gets of the words.
    pub(crate) fn apply(&self, input: &Input) -> Share {
        let graph = self.program.plan().graph();
        let mask = self.input();
        let mut rows = mask.first_rows(mask.rows()).negated();
        for t in 0..graph.tokens {
            let row = rows.row_mut(t);
            let kind = (graph.shape.types > 0).then(|| input.types[t] as usize);
            let kind = kind.map(|kind| graph.shape.vocab + kind);
            for hot in [Some(input.ids[t] as usize), kind].into_iter().flatten() {
                row[hot] = modulus::add(row[hot], 1);
            }
        }
        rows
    }

    /// Returns the padding, minus the client's share: what the server gets of it.
    pub(crate) fn apply_padding(&self, input: &Input) -> Share {
        let mask = self.padding();
        Share::from_fn(1, mask.cols(), |_, t| {
            modulus::sub(u64::from(t >= input.length), mask.get(0, t))
        })
    }
}

/// Returns a party's share of what is not padding, of its share of the padding; one of the parties
/// has the ones.
pub(crate) fn kept(one: u64, padding: &Share) -> Share {
    Share::from_fn(padding.cols(), 1, |t, _| {
        modulus::sub(one, padding.get(0, t))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::scheme::Scheme;
    use primer_engine::Reveal;
    use primer_model::calibrate::calibrate;
    use primer_model::fold::FloatWeights;
    use primer_model::quantise::IntModel;
    use primer_model::synthetic::{bert_shape, checkpoint};
    use primer_ring::prg::Prg;
    use primer_text::TextEncoder;

    /// Tells whether residues look uniform: chi-square over 64 equal parts of `0..p`. With 63
    /// degrees of freedom, uniform values exceed 140 about once in ten million tries.
    pub(crate) fn looks_uniform(values: &[u64]) -> bool {
        assert!(values.len() >= 64 * 50, "too few values to tell");
        let mut counts = [0f64; 64];
        for v in values {
            counts[(u128::from(*v) * 64 / u128::from(modulus::P)) as usize] += 1.0;
        }
        let expected = values.len() as f64 / 64.0;
        let distance = counts.map(|c| (c - expected).powi(2) / expected);
        distance.iter().sum::<f64>() < 140.0
    }

    /// Makes a program of a tiny model of one layer.
    pub(crate) fn program(scheme: Scheme) -> Program {
        let mut shape = bert_shape(1, 16, 2);
        shape.vocab = 6;
        let weights = FloatWeights::fold(&shape, &checkpoint(&shape, &[3; 16]));
        let weights = scheme.recipe().form.weights(&weights);
        let words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb";
        let text = TextEncoder::from_vocabulary(words.as_bytes(), None).unwrap();
        let scales = calibrate(&weights, &text, "a b\nb", |_, _| ()).unwrap();
        let model = IntModel::quantise(&weights, scales).unwrap();
        Program::of(&model, scheme, 2, Reveal::Outputs).unwrap()
    }

    /// Returns what the server gets of a fixed text, over many runs.
    fn views(seed: impl Fn(&mut Prg) -> Seeds) -> (Vec<u64>, Vec<u64>) {
        let program = program(Scheme::Fp);
        let input = Input {
            ids: vec![3, 0],
            types: vec![1, 0],
            length: 1,
            removed: 0,
            second: vec![None; 2],
        };
        let mut rng = Prg::new(&[5; 16]);
        let (mut rows, mut padding) = (Vec::new(), Vec::new());
        for _ in 0..4000 {
            let masks = Masks::new(&program, seed(&mut rng));
            let (row, pad) = (masks.apply(&input), masks.apply_padding(&input));
            // A hot and a cold element.
            rows.extend([row.get(0, 3), row.get(1, 5)]);
            padding.extend(pad.data());
        }
        (rows, padding)
    }

    #[test]
    fn the_server_sees_uniform_inputs() {
        let (rows, padding) = views(|rng| Seeds::new(rng.secret_seed()));
        assert!(looks_uniform(&rows));
        assert!(looks_uniform(&padding));
    }

    #[test]
    fn inputs_under_one_mask_are_not_uniform() {
        let (rows, padding) = views(|_| Seeds::new([9; 32]));
        assert!(!looks_uniform(&rows));
        assert!(!looks_uniform(&padding));
    }
}

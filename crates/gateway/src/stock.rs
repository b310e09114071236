//! The stock: how many bundles there are of every length, how many are wanted, and which are made
//! next.
//!
//! The truth is in the store on disk, which other processes use too. The keeper's thread counts it
//! and makes more (`keeper`). While it is busy with that, questions go on taking bundles, and each
//! that takes one reports it here: a number that is shown may be too small for a moment, never too
//! large.

use primer::{Cost, Meter};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What there is of one length.
#[derive(Default, Clone, Copy)]
struct Level {
    have: usize,
    /// Whether it is kept filled, or just happens to be in the store.
    kept: bool,
    /// Bundles that are being prepared.
    coming: usize,
    /// Seconds and bytes of one bundle, when some were last made.
    each: Option<(f64, u64)>,
}

/// How far a batch has come.
struct Progress {
    tokens: usize,
    meter: Meter,
    before: u64,
    expected: u64,
}

impl Progress {
    fn percent(&self) -> u64 {
        let passed = self.meter.report().total().bytes();
        let passed = passed.saturating_sub(self.before);
        (passed.saturating_mul(100) / self.expected.max(1)).min(100)
    }
}

#[derive(Default)]
struct State {
    levels: BTreeMap<usize, Level>,
    /// Answers so far, as a mark for counting.
    uses: u64,
    progress: Option<Progress>,
    trouble: Option<String>,
}

impl State {
    fn level(&mut self, tokens: usize) -> &mut Level {
        self.levels.entry(tokens).or_default()
    }
}

/// Bundles that are ready, and those that are wanted.
pub(crate) struct Stock {
    want: usize,
    state: Mutex<State>,
}

impl Stock {
    /// Begins a stock that is to keep `want` bundles of each of some lengths.
    pub(crate) fn new(want: usize, lengths: &[usize]) -> Self {
        let mut state = State::default();
        for tokens in lengths {
            state.level(*tokens).kept = true;
        }
        let state = Mutex::new(state);
        Self { want, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a question was answered: its length is kept in stock from now on.
    pub(crate) fn used(&self, cost: &Cost) {
        let mut state = self.state();
        state.uses += 1;
        let level = state.level(cost.tokens);
        level.kept = true;
        if cost.prepared_ahead {
            level.have = level.have.saturating_sub(1);
        }
    }

    /// Returns a mark, taken before counting and passed to [`Self::counted`] after it.
    pub(crate) fn mark(&self) -> u64 {
        self.state().uses
    }

    /// Takes over what is in the store, counted since a mark; `false` if a bundle was used
    /// meanwhile, so that it has to be counted again.
    pub(crate) fn counted(&self, found: &BTreeMap<usize, usize>, mark: u64) -> bool {
        let mut state = self.state();
        if state.uses != mark {
            return false;
        }
        state.levels.values_mut().for_each(|level| level.have = 0);
        for (tokens, have) in found {
            state.level(*tokens).have = *have;
        }
        true
    }

    /// Notes that a batch is begun.
    pub(crate) fn begin(&self, tokens: usize, bundles: usize) {
        self.state().level(tokens).coming = bundles;
    }

    /// Notes that the bytes of a batch begin to pass.
    pub(crate) fn watch(&self, tokens: usize, meter: &Meter, expected: u64) {
        self.state().progress = Some(Progress {
            tokens,
            meter: meter.clone(),
            before: meter.report().total().bytes(),
            expected,
        });
    }

    /// Notes that a batch is made.
    pub(crate) fn made(&self, tokens: usize, bundles: usize, seconds: f64) {
        let mut state = self.state();
        if let Some(progress) = state.progress.take() {
            let bundles = bundles.max(1);
            let each = (seconds / bundles as f64, progress.expected / bundles as u64);
            state.level(tokens).each = Some(each);
        }
    }

    /// Notes that nothing is being prepared any more, and why, if it failed.
    pub(crate) fn idle(&self, trouble: Option<String>) {
        let mut state = self.state();
        state.levels.values_mut().for_each(|level| level.coming = 0);
        (state.progress, state.trouble) = (None, trouble);
    }

    /// Lists how many there are, how many are wanted and how many are being prepared, by padded
    /// length.
    pub(crate) fn to_json(&self) -> Value {
        let state = self.state();
        let progress = state.progress.as_ref();
        let rows = state.levels.iter().map(|(tokens, level)| {
            let percent = progress
                .filter(|p| p.tokens == *tokens)
                .map(Progress::percent);
            json!({
                "tokens": tokens, "have": level.have,
                "want": if level.kept { self.want } else { 0 },
                "preparing": level.coming, "percent": percent,
                "seconds_each": level.each.map(|each| each.0),
                "bytes_each": level.each.map(|each| each.1),
            })
        });
        rows.collect()
    }

    /// Lists how many bundles are ready, by padded length.
    pub(crate) fn ready(&self) -> Vec<(usize, usize)> {
        let state = self.state();
        let levels = state.levels.iter();
        levels
            .map(|(tokens, level)| (*tokens, level.have))
            .collect()
    }

    /// Returns why nothing is prepared, if that is so.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// Tells whether there is as much as is wanted.
    pub(crate) fn is_full(&self) -> bool {
        self.lacking(self.want).is_none()
    }

    /// Returns the length that lacks most, and how many; none if it can wait. While questions are
    /// asked, it can wait until half are used: preparing takes a core for seconds, and answers
    /// should have it.
    pub(crate) fn most_wanted(&self, quiet: bool) -> Option<(usize, usize)> {
        let limit = match quiet {
            true => self.want,
            false => (self.want / 2 + 1).min(self.want),
        };
        self.lacking(limit)
    }

    /// Returns the length with the fewest bundles, if these are fewer than `limit`, and how many it
    /// lacks.
    fn lacking(&self, limit: usize) -> Option<(usize, usize)> {
        let state = self.state();
        let levels = state.levels.iter();
        let lacking = levels.filter(|(_, level)| level.kept && level.have < limit);
        let (tokens, level) = lacking.min_by_key(|(_, level)| level.have)?;
        Some((*tokens, self.want - level.have))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(tokens: usize, prepared_ahead: bool) -> Cost {
        Cost {
            tokens,
            prepared_ahead,
            ..Cost::default()
        }
    }

    fn count(stock: &Stock, found: &[(usize, usize)]) {
        let found = found.iter().copied().collect();
        assert!(stock.counted(&found, stock.mark()));
    }

    #[test]
    fn what_is_asked_for_is_kept_and_the_emptiest_is_filled_first() {
        let stock = Stock::new(4, &[16]);
        assert_eq!(stock.most_wanted(true), Some((16, 4)));
        // No more bundles are made of a length that is merely found in the store.
        count(&stock, &[(16, 4), (64, 1)]);
        assert!(stock.is_full());
        assert_eq!(stock.to_json()[1]["want"], 0);
        stock.used(&cost(64, true));
        assert_eq!(stock.ready(), [(16, 4), (64, 0)]);
        assert_eq!(stock.most_wanted(true), Some((64, 4)));
        // Half a stock waits until no question is asked.
        count(&stock, &[(16, 3), (64, 3)]);
        assert_eq!(stock.most_wanted(false), None);
        assert_eq!(stock.most_wanted(true), Some((16, 1)));
        count(&stock, &[(16, 3), (64, 2)]);
        assert_eq!(stock.most_wanted(false), Some((64, 2)));
        // A length that was missing joins.
        stock.used(&cost(32, false));
        assert_eq!(stock.most_wanted(false), Some((32, 4)));
    }

    #[test]
    fn no_stock_is_always_full() {
        let stock = Stock::new(0, &[16]);
        stock.used(&cost(16, false));
        assert!(stock.is_full());
        assert_eq!(stock.most_wanted(false), None);
    }

    #[test]
    fn a_count_during_which_one_was_used_does_not_count() {
        let stock = Stock::new(2, &[16]);
        count(&stock, &[(16, 2)]);
        let (mark, found) = (stock.mark(), BTreeMap::from([(16, 2)]));
        stock.used(&cost(16, true));
        assert!(!stock.counted(&found, mark));
        assert_eq!(stock.ready(), [(16, 1)]);
    }
}

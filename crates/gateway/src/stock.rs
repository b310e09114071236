//! The stock: bundles prepared ahead for every length that is asked for.
//!
//! One thread prepares, in batches, which take fewer bytes and less time than one at a time. It
//! begins when half of a length's bundles are used, or earlier if nobody is asking: preparing takes
//! a core for seconds, and answers under way should have it.

use crate::Connect;
use crate::desk::Activity;
use primer::{Client, Event, Meter, ServiceError};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Nobody has asked for so long: the time is used.
const QUIET: Duration = Duration::from_secs(2);
/// How often the store is looked at when nothing happens: other processes use it too.
const LOOK: Duration = Duration::from_secs(5);
/// The longest pause after a failure.
const LONGEST: Duration = Duration::from_secs(60);

/// What there is of one length.
#[derive(Default, Clone, Copy)]
struct Level {
    have: usize,
    /// In the making.
    coming: usize,
    /// Seconds and bytes of one, the last time that some were made.
    each: Option<(f64, u64)>,
}

/// How far a batch is.
struct Progress {
    tokens: usize,
    meter: Meter,
    before: u64,
    expected: u64,
}

impl Progress {
    fn percent(&self) -> u64 {
        let passed = self
            .meter
            .report()
            .total()
            .bytes()
            .saturating_sub(self.before);
        (100 * passed / self.expected.max(1)).min(100)
    }
}

#[derive(Default)]
struct State {
    levels: BTreeMap<usize, Level>,
    progress: Option<Progress>,
    trouble: Option<String>,
}

/// Bundles that are ready, and whoever makes more of them.
pub(crate) struct Stock {
    want: usize,
    state: Arc<Mutex<State>>,
}

impl Stock {
    /// Begins to keep `want` bundles of some lengths.
    pub(crate) fn keep(
        connect: Connect,
        want: usize,
        lengths: Vec<usize>,
        activity: Arc<Activity>,
    ) -> Self {
        let mut state = State::default();
        state
            .levels
            .extend(lengths.into_iter().map(|tokens| (tokens, Level::default())));
        let state = Arc::new(Mutex::new(state));
        if want > 0 {
            let keeper = Keeper {
                connect,
                want,
                state: Arc::clone(&state),
                activity,
            };
            // Not waited for: a batch takes long, and what is not stored yet costs nothing to lose.
            std::thread::spawn(move || keeper.run());
        }
        Self { want, state }
    }

    /// By padded length: how many there are, how many are wanted, how many are in the making.
    pub(crate) fn to_json(&self) -> Value {
        let state = lock(&self.state);
        let progress = state.progress.as_ref();
        let rows = state.levels.iter().map(|(tokens, level)| {
            let percent = progress
                .filter(|p| p.tokens == *tokens)
                .map(Progress::percent);
            json!({
                "tokens": tokens, "have": level.have, "want": self.want,
                "preparing": level.coming, "percent": percent,
                "seconds_each": level.each.map(|each| each.0),
                "bytes_each": level.each.map(|each| each.1),
            })
        });
        rows.collect()
    }

    /// Bundles that are ready, by padded length.
    pub(crate) fn ready(&self) -> Vec<(usize, usize)> {
        let state = lock(&self.state);
        state
            .levels
            .iter()
            .map(|(tokens, level)| (*tokens, level.have))
            .collect()
    }

    /// Why nothing is prepared, if that is so.
    pub(crate) fn trouble(&self) -> Option<String> {
        lock(&self.state).trouble.clone()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread that prepares.
struct Keeper {
    connect: Connect,
    want: usize,
    state: Arc<Mutex<State>>,
    activity: Arc<Activity>,
}

impl Keeper {
    fn run(&self) {
        let mut client = None;
        let mut pause = Duration::from_secs(1);
        while !self.activity.stopping() {
            match self.turn(&mut client) {
                Ok(true) => pause = Duration::from_secs(1),
                Ok(false) => {
                    client.iter_mut().for_each(Client::rest);
                    self.activity
                        .wait(if self.is_full() { LOOK } else { QUIET });
                }
                Err(error) => {
                    tracing::warn!("preparing bundles failed: {error}");
                    self.activity.reached(Some(&error));
                    let mut state = lock(&self.state);
                    state.trouble = Some(error.to_string());
                    state.progress = None;
                    state.levels.values_mut().for_each(|level| level.coming = 0);
                    drop(state);
                    client = None;
                    self.activity.wait(pause);
                    pause = (pause * 2).min(LONGEST);
                }
            }
        }
    }

    /// Prepares one batch if one is wanted; tells whether it did.
    fn turn(&self, client: &mut Option<Client>) -> Result<bool, ServiceError> {
        if client.is_none() {
            let mut made = (self.connect)()?;
            self.watch(&mut made);
            *client = Some(made);
        }
        let client = client.as_mut().expect("just made");
        self.count(client)?;
        let Some((tokens, lacking)) = self.most_wanted() else {
            return Ok(false);
        };
        let batch = client.card().scheme.recipe().batch(tokens, lacking);
        lock(&self.state).levels.entry(tokens).or_default().coming = batch;
        client.prepare(tokens, batch)?;
        let mut state = lock(&self.state);
        state.levels.entry(tokens).or_default().coming = 0;
        (state.progress, state.trouble) = (None, None);
        drop(state);
        self.count(client)?;
        self.activity.reached(None);
        Ok(true)
    }

    /// Has the client tell how far it is.
    fn watch(&self, client: &mut Client) {
        let state = Arc::clone(&self.state);
        client.observe(move |event| match event {
            Event::Offline {
                tokens,
                meter,
                expected,
                ..
            } => {
                lock(&state).progress = Some(Progress {
                    tokens,
                    meter: meter.clone(),
                    before: meter.report().total().bytes(),
                    expected,
                });
            }
            Event::Prepared {
                tokens,
                bundles,
                seconds,
            } => {
                let mut state = lock(&state);
                if let Some(progress) = state.progress.take() {
                    let each = (seconds / bundles as f64, progress.expected / bundles as u64);
                    state.levels.entry(tokens).or_default().each = Some(each);
                }
            }
            _ => {}
        });
    }

    /// Looks into the store.
    fn count(&self, client: &Client) -> Result<(), ServiceError> {
        let prepared = client.prepared()?;
        let missed = self.activity.missed();
        let levels = &mut lock(&self.state).levels;
        levels.values_mut().for_each(|level| level.have = 0);
        for tokens in missed {
            levels.entry(tokens).or_default();
        }
        for (tokens, have) in prepared {
            levels.entry(tokens).or_default().have = have;
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        let state = lock(&self.state);
        state.levels.values().all(|level| level.have >= self.want)
    }

    /// The length that lacks most, and how many; none if it can wait.
    fn most_wanted(&self) -> Option<(usize, usize)> {
        let urgent = self.want / 2;
        let limit = match self.activity.quiet() >= QUIET {
            true => self.want,
            false => urgent + 1,
        };
        let state = lock(&self.state);
        let levels = state.levels.iter();
        let lacking = levels.filter(|(_, level)| level.have < limit);
        let (tokens, level) = lacking.min_by_key(|(_, level)| level.have)?;
        Some((*tokens, self.want - level.have))
    }
}

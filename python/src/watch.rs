//! How far an offline phase, or the fetch of a hint, is, for a Python callback.
//!
//! The client's observer runs on the working thread and must not touch Python: it writes down what
//! happens. The waiting thread reads it between two pieces of waiting ([`crate::work`]) and calls
//! back with the bytes that have passed and those expected. Every phase begins with `(0, expected)`
//! and, unless it breaks, ends with `(expected, expected)`.

use primer::{Event, Meter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the two threads share.
#[derive(Clone, Default)]
pub(crate) struct Watch(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    phase: Option<Phase>,
    /// Bytes done and expected, not reported yet.
    steps: Vec<(u64, u64)>,
    /// Whether a fetch of a hint was reported that has not ended.
    fetching: bool,
    /// Sentences for the log, not reported yet.
    notes: Vec<String>,
}

struct Phase {
    meter: Meter,
    before: u64,
    expected: u64,
    told: u64,
}

impl Watch {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what a client reports.
    pub(crate) fn note(&self, event: &Event<'_>) {
        let mut seen = self.seen();
        match event {
            Event::Offline {
                meter, expected, ..
            } => {
                seen.steps.push((0, *expected));
                seen.phase = Some(Phase {
                    meter: (*meter).clone(),
                    before: meter.report().total().bytes(),
                    expected: *expected,
                    told: 0,
                });
            }
            Event::Prepared { .. } => {
                if let Some(phase) = seen.phase.take() {
                    seen.steps.push((phase.expected, phase.expected));
                }
            }
            Event::Hint { done, bytes } => {
                // Every piece of work begins with nothing, even if some of it was there before.
                if !seen.fetching && *done > 0 {
                    seen.steps.push((0, *bytes));
                }
                seen.fetching = done < bytes;
                seen.steps.push((*done, *bytes));
            }
            Event::NoCopy { error } => seen
                .notes
                .push(format!("{error}; the rest is fetched from the server")),
            Event::Retry { error, attempt } => {
                seen.phase = None;
                seen.notes.push(format!("{error}; attempt {attempt}"));
            }
            Event::Waiting { error, pause } => {
                seen.phase = None;
                let seconds = pause.as_secs_f64();
                seen.notes
                    .push(format!("{error}; asking again in {seconds:.1} s"));
            }
            Event::Discarded { id, refusal } => seen.notes.push(format!(
                "bundle {id} was deleted: the server says that {refusal}"
            )),
            _ => {}
        }
    }

    /// Takes what is to be reported now: steps and sentences.
    pub(crate) fn take(&self) -> (Vec<(u64, u64)>, Vec<String>) {
        let mut seen = self.seen();
        let mut steps = std::mem::take(&mut seen.steps);
        if let Some(phase) = &mut seen.phase {
            let passed = phase.meter.report().total().bytes() - phase.before;
            // The last step is reported when the bundles are stored.
            let passed = passed.min(phase.expected.saturating_sub(1));
            if passed > phase.told {
                phase.told = passed;
                steps.push((passed, phase.expected));
            }
        }
        (steps, std::mem::take(&mut seen.notes))
    }

    /// Forgets a phase that ended otherwise.
    pub(crate) fn forget(&self) {
        *self.seen() = Seen::default();
    }
}

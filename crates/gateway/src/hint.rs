//! The model's hint, which a client fetches before it prepares for the first time: what is logged
//! about it.

use primer::Event;

/// Percent between two lines of the log.
const STEP: u64 = 10;

/// How far the fetch has come, as far as the log knows.
#[derive(Default)]
pub(crate) struct HintLog {
    /// The next percentage that is worth a line.
    next: u64,
}

impl HintLog {
    /// Logs what a client reports about its hint.
    pub(crate) fn heed(&mut self, event: &Event<'_>) {
        match event {
            Event::Hint { done, bytes } => {
                let percent = done.saturating_mul(100) / (*bytes).max(1);
                if self.reaches(percent) {
                    tracing::info!(percent, bytes, "fetching the model's hint");
                }
            }
            Event::NoCopy { error } => {
                tracing::warn!("{error}; the rest of the hint is fetched from the server");
            }
            _ => {}
        }
    }

    /// Tells whether a percentage is worth a line; the last one is the end.
    fn reaches(&mut self, percent: u64) -> bool {
        let reached = percent >= self.next;
        if reached {
            self.next = percent / STEP * STEP + STEP;
        }
        if percent == 100 {
            self.next = 0;
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fetch_takes_a_few_lines() {
        let mut log = HintLog::default();
        let told: Vec<u64> = (0..=100).filter(|percent| log.reaches(*percent)).collect();
        assert_eq!(told.len(), 11);
        assert_eq!((told[0], told[10]), (0, 100));
        // The next one begins anew.
        assert!(log.reaches(3) && !log.reaches(9) && log.reaches(47) && log.reaches(100));
    }
}

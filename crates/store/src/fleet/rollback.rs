//! What a replica keeps of a rollback that it noticed, on its own disk and in the database.
//!
//! A rollback is noticed by a replica that has seen an epoch which the database no longer has. It
//! stays noticed: the replica writes a *latch* into its state directory, and the same facts into
//! the table `primer_rollbacks`, again at every look while they are missing there. A replica that
//! is latched uses nothing of the store, and neither does one that finds such a row: a new replica
//! has seen nothing and cannot tell by itself.
//!
//! Only a renewal answers a rollback, and only one whose number is greater than the
//! [`floor`](Rollback::floor): the epoch that was seen, the one that was found, and the seconds of
//! the clock then. `primer store renew` takes a number above the clock and above all floors on
//! record, so the next one always answers. One that came before the rollback has a smaller number:
//! it lies in the history that was seen, or was made at an earlier second.

use super::epoch::Epoch;
use std::fmt;

/// A rollback, as one replica noticed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rollback {
    /// What that replica is called.
    pub(super) replica: String,
    /// The epoch that it had seen.
    pub(super) seen: u64,
    /// The epoch that it found the database at, without the one that it had seen.
    pub(super) found: u64,
    /// When, in Unix seconds.
    pub(super) at: u64,
}

impl Rollback {
    /// Returns the number that a renewal must exceed.
    pub(super) fn floor(&self) -> u64 {
        self.seen.max(self.found).max(self.at)
    }

    /// Tells whether a renewal took place since.
    pub(super) fn is_answered(&self, renewed: u64) -> bool {
        renewed > self.floor()
    }
}

impl fmt::Display for Rollback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            replica,
            seen,
            found,
            at,
        } = self;
        // The name may come from the database.
        let replica = replica.escape_debug();
        write!(
            f,
            "replica {replica} had seen epoch {seen}, and at {at} (Unix time) it found the \
             database at epoch {found}, with a history that lacks it"
        )
    }
}

/// A rollback of one store, as it is kept in a replica's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Latch {
    /// The epoch that was seen, and so the store.
    pub(super) seen: Epoch,
    pub(super) rollback: Rollback,
}

impl Latch {
    /// Reads a line that [`fmt::Display`] wrote.
    pub(super) fn parse(line: &str, replica: &str) -> Option<Self> {
        let mut parts = line.split(' ');
        let seen = Epoch::parse(parts.next()?)?;
        let mut number = || parts.next()?.parse().ok();
        let rollback = Rollback {
            replica: replica.to_owned(),
            seen: seen.number,
            found: number()?,
            at: number()?,
        };
        let latch = Self { seen, rollback };
        (latch.to_string() == line).then_some(latch)
    }
}

impl fmt::Display for Latch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rollback { found, at, .. } = self.rollback;
        write!(f, "{} {found} {at}", self.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latch_is_read_back_and_nothing_else_is_one() {
        let seen = Epoch::first().after(41);
        let rollback = Rollback {
            replica: "west-1".into(),
            seen: 42,
            found: 17,
            at: 1_700_000_000,
        };
        let latch = Latch { seen, rollback };
        let line = latch.to_string();
        assert_eq!(Latch::parse(&line, "west-1"), Some(latch));
        for wrong in [
            "",
            "1 2 3",
            &line[1..],
            &format!("{line} "),
            &line.replace(" 17", " +17"),
        ] {
            assert_eq!(Latch::parse(wrong, "west-1"), None, "{wrong}");
        }
    }

    #[test]
    fn only_a_greater_number_than_all_that_was_known_answers() {
        let rollback = |seen, found, at| Rollback {
            replica: "a\nb".into(),
            seen,
            found,
            at,
        };
        for (seen, found, at) in [(9, 5, 7), (5, 9, 7), (5, 7, 9)] {
            assert!(!rollback(seen, found, at).is_answered(9));
            assert!(rollback(seen, found, at).is_answered(10));
        }
        let said = rollback(9, 5, 7).to_string();
        assert!(said.contains("had seen epoch 9"), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }
}

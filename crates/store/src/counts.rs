//! Counts that last: how many bundles were prepared for an account, and how many answers it had.
//!
//! What a client can learn of a model grows with the answers that it gets, so a server bounds them,
//! for each access token or, where there are none, for each pseudonym. A bound is worth something
//! only if its count outlives the process and cannot be given back: counts stand in the index (or
//! the database of replicas), *an answer is counted in the transaction that spends its bundle*, and
//! a preparation before it begins. Nothing that happens to a bundle afterwards, a crash, its
//! expiry, a deletion, takes from a count.
//!
//! | counted | when, durably | not counted |
//! |---|---|---|
//! | a bundle prepared | before its preparation begins, no matter what becomes of it | |
//! | an answer | when its bundle is spent | a bundle found damaged |
//!
//! An *account* is a hash of an access token's hash, or of a pseudonym where there are no tokens.
//! Accounts of tokens are kept for ever; of pseudonyms, which a client can draw anew, the 65,536
//! that were used last: the sweep of expired bundles, every ten minutes, forgets the others.
//!
//! A *day* is one of universal time. A clock that is set back does not begin a day anew: counts of
//! a later day go on counting until that day is over.

use crate::error::{Result, StoreError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Number of accounts of clients that drew a pseudonym whose counts are kept; beyond that, the ones
/// that have been idle longest are forgotten. (A client that wants to be forgotten draws another
/// pseudonym.)
pub const PASSING_ACCOUNTS: usize = 1 << 16;

const DAY: u64 = 24 * 3600;

/// Whose counts they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub id: [u8; 32],
    /// Whether it is kept forever, as that of an access token is; of others there are at most
    /// [`PASSING_ACCOUNTS`].
    pub lasting: bool,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Counted {
    /// Bundles whose preparation was begun.
    Prepared,
    /// Bundles that were spent.
    Answers,
}

impl Counted {
    /// Returns what `number` of it are called.
    fn name(self, number: u64) -> &'static str {
        match (self, number) {
            (Self::Prepared, 1) => "prepared bundle",
            (Self::Prepared, _) => "prepared bundles",
            (Self::Answers, 1) => "answer",
            (Self::Answers, _) => "answers",
        }
    }
}

/// How much of something an account may have; as text `1000/day`, `100000` (in all),
/// `1000/day,100000` or `unlimited`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// On one day.
    pub per_day: Option<u64>,
    /// In all.
    pub in_all: Option<u64>,
}

impl Allowance {
    /// No limit.
    pub const UNLIMITED: Self = Self {
        per_day: None,
        in_all: None,
    };
}

/// What a client may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowances {
    /// How many bundles may be prepared for it.
    pub prepared: Allowance,
    /// How many answers it may have.
    pub answers: Allowance,
}

/// Not a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a limit is a number a day, a number in all, or both, as in 1000/day, 100000 or \
     1000/day,100000; or it is the word unlimited"
)]
pub struct NotAnAllowance;

impl FromStr for Allowance {
    type Err = NotAnAllowance;

    fn from_str(text: &str) -> std::result::Result<Self, NotAnAllowance> {
        let mut allowance = Self::UNLIMITED;
        if text == "unlimited" {
            return Ok(allowance);
        }
        for part in text.split(',') {
            let (digits, place) = match part.strip_suffix("/day") {
                Some(digits) => (digits, &mut allowance.per_day),
                None => (part, &mut allowance.in_all),
            };
            // `parse` would take a sign.
            let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
            let number = digits.parse().ok().filter(|_| is_number);
            let number = number.ok_or(NotAnAllowance)?;
            if place.replace(number).is_some() {
                return Err(NotAnAllowance);
            }
        }
        Ok(allowance)
    }
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.per_day, self.in_all) {
            (None, None) => f.write_str("unlimited"),
            (Some(day), None) => write!(f, "{day}/day"),
            (None, Some(all)) => write!(f, "{all}"),
            (Some(day), Some(all)) => write!(f, "{day}/day,{all}"),
        }
    }
}

/// How many of something an account has had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// In all.
    pub in_all: u64,
    /// The day that was counted last, since 1970.
    pub(crate) day: u64,
    /// On that day.
    pub(crate) on_day: u64,
}

impl Tally {
    /// Returns how many there were on the day of `now`.
    pub fn today(&self, now: u64) -> u64 {
        if self.day < now / DAY { 0 } else { self.on_day }
    }

    /// Adds `number` if that is allowed.
    fn add(&mut self, what: Counted, number: u64, allowance: Allowance, now: u64) -> Result<()> {
        let day = self.day.max(now / DAY);
        let on_day = if day > self.day { 0 } else { self.on_day };
        let check = |had: u64, limit: Option<u64>, ends: Option<u64>| match limit {
            Some(limit) if had.saturating_add(number) > limit => {
                Err(StoreError::Limit(Exhausted {
                    what,
                    limit,
                    had,
                    asked: number,
                    ends_in: ends.map(|at| at.saturating_sub(now)),
                }))
            }
            _ => Ok(()),
        };
        // A limit that waiting does not lift is reported first.
        check(self.in_all, allowance.in_all, None)?;
        let midnight = day.saturating_add(1).saturating_mul(DAY);
        check(on_day, allowance.per_day, Some(midnight))?;
        *self = Self {
            in_all: self.in_all.saturating_add(number),
            day,
            on_day: on_day.saturating_add(number),
        };
        Ok(())
    }
}

/// What an account has had so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bundles whose preparation was begun.
    pub prepared: Tally,
    /// Bundles that were spent.
    pub answers: Tally,
    /// When either of them last grew, in Unix seconds.
    pub changed: u64,
}

impl Counts {
    /// Checks that a charge is within what is allowed.
    ///
    /// # Errors
    /// [`StoreError::Limit`], which names the limit and when it ends.
    pub fn check(&self, charge: &Charge, now: u64) -> Result<()> {
        self.with(charge, now).map(drop)
    }

    /// Returns by how many days what was counted last lies ahead of `now`: by more than one only if
    /// a clock was wrong.
    pub fn days_ahead(&self, what: Counted, now: u64) -> u64 {
        let tally = match what {
            Counted::Prepared => &self.prepared,
            Counted::Answers => &self.answers,
        };
        tally.day.saturating_sub(now / DAY)
    }

    /// Returns the counts after a charge, if it is within what is allowed.
    pub(crate) fn with(mut self, charge: &Charge, now: u64) -> Result<Self> {
        let tally = match charge.what {
            Counted::Prepared => &mut self.prepared,
            Counted::Answers => &mut self.answers,
        };
        tally.add(charge.what, charge.number, charge.allowance, now)?;
        self.changed = self.changed.max(now);
        Ok(self)
    }
}

/// Something to be counted, if it is allowed.
#[derive(Debug, Clone, Copy)]
pub struct Charge {
    /// For whom.
    pub account: Account,
    /// What.
    pub what: Counted,
    /// How many.
    pub number: u64,
    /// How many there may be.
    pub allowance: Allowance,
}

/// A limit that was reached: which one, and when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exhausted {
    /// Of what there may be no more.
    pub what: Counted,
    /// How many there may be, on a day or in all.
    pub limit: u64,
    /// How many there were.
    pub had: u64,
    /// How many more were asked for.
    pub asked: u64,
    /// Seconds until the day ends, if the limit is one of a day.
    pub ends_in: Option<u64>,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            limit,
            had,
            asked,
            ends_in,
            ..
        } = self;
        let what = self.what.name(*limit);
        let of = match ends_in {
            Some(_) => "a day",
            None => "in all",
        };
        write!(
            f,
            "the limit of a client is {limit} {what} {of}, it has had {had} and asks for {asked} \
             more; "
        )?;
        match ends_in {
            None => f.write_str("only its operator can raise that"),
            Some(seconds) => {
                let (hours, minutes) = (seconds / 3600, seconds % 3600 / 60);
                match hours {
                    0 if minutes == 0 => write!(f, "the day ends in {seconds} s")?,
                    0 => write!(f, "the day ends in {minutes} min")?,
                    _ => write!(f, "the day ends in {hours} h {minutes} min")?,
                }
                f.write_str(", at midnight of universal time")
            }
        }
    }
}

/// What a store knows of one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counting {
    /// Whose.
    pub account: Account,
    /// What it has had.
    pub counts: Counts,
}

/// Returns the accounts that are forgotten so that at most `keep` passing ones stay.
#[cfg(feature = "files")]
pub(crate) fn to_forget(mut all: Vec<Counting>, keep: usize) -> Vec<Account> {
    all.retain(|one| !one.account.lasting);
    all.sort_by_key(|one| (one.counts.changed, one.account.id));
    let more = all.len().saturating_sub(keep);
    all.iter().take(more).map(|one| one.account).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 20_000 * DAY + DAY / 2;

    fn charge(what: Counted, number: u64, allowance: &str) -> Charge {
        Charge {
            account: Account {
                id: [1; 32],
                lasting: true,
            },
            what,
            number,
            allowance: allowance.parse().unwrap(),
        }
    }

    fn limit(counts: &Counts, charge: &Charge, now: u64) -> Exhausted {
        match counts.check(charge, now) {
            Err(StoreError::Limit(exhausted)) => exhausted,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn limits_are_written_as_they_are_read() {
        for text in ["unlimited", "0", "5/day", "100000", "1000/day,100000"] {
            assert_eq!(text.parse::<Allowance>().unwrap().to_string(), text);
        }
        let turned: Allowance = "100000,1000/day".parse().unwrap();
        assert_eq!(turned.to_string(), "1000/day,100000");
        for wrong in [
            "",
            ",",
            "5,",
            "5,6",
            "5/day,6/day",
            "-5",
            "+5",
            "5/hour",
            "5 /day",
            "1000/day,unlimited",
            "18446744073709551616",
        ] {
            assert!(wrong.parse::<Allowance>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_day_ends_at_midnight_and_all_never_does() {
        let one = charge(Counted::Answers, 1, "2/day,3");
        let mut counts = Counts::default();
        for used in 1..=2 {
            counts = counts.with(&one, NOON).unwrap();
            assert_eq!(counts.answers.today(NOON), used);
        }
        let full = limit(&counts, &one, NOON);
        assert_eq!((full.limit, full.had, full.asked), (2, 2, 1));
        assert_eq!(full.ends_in, Some(DAY / 2));
        let midnight = NOON + DAY / 2;
        assert_eq!(limit(&counts, &one, midnight - 1).ends_in, Some(1));
        assert_eq!(counts.answers.today(midnight), 0);
        counts = counts.with(&one, midnight).unwrap();
        assert_eq!((counts.answers.in_all, counts.changed), (3, midnight));
        let full = limit(&counts, &one, midnight + 900 * DAY);
        assert_eq!((full.limit, full.had, full.ends_in), (3, 3, None));
        // Several at once do not fit where one does, and the other count is separate.
        let counts = Counts::default().with(&one, NOON).unwrap();
        assert!(counts.check(&one, NOON).is_ok());
        assert!(
            counts
                .check(&charge(Counted::Answers, 2, "2/day"), NOON)
                .is_err()
        );
        assert!(
            counts
                .check(&charge(Counted::Prepared, 2, "2/day"), NOON)
                .is_ok()
        );
        assert!(
            counts
                .check(&charge(Counted::Answers, u64::MAX, "2"), NOON)
                .is_err()
        );
        assert!(
            counts
                .check(&charge(Counted::Answers, 1, "0"), NOON)
                .is_err()
        );
    }

    /// Checks that setting the server's clock back gives no counts back.
    #[test]
    fn a_clock_that_is_set_back_gives_nothing_back() {
        let one = charge(Counted::Prepared, 1, "1/day");
        let counts = Counts::default().with(&one, NOON).unwrap();
        let before = NOON - 3 * DAY;
        assert_eq!(counts.prepared.today(before), 1);
        assert_eq!(
            limit(&counts, &one, before).ends_in,
            Some(3 * DAY + DAY / 2)
        );
        assert!(counts.check(&one, NOON + DAY).is_ok());
        // A warning is due when it was set back by more than a day.
        let ahead = |now| counts.days_ahead(Counted::Prepared, now);
        assert_eq!([NOON - DAY, before].map(ahead), [1, 3]);
        assert_eq!([NOON, NOON + DAY].map(ahead), [0, 0]);
        assert_eq!(counts.days_ahead(Counted::Answers, NOON), 0);
    }

    #[test]
    fn a_refusal_names_the_limit_and_when_it_ends() {
        let counts = Counts::default()
            .with(&charge(Counted::Prepared, 998, "unlimited"), NOON)
            .unwrap();
        let say = |allowance, now| {
            let charge = charge(Counted::Prepared, 4, allowance);
            limit(&counts, &charge, now).to_string()
        };
        assert_eq!(
            say("1000/day", NOON - 720),
            "the limit of a client is 1000 prepared bundles a day, it has had 998 and asks for 4 \
             more; the day ends in 12 h 12 min, at midnight of universal time"
        );
        assert!(say("1000/day", NOON + DAY / 2 - 90).contains("ends in 1 min,"));
        assert!(say("1000/day", NOON + DAY / 2 - 9).contains("ends in 9 s,"));
        let text = say("1001", NOON);
        assert!(
            text.contains("1001 prepared bundles in all, it has had 998"),
            "{text}"
        );
        assert!(text.ends_with("only its operator can raise that"), "{text}");
    }

    #[test]
    fn only_passing_accounts_are_forgotten_the_stalest_first() {
        let all = (0..6u8).map(|n| Counting {
            account: Account {
                id: [n; 32],
                lasting: n < 2,
            },
            counts: Counts {
                changed: u64::from(100 - n),
                ..Counts::default()
            },
        });
        let all: Vec<_> = all.collect();
        let forgotten: Vec<_> = to_forget(all.clone(), 3).iter().map(|a| a.id[0]).collect();
        assert_eq!(forgotten, [5]);
        assert_eq!(to_forget(all.clone(), 0).len(), 4);
        assert!(to_forget(all, 4).is_empty());
    }
}

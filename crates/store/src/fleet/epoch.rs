//! The epoch: what database and blobs must agree on, and what a replica has seen of it.
//!
//! An epoch has a number and a random nonce, and belongs to one store. The database holds the
//! current one in a row; the blobs hold it as an empty object whose *name* is the epoch. A move:
//!
//! 1. the blobs get the object of the next epoch;
//! 2. the database makes it the current one, and appends it to the chain, in one transaction;
//! 3. the blobs lose all others.
//!
//! No matter where a move is killed, the object of the current epoch is there: it is deleted only
//! in 3, when it is no longer the current one. A database from before step 2 that is brought back
//! finds its object gone; blobs from before step 1 lack the object that the database asks for.
//! Objects that arrive late (a request that was given up and went through after all) are of epochs
//! that never become current. A look that reads the database before step 2 and the blobs after step
//! 3 finds them apart; the next look does not.
//!
//! # The chain
//!
//! Database and blobs that are restored together agree with each other. Only a replica that has
//! seen a later epoch can tell, and a comparison of numbers would forget: a replica with an empty
//! state goes on from the restored epoch, and a few minutes later the numbers are past those that
//! were seen. So the database keeps *all* epochs that were current, as rows (number, nonce). They
//! are one line: a number grows with every move, has one row and is never used again. A replica
//! that has seen epoch (n, x) asks for the row n:
//!
//! * it has the nonce x: all that the replica has seen is in this history ([`follows`] is content);
//! * it has another one, or there is none: this is another history, of which x is no part, however
//!   far it has come. Nonces are random, so going on from a restored epoch never leads to x.
//!
//! # Renewals
//!
//! `primer store renew` buries all bundles, begins an epoch whose number is above all that are
//! known and above the clock, and notes that number as `renewed`, all in one transaction. A replica
//! follows a history that it has not seen if `renewed` is greater than the number n that it has
//! seen. That is safe, because numbers grow along a line: what the replica has seen ended before
//! the renewal, and each bundle that was stored then is buried in this history or unknown to it. A
//! restored copy with a renewal of its own does not pass: that renewal is part of the history up to
//! n, so its number is not greater than n. (It may be part of a history that this replica has not
//! seen, because it was away. Then it has seen nothing that contradicts the copy; others have.)
//!
//! Since a renewal ends what came before, the chain begins at the latest one. A chain that no
//! renewal cut is cut 600,000 epochs back, which takes more than eleven months; a replica that was
//! away for longer cannot compare, says so and does not start. A store from before there was a
//! chain begins it at the epoch of the upgrade; a replica that has seen only earlier ones has their
//! numbers compared once, as the previous version did.

use std::fmt;

/// A state that database and blobs are in together.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) store: [u8; 16],
    pub(crate) number: u64,
    pub(crate) nonce: [u8; 16],
}

/// What the database says, to a replica that has seen some epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) current: Epoch,
    /// The number of the latest renewal.
    pub(crate) renewed: u64,
    /// Where the chain of a store begins that is older than the chain.
    pub(crate) chained: u64,
    /// The first number of the chain.
    pub(crate) oldest: u64,
    /// The nonce that the chain has for the number that was seen.
    pub(crate) passed: Option<[u8; 16]>,
}

/// Why a replica cannot go on with what the database says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// What was seen is not in this history: it is older, or another one.
    RolledBack,
    /// The history begins after what was seen.
    Away,
}

fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system provides randomness");
    bytes
}

impl Epoch {
    /// Makes the first epoch of a new store.
    pub(crate) fn first() -> Self {
        Self {
            store: random(),
            number: 1,
            nonce: random(),
        }
    }

    /// Makes the epoch after this one and after the number `other`, which was seen elsewhere.
    pub(crate) fn after(&self, other: u64) -> Self {
        Self {
            store: self.store,
            number: self.number.max(other).saturating_add(1),
            nonce: random(),
        }
    }

    /// Parses a name that [`fmt::Display`] wrote; nothing else is an epoch.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let mut part = || parts.next();
        let epoch = Self {
            store: bytes(part()?)?,
            number: part()?.parse().ok()?,
            nonce: bytes(part()?)?,
        };
        (epoch.to_string() == name).then_some(epoch)
    }
}

fn bytes(digits: &str) -> Option<[u8; 16]> {
    let id: crate::BundleId = digits.parse().ok()?;
    Some(*id.as_bytes())
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = |bytes| crate::BundleId::from_bytes(bytes);
        let (store, nonce) = (digits(self.store), digits(self.nonce));
        write!(f, "{store}-{:012}-{nonce}", self.number)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Checks that the blobs are in the epoch that the database is in; the error says what does not
/// fit.
pub(crate) fn agree(current: &Epoch, blobs: &[Epoch]) -> Result<(), String> {
    if blobs.contains(current) {
        return Ok(());
    }
    let number = current.number;
    Err(match blobs.iter().max_by_key(|epoch| epoch.number) {
        None => format!("the database is at epoch {number}, the blobs have none"),
        Some(other) if other.store != current.store => {
            "the blobs belong to another store".to_owned()
        }
        Some(other) if other.number == number => {
            format!("the database and the blobs are at different epochs {number}")
        }
        Some(other) => {
            let blobs = other.number;
            format!("the database is at epoch {number}, the blobs are at {blobs}")
        }
    })
}

/// Checks that the history of the database goes through the epoch that was seen, or buried what
/// came before it.
pub(crate) fn follows(recorded: &Recorded, seen: Option<&Epoch>) -> Result<(), Departure> {
    // Another store is a matter of the options, not of a backup.
    let Some(seen) = seen.filter(|seen| seen.store == recorded.current.store) else {
        return Ok(());
    };
    let number = seen.number;
    let upgraded = recorded.oldest == recorded.chained && number < recorded.chained;
    match recorded.passed {
        _ if recorded.renewed > number || upgraded => Ok(()),
        Some(nonce) if nonce == seen.nonce => Ok(()),
        None if number < recorded.oldest => Err(Departure::Away),
        _ => Err(Departure::RolledBack),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::slice::from_ref;

    /// A database and blobs, and what the trigger of the table does.
    #[derive(Clone)]
    struct Line {
        current: Epoch,
        renewed: u64,
        chained: u64,
        chain: BTreeMap<u64, [u8; 16]>,
        blobs: Vec<Epoch>,
    }

    impl Line {
        fn new() -> Self {
            let current = Epoch::first();
            Self {
                renewed: 0,
                chained: 0,
                chain: BTreeMap::from([(1, current.nonce)]),
                blobs: vec![current.clone()],
                current,
            }
        }

        fn recorded(&self, seen: Option<&Epoch>) -> Recorded {
            Recorded {
                current: self.current.clone(),
                renewed: self.renewed,
                chained: self.chained,
                oldest: *self.chain.keys().next().unwrap(),
                passed: seen.and_then(|seen| self.chain.get(&seen.number).copied()),
            }
        }

        fn look(&self, seen: Option<&Epoch>) -> Result<(), Departure> {
            follows(&self.recorded(seen), seen)
        }

        /// Takes the first `steps` steps of a move: the object, the row, the other objects.
        fn step(&mut self, to: &Epoch, steps: usize) {
            if steps > 0 {
                self.blobs.push(to.clone());
            }
            if steps > 1 {
                self.current = to.clone();
                self.chain.insert(to.number, to.nonce);
                let first = self.renewed.max(to.number.saturating_sub(600_000));
                self.chain = self.chain.split_off(&first);
            }
            if steps > 2 {
                self.blobs = vec![to.clone()];
            }
        }

        fn advance(&mut self) {
            self.step(&self.current.after(0), 3);
        }

        fn renew(&mut self, clock: u64) {
            let to = self.current.after(clock);
            self.renewed = to.number;
            self.step(&to, 3);
        }
    }

    #[test]
    fn names_are_read_back_and_others_are_not() {
        let epoch = Epoch::first().after(41);
        assert_eq!(epoch.number, 42);
        let name = epoch.to_string();
        assert_eq!(Epoch::parse(&name), Some(epoch));
        for wrong in [
            "",
            "a-b-c",
            &name[1..],
            &format!("{name}-"),
            &name.replace("0000", "000"),
        ] {
            assert_eq!(Epoch::parse(wrong), None, "{wrong}");
        }
    }

    /// Checks that every state in which a move may be cut short is one of agreement, and of a
    /// history that replicas follow, no matter when they last looked; the next move goes on from
    /// it.
    #[test]
    fn a_move_agrees_at_every_step() {
        let mut line = Line::new();
        let mut seen = vec![line.current.clone()];
        for turn in 0..200 {
            let to = line.current.after(0);
            line.step(&to, turn % 4);
            agree(&line.current, &line.blobs).unwrap();
            for before in seen.iter().map(Some).chain([None]) {
                line.look(before).unwrap();
            }
            seen.push(line.current.clone());
        }
        assert!(line.current.number > 90);
        line.renew(1_000);
        line.advance();
        assert!(seen.iter().all(|before| line.look(Some(before)).is_ok()));
    }

    #[test]
    fn one_part_that_was_restored_is_noticed() {
        let first = Epoch::first();
        let third = first.after(2);
        let says = |current: &Epoch, blobs: &[Epoch]| agree(current, blobs).unwrap_err();
        let fault = says(&first, from_ref(&third));
        assert_eq!(fault, "the database is at epoch 1, the blobs are at 3");
        let fault = says(&third, from_ref(&first));
        assert_eq!(fault, "the database is at epoch 3, the blobs are at 1");
        let fault = says(&third, &[]);
        assert_eq!(fault, "the database is at epoch 3, the blobs have none");
        let fault = says(&third, &[first.after(2)]);
        assert!(fault.contains("at different epochs 3"), "{fault}");
        let fault = says(&first, &[Epoch::first()]);
        assert_eq!(fault, "the blobs belong to another store");
    }

    /// Rolls both parts back together: a replica that has seen more can tell, however far the copy
    /// goes on.
    #[test]
    fn a_restored_history_does_not_overtake() {
        let mut line = Line::new();
        line.renew(500);
        line.advance();
        let mut copy = line.clone();
        (0..3).for_each(|_| line.advance());
        let seen = line.current.clone();
        for _ in 0..50 {
            agree(&copy.current, &copy.blobs).unwrap();
            assert_eq!(copy.look(Some(&seen)), Err(Departure::RolledBack));
            // One that has seen nothing cannot tell.
            assert_eq!(copy.look(None), Ok(()));
            copy.advance();
        }
        assert!(copy.current.number > seen.number);
        assert_eq!(
            copy.look(Some(&Epoch::first().after(600))),
            Ok(()),
            "another store"
        );
        // A renewal after all that was seen is followed, and so is what comes after it.
        copy.renew(1_000);
        assert_eq!(copy.look(Some(&seen)), Ok(()));
        copy.advance();
        assert_eq!(copy.look(Some(&seen)), Ok(()));
        assert_eq!(copy.chain.len(), 2);
        // The other way round: what was seen of the renewed history is no part of the old one.
        assert_eq!(line.look(Some(&copy.current)), Err(Departure::RolledBack));
    }

    #[test]
    fn a_history_that_begins_later_is_told_apart() {
        let mut line = Line::new();
        let first = line.current.clone();
        line.advance();
        let second = line.current.clone();
        // The upgrade: the chain begins with the current epoch.
        line.chained = 2;
        line.chain = line.chain.split_off(&2);
        assert_eq!(line.look(Some(&first)), Ok(()));
        assert_eq!(line.look(Some(&second)), Ok(()));
        assert_eq!(line.look(Some(&first.after(0))), Err(Departure::RolledBack));
        // Long afterwards.
        let late = second.after(700_000);
        line.step(&late, 3);
        for away in [&first, &second] {
            assert_eq!(line.look(Some(away)), Err(Departure::Away));
        }
        assert_eq!(line.look(Some(&late)), Ok(()));
    }
}

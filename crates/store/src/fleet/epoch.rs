//! The epoch: what database and blobs must agree on.
//!
//! An epoch has a number and a random nonce, and belongs to one store. The database holds the
//! current one in a row, and the next while it moves on; the blobs hold each as an empty object
//! whose *name* is the epoch. To move on:
//!
//! 1. the database notes the next epoch;
//! 2. the blobs get its object;
//! 3. the database makes it the current one;
//! 4. the blobs lose all others.
//!
//! Killed anywhere, the object of the current epoch is there: it goes only in 4, when it is no
//! longer the current one. A database of before step 4 that is brought back finds its object gone;
//! blobs of before step 2 lack the object that the database asks for. Objects that arrive late (a
//! request that was given up and went through after all) are of epochs that never become current.

use std::fmt;

/// A state that database and blobs are in together.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) store: [u8; 16],
    pub(crate) number: u64,
    pub(crate) nonce: [u8; 16],
}

/// What the database holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) current: Epoch,
    pub(crate) next: Option<Epoch>,
}

fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system provides randomness");
    bytes
}

impl Epoch {
    /// The first one of a new store.
    pub(crate) fn first() -> Self {
        Self {
            store: random(),
            number: 1,
            nonce: random(),
        }
    }

    /// The one after this and after a number that was seen elsewhere.
    pub(crate) fn after(&self, other: u64) -> Self {
        Self {
            store: self.store,
            number: self.number.max(other).saturating_add(1),
            nonce: random(),
        }
    }

    /// Reads a name that [`fmt::Display`] wrote; nothing else is an epoch.
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

/// The epoch that database and blobs are in, given what this replica has seen before; or what does
/// not fit.
pub(crate) fn agree(
    recorded: &Recorded,
    blobs: &[Epoch],
    seen: Option<&Epoch>,
) -> Result<Epoch, String> {
    let Recorded { current, next } = recorded;
    let there = |epoch: &&Epoch| blobs.contains(epoch);
    let agreed = Some(current).filter(there).or(next.as_ref().filter(there));
    let Some(agreed) = agreed else {
        let number = current.number;
        let other = blobs.iter().max_by_key(|epoch| epoch.number);
        return Err(match other {
            None => format!("the database is at epoch {number}, the blobs have none"),
            Some(other) if other.store != current.store => {
                "the blobs belong to another store".to_owned()
            }
            Some(other) => {
                let blobs = other.number;
                format!("the database is at epoch {number}, the blobs are at {blobs}")
            }
        });
    };
    not_before(agreed, seen)?;
    Ok(agreed.clone())
}

/// An epoch must not come before one that was seen.
pub(crate) fn not_before(epoch: &Epoch, seen: Option<&Epoch>) -> Result<(), String> {
    // Another store is a matter of the options, not of a backup.
    let Some(seen) = seen.filter(|seen| seen.store == epoch.store) else {
        return Ok(());
    };
    let (number, before) = (epoch.number, seen.number);
    if number < before {
        return Err(format!(
            "the store is at epoch {number}, and this replica has seen {before}"
        ));
    }
    if number == before && epoch.nonce != seen.nonce {
        return Err(format!(
            "the store is at another epoch {number} than the one that this replica has seen"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_ref;

    fn recorded(current: &Epoch, next: Option<&Epoch>) -> Recorded {
        Recorded {
            current: current.clone(),
            next: next.cloned(),
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

    /// Every state in which a move may be cut short is one of agreement.
    #[test]
    fn a_move_agrees_at_every_step() {
        let old = Epoch::first();
        let new = old.after(0);
        let steps = [
            (recorded(&old, None), vec![old.clone()], &old),
            (recorded(&old, Some(&new)), vec![old.clone()], &old),
            (
                recorded(&old, Some(&new)),
                vec![new.clone(), old.clone()],
                &old,
            ),
            (recorded(&new, None), vec![old.clone(), new.clone()], &new),
            (recorded(&new, None), vec![new.clone()], &new),
        ];
        let mut seen: Option<Epoch> = None;
        for (recorded, blobs, expected) in steps {
            let agreed = agree(&recorded, &blobs, seen.as_ref()).unwrap();
            assert_eq!(&agreed, expected);
            seen = Some(agreed);
        }
    }

    #[test]
    fn what_was_restored_is_noticed() {
        let first = Epoch::first();
        let second = first.after(0);
        let third = second.after(0);
        let says = |recorded: &Recorded, blobs: &[Epoch], seen: Option<&Epoch>| {
            agree(recorded, blobs, seen).unwrap_err()
        };
        // The database alone, the blobs alone, neither but emptied blobs.
        let fault = says(&recorded(&first, Some(&second)), from_ref(&third), None);
        assert_eq!(fault, "the database is at epoch 1, the blobs are at 3");
        let fault = says(&recorded(&third, None), from_ref(&first), None);
        assert_eq!(fault, "the database is at epoch 3, the blobs are at 1");
        let fault = says(&recorded(&third, None), &[], None);
        assert_eq!(fault, "the database is at epoch 3, the blobs have none");
        // Both together: only a witness can tell.
        let both = [first.clone()];
        assert!(agree(&recorded(&first, None), &both, None).is_ok());
        let fault = says(&recorded(&first, None), &both, Some(&second));
        assert!(fault.contains("this replica has seen 2"), "{fault}");
        // And went on from there.
        let twin = first.after(0);
        let fault = says(&recorded(&twin, None), from_ref(&twin), Some(&second));
        assert!(fault.contains("another epoch 2"), "{fault}");
        // Another store is nobody's backup.
        let other = Epoch::first();
        let fault = says(&recorded(&first, None), from_ref(&other), None);
        assert_eq!(fault, "the blobs belong to another store");
        assert!(agree(&recorded(&other, None), from_ref(&other), Some(&third)).is_ok());
    }
}

//! Answers that are promised: those between the reply at which a client spends its half of a bundle
//! and the moment when they are counted.
//!
//! Of several sessions of one account that ask at once, only as many may hear that reply as there
//! are answers left: one that is refused afterwards has lost a bundle. So what is promised counts
//! like what was had, until it is counted or given back. What belongs to one account is done under
//! one lock, so that no answer is seen twice, or not at all, while it turns from a promise into a
//! count. Replicas that share a store know nothing of each other's promises; among them the count
//! decides, which is durable and theirs together.

use primer_store::{Allowance, Charge, Exhausted, Store, StoreError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is promised, by account.
#[derive(Default)]
pub(crate) struct Promises(Mutex<HashMap<[u8; 32], Arc<Mutex<u64>>>>);

/// Something promised; given back when it is dropped.
pub(crate) struct Promise<'a> {
    charge: Charge,
    /// None if there may be any number.
    account: Option<Promised<'a>>,
}

/// What is promised to one account. The last one of an account takes it out of the list.
struct Promised<'a> {
    all: &'a Promises,
    id: [u8; 32],
    number: Arc<Mutex<u64>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Promises {
    /// Promises what is to be charged, if that is allowed beside all that was counted and all that
    /// is promised.
    pub(crate) fn make(
        &self,
        store: &Store,
        charge: Charge,
        now: u64,
    ) -> Result<Promise<'_>, StoreError> {
        if charge.allowance == Allowance::UNLIMITED {
            let account = None;
            return Ok(Promise { charge, account });
        }
        let account = self.of(charge.account.id);
        let mut promised = lock(&account.number);
        let all = Charge {
            number: promised.saturating_add(charge.number),
            ..charge
        };
        let counts = store.counts(&charge.account.id)?;
        counts.check(&all, now).map_err(|error| match error {
            StoreError::Limit(limit) => StoreError::Limit(Exhausted {
                had: limit.had.saturating_add(*promised),
                asked: charge.number,
                ..limit
            }),
            other => other,
        })?;
        *promised = all.number;
        drop(promised);
        let account = Some(account);
        Ok(Promise { charge, account })
    }

    fn of(&self, id: [u8; 32]) -> Promised<'_> {
        let number = Arc::clone(lock(&self.0).entry(id).or_default());
        let all = self;
        Promised { all, id, number }
    }
}

impl Promise<'_> {
    /// Counts what was promised, by a function that does so durably.
    pub(crate) fn keep<T>(
        mut self,
        count: impl FnOnce(&Charge) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let charge = self.charge;
        let Some(account) = &self.account else {
            return count(&charge);
        };
        let mut promised = lock(&account.number);
        let counted = count(&charge);
        *promised -= charge.number;
        self.charge.number = 0;
        drop(promised);
        counted
    }
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            *lock(&account.number) -= self.charge.number;
        }
    }
}

impl Drop for Promised<'_> {
    fn drop(&mut self) {
        let mut all = lock(&self.all.0);
        // The list's and this one. More are only made under the list's lock.
        if Arc::strong_count(&self.number) == 2 {
            all.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_store::{Account, Counted};

    const NOW: u64 = 1_800_000_000;

    fn charge(id: u8, allowance: &str) -> Charge {
        Charge {
            account: Account {
                id: [id; 32],
                lasting: true,
            },
            what: Counted::Answers,
            number: 1,
            allowance: allowance.parse().unwrap(),
        }
    }

    fn limit(made: Result<Promise<'_>, StoreError>) -> Exhausted {
        match made.err() {
            Some(StoreError::Limit(limit)) => limit,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_promised_counts_until_it_is_kept_or_given_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let promises = Promises::default();
        let two = charge(1, "2/day");
        let ask = || promises.make(&store, two, NOW);
        let (one, other) = (ask().unwrap(), ask().unwrap());
        let full = limit(ask());
        assert_eq!((full.limit, full.had, full.asked), (2, 2, 1));
        assert!(promises.make(&store, charge(2, "1"), NOW).is_ok());
        let free = charge(1, "unlimited");
        assert!(promises.make(&store, free, NOW).is_ok());
        // Given back, and promised anew.
        drop(one);
        let one = ask().unwrap();
        assert_eq!(limit(ask()).had, 2);
        // Kept: counted once.
        one.keep(|charge| store.count(charge, NOW)).unwrap();
        assert_eq!(limit(ask()).had, 2);
        // What is not counted in the end is not promised any more either.
        let failed = other.keep(|_| Err::<(), _>(StoreError::NoFleet));
        assert!(failed.is_err());
        drop(ask().unwrap());
        assert_eq!(store.counts(&[1; 32]).unwrap().answers.in_all, 1);
        assert!(lock(&promises.0).is_empty(), "nothing is left of any");
    }

    /// Checks that sessions that ask at once hear no refusal too many, and none too few.
    #[test]
    fn threads_are_promised_as_many_as_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let promises = Promises::default();
        let work = |_| {
            let mut made = 0;
            for _ in 0..8 {
                if let Ok(promise) = promises.make(&store, charge(1, "20"), NOW) {
                    // The count itself never refuses.
                    promise.keep(|charge| store.count(charge, NOW)).unwrap();
                    made += 1;
                }
            }
            made
        };
        let made: u64 = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| work(())));
            threads.map(|thread| thread.join().unwrap()).iter().sum()
        });
        assert_eq!(made, 20);
    }
}

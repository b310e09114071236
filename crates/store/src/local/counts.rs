//! Counts of accounts in the index of a directory.

use super::{Local, Turn};
use crate::counts::{Charge, Counting, Counts, to_forget};
use crate::error::Result;

impl Local {
    pub(crate) fn count(&self, charge: &Charge, now: u64) -> Result<()> {
        let Turn { lock: _lock, index } = self.0.turn()?;
        // A charge beyond the limit is refused without a write.
        index.counts(&charge.account.id)?.check(charge, now)?;
        index.change(|tables| {
            let counts = tables.charged(charge, now)?;
            tables.keep_counts(&charge.account, &counts)
        })
    }

    pub(crate) fn counts(&self, account: &[u8; 32]) -> Result<Counts> {
        self.0.turn()?.index.counts(account)
    }

    pub(crate) fn all_counts(&self) -> Result<Vec<Counting>> {
        self.0.turn()?.index.all_counts()
    }

    /// Forgets the passing accounts that have been idle longest, so that `keep` stay; returns how
    /// many went.
    pub(super) fn forget_counts(&self, keep: usize) -> Result<u64> {
        let Turn { lock: _lock, index } = self.0.turn()?;
        let passing = to_forget(index.all_counts()?, keep);
        if !passing.is_empty() {
            index.change(|tables| {
                let mut each = passing.iter();
                each.try_for_each(|account| tables.forget_counts(account))
            })?;
        }
        Ok(passing.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::{Account, Allowance, Counted};
    use crate::index::Index;
    use crate::local::Options;
    use redb::{Database, TableDefinition};

    fn charge(id: u8, lasting: bool) -> Charge {
        Charge {
            account: Account {
                id: [id; 32],
                lasting,
            },
            what: Counted::Prepared,
            number: 2,
            allowance: Allowance::UNLIMITED,
        }
    }

    #[test]
    fn a_store_of_before_there_were_counts_starts_at_zero() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Local::open(dir.path(), &Options::default()).unwrap();
        open().count(&charge(1, true), 5).unwrap();
        let index = Index::path(dir.path());
        let database = Database::open(&index).unwrap();
        let change = database.begin_write().unwrap();
        let counts: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new("counts");
        assert!(
            change.delete_table(counts).unwrap(),
            "there was such a table"
        );
        change.commit().unwrap();
        drop(database);
        let store = open();
        assert_eq!(store.counts(&[1; 32]).unwrap(), Counts::default());
        assert!(store.all_counts().unwrap().is_empty());
        assert_eq!(store.forget_counts(0).unwrap(), 0);
        store.count(&charge(1, true), 5).unwrap();
        assert_eq!(open().counts(&[1; 32]).unwrap().prepared.in_all, 2);
    }

    #[test]
    fn passing_accounts_are_forgotten_when_there_are_too_many() {
        let dir = tempfile::tempdir().unwrap();
        let store = Local::open(dir.path(), &Options::default()).unwrap();
        for id in 1..=4 {
            store.count(&charge(id, id == 1), u64::from(id)).unwrap();
        }
        assert_eq!(store.forget_counts(2).unwrap(), 1);
        let left: Vec<_> = store.all_counts().unwrap();
        let left: Vec<_> = left.iter().map(|one| one.account.id[0]).collect();
        assert_eq!(left, [1, 3, 4]);
        assert_eq!(store.counts(&[2; 32]).unwrap(), Counts::default());
        assert_eq!(store.forget_counts(2).unwrap(), 0);
    }
}

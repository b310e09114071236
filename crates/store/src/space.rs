//! Room on the disk of a store.
//!
//! Marking a bundle as spent is a write, so a disk that bundles have filled keeps them from being
//! used: the party that marks first loses its half, and the other one cannot follow. Bundles
//! therefore leave a margin free ([`RESERVE`]), and a bundle is not begun unless it fits beside
//! what is being written and that margin. Other programs may still fill the disk; a party that
//! could not mark ([`check_mark`]) reports this before its peer has marked.
//!
//! What a file system reports is taken as it is, for a user without privileges. A file system that
//! does not say (some report nothing at all) is taken to have room.

use crate::error::{Result, StoreError};
use rustix::fs::statvfs;
use std::path::Path;

/// Bytes that bundles leave free, so that marking one as spent finds room.
pub const RESERVE: u64 = 16 << 20;

/// What a mark takes at most: some pages of the index, which copies on write.
const MARK: u64 = 1 << 20;

/// Returns the number of bytes free in a directory; none if the file system does not say.
pub(crate) fn free(dir: &Path) -> Result<Option<u64>> {
    let found = statvfs(dir).map_err(|e| StoreError::file("look at", dir)(e.into()))?;
    Ok((found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize)))
}

/// Checks that `needed` bytes fit into a directory beside the margin.
pub(crate) fn check_bundles(dir: &Path, needed: u64) -> Result<()> {
    check_room(dir, needed, "for bundles and for marking them as spent")
}

/// Checks that `needed` bytes for something fit into a directory beside the margin that marking
/// bundles as spent has to find there.
///
/// # Errors
/// [`StoreError::Space`] with both numbers if they do not.
pub fn check_room(dir: &Path, needed: u64, purpose: &'static str) -> Result<()> {
    let needed = needed.saturating_add(RESERVE);
    check(dir, free(dir)?, needed, purpose)
}

/// Checks that there is room for marking a bundle as spent.
pub(crate) fn check_mark(dir: &Path) -> Result<()> {
    check(dir, free(dir)?, MARK, "for marking a bundle as spent")
}

fn check(dir: &Path, free: Option<u64>, needed: u64, purpose: &'static str) -> Result<()> {
    match free {
        Some(free) if free < needed => Err(StoreError::Space {
            path: dir.to_path_buf(),
            needed,
            free,
            purpose,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_both_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let free = free(dir.path()).unwrap().expect("a file system that says");
        assert!(free > 0);
        let error = check_bundles(dir.path(), u64::MAX).unwrap_err().to_string();
        assert!(error.contains(&u64::MAX.to_string()), "{error}");
        assert!(error.contains(&dir.path().display().to_string()), "{error}");
        assert!(super::free(&dir.path().join("missing")).is_err());
    }

    /// Checks that the margin is for marks, not for bundles.
    #[test]
    fn marks_may_use_what_bundles_must_leave() {
        let dir = Path::new("/a/store");
        let bundle = |free, needed: u64| check(dir, free, needed + RESERVE, "").is_ok();
        let mark = |free| check(dir, free, MARK, "").is_ok();
        assert!(bundle(Some(RESERVE + 100), 100) && !bundle(Some(RESERVE + 99), 100));
        assert!(mark(Some(RESERVE)) && mark(Some(MARK)) && !mark(Some(MARK - 1)));
        assert!(bundle(None, u64::MAX >> 1) && mark(None), "nothing is said");
    }
}

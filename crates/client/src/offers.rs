//! What each server offered last.
//!
//! A bundle is of use as long as its server serves the same weights, by the same hint, and
//! reveals the same. Bundles of another offer are not taken by [`Client`](super::Client), but they
//! stay in the store until they expire: the server may come back to what it served before. So that
//! their owner is not surprised by texts that take long although there are bundles, the account of
//! the last offer is kept for every address, and a list of bundles can tell which ones fit.

use super::keep::{Keep, file_name};
use primer_service::ServiceError;
#[cfg(feature = "native")]
use primer_service::state::State;

/// Keeps what a server offers now.
pub(super) fn record(
    keep: &mut dyn Keep,
    address: &str,
    account: &[u8; 32],
) -> Result<(), ServiceError> {
    if last(keep, address)? == Some(*account) {
        return Ok(());
    }
    keep.write(&name(address), account)
}

/// Tells whether a bundle, of which the store knows the server's address and account, fits what
/// that server offered last; `None` if that is not known.
///
/// # Errors
/// [`ServiceError`] if the state cannot be read.
#[cfg(feature = "native")]
pub fn bundle_fits(
    state: &State,
    address: &str,
    account: &[u8; 32],
) -> Result<Option<bool>, ServiceError> {
    let keep = crate::native::files::Files::new(state.clone());
    Ok(last(&keep, address)?.map(|last| last == *account))
}

fn name(address: &str) -> String {
    format!("offers/{}", file_name(address))
}

fn last(keep: &dyn Keep, address: &str) -> Result<Option<[u8; 32]>, ServiceError> {
    let bytes = keep.read(&name(address))?;
    Ok(bytes.and_then(|bytes| bytes.try_into().ok()))
}

#[cfg(all(test, feature = "native"))]
mod tests {
    use super::*;
    use crate::native::files::Files;

    #[test]
    fn the_last_offer_counts() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Some(dir.path())).unwrap();
        let fits = |account| bundle_fits(&state, "a:1", &account).unwrap();
        assert_eq!(fits([1; 32]), None);
        assert!(!state.path("client/offers").exists());
        for account in [[1; 32], [2; 32]] {
            record(&mut Files::new(state.clone()), "a:1", &account).unwrap();
        }
        assert_eq!((fits([1; 32]), fits([2; 32])), (Some(false), Some(true)));
        assert_eq!(bundle_fits(&state, "a:11", &[2; 32]).unwrap(), None);
    }
}

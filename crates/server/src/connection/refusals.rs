//! What a client is told of a failure of the server's; the log has the rest.

use primer_service::ServiceError;
use primer_service::message::{Refusal, printable};
use primer_store::StoreError;

/// Makes what the client is told when the model does not fit the cryptography; the log has the
/// rest.
pub(super) fn cannot_encode<E: std::fmt::Display>(tokens: usize) -> impl Fn(E) -> ServiceError {
    move |error| {
        tracing::error!(tokens, %error, "the model cannot be encoded");
        Refusal::Failed("the model cannot be encoded for this length".into()).into()
    }
}

/// Says no to a client that still has its half, since the server could not mark its own as spent;
/// the log has the rest.
pub(super) fn no_mark(error: StoreError) -> ServiceError {
    tracing::error!(%error, "bundles cannot be spent");
    Refusal::Store.into()
}

/// Makes what the client is told when the store says no; the log has the rest.
pub(super) fn store_refusal(error: StoreError) -> ServiceError {
    match &error {
        StoreError::Taken { id } => return Refusal::Taken(*id).into(),
        StoreError::Unknown { id } | StoreError::Expired { id, .. } => {
            return Refusal::Unknown(*id).into();
        }
        StoreError::Gone { id, .. } => return Refusal::Spent(*id).into(),
        StoreError::Quota {
            needed,
            stored,
            limit,
        } => {
            let (needed, stored, limit) = (*needed, *stored, *limit);
            return Refusal::Stored {
                needed,
                stored,
                limit,
            }
            .into();
        }
        StoreError::Full { .. } => return Refusal::Full.into(),
        StoreError::Limit(exhausted) => return Refusal::Limit(*exhausted).into(),
        StoreError::Space { .. } => {
            tracing::warn!(%error, "bundles cannot be prepared");
            return Refusal::Full.into();
        }
        _ => {}
    }
    tracing::error!(%error, "the store failed");
    if error.is_temporary() {
        return Refusal::Store.into();
    }
    match &error {
        StoreError::Damaged { id, .. } => Refusal::Unknown(*id).into(),
        StoreError::File { .. } | StoreError::Draft { .. } => Refusal::Full.into(),
        _ => Refusal::Failed(printable("its store of bundles")).into(),
    }
}

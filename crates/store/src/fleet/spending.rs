//! The end of a bundle: one transaction in which its row goes and its tombstone comes.

use super::core::Core;
use super::keeper::Chore;
use super::rows::{self, Stored};
use super::{agreement, counts};
use crate::counts::Charge;
use crate::error::{Result, StoreError};
use crate::id::BundleId;
use crate::record::{Fate, GRACE_SECONDS};
use crate::seal::{BundleKey, HEADER_BYTES, MAGIC, SALT_BYTES};
use crate::sealed;
use crate::spent::Spent;
use std::io::{self, Read};
use std::sync::Arc;
use tokio_postgres::types::{ToSql, Type};
use zeroize::Zeroizing;

/// Takes a bundle out and leaves its tombstone. The session that deletes the row has the bundle:
/// another one that wants the same row waits until this one is done, and finds none. The key of the
/// tombstone would refuse a second one, too.
///
/// Nothing is taken out of a database whose history lacks the epoch that this replica has seen, as
/// [`super::epoch::follows`] says, nor of one with a rollback on record that no renewal answered.
const BURY: &str = "\
    WITH sound AS (SELECT 1 FROM primer_about WHERE (renewed > $8 \
    OR EXISTS (SELECT 1 FROM primer_epochs WHERE number = $8 AND nonce = $9)) AND NOT EXISTS \
    (SELECT 1 FROM primer_rollbacks WHERE greatest(seen, found, at) >= renewed)), \
    gone AS (DELETE FROM primer_bundles WHERE id = $1 AND EXISTS (SELECT 1 FROM sound) \
    RETURNING id, peer, expires, blob) \
    INSERT INTO primer_past (id, peer, fate, spends, at, until, blob, replica, replica_name) \
    SELECT id, peer, $2, $3, $4, greatest(expires, $4) + $5, blob, $6, $7 FROM gone \
    RETURNING blob";

/// Buries a bundle, and counts it if that is asked for; durable when this returns. Gives its object
/// to the caller that won: none if there is no such bundle, or no longer.
///
/// # Errors
/// [`StoreError::RolledBack`] if the database is not what this replica has seen. An error of the
/// commit leaves open whether it took place. Then the bundle was not given out, and it may be lost.
pub(super) fn bury(
    core: &Core,
    id: BundleId,
    fate: Fate,
    charge: Option<&Charge>,
    now: u64,
) -> Result<Option<String>> {
    let (id, replica) = (id.as_bytes().to_vec(), core.replica().to_vec());
    let (fate, spends) = (rows::fate_number(fate), i32::from(fate == Fate::Spent));
    let (at, grace) = (rows::signed(now), rows::signed(GRACE_SECONDS));
    let seen = core.seen();
    let number = seen.as_ref().map(|seen| rows::signed(seen.number));
    let nonce = seen.map(|seen| seen.nonce.to_vec());
    let values: [(&(dyn ToSql + Sync), Type); 9] = [
        (&id, Type::BYTEA),
        (&fate, Type::INT2),
        (&spends, Type::INT4),
        (&at, Type::INT8),
        (&grace, Type::INT8),
        (&replica, Type::BYTEA),
        (&core.name, Type::TEXT),
        (&number, Type::INT8),
        (&nonce, Type::BYTEA),
    ];
    let done = core.database.with(async |client| {
        let change = client.transaction().await?;
        let counted = match charge {
            Some(charge) => Some((charge, counts::charged(&change, charge, now).await?)),
            None => None,
        };
        let won = change.query_typed(BURY, &values).await?;
        let blob = won.first().map(|row| row.try_get(0)).transpose()?;
        if blob.is_none() {
            agreement::sound(core, &change).await?;
        } else if let Some((charge, counts)) = counted {
            counts::keep(&change, &charge.account, &counts).await?;
        }
        change.commit().await?;
        Ok(blob)
    });
    if matches!(done, Err(StoreError::RolledBack { .. })) {
        // The others learn of it now, not at the next beat. What this look returns is known
        // already.
        let _ = agreement::look(core);
    }
    done
}

/// Spends a bundle that was found in the table.
pub(super) fn spend(
    core: &Arc<Core>,
    stored: Stored,
    attachment: Vec<u8>,
    charge: Option<&Charge>,
    now: u64,
) -> Result<Option<Spent>> {
    core.check_agreement()?;
    let Stored {
        entry,
        key,
        salt,
        blob,
    } = stored;
    let id = entry.id;
    let key = core.keys.named(key.as_deref());
    let key = key.ok_or(StoreError::OtherKeys { bundles: 1 })?;
    // Opened before it is spent: blobs that are out of reach cost no bundle.
    core.hold(&blob);
    let mut material = Material {
        core: Arc::clone(core),
        id,
        blob,
        source: None,
        spent: false,
    };
    let found = material.open(entry.file_bytes)?;
    let fate = match &found {
        Ok(_) => Fate::Spent,
        Err(_) => Fate::Damaged,
    };
    // A bundle that turns out to be damaged is not given out.
    let charge = charge.filter(|_| fate == Fate::Spent);
    material.spent = bury(core, id, fate, charge, now)?.is_some();
    if !material.spent {
        return Ok(None);
    }
    let half = found.map_err(|fault| StoreError::Damaged { id, fault })?;
    let key = BundleKey::derive_from(key, id, &half, Some(&salt));
    let sealed = entry.file_bytes - HEADER_BYTES as u64;
    sealed::spent(entry, attachment, key, sealed, Box::new(material)).map(Some)
}

/// The sealed bytes of a bundle that is being used up; the object goes when this does.
struct Material {
    core: Arc<Core>,
    id: BundleId,
    blob: String,
    source: Option<super::blobs::Reader>,
    /// Whether it was this replica that spent it.
    spent: bool,
}

/// Half of the salt, as it stands in the object; or what is wrong with the object.
type Half = std::result::Result<Zeroizing<[u8; SALT_BYTES]>, String>;

impl Material {
    fn open(&mut self, expected: u64) -> Result<Half> {
        let blob = &self.blob;
        let Some(mut source) = self.core.blobs.read(blob)? else {
            return Ok(Err(format!("{blob} is not there")));
        };
        let size = source.size();
        if size != expected {
            return Ok(Err(format!(
                "{blob} has {size} bytes instead of {expected}"
            )));
        }
        let mut magic = [0; MAGIC.len()];
        let mut salt = Zeroizing::new([0; SALT_BYTES]);
        let read = source
            .read_exact(&mut magic)
            .and_then(|()| source.read_exact(&mut *salt));
        read.map_err(super::blobs::fault)?;
        if magic != MAGIC {
            return Ok(Err(format!("{blob} does not begin as a bundle")));
        }
        self.source = Some(source);
        Ok(Ok(salt))
    }
}

impl Read for Material {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &mut self.source {
            Some(source) => source.read(out),
            None => Ok(0),
        }
    }
}

impl Drop for Material {
    fn drop(&mut self) {
        let (id, blob) = (self.id, std::mem::take(&mut self.blob));
        if self.spent {
            self.core.later(Chore::Erase { id, blob });
        } else {
            self.core.let_go(&blob);
        }
    }
}

//! A bundle on its way into a shared store: the object first, then its row.

use super::bundles::Value;
use super::core::{Core, object_name};
use super::database::Fault;
use super::keeper::Chore;
use super::rows::{self, STORED};
use crate::draft::Draft;
use crate::error::{Result, StoreError};
use crate::record::{Entry, Meta};
use crate::seal::{SALT_BYTES, file_bytes};
use crate::sealed::{self, Bulk};
use std::io::{self, Write};
use std::sync::Arc;
use tokio_postgres::types::Type;
use zeroize::Zeroizing;

/// Begins the object of a bundle whose name is not taken.
pub(super) fn begin(core: &Arc<Core>, meta: Meta) -> Result<Draft> {
    let mut salt = Zeroizing::new([0; SALT_BYTES]);
    getrandom::fill(&mut *salt).expect("the operating system provides randomness");
    let replica = core.replica();
    let blob = object_name(meta.id, replica);
    core.hold(&blob);
    let (key, key_name) = core.keys.sealing();
    let bulk = BulkObject {
        core: Arc::clone(core),
        replica: replica.to_vec(),
        key_name: key_name.to_vec(),
        salt: salt.clone(),
        upload: Some(core.blobs.write(&blob)),
        blob: blob.clone(),
        published: false,
    };
    sealed::draft(meta, key, Some(&salt), blob.into(), Box::new(bulk))
}

/// The object of a draft.
struct BulkObject {
    core: Arc<Core>,
    /// The lease under which it is written: once that has ended, the bundle is not published.
    replica: Vec<u8>,
    key_name: Vec<u8>,
    salt: Zeroizing<[u8; SALT_BYTES]>,
    upload: Option<super::blobs::Writer>,
    blob: String,
    /// Whether the table may have it.
    published: bool,
}

impl Write for BulkObject {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.upload {
            Some(upload) => upload.write(bytes),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Bulk for BulkObject {
    fn publish(mut self: Box<Self>, meta: &Meta, bytes: u64) -> Result<()> {
        if let Some(upload) = self.upload.take() {
            upload.finish()?;
        }
        let entry = Entry::of(meta, bytes, file_bytes(bytes));
        let core = Arc::clone(&self.core);
        core.check_agreement()?;
        core.database
            .with(async |client| self.insert(client, meta, &entry).await)
    }
}

impl BulkObject {
    async fn insert(
        &mut self,
        client: &mut tokio_postgres::Client,
        meta: &Meta,
        entry: &Entry,
    ) -> std::result::Result<(), Fault> {
        let change = client.transaction().await?;
        // A sweep that takes this replica for dead waits for us, or we for it.
        let alive = "SELECT 1 FROM primer_replicas WHERE id = $1 FOR SHARE";
        let alive = change
            .query_typed(alive, &[(&self.replica, Type::BYTEA)])
            .await?;
        if alive.is_empty() {
            return Err(Fault::Store(StoreError::Shared {
                part: "database",
                fault: "this replica was taken for dead while it wrote a bundle".into(),
            }));
        }
        let id = entry.id.as_bytes().to_vec();
        let (peer, program) = (entry.peer.to_vec(), entry.program.to_vec());
        let numbers = [
            u64::from(entry.tokens),
            entry.created,
            entry.expires,
            entry.bytes,
            entry.file_bytes,
        ];
        let numbers = numbers.map(rows::signed);
        let salt = Zeroizing::new(self.salt.to_vec());
        let values: [Value<'_>; 12] = [
            (&id, Type::BYTEA),
            (&peer, Type::BYTEA),
            (&program, Type::BYTEA),
            (&numbers[0], Type::INT8),
            (&numbers[1], Type::INT8),
            (&numbers[2], Type::INT8),
            (&numbers[3], Type::INT8),
            (&numbers[4], Type::INT8),
            (&self.key_name, Type::BYTEA),
            (&*salt, Type::BYTEA),
            (&self.blob, Type::TEXT),
            (&meta.attachment, Type::BYTEA),
        ];
        let sql = format!(
            "INSERT INTO primer_bundles ({STORED}, attachment) \
             SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 \
             WHERE NOT EXISTS (SELECT 1 FROM primer_past WHERE id = $1) \
             ON CONFLICT (id) DO NOTHING RETURNING 1"
        );
        if change.query_typed(&sql, &values).await?.is_empty() {
            return Err(Fault::Store(StoreError::Taken { id: entry.id }));
        }
        // From here on the table may have it, no matter what answer we get: the sweep finds out.
        self.published = true;
        change.commit().await?;
        Ok(())
    }
}

impl Drop for BulkObject {
    fn drop(&mut self) {
        drop(self.upload.take());
        let blob = std::mem::take(&mut self.blob);
        if self.published {
            self.core.let_go(&blob);
        } else {
            self.core.later(Chore::Discard { blob });
        }
    }
}

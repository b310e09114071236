//! A store that replicas share: where it is, and what opens it.

use anyhow::{Result, bail, ensure};
use clap::Args;
use primer::{SharedStore, Zeroizing};
use primer_store::StoreError;
use primer_store::fleet::{FleetOptions, KEY_VARIABLE, Keys};
use std::path::PathBuf;

/// Where a shared store is.
#[derive(Args)]
#[command(next_help_heading = "Replicas that share a store")]
pub(super) struct SharedArgs {
    /// Database that replicas share, instead of a store of this server's own:
    /// postgres://USER:PASSWORD@HOST/DATABASE
    #[arg(long, value_name = "URL", env = "PRIMER_STORE", hide_env_values = true)]
    store: Option<String>,
    /// Where replicas keep sealed bundles: s3://BUCKET/PREFIX (keys, region and endpoint from the
    /// usual variables AWS_…) or file:///DIRECTORY
    #[arg(long, value_name = "URL", env = "PRIMER_BLOBS", hide_env_values = true)]
    blobs: Option<String>,
    #[command(flatten)]
    keys: KeyArgs,
    /// Certificates of authorities that may vouch for the database, as PEM [default: the system's]
    #[arg(long, value_name = "FILE")]
    store_ca: Option<PathBuf>,
}

/// What replicas have in common.
#[derive(Args)]
#[command(next_help_heading = "Replicas that share a store")]
pub(super) struct KeyArgs {
    /// File with the 32 bytes that seal bundles, the same on all replicas; may be repeated: the
    /// first seals, all open (or the variable PRIMER_STORE_KEY, as hexadecimal digits)
    #[arg(long, value_name = "FILE")]
    store_key_file: Vec<PathBuf>,
}

impl KeyArgs {
    /// Returns what is given.
    pub(super) fn keys(&self) -> Result<Option<Keys>> {
        Ok(match std::env::var(KEY_VARIABLE).map(Zeroizing::new) {
            _ if !self.store_key_file.is_empty() => Some(Keys::from_files(&self.store_key_file)?),
            Ok(keys) => Some(Keys::from_text(&keys)?),
            Err(_) => None,
        })
    }
}

impl SharedArgs {
    /// Returns what a command that is no replica joins it with; nothing if the store is not shared.
    pub(super) fn fleet(&self, name: &str) -> Result<Option<FleetOptions>> {
        let options = |store: SharedStore| FleetOptions {
            database: store.database,
            authority: store.authority,
            blobs: store.blobs,
            keys: store.keys,
            name: name.into(),
            witness: None,
        };
        Ok(self.store()?.map(options))
    }

    /// Returns what is given; nothing if the store is not shared.
    pub(super) fn store(&self) -> Result<Option<SharedStore>> {
        let (database, blobs) = match (&self.store, &self.blobs) {
            (Some(store), Some(blobs)) => (store, blobs),
            (None, None) => {
                let keys = self.keys.store_key_file.is_empty();
                ensure!(
                    keys,
                    "--store-key-file is for a shared store: give --store and --blobs"
                );
                return Ok(None);
            }
            _ => bail!("a shared store takes both --store and --blobs"),
        };
        ensure!(
            database.starts_with("postgres://") || database.starts_with("postgresql://"),
            "--store takes postgres://USER:PASSWORD@HOST/DATABASE; a store of this server's own is \
             in the state directory, --state"
        );
        ensure!(cfg!(feature = "fleet"), StoreError::NoFleet);
        let Some(keys) = self.keys.keys()? else {
            bail!(
                "a shared store takes the key that seals its bundles: --store-key-file FILE or the \
                 variable {KEY_VARIABLE}"
            );
        };
        Ok(Some(SharedStore {
            database: database.clone(),
            authority: self.store_ca.clone(),
            blobs: blobs.clone(),
            keys,
        }))
    }
}

//! `primer store`: the store that replicas of a server share.

use super::shared::SharedArgs;
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
#[cfg(feature = "fleet")]
use primer_measure::console::output;
use primer_store::fleet::FleetOptions;

/// Arguments of `primer store`.
#[derive(Args)]
#[command(after_help = "\
check tells what there is, and whether every bundle has its object and every object its bundle;
objects that a replica is writing or reading are not orphans. sweep deletes orphans of replicas that
have been gone for half a minute, which running replicas do once a minute anyway.

renew is for after a backup was restored: it deletes ALL unspent bundles, and database and blobs
agree again. Replicas that refused the store follow. Clients prepare anew. Nothing less is safe: a
bundle that comes back after it was used is a bundle that is used twice.")]
pub(super) struct StoreArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Tell what a shared store holds and whether it is in order
    Check(SharedArgs),
    /// Delete what has lost its other half
    Sweep(SharedArgs),
    /// After a restored backup: delete all bundles and begin a new epoch
    Renew(SharedArgs),
}

pub(super) fn run(args: &StoreArgs) -> Result<()> {
    act(&args.action)
}

fn options(args: &SharedArgs) -> Result<FleetOptions> {
    let options = args.fleet("primer store")?;
    options.context("give the shared store with --store and --blobs")
}

#[cfg(not(feature = "fleet"))]
fn act(action: &Action) -> Result<()> {
    let (Action::Check(args) | Action::Sweep(args) | Action::Renew(args)) = action;
    options(args).map(drop)
}

#[cfg(feature = "fleet")]
fn act(action: &Action) -> Result<()> {
    use primer_store::Store;
    use primer_store::fleet::Fleet;
    use serde_json::json;

    let connect = |args| -> Result<Store> { Ok(Store::connect(options(args)?)?) };
    let told = match action {
        Action::Renew(args) => {
            let (fleet, bundles) = Fleet::renew(options(args)?)?;
            json!({ "epoch": fleet.epoch(), "bundles_deleted": bundles })
        }
        Action::Check(args) | Action::Sweep(args) => {
            let store = connect(args)?;
            let fleet = store.fleet().context("this store is not shared")?;
            let swept = match action {
                Action::Sweep(_) => fleet.sweep()?,
                _ => fleet.count_orphans()?,
            };
            let usage = store.usage()?;
            json!({
                "place": store.place(), "epoch": fleet.epoch(), "replicas": fleet.replicas()?,
                "bundles": usage.total.bundles, "bytes": usage.total.bytes,
                "tombstones": usage.tombstones, "orphan_objects": swept.objects,
                "orphan_bundles": swept.bundles, "objects_in_use": swept.in_use,
            })
        }
    };
    output::line(told)
}

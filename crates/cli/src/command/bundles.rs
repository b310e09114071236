//! `primer bundles`: what is prepared and not used yet.

use super::remote::StateArgs;
use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use primer::BundleId;
use primer::client::bundle_address;
use primer::state::State;
use primer_store::{Entry, Store, unix_now};
use serde_json::json;
use std::io::Write;

/// Arguments of `primer bundles`.
#[derive(Args)]
pub(super) struct BundlesArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List unspent bundles
    List(ListArgs),
    /// Delete unspent bundles, for ever
    Delete(DeleteArgs),
}

#[derive(Args)]
struct ListArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct DeleteArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Their names, as `primer bundles list` shows them
    #[arg(value_name = "ID", required_unless_present_any = ["all", "expired"])]
    ids: Vec<BundleId>,
    /// All of them
    #[arg(long, conflicts_with_all = ["ids", "expired"])]
    all: bool,
    /// Those whose time is over
    #[arg(long, conflicts_with = "ids")]
    expired: bool,
}

#[derive(Args)]
struct StoreArgs {
    #[command(flatten)]
    state: StateArgs,
    /// Whose halves: those that this user prepared as a client, or those that a server here keeps
    /// for its clients
    #[arg(long, default_value = "client")]
    role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Prepared by `primer prepare` here
    Client,
    /// Kept by `primer serve` here
    Server,
}

impl StoreArgs {
    fn open(&self) -> Result<Store> {
        let state = State::open(self.state.state.as_deref())?;
        let dir = match self.role {
            Role::Client => state.dir("client")?,
            Role::Server => state.dir("server")?,
        };
        Ok(Store::open(dir.join("store"))?)
    }
}

pub(super) fn run(args: &BundlesArgs) -> Result<()> {
    match &args.action {
        Action::List(args) => list(args),
        Action::Delete(args) => delete(args),
    }
}

fn list(args: &ListArgs) -> Result<()> {
    let store = args.store.open()?;
    let entries = store.list()?;
    let now = unix_now();
    let server = |entry: &Entry| -> Result<String> {
        let attachment = store.attachment(entry.id)?.unwrap_or_default();
        let address = bundle_address(&attachment).map(str::to_owned);
        Ok(address.unwrap_or_default())
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        let mut list = Vec::new();
        for entry in &entries {
            list.push(json!({
                "id": entry.id.to_string(), "server": server(entry)?, "tokens": entry.tokens,
                "bytes": entry.file_bytes, "created": entry.created, "expires": entry.expires,
                "expired": entry.expires <= now,
            }));
        }
        return writeln!(out, "{}", json!({ "bundles": list })).context("writing the list");
    }
    for entry in &entries {
        let days = entry.expires.saturating_sub(now) as f64 / 86_400.0;
        writeln!(
            out,
            "{}  {:>4} tokens  {:>10.1} MB  {days:>5.1} days left  {}",
            entry.id,
            entry.tokens,
            entry.file_bytes as f64 / 1e6,
            server(entry)?
        )
        .context("writing the list")?;
    }
    if entries.is_empty() {
        eprintln!("there are no bundles in {}", store.dir().display());
    }
    Ok(())
}

fn delete(args: &DeleteArgs) -> Result<()> {
    let store = args.store.open()?;
    let now = unix_now();
    let deleted = if args.expired {
        store.delete_expired(now)?.bundles
    } else {
        let ids = match args.all {
            true => store.list()?.iter().map(|entry| entry.id).collect(),
            false => args.ids.clone(),
        };
        for id in &ids {
            store.delete(*id, now)?;
        }
        ids.len() as u64
    };
    println!("deleted {deleted} bundles");
    Ok(())
}

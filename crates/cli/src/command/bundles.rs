//! `primer bundles`: what is prepared and not used yet.

use super::remote::StateArgs;
use anyhow::{Result, ensure};
use clap::{Args, Subcommand, ValueEnum};
use primer::BundleId;
use primer::client::{bundle_address, bundle_fits};
use primer::state::State;
use primer_measure::console::output;
use primer_measure::note;
use primer_store::{BundleStore, Entry, Store, unix_now};
use serde_json::{Value, json};

/// Arguments of `primer bundles`.
#[derive(Args)]
#[command(after_help = "\
A bundle fits as long as its server serves the same weights by the same scheme and reveals the same;
others are not used, and stay until they expire or are deleted. The list tells by what the server
offered when this client last connected (fits_server with --json; null if that is not known).")]
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
    /// Returns the state and the store; no store if nothing was ever prepared there. Looking makes
    /// nothing.
    fn open(&self) -> Result<(State, Option<Store>)> {
        let state = State::open(self.state.state.as_deref())?;
        let dir = state.path(match self.role {
            Role::Client => "client/store",
            Role::Server => "server/store",
        });
        if !dir.exists() {
            note!("primer: there is no store of bundles in {}", dir.display());
            return Ok((state, None));
        }
        Ok((state, Some(Store::open(dir)?)))
    }
}

pub(super) fn run(args: &BundlesArgs) -> Result<()> {
    match &args.action {
        Action::List(args) => list(args),
        Action::Delete(args) => delete(args),
    }
}

/// A bundle, and what is known of its server.
struct Listed {
    entry: Entry,
    server: String,
    /// Whether it fits what the server offered when it was last asked.
    fits: Option<bool>,
}

impl StoreArgs {
    fn look_up(&self, state: &State, store: &Store, entry: Entry) -> Result<Listed> {
        let attachment = store.attachment(entry.id)?.unwrap_or_default();
        let server = bundle_address(&attachment).unwrap_or_default().to_owned();
        let fits = match self.role {
            Role::Client => bundle_fits(state, &server, &entry.peer)?,
            // Its account is that of a client.
            Role::Server => None,
        };
        Ok(Listed {
            entry,
            server,
            fits,
        })
    }
}

fn list(args: &ListArgs) -> Result<()> {
    let (state, store) = args.store.open()?;
    let mut bundles = Vec::new();
    if let Some(store) = &store {
        for entry in store.list()? {
            bundles.push(args.store.look_up(&state, store, entry)?);
        }
        if bundles.is_empty() {
            note!("there are no bundles in {}", store.place());
        }
    }
    let now = unix_now();
    if args.json {
        let list: Vec<_> = bundles.iter().map(|bundle| as_json(bundle, now)).collect();
        return output::line(json!({ "bundles": list }));
    }
    bundles
        .iter()
        .try_for_each(|bundle| output::line(as_text(bundle, now)))
}

fn as_json(bundle: &Listed, now: u64) -> Value {
    let entry = &bundle.entry;
    json!({
        "id": entry.id.to_string(), "server": bundle.server, "tokens": entry.tokens,
        "bytes": entry.file_bytes, "created": entry.created, "expires": entry.expires,
        "expired": entry.expires <= now, "fits_server": bundle.fits,
    })
}

fn as_text(bundle: &Listed, now: u64) -> String {
    let entry = &bundle.entry;
    let days = entry.expires.saturating_sub(now) as f64 / 86_400.0;
    let unfit = match bundle.fits {
        Some(false) => "  does not fit what the server offers now",
        _ => "",
    };
    format!(
        "{}  {:>4} tokens  {:>10.1} MB  {days:>5.1} days left  {}{unfit}",
        entry.id,
        entry.tokens,
        entry.file_bytes as f64 / 1e6,
        bundle.server
    )
}

fn delete(args: &DeleteArgs) -> Result<()> {
    let (_, store) = args.store.open()?;
    let now = unix_now();
    let deleted = match &store {
        None => {
            let named = args.ids.first();
            ensure!(named.is_none(), "there are no bundles to delete");
            0
        }
        Some(store) if args.expired => store.delete_expired(now)?.bundles,
        Some(store) => {
            let ids = match args.all {
                true => store.list()?.iter().map(|entry| entry.id).collect(),
                false => args.ids.clone(),
            };
            for id in &ids {
                store.delete(*id, now)?;
            }
            ids.len() as u64
        }
    };
    let s = if deleted == 1 { "" } else { "s" };
    output::line(format_args!("deleted {deleted} bundle{s}"))
}

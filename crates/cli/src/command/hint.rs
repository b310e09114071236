//! `primer hint`: the file that a server publishes once for a model, and that clients prepare with.

use super::remote::{RemoteArgs, StateArgs};
use super::shared::KeyArgs;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use primer::hints::stored::StoredHint;
use primer::hints::{ServerHint, secret};
use primer::source::Model;
use primer::state::State;
use primer_measure::console::output;
use primer_measure::console::progress::Stages;
use primer_measure::note;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;

/// Arguments of `primer hint`.
#[derive(Args)]
#[command(after_help = "\
A hint is made of a model's weights once, is the same for all clients, and hides the weights; it is
not secret. A server keeps a second file beside it, ten times as large, which is. `primer serve`
builds both on its first start, and a client fetches the hint before it prepares for the first time:
these commands do the same ahead of time.

The file that `hint build` names may be put on any web server or disk; clients find it there with
--hint-url, check it against what their server says, and ask the server if it is not right.

Examples:
  primer hint build --model ./my-checkpoint
  primer hint fetch --server models.example:7447 --hint-url https://files.example/my.hint
  primer hint list")]
pub(super) struct HintArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build the hint of a model, as `primer serve` does on its first start
    Build(Box<BuildArgs>),
    /// Fetch a server's hint, as preparing does when it is missing
    Fetch(Box<FetchArgs>),
    /// List the hints that a client or a server keeps here
    List(ListArgs),
    /// Delete hints that are kept here; they can be fetched or built again
    Delete(DeleteArgs),
}

#[derive(Args)]
struct BuildArgs {
    /// Directory written by Hugging Face's save_pretrained (the embedded SST-2 model if not given)
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Text whose activation ranges set the scales, which are public, one input a line (a built-in
    /// text if not given)
    #[arg(long, value_name = "FILE", conflicts_with = "prepared")]
    calibration: Option<PathBuf>,
    /// Take scales and integer weights from a file written by `inspect --save-prepared`
    #[arg(long, value_name = "FILE")]
    prepared: Option<PathBuf>,
    /// Directory for the hint and for what multiplies it, to be given to `serve` with --hint-dir
    /// [default: server/hints in the state directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads that build [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    state: StateArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct FetchArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ListArgs {
    #[command(flatten)]
    state: StateArgs,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct DeleteArgs {
    #[command(flatten)]
    state: StateArgs,
    /// Their names, as `primer hint list` shows them, or how these begin
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "names")]
    all: bool,
}

pub(super) fn run(args: &HintArgs) -> Result<()> {
    match &args.action {
        Action::Build(args) => build(args),
        Action::Fetch(args) => fetch(args),
        Action::List(args) => list(args),
        Action::Delete(args) => delete(args),
    }
}

fn build(args: &BuildArgs) -> Result<()> {
    let state = State::open(args.state.state.as_deref())?;
    let keys = args.keys.keys()?;
    let secret = secret(&state.dir("server")?, keys.as_ref())?;
    let dir = match &args.out {
        Some(dir) => dir.clone(),
        None => state.dir("server/hints")?,
    };
    let model = Model::load(args.model.as_deref())?;
    let stages = Stages::default();
    let integers = model.prepare(
        args.prepared.as_deref(),
        args.calibration.as_deref(),
        |done, total| stages.tell("calibrating", done, total),
    )?;
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(cores, usize::from);
    let (started, called) = (Instant::now(), model.short_name());
    let told = |done, total| stages.tell("building the hint", done, total);
    let hint = ServerHint::find_or_build(&dir, (&called, &integers), &secret, threads, told)?;
    let seconds = started.elapsed().as_secs_f64();
    let (bytes, file) = (hint.published.identity().bytes, hint.file.display());
    if args.json {
        return output::line(json!({
            "file": file.to_string(), "bytes": bytes, "model": called,
            "root": hex(&hint.published.identity().root), "built": hint.built,
            "seconds": seconds,
        }));
    }
    let done = match hint.built {
        true => format!("built in {seconds:.1} s"),
        false => "was there".to_owned(),
    };
    let mega = bytes as f64 / 1e6;
    output::line(format_args!(
        "the hint of {called}, {mega:.1} MB, {done}: {file}"
    ))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn fetch(args: &FetchArgs) -> Result<()> {
    let mut client = args.remote.connect()?;
    let started = Instant::now();
    let hint = client.fetch_hint()?;
    let seconds = started.elapsed().as_secs_f64();
    let model = client.card().model.clone();
    client.close();
    if args.json {
        return output::line(json!({
            "model": model, "bytes": hint.bytes, "root": hex(&hint.root), "seconds": seconds,
        }));
    }
    let mega = hint.bytes as f64 / 1e6;
    output::line(format_args!(
        "the hint of {model}, {mega:.1} MB, is here ({seconds:.1} s)"
    ))
}

/// Lists the hints of a state directory, each with whose it is.
fn kept(args: &StateArgs) -> Result<Vec<(&'static str, StoredHint)>> {
    let state = State::open(args.state.as_deref())?;
    let mut all = Vec::new();
    for role in ["client", "server"] {
        let found = StoredHint::all(&state.path(role).join("hints"))?;
        all.extend(found.into_iter().map(|kept| (role, kept)));
    }
    Ok(all)
}

fn list(args: &ListArgs) -> Result<()> {
    let all = kept(&args.state)?;
    if args.json {
        let list: Vec<Value> = all.iter().map(as_json).collect();
        return output::line(json!({ "hints": list }));
    }
    if all.is_empty() {
        note!("there are no hints in the state directory");
    }
    all.iter().try_for_each(|kept| output::line(as_text(kept)))
}

fn as_json((role, kept): &(&str, StoredHint)) -> Value {
    json!({
        "name": kept.name, "role": role, "model": kept.model, "server": kept.server,
        "root": kept.root, "bytes": kept.bytes, "bytes_there": kept.there,
        "bytes_on_disk": kept.on_disk, "complete": kept.complete,
    })
}

fn as_text((role, kept): &(&str, StoredHint)) -> String {
    let mega = |bytes: u64| bytes as f64 / 1e6;
    let state = match (kept.complete, kept.bytes) {
        (true, _) => "complete".to_owned(),
        (false, Some(bytes)) => format!("{} %", 100 * kept.there / bytes.max(1)),
        (false, None) => "not complete".to_owned(),
    };
    format!(
        "{}  {role}  {:>8.1} MB  {:>8.1} MB on disk  {state:<12}  {}{}",
        kept.name,
        mega(kept.bytes.unwrap_or(kept.there)),
        mega(kept.on_disk),
        kept.model
            .as_deref()
            .unwrap_or("of a model that is not known"),
        kept.server
            .as_ref()
            .map_or(String::new(), |server| format!(", from {server}")),
    )
}

fn delete(args: &DeleteArgs) -> Result<()> {
    let all = kept(&args.state)?;
    let mut chosen = Vec::new();
    for name in &args.names {
        ensure!(!name.is_empty(), "a hint has no name without letters");
        let fits: Vec<_> = all
            .iter()
            .filter(|(_, kept)| kept.name.starts_with(name))
            .collect();
        match fits[..] {
            [one] => chosen.push(one),
            [] => bail!("there is no hint {name}; `primer hint list` shows their names"),
            _ => bail!("the names of {} hints begin with {name}", fits.len()),
        }
    }
    if args.all {
        chosen = all.iter().collect();
    }
    for (_, kept) in &chosen {
        kept.delete().context("deleting a hint")?;
    }
    let (n, s) = (chosen.len(), if chosen.len() == 1 { "" } else { "s" });
    output::line(format_args!("deleted {n} hint{s}"))
}

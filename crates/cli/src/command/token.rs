//! `primer token`: who may use a server, and how much of it.

mod counted;

use super::remote::StateArgs;
use super::shared::SharedArgs;
use anyhow::Result;
use clap::{Args, Subcommand};
use counted::Counted;
use primer::server::{TokenLimits, find_token, limit_token, new_token, revoke_token};
use primer::state::State;
use primer_measure::console::output;
use primer_measure::note;
use primer_store::{Allowance, NotAnAllowance};
use serde_json::json;
use std::path::PathBuf;
use std::str::FromStr;

/// Arguments of `primer token`.
#[derive(Args)]
#[command(after_help = "\
The server's file has a line for each token: its hash, limits if they differ from the server's
(--max-answers, --max-prepared of `primer serve`), its name. A running server reads the file again
on SIGHUP. What was counted is in the server's store and is never given back, not by a deleted
bundle, nor by a restart, nor by a token that is revoked and comes back.

A limit is a number a day (of universal time), a number in all, or both: 1000/day, 100000,
1000/day,100000; or unlimited; or default, for what the server says.")]
pub(super) struct TokenArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make an access token, print it once, and keep its hash for `serve --token-file`
    New(NewArgs),
    /// List tokens by name, with what was counted for them and their limits
    List(ListArgs),
    /// Delete a token's line, so that no new session is opened with it
    Revoke(RevokeArgs),
    /// Set a token's limits, or show them with what was counted
    Limits(LimitsArgs),
}

/// Which file it is.
#[derive(Args)]
struct FileArgs {
    /// The server's file of hashes [default: server/tokens in the state directory]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(Args)]
#[command(after_help = "\
The token is printed here and kept nowhere: give it to a client, who keeps it in a file of their own
(--token-file) or in the variable PRIMER_TOKEN. The server's file holds its hash and its name, a
line each; a line that is deleted withdraws its token. A running server reads the file again on
SIGHUP.

Example:
  (umask 077; primer token new --token-file tokens --name archive > archive.token)
  primer serve --token-file tokens")]
struct NewArgs {
    /// The server's file of hashes; made, for its owner alone, if it is not there [default:
    /// server/tokens in the state directory]
    #[arg(value_name = "FILE", conflicts_with = "token_file")]
    path: Option<PathBuf>,
    /// Whose it will be; stands beside the hash
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    file: FileArgs,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// What a token may have.
#[derive(Args)]
struct LimitArgs {
    /// Answers that a client with this token may have: N/day, N (in all), both with a comma,
    /// unlimited, or default
    #[arg(long, value_name = "LIMIT")]
    max_answers: Option<LimitArg>,
    /// Bundles that may be prepared for it
    #[arg(long, value_name = "LIMIT")]
    max_prepared: Option<LimitArg>,
}

/// A limit, or what the server says.
#[derive(Clone, Copy)]
struct LimitArg(Option<Allowance>);

impl FromStr for LimitArg {
    type Err = NotAnAllowance;

    fn from_str(text: &str) -> Result<Self, NotAnAllowance> {
        match text {
            "default" => Ok(Self(None)),
            _ => text.parse().map(|limit| Self(Some(limit))),
        }
    }
}

impl LimitArgs {
    fn is_given(&self) -> bool {
        self.max_answers.is_some() || self.max_prepared.is_some()
    }

    /// Returns the limits of before, with what is given in their place.
    fn over(&self, before: TokenLimits) -> TokenLimits {
        TokenLimits {
            answers: self.max_answers.map_or(before.answers, |limit| limit.0),
            prepared: self.max_prepared.map_or(before.prepared, |limit| limit.0),
        }
    }
}

#[derive(Args)]
struct ListArgs {
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    shared: SharedArgs,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = "\
What was counted for it stays in the store: a token whose line comes back goes on where it was.
Sessions that are open go on until they end.")]
struct RevokeArgs {
    /// Its name, or the first digits of its hash, as `primer token list` shows them
    #[arg(value_name = "NAME")]
    called: String,
    #[command(flatten)]
    file: FileArgs,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  primer token limits archive --max-answers 1000/day,100000 --max-prepared default")]
struct LimitsArgs {
    /// Its name, or the first digits of its hash, as `primer token list` shows them
    #[arg(value_name = "NAME")]
    called: String,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    shared: SharedArgs,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

impl FileArgs {
    fn state(&self) -> Result<State> {
        Ok(State::open(self.state.state.as_deref())?)
    }

    fn path(&self) -> Result<PathBuf> {
        match &self.token_file {
            Some(path) => Ok(path.clone()),
            None => Ok(self.state()?.path("server/tokens")),
        }
    }
}

pub(super) fn run(args: &TokenArgs) -> Result<()> {
    match &args.action {
        Action::New(args) => new(args),
        Action::List(args) => {
            Counted::all(&args.file.path()?, &args.file, &args.shared)?.tell(args.json)
        }
        Action::Revoke(args) => revoke(args),
        Action::Limits(args) => limits(args),
    }
}

fn new(args: &NewArgs) -> Result<()> {
    let given = args.path.as_ref().or(args.file.token_file.as_ref());
    let path = match given {
        Some(path) => path.clone(),
        None => args.file.state()?.dir("server")?.join("tokens"),
    };
    let limits = args.limits.over(TokenLimits::default());
    let token = new_token(&path, &args.name, limits)?;
    let file = path.display();
    if args.json {
        let object = json!({"token": *token, "file": file.to_string(), "name": args.name});
        return output::line(object);
    }
    output::line(token.as_str())?;
    note!(
        "primer: its hash was added to {file}: start the server with --token-file {file}, or send \
         SIGHUP to one that runs"
    );
    Ok(())
}

fn revoke(args: &RevokeArgs) -> Result<()> {
    let path = args.file.path()?;
    let token = revoke_token(&path, &args.called)?;
    let file = path.display().to_string();
    if args.json {
        return output::line(json!({"name": token.name, "id": token.id(), "file": file}));
    }
    output::line(format_args!("revoked {}", token.label()))?;
    note!("primer: send SIGHUP to a server that runs, which then admits it no more");
    Ok(())
}

fn limits(args: &LimitsArgs) -> Result<()> {
    let path = args.file.path()?;
    let token = match args.limits.is_given() {
        true => {
            let token = limit_token(&path, &args.called, |before| args.limits.over(before))?;
            note!("primer: send SIGHUP to a server that runs, which then keeps to them");
            token
        }
        false => find_token(&path, &args.called)?,
    };
    Counted::of(vec![token], &args.file, &args.shared)?.tell_one(args.json)
}

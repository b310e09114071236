//! `primer token`: who may use a server.

use super::remote::StateArgs;
use crate::output;
use anyhow::Result;
use clap::{Args, Subcommand};
use primer::server::new_token;
use primer::state::State;
use primer_lab::note;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `primer token`.
#[derive(Args)]
pub(super) struct TokenArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make an access token, print it once, and keep its hash for `serve --token-file`
    New(NewArgs),
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
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The same as FILE
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    token_file: Option<PathBuf>,
    /// Whose it will be; stands beside the hash
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    name: String,
    #[command(flatten)]
    state: StateArgs,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &TokenArgs) -> Result<()> {
    match &args.action {
        Action::New(args) => new(args),
    }
}

fn new(args: &NewArgs) -> Result<()> {
    let path = match args.file.as_ref().or(args.token_file.as_ref()) {
        Some(path) => path.clone(),
        None => State::open(args.state.state.as_deref())?
            .dir("server")?
            .join("tokens"),
    };
    let token = new_token(&path, &args.name)?;
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

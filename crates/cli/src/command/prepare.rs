//! `primer prepare`: the offline phase ahead of time.

use super::remote::RemoteArgs;
use crate::output;
use anyhow::Result;
use clap::Args;
use primer_lab::warning;
use serde_json::json;
use std::time::Instant;

/// Arguments of `primer prepare`.
#[derive(Args)]
#[command(after_help = "\
A bundle serves one text of up to --tokens tokens, once. It is kept encrypted in the state
directory, its other half by the server, until it is used or expires; see `primer bundles list`.
Never restore the state directory from a backup or a snapshot: a bundle that comes back after it was
used is a bundle that is used twice.

Several bundles are prepared together where the server's scheme allows it: eight for texts of 32
tokens, fewer for longer ones. What is finished when the command is interrupted is kept.

Example:
  primer prepare --server localhost:7447 --count 10 --tokens 64")]
pub(super) struct PrepareArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// How many bundles
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    count: u32,
    /// Tokens that they can take, rounded up to a length that the server offers; its largest
    /// length if that is less
    #[arg(long, value_name = "N", default_value_t = 32,
          value_parser = clap::value_parser!(u32).range(1..=512))]
    tokens: u32,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &PrepareArgs) -> Result<()> {
    let mut client = args.remote.connect()?;
    let started = Instant::now();
    let (asked, most) = (args.tokens as usize, client.card().max_tokens());
    // A small model's limit may be below the default.
    let tokens = asked.min(most);
    if asked > most {
        warning!(
            "primer: the server takes texts of at most {most} tokens, so the bundles are for \
             {most} tokens and not for {asked}"
        );
    }
    let made = client.prepare(tokens, args.count as usize)?;
    let seconds = started.elapsed().as_secs_f64();
    let bucket = client.card().bucket(tokens).unwrap_or(tokens);
    client.close();
    if args.json {
        let ids: Vec<String> = made.iter().map(ToString::to_string).collect();
        let object = json!({
            "prepared": made.len(), "tokens": bucket, "seconds": seconds, "ids": ids,
        });
        output::line(object)
    } else {
        let n = made.len();
        let bundles = if n == 1 { "bundle" } else { "bundles" };
        output::line(format_args!(
            "prepared {n} {bundles} for up to {bucket} tokens in {seconds:.1} s"
        ))
    }
}

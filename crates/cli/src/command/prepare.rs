//! `primer prepare`: the offline phase ahead of time.

use super::remote::{RemoteArgs, progress};
use anyhow::Result;
use clap::Args;
use primer::{Event, ServiceError};
use primer_measure::console::output;
use primer_measure::warning;
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Arguments of `primer prepare`.
#[derive(Args)]
#[command(after_help = "\
A bundle serves one text of up to --tokens tokens, once. It is kept encrypted in the state
directory, its other half by the server, until it is used or expires; see `primer bundles list`.
Never restore the state directory from a backup or a snapshot: a bundle that comes back after it was
used is a bundle that is used twice.

Several bundles are prepared together where the server's scheme allows it: eight for texts of 32
tokens, fewer for longer ones. What is finished when the command is interrupted is kept. So it is if
the server goes away in the middle: with --wait SECONDS the command waits for it and goes on with
what is left; a batch that was cut is prepared again from its beginning.

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

/// What became of the work when the server was lost.
#[derive(Default)]
struct Interruptions {
    /// How often it was lost; once, however often it was looked for before the next bundle.
    times: usize,
    /// Whether it is.
    lost: bool,
    /// Bundles finished since the last time.
    since: usize,
}

impl Interruptions {
    fn heed(&mut self, event: &Event<'_>) {
        match event {
            Event::Prepared { bundles, .. } => {
                self.since += bundles;
                self.lost = false;
            }
            // A server that says *later* is there.
            Event::Retry { error, .. } | Event::Waiting { error, .. }
                if !self.lost && !matches!(error, ServiceError::Refused(_)) =>
            {
                (self.lost, self.since) = (true, 0);
                self.times += 1;
            }
            _ => {}
        }
    }

    /// Returns what a person is told: nothing, if it went well.
    fn told(&self, kept: usize) -> String {
        let times = match self.times {
            0 => return String::new(),
            1 => "once".to_owned(),
            times => format!("{times} times"),
        };
        format!("; the server was lost {times}, bundles finished before that and kept: {kept}")
    }
}

pub(super) fn run(args: &PrepareArgs) -> Result<()> {
    let mut client = args.remote.connect()?;
    let interruptions = Arc::new(Mutex::new(Interruptions::default()));
    let (heeding, mut show) = (Arc::clone(&interruptions), progress(args.remote.attempts));
    client.observe(move |event| {
        let mut heeding = heeding.lock().unwrap_or_else(PoisonError::into_inner);
        heeding.heed(&event);
        show(event);
    });
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
    let interruptions = interruptions.lock();
    let interruptions = interruptions.unwrap_or_else(PoisonError::into_inner);
    let kept = match interruptions.times {
        0 => 0,
        _ => made.len().saturating_sub(interruptions.since),
    };
    if args.json {
        let ids: Vec<String> = made.iter().map(ToString::to_string).collect();
        let object = json!({
            "prepared": made.len(), "tokens": bucket, "seconds": seconds, "ids": ids,
            "interruptions": interruptions.times, "kept": kept,
        });
        output::line(object)
    } else {
        let n = made.len();
        let bundles = if n == 1 { "bundle" } else { "bundles" };
        output::line(format_args!(
            "prepared {n} {bundles} for up to {bucket} tokens in {seconds:.1} s{}",
            interruptions.told(kept)
        ))
    }
}

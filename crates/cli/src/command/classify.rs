//! `primer classify`: private classification of texts.

use super::remote::{RemoteArgs, cost_json, cost_line, merged, note_range, note_removed};
use anyhow::{Context, Result, bail};
use clap::Args;
use primer::{Classification, Client};
use serde_json::{Value, json};
use std::io::{BufRead, Write};

/// Arguments of `primer classify`.
#[derive(Args)]
#[command(after_help = "\
Output, one line a text, as Hugging Face's pipelines print it:
  [{\"label\": \"POSITIVE\", \"score\": 0.9987}]
What it cost goes to standard error. With --json: one object with label, score, logits, offline_s,
online_s and bytes; for several texts that of the first, and all of them under \"results\".
in_range is false, and a warning follows, if a value of the model came near the end of its calibrated
range; null where the server's scheme cannot tell (all but lean).

The server learns the padded length and nothing else. A bundle that `primer prepare` stored is used
if there is one; otherwise the offline phase runs now.

Examples:
  primer classify --server localhost:7447 --trust-fingerprint 3f0a… \"a warm and funny film\"
  primer classify --server localhost:7447 --pair \"He sleeps.\" \"He is awake.\"
  primer classify --server localhost:7447 < reviews.txt")]
pub(super) struct ClassifyArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// The text; lines of standard input if not given
    text: Option<String>,
    /// A second text, for models that judge pairs
    #[arg(long, value_name = "TEXT2", requires = "text")]
    pair: Option<String>,
    /// Lines of standard input are pairs, with a tab between
    #[arg(long, conflicts_with_all = ["text", "pair"])]
    pairs: bool,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ClassifyArgs) -> Result<()> {
    let mut client = args.remote.connect()?;
    let mut results = Vec::new();
    let mut out = std::io::stdout().lock();
    let mut one = |client: &mut Client, first: &str, second: Option<&str>| -> Result<()> {
        let found = match second {
            Some(second) => client.classify_pair(first, second)?,
            None => client.classify(first)?,
        };
        note_removed(found.removed, client.card().max_tokens());
        note_range(found.in_range);
        if args.json {
            results.push(classification_json(&found));
        } else {
            writeln!(out, "{}", pipeline_line(&found)).context("writing the result")?;
            eprintln!("{}", cost_line(&found.cost));
        }
        Ok(())
    };
    if let Some(text) = &args.text {
        one(&mut client, text, args.pair.as_deref())?;
    } else {
        for (number, line) in std::io::stdin().lock().lines().enumerate() {
            let at = || format!("line {} of standard input", number + 1);
            let line = line.with_context(at)?;
            if line.trim().is_empty() {
                continue;
            }
            let (first, second) = match (args.pairs, line.split_once('\t')) {
                (false, _) => (line.as_str(), None),
                (true, Some((first, second))) => (first, Some(second)),
                (true, None) => bail!("{}: there is no tab between two texts", at()),
            };
            one(&mut client, first, second).with_context(at)?;
        }
    }
    client.close();
    if args.json {
        let Some(object) = combined(results) else {
            bail!("there is no text: give one as an argument or as lines of standard input");
        };
        writeln!(out, "{object}").context("writing the result")?;
    }
    Ok(())
}

/// One object for one text; the first with all of them for several.
pub(super) fn combined(mut results: Vec<Value>) -> Option<Value> {
    match results.len() {
        0 => None,
        1 => results.pop(),
        _ => {
            let first = results[0].clone();
            Some(merged(first, json!({ "results": results })))
        }
    }
}

/// As Hugging Face's pipelines print it.
pub(super) fn pipeline_line(found: &Classification) -> String {
    let label = Value::from(found.label.as_str());
    match found.score {
        Some(score) => format!("[{{\"label\": {label}, \"score\": {score:.4}}}]"),
        None => format!("[{{\"label\": {label}}}]"),
    }
}

/// As a program reads it.
pub(super) fn classification_json(found: &Classification) -> Value {
    let result = json!({
        "label": found.label, "score": found.score, "logits": found.logits,
        "truncated_tokens": found.removed, "in_range": found.in_range,
    });
    merged(result, cost_json(&found.cost))
}

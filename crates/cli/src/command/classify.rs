//! `primer classify`: private classification of texts.

use super::batch::{Form, Results, each_line};
use super::remote::{RemoteArgs, cost_json, cost_line, merged, note_range, note_removed};
use anyhow::{Context, Result};
use clap::Args;
use primer::{Classification, Client};
use primer_measure::console::output;
use primer_measure::note;
use serde_json::{Value, json};

/// Arguments of `primer classify`.
#[derive(Args)]
#[command(after_help = "\
Output, one line a text, as Hugging Face's pipelines print it:
  [{\"label\": \"POSITIVE\", \"score\": 0.9987}]
What it cost goes to standard error. With --json: one object with label, score, scores and logits
(of all labels, in the model's order), offline_s, online_s and bytes, in the end; for several texts
that of the first, and all under \"results\". With --jsonl: such an object for each line as soon as
it is known, with its number, from 1, as \"line\". in_range is false, and a warning follows, if a
value of the model came near the end of its calibrated range.

One line in is one line out, also a blank one: a line that fails has \"error\" instead of a label,
the others go on, and the exit code is 1 in the end. No line at all is an error.

The server learns the padded length and nothing else. A bundle that `primer prepare` stored is used
if there is one; otherwise the offline phase runs now.

Examples:
  primer classify --server localhost:7447 --trust-fingerprint 3f0a… \"a warm and funny film\"
  primer classify --server localhost:7447 --pair \"He sleeps.\" \"He is awake.\"
  primer classify --server localhost:7447 --jsonl < reviews.txt > labels.jsonl")]
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
    /// Print one JSON object a line of input, as soon as it is known
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
}

impl ClassifyArgs {
    fn form(&self) -> Form {
        match (self.json, self.jsonl) {
            (true, _) => Form::Json,
            (_, true) => Form::Jsonl,
            _ => Form::Pipeline,
        }
    }
}

pub(super) fn run(args: &ClassifyArgs) -> Result<()> {
    let mut client = args.remote.connect()?;
    let form = args.form();
    match (&args.text, form) {
        (Some(text), Form::Pipeline | Form::Json) => {
            let found = ask(&mut client, text, args.pair.as_deref())?;
            client.close();
            match form {
                Form::Json => output::line(classification_json(&found)),
                _ => output::line(pipeline_line(&found)),
            }
        }
        (Some(text), Form::Jsonl) => {
            let mut results = Results::new(form);
            let found = ask(&mut client, text, args.pair.as_deref());
            results.add(1, found.map(|found| both(&found)))?;
            client.close();
            results.end()
        }
        (None, _) => {
            let mut results = Results::new(form);
            let read = each_line(std::io::stdin().lock(), |number, line| {
                let found = line.and_then(|line| {
                    let (first, second) = texts(line, args.pairs)?;
                    ask(&mut client, first, second)
                });
                results.add(number, found.map(|found| both(&found)))
            });
            client.close();
            // What was found is told even if the rest of the input cannot be read.
            read.and(results.end())
        }
    }
}

/// Returns the text of a line, or two.
fn texts(line: &str, pairs: bool) -> Result<(&str, Option<&str>)> {
    if !pairs {
        return Ok((line, None));
    }
    let (first, second) = line
        .split_once('\t')
        .context("there is no tab between two texts")?;
    Ok((first, Some(second)))
}

fn ask(client: &mut Client, first: &str, second: Option<&str>) -> Result<Classification> {
    let found = match second {
        Some(second) => client.classify_pair(first, second)?,
        None => client.classify(first)?,
    };
    note_removed(found.removed, client.card().max_tokens());
    note_range(found.in_range);
    note!("{}", cost_line(&found.cost));
    Ok(found)
}

fn both(found: &Classification) -> (Value, String) {
    (classification_json(found), pipeline_line(found))
}

/// Formats it as Hugging Face's pipelines print it.
fn pipeline_line(found: &Classification) -> String {
    let label = Value::from(found.label.as_str());
    match found.score {
        Some(score) => format!("[{{\"label\": {label}, \"score\": {score:.4}}}]"),
        None => format!("[{{\"label\": {label}}}]"),
    }
}

/// Returns it as a program reads it.
pub(super) fn classification_json(found: &Classification) -> Value {
    let result = json!({
        "label": found.label, "score": found.score, "scores": found.scores,
        "logits": found.logits,
        "truncated_tokens": found.removed, "in_range": found.in_range,
    });
    merged(result, cost_json(&found.cost))
}

//! `primer answer`: private extractive question answering.

use super::remote::{RemoteArgs, cost_json, cost_line, merged, note_range, note_removed};
use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use std::io::{Read, Write};

/// Arguments of `primer answer`.
#[derive(Args)]
#[command(after_help = "\
Output, as Hugging Face's pipelines print it:
  {\"score\": 0.9871, \"start\": 11, \"end\": 16, \"answer\": \"Paris\"}
With --json also in_range: false, with a warning, if a value of the model came near the end of its
calibrated range; null where the server's scheme cannot tell (all but lean).
A context that is too long for the model is cut at its end. Question and context stay with the
client: the server learns their padded length.

Example:
  primer answer --server localhost:7447 --question \"Where is she?\" --context \"In Paris.\"")]
pub(super) struct AnswerArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// The question
    #[arg(long, value_name = "TEXT")]
    question: String,
    /// The text that holds the answer; `-` reads standard input
    #[arg(long, value_name = "TEXT")]
    context: String,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &AnswerArgs) -> Result<()> {
    let mut context = args.context.clone();
    if context == "-" {
        context.clear();
        std::io::stdin()
            .read_to_string(&mut context)
            .context("reading the context from standard input")?;
    }
    let mut client = args.remote.connect()?;
    let found = client.answer(&args.question, &context)?;
    note_removed(found.removed, client.card().max_tokens());
    note_range(found.in_range);
    client.close();
    let mut out = std::io::stdout().lock();
    if args.json {
        let result = json!({
            "answer": found.answer, "score": found.score, "start": found.start, "end": found.end,
            "truncated_tokens": found.removed, "in_range": found.in_range,
        });
        writeln!(out, "{}", merged(result, cost_json(&found.cost)))
    } else {
        eprintln!("{}", cost_line(&found.cost));
        let answer = Value::from(found.answer.as_str());
        writeln!(
            out,
            "{{\"score\": {:.4}, \"start\": {}, \"end\": {}, \"answer\": {answer}}}",
            found.score, found.start, found.end
        )
    }
    .context("writing the result")
}

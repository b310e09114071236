//! `primer answer`: private extractive question answering.

use super::remote::{RemoteArgs, cost_json, cost_line, merged, note_range};
use anyhow::{Context, Result};
use clap::Args;
use primer::AnswerOptions;
use primer_measure::console::output;
use primer_measure::note;
use serde_json::{Value, json};
use std::io::Read;

/// Arguments of `primer answer`.
#[derive(Args)]
#[command(after_help = "\
Output, as Hugging Face's pipelines print it:
  {\"score\": 0.9871, \"start\": 11, \"end\": 16, \"answer\": \"Paris\"}
With --json also in_range: false, with a warning, if a value of the model came near the end of its
calibrated range.
An empty answer says that the context holds none: the model scores that higher, by more than
--null-threshold; the score is that of there being none. A context that is too long for the model
is cut into overlapping windows, prepared together. Question and context stay with the client: the
server learns their padded length and the number of windows.

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
    /// Say that there is no answer if that scores higher by more than this (inf: always answer)
    #[arg(long, value_name = "SCORE", default_value_t = AnswerOptions::default().null_threshold,
          allow_negative_numbers = true)]
    null_threshold: f64,
    /// Tokens that neighbouring windows of a long context share
    #[arg(long, value_name = "N", default_value_t = AnswerOptions::default().stride)]
    stride: usize,
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
    let options = AnswerOptions {
        stride: args.stride,
        null_threshold: args.null_threshold,
    };
    let found = client.answer_with(&args.question, &context, options)?;
    note_range(found.in_range);
    client.close();
    if args.json {
        let result = json!({
            "answer": found.answer, "score": found.score, "start": found.start, "end": found.end,
            "windows": found.windows, "in_range": found.in_range,
        });
        output::line(merged(result, cost_json(&found.cost)))
    } else {
        note!("{}", cost_line(&found.cost));
        let answer = Value::from(found.answer.as_str());
        output::line(format_args!(
            "{{\"score\": {:.4}, \"start\": {}, \"end\": {}, \"answer\": {answer}}}",
            found.score, found.start, found.end
        ))
    }
}

//! `primer tag`: private labels of a text's tokens.

use super::remote::{RemoteArgs, cost_json, cost_line, merged, note_range, note_removed};
use anyhow::Result;
use clap::Args;
use primer::client::tags::Aggregate;
use primer_measure::choice::Choice;
use primer_measure::command::choice;
use primer_measure::console::output;
use primer_measure::note;
use serde_json::json;

/// Arguments of `primer tag`.
#[derive(Args)]
#[command(after_help = "\
Output, as Hugging Face's pipeline for named entities prints it:
  [{\"end\": 14, \"entity_group\": \"PER\", \"score\": 0.998, \"start\": 4, \
\"word\": \"anna weber\"}]
or, with --aggregate none, one object a token:
  [{\"entity\": \"B-PER\", \"index\": 3, …}]
start and end count characters. Tokens with the label O are left out; score is null if the server
reveals only labels. With --json: one object with entities, in_range, offline_s, online_s and bytes.

Entities are put together by the client: the server learns the padded length and nothing else.

Example:
  primer tag --server localhost:7447 \"Dr. Anna Weber of Zurich called.\"")]
pub(super) struct TagArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// The text
    text: String,
    /// Whether tokens are put together
    #[arg(long, default_value = "simple", value_parser = choice::<Grouping>())]
    aggregate: Grouping,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// [`Aggregate`] as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Grouping(Aggregate);

impl Choice for Grouping {
    const ALL: &'static [Self] = &[Self(Aggregate::None), Self(Aggregate::Simple)];

    fn name(self) -> &'static str {
        match self.0 {
            Aggregate::None => "none",
            Aggregate::Simple => "simple",
        }
    }

    fn about(self) -> &'static str {
        match self.0 {
            Aggregate::None => "Every token for itself",
            Aggregate::Simple => "Neighbours of one kind together",
        }
    }
}

pub(super) fn run(args: &TagArgs) -> Result<()> {
    let mut client = args.remote.connect()?;
    let found = client.tag(&args.text, args.aggregate.0)?;
    note_removed(found.removed, client.card().max_tokens());
    note_range(found.in_range);
    client.close();
    let entities = serde_json::to_value(&found.entities)?;
    if args.json {
        let result = json!({
            "entities": entities, "truncated_tokens": found.removed, "in_range": found.in_range,
        });
        output::line(merged(result, cost_json(&found.cost)))
    } else {
        note!("{}", cost_line(&found.cost));
        output::line(entities)
    }
}

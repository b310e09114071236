//! `primer embed`: a text as a vector, privately.

use super::remote::{RemoteArgs, cost_json, cost_line, merged, note_range, note_removed};
use anyhow::Result;
use clap::Args;
use primer_measure::console::output;
use primer_measure::note;
use serde_json::json;

/// Arguments of `primer embed`.
#[derive(Args)]
#[command(after_help = "\
Output, on one line:
  {\"embedding\": [0.0131, -0.0427, …]}
pooled and normalised as the model's directory says (modules.json, 1_Pooling). With --json also
in_range, offline_s, online_s and bytes.

The client learns this vector and nothing of single tokens; the server learns the padded length.

Example:
  primer embed --server localhost:7447 \"a quiet, moving film\"")]
pub(super) struct EmbedArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// The text
    text: String,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &EmbedArgs) -> Result<()> {
    let mut client = args.remote.connect()?;
    let found = client.embed(&args.text)?;
    note_removed(found.removed, client.card().max_tokens());
    note_range(found.in_range);
    client.close();
    let mut result = json!({"embedding": found.vector});
    if args.json {
        let told = json!({"truncated_tokens": found.removed, "in_range": found.in_range});
        result = merged(merged(result, told), cost_json(&found.cost));
    } else {
        note!("{}", cost_line(&found.cost));
    }
    output::line(result)
}

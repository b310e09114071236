//! `primer inspect`: the plan of a model.

use anyhow::Result;
use clap::Args;
use primer_measure::Lean;
use primer_measure::command::{inspect, lean};

/// Arguments of `primer inspect`.
#[derive(Args)]
pub(super) struct InspectArgs {
    #[command(flatten)]
    inspect: inspect::InspectArgs,
    /// The scheme; the paper's are inspected by primer-lab
    #[arg(long, default_value = "lean", value_parser = lean)]
    scheme: Lean,
}

pub(super) fn run(args: &InspectArgs) -> Result<()> {
    inspect::run(&args.inspect, &args.scheme)
}

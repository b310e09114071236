//! `primer-lab inspect`: the plan of a model by any scheme.

use anyhow::Result;
use clap::Args;
use primer_lab::bench::Scheme;
use primer_measure::command::inspect;

/// Arguments of `primer-lab inspect`.
#[derive(Args)]
pub(super) struct InspectArgs {
    #[command(flatten)]
    inspect: inspect::InspectArgs,
    /// The scheme: base, f and fp compute the same integers, fpc merges queries and keys, lean
    /// looks functions up
    #[arg(long, default_value = "lean")]
    scheme: Scheme,
}

pub(super) fn run(args: &InspectArgs) -> Result<()> {
    inspect::run(&args.inspect, args.scheme.scheme())
}

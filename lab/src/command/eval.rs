//! `primer-lab eval`: how accurate a model is by any scheme, and by the comparator's polynomials.

use anyhow::Result;
use clap::Args;
use primer_lab::bench::Scheme;
use primer_lab::eval::{Degrees, Engine};
use primer_measure::command::{choice, eval};

/// Arguments of `primer-lab eval`.
#[derive(Args)]
pub(super) struct EvalArgs {
    #[command(flatten)]
    eval: eval::EvalArgs,
    /// What computes
    #[arg(long, default_value = "fixed", value_parser = choice::<Engine>())]
    engine: Engine,
    /// The scheme, which says what the integers are: base, f and fp compute the same integers, fpc
    /// merges queries and keys, lean looks functions up
    #[arg(long, default_value = "lean")]
    scheme: Scheme,
    /// With `--engine fhe`: the degrees of its polynomials
    #[arg(long, default_value = "middle", value_parser = choice::<Degrees>())]
    degrees: Degrees,
}

pub(super) fn run(args: &EvalArgs) -> Result<()> {
    let engine = args.engine.of_degrees(args.degrees);
    eval::run(&args.eval, args.scheme.scheme(), engine)
}

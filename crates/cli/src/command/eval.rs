//! `primer eval`: how accurate a model is, and how often fixed point agrees with float.

use anyhow::Result;
use clap::Args;
use primer_measure::Lean;
use primer_measure::command::{choice, eval, lean};
use primer_measure::eval::Engine;

/// Arguments of `primer eval`.
#[derive(Args)]
pub(super) struct EvalArgs {
    #[command(flatten)]
    eval: eval::EvalArgs,
    /// What computes
    #[arg(long, default_value = "fixed", value_parser = choice::<Engine>())]
    engine: Engine,
    /// The scheme, which says what the integers are; the paper's are evaluated by primer-lab
    #[arg(long, default_value = "lean", value_parser = lean)]
    scheme: Lean,
}

pub(super) fn run(args: &EvalArgs) -> Result<()> {
    eval::run(&args.eval, &Lean, args.engine)
}

//! The command line.

mod bench;
mod eval;
mod inspect;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use primer_protocol::Scheme;
use std::path::PathBuf;

/// Private BERT inference: a client gets the label of its text from a server that never sees it.
#[derive(Parser)]
#[command(name = "primer", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure a model's accuracy on a data set, in float or in the protocol's fixed point
    Eval(eval::EvalArgs),
    /// Measure private inferences as the paper's tables do, or this machine's building blocks
    Bench(bench::BenchArgs),
    /// One of the two processes that `bench` starts
    #[command(hide = true)]
    BenchParty(bench::PartyArgs),
    /// Show the plan of a model: steps, scales, bit widths, counts
    Inspect(inspect::InspectArgs),
}

/// Which model, and how it is brought to integers.
#[derive(Args)]
struct ModelArgs {
    /// Directory written by Hugging Face's save_pretrained (the embedded SST-2 model if not given)
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Text whose activation ranges set the scales, one input a line (a built-in text if not given)
    #[arg(long, value_name = "FILE", conflicts_with = "prepared")]
    calibration: Option<PathBuf>,
    /// Take scales and integer weights from a file written by `inspect --save-prepared`
    #[arg(long, value_name = "FILE")]
    prepared: Option<PathBuf>,
    /// The scheme: base, f and fp compute the same integers, fpc merges queries and keys
    #[arg(long, default_value = "fp")]
    scheme: Scheme,
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// Whatever went wrong, as one sentence with its causes.
    pub fn run(self) -> Result<()> {
        match self.command {
            Command::Eval(args) => eval::run(&args),
            Command::Bench(args) => bench::run(&args),
            Command::BenchParty(args) => bench::run_party(&args),
            Command::Inspect(args) => inspect::run(&args),
        }
    }
}

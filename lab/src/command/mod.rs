//! The command line.

mod bench;
mod eval;
mod inspect;
mod report;

use anyhow::Result;
use clap::{Parser, Subcommand};
use primer_measure::command::bench::{PartyArgs, run_party};
use primer_measure::command::told;
use primer_measure::notes;

/// The laboratory of Primer: all schemes and comparators, measured and shown beside the paper.
#[derive(Parser)]
#[command(name = "primer-lab", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Say nothing on standard error but warnings and errors
    #[arg(long, short, global = true)]
    quiet: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Measure private inferences as the paper's tables do, or this machine's building blocks
    Bench(bench::BenchArgs),
    /// Measure a model's accuracy on a data set, by any scheme or with polynomials
    Eval(eval::EvalArgs),
    /// Show the plan of a model by any scheme: steps, scales, bit widths, counts
    Inspect(inspect::InspectArgs),
    /// Tables and pictures of results that were measured before, beside the paper's figures
    Report(report::ReportArgs),
    /// One of the two processes that `bench` starts
    #[command(hide = true)]
    BenchParty(PartyArgs),
}

impl Cli {
    /// Reads the command line. Help, the version and wrong usage are told, and end it.
    ///
    /// # Errors
    /// That it was told, or could not be.
    pub(crate) fn from_command_line() -> Result<Self> {
        Self::try_parse().map_err(|error| told(&error))
    }

    /// Runs the command.
    ///
    /// # Errors
    /// What went wrong, as one sentence with its causes.
    pub(crate) fn run(self) -> Result<()> {
        if self.quiet {
            notes::be_quiet();
        }
        match self.command {
            Command::Bench(args) => bench::run(&args),
            Command::Eval(args) => eval::run(&args),
            Command::Inspect(args) => inspect::run(&args),
            Command::Report(args) => report::run(&args),
            Command::BenchParty(args) => run_party(&args, primer_lab::bench::Entrant::find),
        }
    }
}

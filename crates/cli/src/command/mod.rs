//! The command line.

mod answer;
mod bench;
mod bundles;
mod classify;
mod demo;
mod eval;
mod inspect;
mod prepare;
mod remote;
mod report;
mod serve;

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use primer::Scheme;
use primer_lab::choice::Choice;
use std::path::PathBuf;

/// Private BERT inference: a client gets the label of its text from a server that never sees it.
#[derive(Parser)]
#[command(name = "primer", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Try it: both parties on this machine, private sentiment of a text
    Demo(demo::DemoArgs),
    /// Serve a model to clients whose texts stay private
    Serve(serve::ServeArgs),
    /// Ask a server for the label of a text that it does not see
    Classify(classify::ClassifyArgs),
    /// Ask a server for the answer to a question, in a text that it does not see
    Answer(answer::AnswerArgs),
    /// Do the expensive part of later questions ahead of time
    Prepare(prepare::PrepareArgs),
    /// List and delete what was prepared
    Bundles(bundles::BundlesArgs),
    /// Measure a model's accuracy on a data set, in float or in the protocol's fixed point
    Eval(eval::EvalArgs),
    /// Measure private inferences as the paper's tables do, or this machine's building blocks
    Bench(bench::BenchArgs),
    /// Tables and pictures of results that were measured before, beside the paper's figures
    Report(report::ReportArgs),
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
    /// The scheme: base, f and fp compute the same integers, fpc merges queries and
    /// keys, lean looks functions up
    #[arg(long, default_value = Scheme::default().name())]
    scheme: Scheme,
}

/// Takes the name of one of a list.
fn choice<T: Choice>() -> impl TypedValueParser<Value = T> {
    let all = T::ALL.iter();
    let names = all.map(|one| PossibleValue::new(one.name()).help(one.about()));
    let named = |name: String| T::by_name(&name).expect("one of the names above");
    PossibleValuesParser::new(names).map(named)
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    /// Whatever went wrong, as one sentence with its causes.
    pub(crate) fn run(self) -> Result<()> {
        match self.command {
            Command::Demo(args) => demo::run(&args),
            Command::Serve(args) => serve::run(&args),
            Command::Classify(args) => classify::run(&args),
            Command::Answer(args) => answer::run(&args),
            Command::Prepare(args) => prepare::run(&args),
            Command::Bundles(args) => bundles::run(&args),
            Command::Eval(args) => eval::run(&args),
            Command::Bench(args) => bench::run(&args),
            Command::Report(args) => report::run(&args),
            Command::BenchParty(args) => bench::run_party(&args),
            Command::Inspect(args) => inspect::run(&args),
        }
    }
}

//! The command line.

mod answer;
mod batch;
mod bench;
mod bundles;
mod classify;
mod config;
mod demo;
mod embed;
mod eval;
mod gateway;
mod hint;
mod inspect;
mod manual;
mod prepare;
mod remote;
mod serve;
mod shared;
mod store;
mod tag;
mod token;

pub(crate) use remote::RemoteArgs;

use crate::config::apply;
use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use primer_measure::command::bench::PartyArgs;
use primer_measure::command::told;
use primer_measure::notes;
use std::path::PathBuf;

/// Private BERT inference: a client gets the label of its text from a server that never sees it.
#[derive(Parser)]
#[command(name = "primer", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Say nothing on standard error but warnings and errors
    #[arg(long, short, global = true)]
    quiet: bool,
    /// File with settings, as `primer config example` prints it [default: PRIMER_CONFIG, or
    /// primer/config.toml in $XDG_CONFIG_HOME or ~/.config, if it is there]
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Try it: both parties on this machine, private sentiment of a text
    Demo(demo::DemoArgs),
    /// Serve a model to clients whose texts stay private
    Serve(Box<serve::ServeArgs>),
    /// Make access tokens for a server
    Token(token::TokenArgs),
    /// Ask a server for the label of a text that it does not see
    Classify(classify::ClassifyArgs),
    /// Ask a server for the answer to a question, in a text that it does not see
    Answer(answer::AnswerArgs),
    /// Answer HTTP in Hugging Face's shapes, beside the owner of the text, with a page for people
    Gateway(gateway::GatewayArgs),
    /// Ask a server for the names in a text that it does not see, or other labels of its tokens
    Tag(tag::TagArgs),
    /// Ask a server for the embedding of a text that it does not see
    Embed(embed::EmbedArgs),
    /// Do the expensive part of later questions ahead of time
    Prepare(prepare::PrepareArgs),
    /// Build, fetch, list and delete hints, which bundles are prepared with
    Hint(hint::HintArgs),
    /// List and delete what was prepared
    Bundles(bundles::BundlesArgs),
    /// Look after a store that replicas of a server share
    Store(store::StoreArgs),
    /// Check the configuration file, or print one with every flag in it
    Config(config::ConfigArgs),
    /// Print what a shell needs to complete this program's command lines
    Completions(manual::CompletionsArgs),
    /// Write manual pages
    Man(manual::ManArgs),
    /// Measure a model's accuracy on a data set, in float or in the protocol's fixed point
    Eval(eval::EvalArgs),
    /// Measure private inferences between two processes, or this machine's building blocks
    Bench(bench::BenchArgs),
    /// One of the two processes that `bench` starts
    #[command(hide = true)]
    BenchParty(PartyArgs),
    /// Show the plan of a model: steps, scales, bit widths, counts
    Inspect(inspect::InspectArgs),
}

impl Cli {
    /// Reads the command line, and takes from the configuration what is not typed. Help, the
    /// version and wrong usage are told, and end it.
    ///
    /// # Errors
    /// [`AlreadyReported`], that it could not be told, or what is wrong with the configuration.
    pub(crate) fn from_command_line() -> Result<Self> {
        let parsed = apply(Cli::command(), std::env::args_os().collect())?
            .try_get_matches()
            .and_then(|matches| Cli::from_arg_matches(&matches));
        parsed.map_err(|error| told(&error))
    }

    /// Runs the command.
    ///
    /// # Errors
    /// Whatever went wrong, as one sentence with its causes.
    pub(crate) fn run(self) -> Result<()> {
        if self.quiet {
            notes::be_quiet();
        }
        match self.command {
            Command::Demo(args) => demo::run(&args),
            Command::Serve(args) => serve::run(&args),
            Command::Token(args) => token::run(&args),
            Command::Classify(args) => classify::run(&args),
            Command::Answer(args) => answer::run(&args),
            Command::Gateway(args) => gateway::run(&args),
            Command::Tag(args) => tag::run(&args),
            Command::Embed(args) => embed::run(&args),
            Command::Prepare(args) => prepare::run(&args),
            Command::Hint(args) => hint::run(&args),
            Command::Bundles(args) => bundles::run(&args),
            Command::Store(args) => store::run(&args),
            Command::Config(args) => config::run(&args, self.config, &Cli::command()),
            Command::Completions(args) => manual::completions(&args, Cli::command()),
            Command::Man(args) => manual::man(&args, Cli::command()),
            Command::Eval(args) => eval::run(&args),
            Command::Bench(args) => bench::run(&args),
            Command::BenchParty(args) => bench::run_party(&args),
            Command::Inspect(args) => inspect::run(&args),
        }
    }
}

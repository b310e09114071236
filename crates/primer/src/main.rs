//! The program `primer`: reads the command line and hands over to a command.
#![forbid(unsafe_code)]

use clap::Parser;
use primer::command::Cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Wrong usage ends inside `parse` with exit code 2.
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Causes are part of the one sentence: "reading the data: line 7: no label".
            eprintln!("primer: {error:#}");
            ExitCode::FAILURE
        }
    }
}

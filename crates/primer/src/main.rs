//! The program `primer`: reads the command line and hands over to a command.
#![forbid(unsafe_code)]

use clap::Parser;
use primer::command::Cli;
use primer::usage::Usage;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Most wrong usage ends inside `parse` with exit code 2.
    match Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Causes are part of the one sentence: "reading the data: line 7: no label".
            eprintln!("primer: {error:#}");
            match error.is::<Usage>() {
                true => ExitCode::from(2),
                false => ExitCode::FAILURE,
            }
        }
    }
}

//! The program `primer`: reads the command line and hands over to a command.
#![forbid(unsafe_code)]

mod command;
mod progress;

use clap::Parser;
use command::Cli;
use primer_lab::usage::Usage;
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

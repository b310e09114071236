//! The program `primer-lab`: reads the command line and hands over to a command.
#![forbid(unsafe_code)]

mod command;

use command::Cli;
use primer_measure::console::failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::from_command_line().and_then(Cli::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::end(&error),
    }
}

//! The program `primer`: reads the command line and hands over to a command.
#![forbid(unsafe_code)]

mod advice;
mod command;
mod config;
mod failure;
mod log;
mod notify;
mod output;
mod progress;

use command::Cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    match Cli::from_command_line().and_then(Cli::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::end(&error),
    }
}

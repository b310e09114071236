//! The program as people and scripts run it: real processes, real sockets.
#![allow(missing_docs)]

mod measure;
mod schemes;

use primer_testkit::command::program;
use std::process::Command;

/// Makes a command of the program under test.
fn lab() -> Command {
    program("primer-lab")
}

//! What is said beside the results, on standard error.
//!
//! A [`note!`](crate::note) tells how far work is or what it cost, and is left out if the user
//! wants quiet. A [`warning!`](crate::warning) tells something that the user has to know to trust a
//! result, and is always said. Neither can fail: work goes on where no one listens, so a
//! standard error that is closed or full is passed over in silence, where `eprintln!` would panic.

use std::fmt::Arguments;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static QUIET: AtomicBool = AtomicBool::new(false);

/// Leaves notes out from now on; warnings are said.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Tells whether only warnings are wanted.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Writes a line on standard error, if it can be written.
pub fn say(line: Arguments<'_>) {
    // One write a line, so that those of two processes do not mix.
    let line = format!("{line}\n");
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// Returns the program's name before an error: in red on a terminal that has colours, unless
/// `NO_COLOR` is set.
pub fn name() -> &'static str {
    if has_colours() {
        "\x1b[1;31mprimer:\x1b[0m"
    } else {
        "primer:"
    }
}

/// Tells whether standard error is a terminal that has colours, and the user wants them.
pub fn has_colours() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    std::io::stderr().is_terminal() && !dumb && !set("NO_COLOR")
}

/// Tells how far work is, unless the user wants quiet.
#[macro_export]
macro_rules! note {
    ($($line:tt)*) => {
        if !$crate::notes::is_quiet() {
            $crate::notes::say(format_args!($($line)*));
        }
    };
}

/// Tells what the user has to know.
#[macro_export]
macro_rules! warning {
    ($($line:tt)*) => {
        $crate::notes::say(format_args!($($line)*))
    };
}

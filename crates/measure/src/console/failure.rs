//! How the program ends when something went wrong: one sentence and an exit code.
//!
//! | code | means |
//! |---|---|
//! | 1 | it failed |
//! | 2 | wrong usage |
//! | death by SIGPIPE (141 in a shell) | the reader of the results has gone; nothing is said |

use super::advice::with_advice;
use super::output::OutputError;
use crate::notes;
use crate::usage::Usage;
use signal_hook::consts::SIGPIPE;
use signal_hook::low_level::emulate_default_handler;
use std::process::ExitCode;
use thiserror::Error;

/// It failed, and the user has been told already.
#[derive(Debug, Error)]
#[error("it failed, and the error was reported")]
pub struct AlreadyReported {
    /// The exit code.
    pub code: u8,
}

/// Says what went wrong and returns the exit code.
pub fn end(error: &anyhow::Error) -> ExitCode {
    if let Some(told) = error.downcast_ref::<AlreadyReported>() {
        return ExitCode::from(told.code);
    }
    if error.downcast_ref().is_some_and(OutputError::is_closed) {
        // As other programs end there. Everything of ours is cleaned up by now.
        let _ = emulate_default_handler(SIGPIPE);
        return ExitCode::FAILURE;
    }
    notes::say(format_args!("{} {}", notes::name(), sentence(error)));
    ExitCode::from(code(error))
}

/// Returns the exit code of an error.
pub fn code(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() { 2 } else { 1 }
}

/// Tells an error and its causes as one sentence: "reading the data: line 7: no label".
///
/// Errors of the libraries have their causes in their own sentence and tell them as causes as well;
/// a cause that was said already is not said again.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut sentence = String::new();
    for cause in error.chain() {
        let cause = with_advice(cause);
        if sentence.is_empty() {
            sentence = cause;
        } else if !sentence.contains(&cause) {
            sentence = format!("{sentence}: {cause}");
        }
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;
    use std::io;

    #[derive(Debug, Error)]
    #[error("cannot read {path}: {source}")]
    struct Saying {
        path: &'static str,
        source: io::Error,
    }

    #[test]
    fn a_cause_is_said_once() {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let error = anyhow::Error::from(Saying {
            path: "x",
            source: missing(),
        });
        assert_eq!(sentence(&error), format!("cannot read x: {}", missing()));
        let error = Err::<(), _>(missing()).context("reading x").unwrap_err();
        assert_eq!(sentence(&error), format!("reading x: {}", missing()));
        assert_eq!(code(&error), 1);
        assert_eq!(code(&Usage("both".into()).into()), 2);
    }
}

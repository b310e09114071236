//! The log of a server, on standard error: lines for people, or JSON and nothing else.

use clap::ValueEnum;
use primer_measure::console::failure::{AlreadyReported, code, sentence};
use primer_measure::notes;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogForm {
    /// Lines for people
    Text,
    /// One JSON object a line, and nothing but JSON on both streams
    Json,
}

/// Starts the log. `PRIMER_LOG` says what is logged; without it, everything from `info` on, or
/// warnings alone if the user wants quiet.
pub(crate) fn start(form: LogForm) {
    let level = match notes::is_quiet() {
        true => LevelFilter::WARN,
        false => LevelFilter::INFO,
    };
    let wanted = std::env::var("PRIMER_LOG").ok();
    let wanted = wanted.and_then(|text| text.parse::<Targets>().ok());
    let wanted = wanted.unwrap_or_else(|| Targets::new().with_default(level));
    let log = tracing_subscriber::registry().with(wanted);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        // A line that cannot be written is lost; telling so with `eprintln!` would panic.
        .log_internal_errors(false)
        .with_target(false);
    // Fails if there is a log already: then that one is used.
    let _ = match form {
        LogForm::Text => log.with(lines.with_ansi(notes::has_colours())).try_init(),
        LogForm::Json => {
            std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a bug")));
            log.with(lines.json()).try_init()
        }
    };
}

/// Logs the error that ends the program, if the log has to hold it.
pub(crate) fn last(form: LogForm, error: anyhow::Error) -> anyhow::Error {
    if form == LogForm::Text {
        return error;
    }
    tracing::error!("{}", sentence(&error));
    let code = code(&error);
    AlreadyReported { code }.into()
}

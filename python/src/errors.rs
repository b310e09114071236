//! From the library's errors to Python's exceptions.
//!
//! The classes are written in Python (`primer/errors.py`), where they can have a second parent and
//! documentation; here every error finds its class. Messages are the library's, which carry no
//! text, key or token; what can be done about an error is added in Python's terms.

use primer::ServiceError;
use pyo3::prelude::*;
use std::io::ErrorKind;

/// Makes the exception for an error.
pub(crate) fn raise(py: Python<'_>, error: &ServiceError) -> PyErr {
    named(py, class(error), &message(error))
}

/// Makes the exception for an option that makes no sense.
pub(crate) fn option(py: Python<'_>, message: &str) -> PyErr {
    named(py, "OptionError", message)
}

/// Makes the exception for an object that was closed before.
pub(crate) fn closed(py: Python<'_>, what: &str) -> PyErr {
    named(py, "ClosedError", &format!("this {what} is closed"))
}

/// Makes the exception for an error that has no class of its own.
pub(crate) fn other(py: Python<'_>, message: &str) -> PyErr {
    named(py, "Error", message)
}

fn named(py: Python<'_>, class: &str, message: &str) -> PyErr {
    let made = py
        .import("primer.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((message,)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

fn class(error: &ServiceError) -> &'static str {
    use ServiceError as E;
    match error {
        E::Refused(_) | E::Fickle { .. } | E::ClientCertificate { .. } => "RefusedError",
        E::Incomplete { cause, .. } => class(cause),
        broken if broken.is_broken_connection() => "ConnectError",
        E::UnknownServer { .. } | E::ChangedServer { .. } => "TrustError",
        E::OtherFingerprint { .. } | E::NeedlessFingerprint { .. } => "TrustError",
        E::Net(_) | E::Protocol(_) | E::Nonsense { .. } => "ProtocolError",
        E::Text(_) => "TextError",
        E::Head { .. } => "TaskError",
        E::Source(_) => "ModelError",
        E::Store(_) | E::Bundle { .. } | E::Elsewhere { .. } | E::Io { .. } => "StateError",
        E::Disk(_) | E::Hint(_) => "StateError",
        E::Listen { cause, .. } if cause.kind() == ErrorKind::AddrInUse => "OptionError",
        E::Listen { .. } => "ListenError",
        E::Options(_) | E::NoIdentity | E::NoState => "OptionError",
        E::HungUp(_) => "ClosedError",
        _ => "Error",
    }
}

/// Gives the library's words, and what to do about it in Python's terms.
fn message(error: &ServiceError) -> String {
    match advice(error) {
        Some(advice) => format!("{error}{advice}"),
        None => error.to_string(),
    }
}

/// Says which argument helps, if one does, as the end of the error's sentence.
fn advice(error: &ServiceError) -> Option<String> {
    use ServiceError as E;
    Some(match error {
        E::Incomplete { cause, .. } => return advice(cause),
        E::Away { waited, .. } => match (*waited)?.is_zero() {
            true => ": wait= asks again for that many seconds".into(),
            false => " (wait=)".into(),
        },
        E::UnknownServer { got, .. } => format!(", then connect with fingerprint=\"{got}\""),
        E::ChangedServer { got, .. } => format!(" with fingerprint=\"{got}\""),
        E::OtherFingerprint { given, .. } => format!("; {given} was given as fingerprint="),
        E::NeedlessFingerprint { .. } => "; leave fingerprint= out".into(),
        E::ClientCertificate { .. } => "; clients in Python show none".into(),
        _ => return None,
    })
}

//! From the library's errors to Python's exceptions.
//!
//! The classes are written in Python (`primer/errors.py`), where they can have a second parent and
//! documentation; here every error finds its class. Messages are the library's, which carry no
//! text, key or token; where they speak of the command line, they are put in Python's terms.

use primer::ServiceError;
use pyo3::prelude::*;

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
        E::Listen { .. } => "ListenError",
        E::Options(_) => "OptionError",
        E::Stopped(_) => "ClosedError",
        _ => "Error",
    }
}

fn message(error: &ServiceError) -> String {
    match error {
        ServiceError::Incomplete {
            kept,
            wanted,
            cause,
        } => format!(
            "{kept} of {wanted} bundles are prepared and kept, the others are not: {}",
            message(cause)
        ),
        ServiceError::Away {
            address,
            cause,
            waited: Some(waited),
        } => {
            let tried = if waited.is_zero() {
                "if a balancer is there, the server behind it is away: wait= asks again for that \
                 many seconds"
                    .to_owned()
            } else {
                let seconds = waited.as_secs_f64();
                format!("it was asked again for {seconds} s (wait=)")
            };
            format!("{address} ended the connection before it answered: {cause}; {tried}")
        }
        ServiceError::UnknownServer { address, got } => format!(
            "{address} is not known yet; its certificate has the fingerprint {got}: compare it \
             with what the server printed when it started, then connect with \
             fingerprint=\"{got}\""
        ),
        ServiceError::ChangedServer {
            address,
            known,
            got,
            file,
        } => format!(
            "{address} presents a certificate with the fingerprint {got}, but {known} was \
             expected, which is on record in {}; someone may be listening in. If the server's \
             operator confirms the new one, delete the line from that file and connect with \
             fingerprint=\"{got}\"",
            file.display()
        ),
        ServiceError::OtherFingerprint {
            address,
            given,
            got,
        } => format!(
            "{address} presents a certificate with the fingerprint {got}, but {given} was \
             expected, given as fingerprint=; compare both with what the server printed when it \
             started: one of them is mistyped, or another machine answers. Nothing was recorded"
        ),
        ServiceError::NeedlessFingerprint {
            address,
            given,
            got,
        } => format!(
            "fingerprint= says {given}, but {address} presents the certificate on record, {got}: \
             it is known and has not changed, so leave fingerprint= out"
        ),
        ServiceError::ClientCertificate { address, .. } => {
            format!("{address} asks clients for a certificate, and clients in Python show none")
        }
        other => other.to_string(),
    }
}

//! What to do about an error of the library, in the command line's terms: the library knows no
//! options of ours.

use primer::ServiceError;
use primer::service::Port;
use std::error::Error;
use std::time::Duration;

/// Tells an error in its own words, and what can be done about it with an option.
pub(super) fn with_advice(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref().and_then(advice) {
        Some(advice) => format!("{error}{advice}"),
        None => error.to_string(),
    }
}

/// Says which option helps, if one does, as the end of the error's sentence.
fn advice(error: &ServiceError) -> Option<String> {
    use ServiceError as E;
    Some(match error {
        E::Incomplete { cause, .. } => return advice(cause),
        E::UnknownServer { got, .. } => {
            format!(", then run the command again with --trust-fingerprint {got}")
        }
        E::ChangedServer { got, .. } => format!(" with --trust-fingerprint {got}"),
        E::OtherFingerprint { given, .. } => {
            format!("; {given} was expected as --trust-fingerprint says")
        }
        E::NeedlessFingerprint { .. } => "; leave --trust-fingerprint out".into(),
        E::ClientCertificate { shown: false, .. } => "; show one with --cert and --key".into(),
        E::Away { waited, .. } => match (*waited)? {
            Duration::ZERO => ": --wait SECONDS asks again for that long".into(),
            _ => " (--wait)".into(),
        },
        E::Listen { port, cause, .. } if cause.kind() == std::io::ErrorKind::AddrInUse => {
            let option = match port {
                Port::Clients => "--listen",
                Port::Browsers => "--web-listen",
                Port::Metrics => "--metrics",
            };
            format!(" with {option}")
        }
        E::NoIdentity => ": give it with --cert and --key".into(),
        E::NoState => ": give one with --state DIR".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_named_once_and_by_the_command_line() {
        let error = ServiceError::Listen {
            port: Port::Metrics,
            address: "here:1".into(),
            cause: std::io::ErrorKind::AddrInUse.into(),
        };
        assert!(!error.to_string().contains("--"), "{error}");
        let said = with_advice(&error);
        assert!(
            said.ends_with("choose another port with --metrics"),
            "{said}"
        );
        let incomplete = ServiceError::Incomplete {
            kept: 1,
            wanted: 2,
            cause: Box::new(ServiceError::NoState),
        };
        let said = with_advice(&incomplete);
        assert!(
            said.ends_with("was given: give one with --state DIR"),
            "{said}"
        );
        let other = ServiceError::HungUp("waiting");
        assert_eq!(with_advice(&other), other.to_string());
    }
}

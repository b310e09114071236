//! x
use crate::error::HeError;
use crate::params::Params;
pub(crate) fn fingerprint_error(params: &Params, found: &[u8]) -> HeError {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    HeError::Fingerprint { found: hex(found), expected: hex(params.fingerprint()) }
}

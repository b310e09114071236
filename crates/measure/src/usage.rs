//! What was asked for makes no sense, which is not the same as a failure.

use thiserror::Error;

/// Arguments that do not go together or are out of range; the program ends with code 2, as for
/// arguments that it does not know.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Ends with a [`Usage`](crate::usage::Usage) error unless a condition holds.
#[macro_export]
macro_rules! ensure_usage {
    ($holds:expr, $($reason:tt)*) => {
        if !$holds {
            return Err($crate::usage::Usage(format!($($reason)*)).into());
        }
    };
}

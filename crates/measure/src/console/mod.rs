//! What programs write: results on standard output, progress and errors on standard error.

mod advice;
pub mod failure;
pub mod output;
pub mod progress;

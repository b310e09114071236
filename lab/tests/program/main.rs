//! The program as people and scripts run it: real processes, real sockets.
#![allow(missing_docs)]

mod measure;
mod process;
mod schemes;

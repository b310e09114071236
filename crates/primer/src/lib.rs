//! Private BERT inference in one program.
//!
//! [`command`] holds one file per command of the program; [`source`] finds the model that a command is
//! about, [`bench`] measures, [`secure`] runs both parties in one process, [`task`] knows the data sets and their measures, [`progress`] shows how far long work is.
#![forbid(unsafe_code)]

pub mod bench;
pub mod command;
pub mod progress;
pub mod secure;
pub mod source;
pub mod task;

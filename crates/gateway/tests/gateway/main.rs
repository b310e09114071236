//! The gateway as services and people meet it: Hugging Face's JSON, a stock, bad input, a server
//! that goes away. Gateway and server run in this process and speak over real sockets; what only a
//! process can show is tested with the program, in `crates/cli/tests`.
#![allow(missing_docs)]

mod answers;
mod input;
mod trouble;

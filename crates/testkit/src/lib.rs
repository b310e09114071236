//! What tests of several crates share. Nothing that is shipped depends on it.
//!
//! | module | has | feature |
//! |---|---|---|
//! | [`wait`] | waiting for an event instead of for a time | |
//! | [`files`] | files of the repository, the models beside it, copies of fixtures | |
//! | [`command`] | commands, what they print, how they fail | |
//! | [`http`] | plain HTTP requests, a page of metrics | |
//! | [`far`], [`balancer`] | relays of TCP: slow ones, and ones that drop connections | |
//! | `models` | models: embedded, of fixtures, random ones of twelve words | `models` |
//! | `shares` | values in two shares | `shares` |
//! | `frames`, `relay` | links that change frames, or log and damage them | `link` |
//! | `server`, `process` | servers of this process, and servers that are processes | `service` |
//! | `gateway` | gateways of this process | `gateway` |
//! | `hint` | the embedded model's hint, built once | `service` |
//! | `stores`, `log` | both stores compared; what servers of this process log | `service` |
//!
//! Cargo builds a crate twice for its own unit tests, so these must not use a part of the testkit
//! that depends on the crate; tests in `tests/` may.
#![forbid(unsafe_code)]

pub mod balancer;
pub mod command;
pub mod far;
pub mod files;
#[cfg(feature = "link")]
pub mod frames;
#[cfg(feature = "gateway")]
pub mod gateway;
#[cfg(feature = "service")]
pub mod hint;
pub mod http;
#[cfg(feature = "service")]
pub mod log;
#[cfg(feature = "models")]
pub mod models;
#[cfg(feature = "service")]
pub mod process;
#[cfg(feature = "link")]
pub mod relay;
#[cfg(feature = "service")]
pub mod server;
#[cfg(feature = "shares")]
pub mod shares;
#[cfg(feature = "service")]
pub mod stores;
pub mod wait;

/// Texts whose sentiment is beyond doubt, for the embedded model too.
pub const TEXTS: [(&str, &str); 5] = [
    ("a warm , funny film", "positive"),
    ("an utter mess", "negative"),
    ("one of the best films of the year", "positive"),
    ("the plot is thin and the jokes are old", "negative"),
    ("a wonderful story", "positive"),
];

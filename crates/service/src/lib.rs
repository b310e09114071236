//! The service: what a client and a server say to each other around the private protocol.
//!
//! One TLS connection carries it. The private protocol (`primer_engine`) prepares and infers; the
//! service decides who may do so, with which model, and makes sure that prepared material is used
//! **once**.
//!
//! ```text
//! client                                     server
//! greeting: version, pseudonym, token  --->
//!                                      <---  card: model, labels, lengths, limits; or a refusal
//! then any number of requests:
//!
//! tokenizer                            --->
//!                                      <---  its files
//!
//! hint: its hashes, or some chunks     --->
//!                                      <---  they follow; or a refusal
//!                                      <---  one message with all hashes, or one for each chunk
//!
//! prepare: identifier, tokens, bundles --->  and a nonce, if a session is to be opened
//!                                      <---  go, or a refusal
//!                                      <---  if a session is opened: the plan, what is revealed,
//!                                            the program's fingerprint, its hint and a nonce
//! [keys and base transfers]            <-->  if a session is opened
//! [offline phase]                      <-->  each writes its half of the bundle as a draft
//!                                            commits its half durably
//!                                      <---  committed
//! commits its half durably
//!
//! infer: identifier, fingerprint       --->
//!                                      <---  ready, or a refusal: nothing is spent yet
//! spends its half durably
//! spent                                --->
//!                                            spends its half durably
//!                                      <---  agreed, or a refusal
//! [online phase]                       <-->
//!
//! list, forget: identifiers            --->
//!                                      <---  what the server holds; done
//! bye                                  --->
//! ```
//!
//! *Order is what keeps a bundle from being used twice or alone.* The server commits first, so a
//! client never holds material that its server lacks; a client that dies in between leaves an
//! orphan on the server, which expires or is forgotten. Both mark their half as spent before the
//! first masked value travels, the client before the server, so no crash can bring a spent half
//! back.
//!
//! One offline phase prepares several bundles together. They have names
//! and lives of their own from then on.
//!
//! *What the server learns* beside the padded length: a pseudonym of 32 random bytes that the
//! client made for this server alone (two servers cannot tell that they serve the same client), and
//! the access token if one is asked for.
//!
//! [`message`] holds the messages with their bounds. Feature `files`, on by default, brings what a
//! system with files is needed for: `state` and most of [`hints`].

#![forbid(unsafe_code)]

mod error;
pub mod hints;
pub mod message;
#[cfg(feature = "files")]
pub mod state;

pub use error::{Port, ServiceError, io_error};
pub use primer_store::BundleId;
pub use primer_wire::VERSION;

/// Writes bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Draws random bytes of the operating system.
///
/// # Errors
/// [`ServiceError::Io`] if it has none.
pub fn random<const N: usize>() -> Result<[u8; N], ServiceError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| std::io::Error::other(error.to_string()))
        .map_err(io_error("asking the system for random bytes"))?;
    Ok(bytes)
}

//! The version of everything that travels between two parties.
//!
//! A client says it in its greeting, and a server of another version refuses it by that: nothing
//! else is compared between programs of different ages. Bundles begin with it, and the fingerprint
//! of a program includes it, so what was prepared under one version is not used under another.
//!
//! It is raised by a change of any message, of a kind's code ([`crate::kind`]), of what either
//! party computes from what it is sent, or of what a bundle has in it. The formats of files have
//! versions of their own, beside what reads them; `docs/protocol/session.md` lists them.

/// The version that this program speaks.
pub const VERSION: u16 = 13;

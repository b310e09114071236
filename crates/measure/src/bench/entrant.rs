//! The seam between a measurement of costs and what is measured.
//!
//! An [`Entrant`] is a way of inferring privately that two processes can run. Every scheme is one,
//! run whole ([`super::Whole`]); another program may have others, such as a system that is run on a
//! small shape and extrapolated.

use super::party::{Accept, Job, Outcome, Ready};
use super::{EntrantResult, Plain, Request, Subject};
use anyhow::Result;
use primer_wire::Channel;
use std::path::Path;

/// A way of inferring privately.
pub trait Entrant: Sync {
    /// Returns the name on the command line and in results.
    fn name(&self) -> &'static str;

    /// Returns how many bundles are prepared together where `asked` are asked for.
    fn bundles(&self, asked: usize) -> usize;

    /// Refuses before the first of many long runs what cannot be measured of any model.
    ///
    /// # Errors
    /// If it cannot.
    fn check_request(&self, _request: &Request) -> Result<()> {
        Ok(())
    }

    /// Refuses before the first of many long runs a model that cannot be measured.
    ///
    /// # Errors
    /// If it cannot.
    fn check_subject(&self, _request: &Request, _subject: &Subject) -> Result<()> {
        Ok(())
    }

    /// Measures it: starts both parties ([`super::pair`]) and makes a row of what they say.
    ///
    /// # Errors
    /// If a party fails, or what was counted is not what was predicted.
    fn measure(&self, request: &Request, subject: &Subject, plain: &Plain)
    -> Result<EntrantResult>;

    /// Runs the server in a process of its own, with the model that was prepared for it if there is
    /// one.
    ///
    /// # Errors
    /// If either party fails.
    fn serve(&self, job: &Job, prepared: Option<&Path>, accept: Accept<'_>) -> Result<Outcome>;

    /// Runs the client in a process of its own, on a connection to the server.
    ///
    /// # Errors
    /// If either party fails.
    fn ask(&self, job: &Job, server: &Ready, channel: &mut Channel) -> Result<Outcome>;
}

/// Finds an entrant by its name; each program that measures has its own.
pub type Find = fn(&str) -> Option<&'static dyn Entrant>;

//! The seam between measurements and schemes: what a measurement has to know of a scheme.
//!
//! A [`Scheme`] tells what an inference will cost, makes what a server keeps of a model, and opens
//! the two ends of a session. Nothing here is of one protocol's types, so that protocols that know
//! nothing of each other can be measured by the same code: a scheme is a value behind this trait,
//! found by its name.

use crate::hinted::Hinted;
use anyhow::Result;
use primer::PhaseBytes;
use primer_hint::published::Published;
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_plan::design::Design;
use primer_plan::times::Times;
use primer_ring::matrix::Matrix;
use primer_text::Input;
use primer_wire::Channel;
use std::io::{Read, Write};
use std::sync::Arc;

/// A scheme of private inference.
pub trait Scheme: Sync {
    /// Returns the name on the command line and in results.
    fn name(&self) -> &'static str;

    /// Returns the version of its protocol, which answers that are kept belong to.
    fn version(&self) -> u16;

    /// Makes the weights of the graph that it computes from a model's, as they were folded.
    fn weights(&self, folded: &FloatWeights) -> FloatWeights;

    /// Returns the design of the plans that it takes.
    fn design(&self) -> &'static dyn Design;

    /// Returns how many bundles can be prepared together at most.
    fn most_bundles(&self) -> usize;

    /// Returns the standard deviation of the errors that products with weights have in this scheme,
    /// if they are not exact.
    fn deviation(&self) -> Option<f64> {
        None
    }

    /// Tells what it costs to prepare bundles together, and then one inference.
    ///
    /// # Errors
    /// If the model has no plan of this scheme, or the scheme does not prepare that many together.
    fn costs(&self, model: &IntModel, tokens: usize, bundles: usize) -> Result<Costs>;

    /// Tells what inferences of a number of tokens promise.
    ///
    /// # Errors
    /// If the model has no plan of this scheme.
    fn terms(&self, model: &IntModel, tokens: usize) -> Result<Terms>;

    /// Makes the hint of a model under a secret that is forgotten, if the scheme needs one.
    ///
    /// # Errors
    /// If it cannot be made of this model.
    fn hint(&self, _model: &IntModel) -> Result<Option<Hinted>> {
        Ok(None)
    }

    /// Makes what a server needs for inferences of a number of tokens.
    ///
    /// # Errors
    /// If the model, the number of tokens or the hint is not one of this scheme.
    fn server(
        &self,
        model: Arc<IntModel>,
        tokens: usize,
        hinted: Option<&Hinted>,
    ) -> Result<Box<dyn Server>>;

    /// Opens the client's end of a session for inputs of a number of tokens.
    ///
    /// # Errors
    /// If the server refuses, or either party fails.
    fn client(
        &self,
        channel: &mut Channel,
        tokens: usize,
        hint: Option<Arc<Published>>,
    ) -> Result<Box<dyn ClientEnd>>;
}

/// A server's weights, ready for sessions.
pub trait Server: Sync {
    /// Opens the server's end of a session.
    ///
    /// # Errors
    /// If the client is refused, or either party fails.
    fn accept<'s>(&'s self, channel: &mut Channel) -> Result<Box<dyn ServerEnd + 's>>;
}

/// Where a bundle is written.
pub type BundleWriter<'a> = &'a mut (dyn Write + Send);

/// Where a bundle is read.
pub type BundleReader = Box<dyn Read + Send>;

/// The server's end of a session.
pub trait ServerEnd {
    /// Sets how many threads it may have.
    fn set_threads(&mut self, threads: usize);

    /// Prepares a bundle for each sink.
    ///
    /// # Errors
    /// If either party fails.
    fn prepare(&mut self, channel: &mut Channel, sinks: &mut [BundleWriter<'_>]) -> Result<()>;

    /// Answers one inference with a bundle.
    ///
    /// # Errors
    /// If either party fails.
    fn infer(&mut self, channel: &mut Channel, bundle: BundleReader) -> Result<()>;
}

/// The client's end of a session.
pub trait ClientEnd {
    /// Sets how many threads it may have.
    fn set_threads(&mut self, threads: usize);

    /// Returns the size of the model's vocabulary.
    fn vocabulary(&self) -> usize;

    /// Prepares a bundle for each sink; tells the seconds of each step.
    ///
    /// # Errors
    /// If either party fails.
    fn prepare(&mut self, channel: &mut Channel, sinks: &mut [BundleWriter<'_>]) -> Result<Times>;

    /// Runs one inference with a bundle.
    ///
    /// # Errors
    /// If either party fails.
    fn infer(
        &mut self,
        channel: &mut Channel,
        bundle: BundleReader,
        input: &Input,
    ) -> Result<SchemeAnswer>;
}

/// What a client gets of an inference.
pub struct SchemeAnswer {
    /// The model's outputs.
    pub reals: Vec<Matrix<f64>>,
    /// Whether values stayed in their ranges; `None` where clients are not told.
    pub in_range: Option<bool>,
    /// Seconds of the online phase.
    pub times: Times,
}

/// What some steps of an inference cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes by phase and direction, of all bundles that are prepared together.
    pub bytes: PhaseBytes,
    /// Round trips online.
    pub rounds_online: u64,
    /// AND gates that are garbled.
    pub and_gates: u64,
    /// Bytes of a bundle in the client's store.
    pub client_stored: u64,
    /// Bytes of a bundle in the server's store.
    pub server_stored: u64,
    /// Bytes of the model's hint, once a client and model.
    pub hint: Option<u64>,
}

/// What an inference costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// All of it.
    pub whole: Cost,
    /// The part that belongs to layers.
    pub layers: Cost,
}

/// What a program promises, and what an answer can carry.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// The homomorphic parameters, in words.
    pub encryption: String,
    /// Bytes of what the server multiplies the hint with, if there is a hint.
    pub multipliers: Option<u64>,
    /// Inferences of one client that together stay within the statistical distance; any number by
    /// schemes whose client is sent nothing that depends on the weights.
    pub inferences: f64,
    /// A bound of the probability that an inference has a wrong share.
    pub odds: f64,
    /// Bits that an answer can carry.
    pub answer_bits: u64,
    /// The same of an answer that has labels alone, if the head has labels.
    pub label_bits: Option<u64>,
}

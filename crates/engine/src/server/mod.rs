//! The server: has the weights, learns nothing but the length bucket.
//!
//! Offline, [`ServerSession::prepare`] walks the plan with the client's encrypted masks and writes
//! a bundle; online, [`infer`] walks it again with the masked input, in the clear but for the
//! stops, and consumes the bundle. `prepare` and `online` are these two walks, segment by segment;
//! `model` holds the weights.

mod model;
mod online;
mod prepare;
mod products;

pub use model::ServerModel;
pub(crate) use online::OnlineServer;

use crate::clock::Clock;
use crate::error::{ProtocolError, Result};
use crate::flags::Flags;
use crate::program::Program;
use crate::renewed::ServerTransfers;
use crate::seeds::Seeds;
use crate::session::{See, ServerSession};
use crate::stored;
use crate::times::Times;
use prepare::Preparation;
use primer_plan::graph::ValueId;
use primer_ring::matrix::Matrix;
use primer_wire::Channel;
use std::io::{Read, Write};

/// Offline material of one inference. [`infer`] takes it by value, so it cannot be spent twice:
///
/// ```compile_fail,E0382
/// use primer_engine::server::{self, Bundle, ServerModel};
/// # use primer_engine::ProtocolError;
/// # use primer_wire::Channel;
///
/// fn twice(
///     channel: &mut Channel,
///     model: &ServerModel,
///     bundle: Bundle,
/// ) -> Result<(), ProtocolError> {
///     server::infer(channel, model, bundle)?;
///     server::infer(channel, model, bundle)?;
///     Ok(())
/// }
/// ```
pub struct Bundle(Box<dyn Read + Send>);

impl Bundle {
    /// Takes the bundle that [`ServerSession::prepare`] wrote, which must not be given out again.
    pub fn new(source: impl Read + Send + 'static) -> Self {
        Self(Box::new(source))
    }
}

impl ServerSession {
    /// Makes the material of one inference offline, together with the client, and writes it to
    /// `sink`, in order.
    ///
    /// # Errors
    /// [`ProtocolError`] of what failed; what was written is of no use then, and nor is the
    /// session.
    pub fn prepare(
        &mut self,
        channel: &mut Channel,
        model: &ServerModel,
        sink: &mut (dyn Write + Send),
    ) -> Result<Times> {
        self.prepare_together(channel, model, &mut [sink])
    }

    /// Does the same for several inferences in one go, each written to a sink of its own. The
    /// client has to ask for as many.
    ///
    /// # Errors
    /// As [`Self::prepare`], and [`ProtocolError::Bundles`] if that number is not prepared
    /// together.
    pub fn prepare_together(
        &mut self,
        channel: &mut Channel,
        model: &ServerModel,
        sinks: &mut [&mut (dyn Write + Send)],
    ) -> Result<Times> {
        check_model(&self.program, model)?;
        self.program.check_bundles(sinks.len())?;
        self.poison.enter()?;
        let times = self.prepare_bundles(channel, model, sinks)?;
        self.poison.leave();
        Ok(times)
    }

    fn prepare_bundles(
        &mut self,
        channel: &mut Channel,
        model: &ServerModel,
        sinks: &mut [&mut (dyn Write + Send)],
    ) -> Result<Times> {
        let mut clock = Clock::start(channel);
        let program = self.program.clone();
        let seeds: Vec<Seeds> =
            (sinks.iter().map(|_| Seeds::new(self.rng.secret_seed()))).collect();
        for (sink, seeds) in sinks.iter_mut().zip(&seeds) {
            stored::write_header(sink, &program, seeds)?;
        }
        let mut renewed = self.renew(channel, sinks)?;
        let mut preparation = Preparation::new(self, model, &mut renewed)?;
        preparation.run(channel, &seeds, sinks, &mut clock)?;
        for sink in sinks {
            sink.flush()?;
        }
        Ok(clock.times())
    }

    /// Makes the transfers of each bundle, and with them its comparison of range flags.
    fn renew(
        &mut self,
        channel: &mut Channel,
        sinks: &mut [&mut (dyn Write + Send)],
    ) -> Result<Vec<ServerTransfers>> {
        let _phase = channel.phase("offline/others");
        let (program, threads, rng) = (&self.program, self.threads, &mut self.rng);
        let mut renewed = self.roots.renew(channel, sinks.len(), rng)?;
        for (transfers, sink) in renewed.iter_mut().zip(sinks) {
            transfers.set_threads(threads);
            if let Some(comparison) = program.comparison() {
                comparison.server_prepare(&mut transfers.tools(channel, rng), sink)?;
            }
        }
        Ok(renewed)
    }
}

/// Answers one inference online.
///
/// # Errors
/// [`ProtocolError`] of what failed; the bundle is spent in any case.
pub fn infer(channel: &mut Channel, model: &ServerModel, bundle: Bundle) -> Result<Times> {
    infer_watched(channel, model, bundle, &mut |_, _| ())
}

/// Does the same; `see` gets the server's shares of all linear steps, so that the fixed-point
/// reference can repeat a run with the errors of its products, and of each value when it is opened,
/// so that a test can take it off and look at the mask. Shares of both parties together are the
/// values.
///
/// # Errors
/// As [`infer`].
pub fn infer_watched(
    channel: &mut Channel,
    model: &ServerModel,
    mut bundle: Bundle,
    see: &mut (dyn FnMut(ValueId, &Matrix<u64>) + Send),
) -> Result<Times> {
    let mut online = begin(channel, model, &mut bundle, see)?;
    for steps in model.program().segments() {
        online.segment(channel, steps, &mut *bundle.0)?;
    }
    online.finish(channel)
}

/// Reads the bundle's header and takes the masked input.
fn begin<'a>(
    channel: &mut Channel,
    model: &'a ServerModel,
    bundle: &mut Bundle,
    see: &'a mut See<'a>,
) -> Result<OnlineServer<'a>> {
    let clock = Clock::start(channel);
    let seeds = stored::read_header(&mut *bundle.0, model.program())?;
    let flags = Flags::read(&mut *bundle.0, model.program(), |stored| stored.server)?;
    OnlineServer::receive(channel, model, (seeds, flags), see, clock)
}

fn check_model(program: &Program, model: &ServerModel) -> Result<()> {
    if program.fingerprint() == model.program().fingerprint() {
        Ok(())
    } else {
        Err(ProtocolError::OtherBundle { what: "model" })
    }
}

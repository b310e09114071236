//! The server: has the weights, learns nothing but the length bucket.
//!
//! Offline, [`ServerSession::prepare`] walks the plan with the client's encrypted masks and writes
//! a bundle; online, [`infer`] walks it again with the masked input, in the clear but for the
//! stops, and consumes the bundle. `prepare` and `online` are these two walks, segment by segment;
//! `model` holds the weights.

mod encoded;
mod model;
mod online;
mod prepare;
mod products;

pub use model::ServerModel;
pub(crate) use online::OnlineServer;

use crate::error::{ProtocolError, Result};
use crate::program::Program;
use crate::scheme::When;
use crate::seeds::{Seeds, Use};
use crate::session::ServerSession;
use crate::stored;
use prepare::{Bundle as Prepared, Preparation};
use primer_engine::clock::Clock;
use primer_engine::share::Share;
use primer_plan::graph::ValueId;
use primer_plan::times::Times;
use primer_wire::Channel;
use std::io::{Read, Write};
use zeroize::Zeroizing;

/// Offline material of one inference. [`infer`] takes it by value, so it cannot be spent twice:
///
/// ```compile_fail,E0382
/// use primer_paper::server::{self, Bundle, ServerModel};
/// # use primer_paper::ProtocolError;
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
        check_model(&self.program, model)?;
        self.poison.enter()?;
        let times = self.prepare_bundle(channel, model, sink)?;
        self.poison.leave();
        Ok(times)
    }

    fn prepare_bundle(
        &mut self,
        channel: &mut Channel,
        model: &ServerModel,
        sink: &mut (dyn Write + Send),
    ) -> Result<Times> {
        let mut clock = Clock::start(channel);
        let program = self.program.clone();
        let seeds = Seeds::new(self.rng.secret_seed());
        stored::write_header(sink, &program, &seeds)?;
        if program.scheme().recipe().when == When::Offline {
            let opening = |id: ValueId| {
                let value = program.plan().graph().value(id);
                seeds.share(Use::Value(id), value.rows, value.cols)
            };
            let mut renewed = {
                let _phase = channel.phase("offline/others");
                self.roots.renew(channel, &mut self.rng)?
            };
            let bundle = Prepared {
                seeds: &seeds,
                values: &opening,
                sink,
            };
            let mut preparation = Preparation::new(self, model, Some(&mut renewed));
            preparation.run(channel, program.segments(), bundle, &mut clock)?;
        }
        sink.flush()?;
        Ok(clock.times())
    }

    /// Answers one inference online with this session, for schemes that prepare their steps online;
    /// others need only [`infer`].
    ///
    /// # Errors
    /// [`ProtocolError`] of what failed; the bundle is spent in any case.
    pub fn infer(
        &mut self,
        channel: &mut Channel,
        model: &ServerModel,
        bundle: Bundle,
    ) -> Result<Times> {
        check_model(&self.program, model)?;
        if self.program.scheme().recipe().when == When::Offline {
            return infer(channel, model, bundle);
        }
        self.poison.enter()?;
        let times = self.infer_preparing(channel, model, bundle)?;
        self.poison.leave();
        Ok(times)
    }

    /// Prepares every segment into memory and runs it.
    fn infer_preparing(
        &mut self,
        channel: &mut Channel,
        model: &ServerModel,
        mut bundle: Bundle,
    ) -> Result<Times> {
        let program = self.program.clone();
        let mut online = begin(channel, model, &mut bundle)?;
        let mut preparation = Preparation::new(self, model, None);
        for steps in program.segments() {
            let mut memory = Zeroizing::new(Vec::new());
            let values = &online.values;
            let own = |id: ValueId| -> Share {
                let share = values.get(&id).expect("steps come in order");
                share.first_rows(share.rows())
            };
            let bundle = Prepared {
                seeds: &online.seeds,
                values: &own,
                sink: &mut *memory,
            };
            let one = std::slice::from_ref(steps);
            preparation.run(channel, one, bundle, &mut online.clock)?;
            online.segment(channel, steps, &mut &memory[..])?;
        }
        online.finish(channel)
    }
}

/// Answers one inference online.
///
/// # Errors
/// [`ProtocolError`] of what failed; the bundle is spent in any case.
pub fn infer(channel: &mut Channel, model: &ServerModel, mut bundle: Bundle) -> Result<Times> {
    if model.program().scheme().recipe().when == When::Online {
        return Err(ProtocolError::NeedsSession);
    }
    let mut online = begin(channel, model, &mut bundle)?;
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
) -> Result<OnlineServer<'a>> {
    let clock = Clock::start(channel);
    let seeds = stored::read_header(&mut *bundle.0, model.program())?;
    OnlineServer::receive(channel, model, seeds, clock)
}

fn check_model(program: &Program, model: &ServerModel) -> Result<()> {
    if program.fingerprint() == model.program().fingerprint() {
        Ok(())
    } else {
        Err(ProtocolError::OtherBundle { what: "model" })
    }
}

//! The client: has the text, learns the answer.
//!
//! Offline, [`ClientSession::prepare`] walks the plan once with masks only and writes a bundle;
//! online, [`infer`] walks it again with the text and consumes the bundle. Its share of every value
//! is a mask that it drew, or a linear image of masks, so it is known before there is a text
//! (`masks`). `prepare` and `online` are these two walks, segment by segment.

mod online;
mod prepare;

pub(crate) use online::OnlineClient;

use crate::clock::Clock;
use crate::error::Result;
use crate::flags::Flags;
use crate::masks::Masks;
use crate::program::Program;
use crate::renewed::ClientTransfers;
use crate::seeds::Seeds;
use crate::session::{ClientSession, See};
use crate::silent::ClientSecrets;
use crate::stored;
use crate::times::Times;
use prepare::Preparation;
use primer_plan::graph::ValueId;
use primer_ring::matrix::Matrix;
use primer_ring::threads;
use primer_text::Input;
use primer_wire::Channel;
use std::io::{Read, Write};
use std::sync::Arc;

/// Offline material of one inference. [`infer`] takes it by value, so it cannot be spent twice:
///
/// ```compile_fail,E0382
/// use primer_engine::client::{self, Bundle};
/// # use primer_engine::{Program, ProtocolError};
/// # use primer_text::Input;
/// # use primer_wire::Channel;
///
/// fn twice(
///     channel: &mut Channel,
///     program: &Program,
///     bundle: Bundle,
///     input: &Input,
/// ) -> Result<(), ProtocolError> {
///     client::infer(channel, program, bundle, input)?;
///     client::infer(channel, program, bundle, input)?;
///     Ok(())
/// }
/// ```
pub struct Bundle(Box<dyn Read + Send>);

impl Bundle {
    /// Takes the bundle that [`ClientSession::prepare`] wrote, which must not be given out again.
    pub fn new(source: impl Read + Send + 'static) -> Self {
        Self(Box::new(source))
    }
}

/// The answer, in the order of the graph's outputs.
pub struct Answer {
    /// As integers at the plan's scales; none if only labels are revealed.
    pub integers: Vec<Matrix<i64>>,
    /// As real numbers.
    pub reals: Vec<Matrix<f64>>,
    /// The position of the largest logit of the text, or of each token, if only these are revealed.
    pub labels: Vec<usize>,
    /// Whether no flagged value came near the end of its range ([`primer_stops::flags`]); `None`
    /// where the program has no flags. After `Some(false)` the outputs may be
    /// garbage.
    pub in_range: Option<bool>,
    /// The first bytes of the masked input as the server saw them: uniform, for any text.
    pub shown: Vec<u8>,
    /// Seconds of the online phase.
    pub times: Times,
}

impl ClientSession {
    /// Makes the material of one inference offline, together with the server, and writes it to
    /// `sink`, in order.
    ///
    /// # Errors
    /// [`ProtocolError`](crate::ProtocolError) of what failed; what was written is of no use then,
    /// and nor is the session.
    pub fn prepare(
        &mut self,
        channel: &mut Channel,
        sink: &mut (dyn Write + Send),
    ) -> Result<Times> {
        self.prepare_together(channel, &mut [sink])
    }

    /// Does the same for several inferences in one go, each written to a sink of its own. The
    /// server has to expect as many.
    ///
    /// # Errors
    /// As [`Self::prepare`], and [`ProtocolError::Bundles`](crate::ProtocolError::Bundles) if that
    /// number is not prepared together.
    pub fn prepare_together(
        &mut self,
        channel: &mut Channel,
        sinks: &mut [&mut (dyn Write + Send)],
    ) -> Result<Times> {
        self.program.check_bundles(sinks.len())?;
        self.poison.enter()?;
        let times = self.prepare_bundles(channel, sinks)?;
        self.poison.leave();
        Ok(times)
    }

    fn prepare_bundles(
        &mut self,
        channel: &mut Channel,
        sinks: &mut [&mut (dyn Write + Send)],
    ) -> Result<Times> {
        let mut clock = Clock::start(channel);
        let program = self.program.clone();
        let mut masks = Vec::with_capacity(sinks.len());
        for sink in sinks.iter_mut() {
            let seeds = Seeds::new(self.rng.secret_seed());
            stored::write_header(sink, &program, &seeds)?;
            masks.push(Masks::new(&program, seeds));
        }
        let hint = Arc::clone(&self.hint);
        let numbers = (sinks.len(), self.threads);
        let secrets = ClientSecrets::draw(&program, &hint, numbers, &mut self.rng);
        let mut renewed = self.renew(channel, sinks)?;
        let mut preparation = Preparation::new(self, &program, secrets, &mut renewed)?;
        preparation.run(channel, &mut masks, sinks, &mut clock)?;
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
    ) -> Result<Vec<ClientTransfers>> {
        let _phase = channel.phase("offline/others");
        let (program, threads, rng) = (&self.program, self.threads, &mut self.rng);
        let mut renewed = self.roots.renew(channel, sinks.len(), rng)?;
        for (transfers, sink) in renewed.iter_mut().zip(sinks) {
            transfers.set_threads(threads);
            if let Some(comparison) = program.comparison() {
                comparison.client_prepare(&mut transfers.tools(channel, rng), sink)?;
            }
        }
        Ok(renewed)
    }

    /// Answers an input online, as [`infer`] does, and shows what [`Self::watch`] is to see.
    ///
    /// # Errors
    /// [`ProtocolError`](crate::ProtocolError) of what failed; the bundle is spent in any case.
    pub fn infer(
        &mut self,
        channel: &mut Channel,
        bundle: Bundle,
        input: &Input,
    ) -> Result<Answer> {
        infer_watched(channel, &self.program, bundle, input, &mut *self.see)
    }
}

/// Answers a padded input online.
///
/// # Errors
/// [`ProtocolError`](crate::ProtocolError) of what failed; the bundle is spent in any case.
pub fn infer(
    channel: &mut Channel,
    program: &Program,
    bundle: Bundle,
    input: &Input,
) -> Result<Answer> {
    infer_watched(channel, program, bundle, input, &mut |_, _| ())
}

/// Does the same; `see` gets the client's late shares of what goes into stops, as
/// [`ClientSession::watch`] gets those that are known offline.
///
/// # Errors
/// As [`infer`].
pub fn infer_watched(
    channel: &mut Channel,
    program: &Program,
    mut bundle: Bundle,
    input: &Input,
    see: &mut (dyn FnMut(ValueId, &Matrix<u64>) + Send),
) -> Result<Answer> {
    let mut online = begin(channel, program, &mut bundle, input, see)?;
    for steps in program.segments() {
        online.segment(channel, steps, &mut *bundle.0)?;
    }
    let answer = online.finish(channel);
    // The answer does not wait until gigabytes of a spent bundle are given back.
    threads::drop_aside(bundle);
    answer
}

/// Reads the bundle's header and sends the masked input.
fn begin<'a>(
    channel: &mut Channel,
    program: &'a Program,
    bundle: &mut Bundle,
    input: &Input,
    see: &'a mut See<'a>,
) -> Result<OnlineClient<'a>> {
    let clock = Clock::start(channel);
    online::check_input(program.plan().graph(), input)?;
    let seeds = stored::read_header(&mut *bundle.0, program)?;
    let flags = Flags::read(&mut *bundle.0, program, |stored| stored.client)?;
    let masks = Masks::new(program, seeds);
    OnlineClient::send(channel, program, (masks, flags), input, see, clock)
}

//! The client: has the text, learns the answer.
//!
//! Offline, [`ClientSession::prepare`] walks the plan once with masks only and writes a bundle;
//! online, [`infer`] walks it again with the text and consumes the bundle. Its share of every value
//! is a mask that it drew, or a linear image of masks, so it is known before there is a text
//! (`masks`). `prepare` and `online` are these two walks, segment by segment.

mod online;
mod prepare;

pub(crate) use online::OnlineClient;

use crate::error::{ProtocolError, Result};
use crate::masks::Masks;
use crate::program::Program;
use crate::scheme::When;
use crate::seeds::Seeds;
use crate::session::ClientSession;
use crate::stored;
use prepare::Preparation;
pub use primer_engine::client::Answer;
use primer_engine::clock::Clock;
use primer_plan::times::Times;
use primer_text::Input;
use primer_wire::Channel;
use std::io::{Read, Write};
use zeroize::Zeroizing;

/// Offline material of one inference. [`infer`] takes it by value, so it cannot be spent twice:
///
/// ```compile_fail,E0382
/// use primer_paper::client::{self, Bundle};
/// # use primer_paper::{Program, ProtocolError};
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

impl ClientSession {
    /// Makes the material of one inference offline, together with the server, and writes it to
    /// `sink`, in order.
    ///
    /// # Errors
    /// [`ProtocolError`] of what failed; what was written is of no use then, and nor is the
    /// session.
    pub fn prepare(
        &mut self,
        channel: &mut Channel,
        sink: &mut (dyn Write + Send),
    ) -> Result<Times> {
        self.poison.enter()?;
        let times = self.prepare_bundle(channel, sink)?;
        self.poison.leave();
        Ok(times)
    }

    fn prepare_bundle(
        &mut self,
        channel: &mut Channel,
        sink: &mut (dyn Write + Send),
    ) -> Result<Times> {
        let mut clock = Clock::start(channel);
        let program = self.program.clone();
        let seeds = Seeds::new(self.rng.secret_seed());
        stored::write_header(sink, &program, &seeds)?;
        let mut masks = Masks::new(&program, seeds);
        if program.scheme().recipe().when == When::Offline {
            let mut renewed = {
                let _phase = channel.phase("offline/others");
                self.roots.renew(channel, &mut self.rng)?
            };
            let mut preparation = Preparation::new(self, &program, Some(&mut renewed));
            preparation.run(channel, program.segments(), &mut masks, sink, &mut clock)?;
        }
        sink.flush()?;
        Ok(clock.times())
    }

    /// Answers an input online with this session, for schemes that prepare their steps online;
    /// others need only [`infer`].
    ///
    /// # Errors
    /// [`ProtocolError`] of what failed; the bundle is spent in any case.
    pub fn infer(
        &mut self,
        channel: &mut Channel,
        bundle: Bundle,
        input: &Input,
    ) -> Result<Answer> {
        let program = self.program.clone();
        if program.scheme().recipe().when == When::Offline {
            return infer(channel, &program, bundle, input);
        }
        self.poison.enter()?;
        let answer = self.infer_preparing(channel, &program, bundle, input)?;
        self.poison.leave();
        Ok(answer)
    }

    /// Prepares every segment into memory and runs it.
    fn infer_preparing(
        &mut self,
        channel: &mut Channel,
        program: &Program,
        mut bundle: Bundle,
        input: &Input,
    ) -> Result<Answer> {
        let mut online = begin(channel, program, &mut bundle, input)?;
        let mut preparation = Preparation::new(self, program, None);
        for steps in program.segments() {
            let mut memory = Zeroizing::new(Vec::new());
            let (masks, clock) = (&mut online.masks, &mut online.clock);
            let one = std::slice::from_ref(steps);
            preparation.run(channel, one, masks, &mut *memory, clock)?;
            online.segment(channel, steps, &mut &memory[..])?;
        }
        online.finish(channel)
    }
}

/// Answers a padded input online.
///
/// # Errors
/// [`ProtocolError`] of what failed; the bundle is spent in any case.
pub fn infer(
    channel: &mut Channel,
    program: &Program,
    mut bundle: Bundle,
    input: &Input,
) -> Result<Answer> {
    if program.scheme().recipe().when == When::Online {
        return Err(ProtocolError::NeedsSession);
    }
    let mut online = begin(channel, program, &mut bundle, input)?;
    for steps in program.segments() {
        online.segment(channel, steps, &mut *bundle.0)?;
    }
    let answer = online.finish(channel);
    // Giving back gigabytes of a spent bundle takes the system most of a second; the answer does
    // not wait for it, unless there is no thread for it: then it is given back here.
    let _ = std::thread::Builder::new().spawn(move || drop(bundle));
    answer
}

/// Reads the bundle's header and sends the masked input.
fn begin<'a>(
    channel: &mut Channel,
    program: &'a Program,
    bundle: &mut Bundle,
    input: &Input,
) -> Result<OnlineClient<'a>> {
    let clock = Clock::start(channel);
    online::check_input(program.plan().graph(), input)?;
    let masks = Masks::new(program, stored::read_header(&mut *bundle.0, program)?);
    OnlineClient::send(channel, program, masks, input, clock)
}

//! The bookkeeping of one direction: which frame is under way, how much of it is left, whether all
//! is well.

use crate::error::{Direction, NetError, Result};
use crate::kind::Kind;
use std::io;
use std::time::Duration;

/// The state of one direction of a channel.
pub(crate) struct Account {
    direction: Direction,
    timeout: Option<Duration>,
    /// The frame under way and the bytes of it that have not passed.
    open: Option<(Kind, u64)>,
    /// After a failure in the middle of a frame nothing that follows has a meaning.
    broken: bool,
}

impl Account {
    pub(crate) fn new(direction: Direction, timeout: Option<Duration>) -> Self {
        Self {
            direction,
            timeout,
            open: None,
            broken: false,
        }
    }

    /// Refuses to go on after a failure.
    pub(crate) fn check_sound(&self) -> Result<()> {
        match self.broken {
            true => Err(NetError::Broken {
                direction: self.direction,
            }),
            false => Ok(()),
        }
    }

    /// Refuses a new frame after a failure or before the last one has ended.
    pub(crate) fn check_between_frames(&self) -> Result<()> {
        self.check_sound()?;
        self.open
            .map_or(Ok(()), |(kind, _)| self.check_complete(kind))
    }

    /// Refuses to leave a frame before its end.
    pub(crate) fn check_complete(&self, kind: Kind) -> Result<()> {
        match self.left() {
            0 => Ok(()),
            missing => Err(NetError::Unfinished {
                kind,
                missing,
                direction: self.direction,
            }),
        }
    }

    /// Begins a frame.
    pub(crate) fn begin(&mut self, kind: Kind, length: u64) {
        self.open = (length > 0).then_some((kind, length));
    }

    /// Returns the bytes left in the frame under way.
    pub(crate) fn left(&self) -> u64 {
        self.open.map_or(0, |(_, left)| left)
    }

    /// Takes bytes off the frame under way if it goes on after them and all is well.
    #[inline]
    pub(crate) fn spend_within(&mut self, bytes: usize) -> bool {
        match &mut self.open {
            Some((_, left)) if (bytes as u64) < *left && !self.broken => {
                *left -= bytes as u64;
                true
            }
            _ => false,
        }
    }

    /// Takes bytes off the frame under way.
    pub(crate) fn spend(&mut self, kind: Kind, bytes: usize) -> Result<()> {
        self.check_sound()?;
        let (asked, left) = (bytes as u64, self.left());
        if asked > left {
            return Err(NetError::Overrun {
                kind,
                asked,
                left,
                direction: self.direction,
            });
        }
        self.begin(kind, left - asked);
        Ok(())
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Ends this direction with an error of our own.
    pub(crate) fn refuse(&mut self, error: NetError) -> NetError {
        self.broken = true;
        error
    }

    /// Ends this direction with an error of the system.
    pub(crate) fn fail(&mut self, error: io::Error) -> NetError {
        self.broken = true;
        NetError::from_io(error, self.direction, self.timeout)
    }
}

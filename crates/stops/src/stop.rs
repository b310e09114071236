//! The life cycle of a stop.
//!
//! ```text
//!            client                                          server
//! offline    prepare(shares, masks) -> stored    <------>    prepare() -> stored
//!                                    ... any time passes ...
//! online                                         <------     request(stored, shares)
//!            listen(stored, late shares, masks)
//!            answer()                            ------>
//!                                                            receive() -> shares modulo p
//! ```
//!
//! The online phase comes in halves. Stops that do not need each other's results are all requested
//! and listened to before the first is answered: they share one round trip.
//!
//! A [lift](Stop::is_lift) has no second half: the server has its shares when it asks, the client
//! has its own when it receives the request, and nothing is answered.
//!
//! Offline the client knows its shares of what goes in (ring elements) and its shares of what comes
//! out (masks modulo p); the server knows nothing but the counts. If a stop is
//! [late](Stop::is_late), the client learns its shares of what goes in only online. Masks are drawn
//! from a seed, so a stop may ask for them twice instead of storing them. Each party writes what it
//! must remember to a sink, exactly [`Stop::stored`] bytes, and reads it back online, once.
//!
//! Small material is read before it is needed. The material of a stop that [streams](Stop::streams)
//! is not held in memory on the client's side: it is read while the stop runs.

use crate::bytes::StoredBytes;
use crate::error::{Result, StopError};
use crate::flags::FlagShares;
use crate::lift::Lifted;
use primer_ot::{CotReceiver, CotSender};
use primer_ring::prg::Prg;
use primer_wire::{Channel, PhaseBytes};
use std::io::{Read, Write};
use zeroize::Zeroizing;

/// What both parties know about a stop from the plan alone.
pub trait Stop: Send + Sync {
    /// Returns its name, for messages.
    fn name(&self) -> &'static str;

    /// Returns the number of ring elements that go in.
    fn elements(&self) -> usize;

    /// Returns the number of residues modulo p that come out. A stop without any shows its result
    /// to the client.
    fn outputs(&self) -> usize;

    /// Returns the number of range flags that it may raise: one for each element, or none at all.
    fn flags(&self) -> usize {
        0
    }

    /// Tells whether the server's results are the sum of what it has when it asks
    /// ([`AwaitedAnswer::provisional`]) and what the client answers ([`PendingAnswer::answers`]).
    fn is_provisional(&self) -> bool {
        false
    }

    /// Tells whether the server has its results when it asks ([`AwaitedAnswer::lifted`]), and the
    /// client its own when it receives the request ([`PendingAnswer::lifted`]): its masks, except
    /// where elements were turned. Nothing is answered.
    fn is_lift(&self) -> bool {
        false
    }

    /// Returns the bytes that are sent for it, frame headers included.
    fn bytes(&self) -> PhaseBytes;

    /// Returns the bytes that it leaves in the stores.
    fn stored(&self) -> StoredBytes;

    /// Returns the number of AND gates that are garbled for it.
    fn and_gates(&self) -> u64 {
        0
    }

    /// Tells whether the client knows its shares of what goes in only online, when it has what the
    /// server sent before its request. The client then prepares without them.
    fn is_late(&self) -> bool {
        false
    }

    /// Tells whether the client's material is read while the stop runs, not before.
    fn streams(&self) -> bool;

    /// Returns the direction of each message of its preparation, in order; consecutive messages of
    /// one party may be joined.
    fn turns(&self) -> Vec<Turn>;
}

/// A message, by its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// What the client prepares stops with, as its session has set it up with the server.
pub struct ClientTools<'a> {
    /// To the server.
    pub channel: &'a mut Channel,
    /// The transfers that give the client its labels.
    pub labels: &'a mut CotReceiver,
    /// Transfers that the server chooses from.
    pub transfers: &'a mut CotSender,
    /// The client's randomness.
    pub rng: &'a mut Prg,
}

/// What the server prepares stops with.
pub struct ServerTools<'a> {
    /// To the client.
    pub channel: &'a mut Channel,
    /// The transfers that give the labels of the client's bits.
    pub labels: &'a mut CotSender,
    /// Transfers that the server chooses from.
    pub transfers: &'a mut CotReceiver,
    /// The server's randomness.
    pub rng: &'a mut Prg,
}

/// The client's part of a stop.
pub trait ClientStop: Stop {
    /// Prepares the stop offline for the client's ring `shares`, none if they are late, and its new
    /// shares modulo p, the `masks`. What it must remember goes to the sink.
    ///
    /// # Errors
    /// [`crate::StopError`] of the channel, the transfers and the sink;
    /// [`crate::StopError::Count`] if there are more or fewer shares or masks than the stop has.
    fn prepare(
        &self,
        tools: &mut ClientTools<'_>,
        shares: &[u64],
        masks: &[u64],
        sink: &mut dyn Write,
    ) -> Result<()>;

    /// Prepares a late stop offline as [`Self::prepare`] does, except that the results of the rows
    /// marked in `negated` are negated. The server is not told which rows these are.
    ///
    /// # Errors
    /// As [`Self::prepare`], and [`crate::StopError::Negated`] if the stop cannot negate its
    /// results.
    fn prepare_signed(
        &self,
        _tools: &mut ClientTools<'_>,
        _masks: &[u64],
        _negated: &[bool],
        _sink: &mut dyn Write,
    ) -> Result<()> {
        Err(StopError::Negated { stop: self.name() })
    }

    /// Takes the server's request: the first half of the online phase. `stored` gives what went to
    /// the sink, `late` are the client's ring shares if it did not have them offline.
    ///
    /// # Errors
    /// [`crate::StopError`] of the channel and of material that is not this stop's;
    /// [`crate::StopError::Count`] if there are more or fewer shares or masks than the stop has.
    fn listen(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        late: &[u64],
        masks: &[u64],
    ) -> Result<Box<dyn PendingAnswer>>;
}

/// A client that has the server's request and owes the answer.
pub trait PendingAnswer {
    /// Takes the client's shares of the stop's range flags, [`Stop::flags`] of them: only the first
    /// call returns them.
    fn flags(&mut self) -> FlagShares {
        FlagShares::default()
    }

    /// Returns what it will answer, if the stop [is provisional](Stop::is_provisional).
    fn answers(&self) -> Option<Zeroizing<Vec<u64>>> {
        None
    }

    /// Takes the client's shares of the results, if the stop [is a lift](Stop::is_lift): only the
    /// first call returns them.
    fn lifted(&mut self) -> Option<Lifted> {
        None
    }

    /// Answers the server, the second half of the online phase, and returns what the stop shows to
    /// the client: a position for each row, or nothing.
    ///
    /// # Errors
    /// [`crate::StopError`] of the channel; [`crate::StopError::Position`] if a position that is
    /// shown does not exist.
    fn answer(self: Box<Self>, channel: &mut Channel) -> Result<Vec<usize>>;
}

/// The server's part of a stop.
pub trait ServerStop: Stop {
    /// Prepares the stop offline. What it must remember goes to the sink.
    ///
    /// # Errors
    /// [`crate::StopError`] of the channel, the transfers and the sink.
    fn prepare(&self, tools: &mut ServerTools<'_>, sink: &mut dyn Write) -> Result<()>;

    /// Asks with the server's ring shares: the first half of the online phase. `stored` gives what
    /// went to the sink.
    ///
    /// # Errors
    /// [`crate::StopError`] of the channel and of material that is not this stop's;
    /// [`crate::StopError::Count`] if there are more or fewer shares than the stop has.
    fn request(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        shares: &[u64],
    ) -> Result<Box<dyn AwaitedAnswer>>;
}

/// A server that has asked and waits for the answer.
pub trait AwaitedAnswer {
    /// Takes the server's shares of the stop's range flags, [`Stop::flags`] of them: only the first
    /// call returns them. There are none where they come with the answer
    /// ([`Self::receive_flagged`]).
    fn flags(&mut self) -> FlagShares {
        FlagShares::default()
    }

    /// Returns the server's shares without what the client will answer, if the stop [is
    /// provisional](Stop::is_provisional).
    fn provisional(&self) -> Option<Zeroizing<Vec<u64>>> {
        None
    }

    /// Takes the server's shares, if the stop [is a lift](Stop::is_lift): only the first call
    /// returns them.
    fn lifted(&mut self) -> Option<Lifted> {
        None
    }

    /// Receives the client's answer, the second half of the online phase, and returns the server's
    /// shares modulo p, none if the stop shows its result to the client.
    ///
    /// # Errors
    /// [`crate::StopError`] of the channel.
    fn receive(self: Box<Self>, channel: &mut Channel) -> Result<Vec<u64>>;

    /// Receives the client's answer as [`Self::receive`] does, and returns also the server's shares
    /// of the stop's range flags, [`Stop::flags`] of them.
    ///
    /// # Errors
    /// As [`Self::receive`].
    fn receive_flagged(
        mut self: Box<Self>,
        channel: &mut Channel,
    ) -> Result<(Vec<u64>, FlagShares)> {
        let flags = self.flags();
        Ok((self.receive(channel)?, flags))
    }
}

/// A stop with the parts of both parties.
pub trait TwoPartyStop: ClientStop + ServerStop {}

impl<T: ClientStop + ServerStop> TwoPartyStop for T {}

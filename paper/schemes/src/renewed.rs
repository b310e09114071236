//! Transfers of one bundle, made of those of the session.
//!
//! The offsets of transfers lie in the halves of a bundle: the server's opens the labels of its
//! garbled circuits, the client's those of its own. A party's half of an unspent bundle must not
//! open another one that is spent, so no two bundles share an offset. Base transfers are made once,
//! when a session opens; preparing begins with transfers made of these ([`primer_ot::renewal`]), in
//! one round trip:
//!
//! ```text
//! client -> server   choices for an offset of the client's
//! server -> client   choices for one of its own;  the trees for the client's
//! client -> server   the trees for the server's
//! ```
//!
//! Schemes that prepare online keep nothing, and use the session's transfers themselves.

use crate::error::Result;
use crate::scheme::TRANSFERS;
use primer_ot::{CotReceiver, CotSender, cost};
use primer_ring::prg::Prg;
use primer_stops::{ClientTools, ServerTools};
use primer_wire::{Channel, PhaseBytes};

/// The client's side of transfers in both directions.
pub(crate) struct ClientTransfers {
    /// The client's labels come from these.
    pub(crate) labels: CotReceiver,
    /// The client's requantisations are these.
    pub(crate) transfers: CotSender,
}

/// The server's side.
pub(crate) struct ServerTransfers {
    pub(crate) labels: CotSender,
    pub(crate) transfers: CotReceiver,
}

/// Returns what renewing transfers sends for each bundle.
pub(crate) fn bytes() -> PhaseBytes {
    PhaseBytes {
        offline_up: cost::renewal(TRANSFERS.to_client),
        offline_down: cost::renewal(TRANSFERS.to_server),
        ..PhaseBytes::default()
    }
}

impl ClientTransfers {
    /// Makes transfers for a bundle.
    pub(crate) fn renew(&mut self, channel: &mut Channel, rng: &mut Prg) -> Result<Self> {
        let drawn = self.labels.draw(channel, rng)?;
        channel.flush()?;
        let met = self.transfers.meet(channel)?;
        let transfers = drawn.finish(channel, TRANSFERS.to_server)?;
        let labels = met.finish(channel, TRANSFERS.to_client, rng)?;
        Ok(Self { labels, transfers })
    }

    /// Returns what stops of a bundle are prepared with.
    pub(crate) fn tools<'a>(
        &'a mut self,
        channel: &'a mut Channel,
        rng: &'a mut Prg,
    ) -> ClientTools<'a> {
        ClientTools {
            channel,
            labels: &mut self.labels,
            transfers: &mut self.transfers,
            rng,
        }
    }
}

impl ServerTransfers {
    /// Makes transfers for a bundle.
    pub(crate) fn renew(&mut self, channel: &mut Channel, rng: &mut Prg) -> Result<Self> {
        let met = self.labels.meet(channel)?;
        let drawn = self.transfers.draw(channel, rng)?;
        let transfers = met.finish(channel, TRANSFERS.to_server, rng)?;
        channel.flush()?;
        let labels = drawn.finish(channel, TRANSFERS.to_client)?;
        Ok(Self { labels, transfers })
    }

    /// Returns what stops of a bundle are prepared with.
    pub(crate) fn tools<'a>(
        &'a mut self,
        channel: &'a mut Channel,
        rng: &'a mut Prg,
    ) -> ServerTools<'a> {
        ServerTools {
            channel,
            labels: &mut self.labels,
            transfers: &mut self.transfers,
            rng,
        }
    }
}

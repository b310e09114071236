//! Transfers of one bundle, made of those of the session.
//!
//! The offsets of transfers lie in the halves of a bundle: the server's opens the labels of its
//! garbled circuits, the client's those of its own. A party's half of an unspent bundle must not
//! open another one that is spent, so no two bundles share an offset. Base transfers are made once,
//! when a session opens; preparing begins with transfers made of these for each bundle
//! ([`primer_ot::renewal`]), in one round trip for all bundles that are prepared together:
//!
//! ```text
//! client -> server   for each bundle, choices for an offset of the client's
//! server -> client   for each bundle, choices for one of its own;  the trees for the client's
//! client -> server   the trees for the server's
//! ```

use crate::error::Result;
use crate::stop_kinds::TRANSFERS;
use primer_ot::{CotReceiver, CotSender, Drawn, Met, cost};
use primer_ring::prg::Prg;
use primer_stops::{ClientTools, ServerTools, Transfers};
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
    /// Makes transfers for each of some bundles.
    pub(crate) fn renew(
        &mut self,
        channel: &mut Channel,
        bundles: usize,
        rng: &mut Prg,
    ) -> Result<Vec<Self>> {
        let Transfers {
            to_client,
            to_server,
        } = TRANSFERS;
        let drawn = (0..bundles).map(|_| self.labels.draw(channel, rng));
        let drawn = drawn.collect::<primer_ot::Result<Vec<Drawn>>>()?;
        channel.flush()?;
        let met = (0..bundles).map(|_| self.transfers.meet(channel));
        let met = met.collect::<primer_ot::Result<Vec<Met>>>()?;
        let senders = (drawn.into_iter()).map(|drawn| drawn.finish(channel, to_server));
        let senders = senders.collect::<primer_ot::Result<Vec<_>>>()?;
        let both = met.into_iter().zip(senders).map(|(met, transfers)| {
            let labels = met.finish(channel, to_client, rng)?;
            Ok(Self { labels, transfers })
        });
        both.collect()
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

    /// Sets the number of threads that make one-hot shares.
    pub(crate) fn set_threads(&mut self, threads: usize) {
        self.transfers.set_threads(threads);
    }
}

impl ServerTransfers {
    /// Makes transfers for each of some bundles.
    pub(crate) fn renew(
        &mut self,
        channel: &mut Channel,
        bundles: usize,
        rng: &mut Prg,
    ) -> Result<Vec<Self>> {
        let Transfers {
            to_client,
            to_server,
        } = TRANSFERS;
        let met = (0..bundles).map(|_| self.labels.meet(channel));
        let met = met.collect::<primer_ot::Result<Vec<Met>>>()?;
        let drawn = (0..bundles).map(|_| self.transfers.draw(channel, rng));
        let drawn = drawn.collect::<primer_ot::Result<Vec<Drawn>>>()?;
        let receivers = (met.into_iter()).map(|met| met.finish(channel, to_server, rng));
        let receivers = receivers.collect::<primer_ot::Result<Vec<_>>>()?;
        channel.flush()?;
        let both = drawn.into_iter().zip(receivers).map(|(drawn, transfers)| {
            let labels = drawn.finish(channel, to_client)?;
            Ok(Self { labels, transfers })
        });
        both.collect()
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

    /// Sets the number of threads that make one-hot shares.
    pub(crate) fn set_threads(&mut self, threads: usize) {
        self.transfers.set_threads(threads);
    }
}

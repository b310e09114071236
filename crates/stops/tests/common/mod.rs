//! Two parties with their transfers set up.

use primer_net::pair::{Transport, run_pair_over, test_options};
use primer_net::{Channel, Traffic};
use primer_ot::{BaseOt, CotReceiver, CotSender, Delta};
use primer_ring::prg::Prg;
use primer_stops::{Result, StopsError};
use rand_core::Rng;

/// A party's channel and its ends of the transfers: as sender and as receiver.
pub(crate) struct Party<'a> {
    pub(crate) channel: &'a mut Channel,
    pub(crate) sender: CotSender,
    pub(crate) receiver: CotReceiver,
    pub(crate) prg: Prg,
}

impl Party<'_> {
    /// What has passed since the last call.
    #[allow(dead_code)]
    pub(crate) fn passed(&self, before: &mut Traffic) -> (u64, u64) {
        let now = self.channel.meter().report().total();
        let sent = now.bytes_sent - before.bytes_sent;
        let received = now.bytes_received - before.bytes_received;
        *before = now;
        (sent, received)
    }
}

fn delta() -> Delta {
    Delta::random(&mut Prg::from_os())
}

/// Runs a client and a server whose transfers are set up in both directions.
pub(crate) fn run<A: Send, B: Send>(
    transport: Transport,
    client: impl FnOnce(&mut Party<'_>) -> Result<A> + Send,
    server: impl FnOnce(&mut Party<'_>) -> Result<B> + Send,
) -> Result<(A, B)> {
    let base = BaseOt::Ristretto;
    run_pair_over(
        transport,
        &test_options(),
        |channel| {
            let mut prg = Prg::from_os();
            let receiver = CotReceiver::setup(channel, base, &mut prg)?;
            let sender = CotSender::setup(channel, base, delta(), &mut prg)?;
            client(&mut Party {
                channel,
                sender,
                receiver,
                prg,
            })
        },
        |channel| {
            let mut prg = Prg::from_os();
            let sender = CotSender::setup(channel, base, delta(), &mut prg)?;
            let receiver = CotReceiver::setup(channel, base, &mut prg)?;
            server(&mut Party {
                channel,
                sender,
                receiver,
                prg,
            })
        },
    )
    .map_err(|error: StopsError| error)
}

/// Random shares in a ring: the server's and the client's.
#[allow(dead_code)]
pub(crate) fn share(values: &[i64], ring_bits: u32, prg: &mut Prg) -> (Vec<u64>, Vec<u64>) {
    let mask = (1u64 << ring_bits) - 1;
    values
        .iter()
        .map(|&x| {
            let client = prg.next_u64() & mask;
            ((x as u64).wrapping_sub(client) & mask, client)
        })
        .unzip()
}

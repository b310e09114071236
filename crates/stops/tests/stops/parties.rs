//! Two parties with their transfers set up, and one run of a stop between them.

use primer_net::pair::{Medium, run_pair_over};
use primer_ot::{BaseOt, CotReceiver, CotSender, Delta, Setup, Variant};
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_stops::{ClientTools, Result, ServerTools, StopError, TwoPartyStop};
pub(crate) use primer_testkit::shares::share;
use primer_wire::pair::test_options;
use primer_wire::{Channel, PhaseBytes, Traffic};

/// A party's channel and its ends of the transfers: as sender and as receiver.
pub(crate) struct Party<'a> {
    pub(crate) channel: &'a mut Channel,
    pub(crate) sender: CotSender,
    pub(crate) receiver: CotReceiver,
    pub(crate) prg: Prg,
}

impl Party<'_> {
    /// Returns what the client prepares with.
    pub(crate) fn client(&mut self) -> ClientTools<'_> {
        ClientTools {
            channel: self.channel,
            labels: &mut self.receiver,
            transfers: &mut self.sender,
            rng: &mut self.prg,
        }
    }

    /// Returns what the server prepares with.
    pub(crate) fn server(&mut self) -> ServerTools<'_> {
        ServerTools {
            channel: self.channel,
            labels: &mut self.sender,
            transfers: &mut self.receiver,
            rng: &mut self.prg,
        }
    }

    /// Returns what has passed since `before`, and updates it: bytes sent, bytes received, and
    /// round trips.
    pub(crate) fn passed(&self, before: &mut Traffic) -> (u64, u64, u64) {
        let now = self.channel.meter().report().total();
        let passed = (
            now.bytes_sent - before.bytes_sent,
            now.bytes_received - before.bytes_received,
            now.rounds - before.rounds,
        );
        *before = now;
        passed
    }
}

fn delta() -> Delta {
    Delta::random(&mut Prg::from_os())
}

/// Runs a client and a server whose transfers are set up in both directions.
pub(crate) fn run<A: Send, B: Send>(
    transport: Medium,
    client: impl FnOnce(&mut Party<'_>) -> Result<A> + Send,
    server: impl FnOnce(&mut Party<'_>) -> Result<B> + Send,
) -> Result<(A, B)> {
    run_over(Variant::default(), transport, client, server)
}

/// Runs a client and a server as [`run`] does, with transfers of `variant`.
pub(crate) fn run_over<A: Send, B: Send>(
    variant: Variant,
    transport: Medium,
    client: impl FnOnce(&mut Party<'_>) -> Result<A> + Send,
    server: impl FnOnce(&mut Party<'_>) -> Result<B> + Send,
) -> Result<(A, B)> {
    let base = BaseOt::Ristretto;
    run_pair_over(
        transport,
        &test_options(),
        |channel| {
            let mut prg = Prg::from_os();
            let receiver = CotReceiver::setup(Setup::new(variant, base), channel, &mut prg)?;
            let sender = CotSender::setup(Setup::new(variant, base), channel, delta(), &mut prg)?;
            client(&mut Party {
                channel,
                sender,
                receiver,
                prg,
            })
        },
        |channel| {
            let mut prg = Prg::from_os();
            let sender = CotSender::setup(Setup::new(variant, base), channel, delta(), &mut prg)?;
            let receiver = CotReceiver::setup(Setup::new(variant, base), channel, &mut prg)?;
            server(&mut Party {
                channel,
                sender,
                receiver,
                prg,
            })
        },
    )
    .map_err(|error: StopError| error)
}

/// What one run of a stop left behind.
pub(crate) struct Outcome {
    /// The sum of both parties' results.
    pub(crate) results: Vec<i64>,
    /// What the client was shown.
    pub(crate) shown: Vec<usize>,
    /// What the client's meter counted.
    pub(crate) bytes: PhaseBytes,
    /// Round trips of the preparation and of the run.
    pub(crate) rounds: (u64, u64),
    /// The stored material of both.
    pub(crate) stored: [Vec<u8>; 2],
}

/// Changes stored material before it is read back.
pub(crate) type Damage<'a> = &'a (dyn Fn(&mut Vec<u8>) + Sync);

/// Leaves stored material as it is.
pub(crate) fn sound(_: &mut Vec<u8>) {}

/// Runs a stop on shares, server's first; the client's and the server's stored material pass
/// through `damage`.
pub(crate) fn run_stop(
    transport: Medium,
    stop: &dyn TwoPartyStop,
    shares: (&[u64], &[u64]),
    damage: [Damage<'_>; 2],
) -> Result<Outcome> {
    run_stop_over(Variant::default(), transport, stop, shares, damage)
}

/// Runs a stop as [`run_stop`] does, with transfers of `variant`.
pub(crate) fn run_stop_over(
    variant: Variant,
    transport: Medium,
    stop: &dyn TwoPartyStop,
    (server, client): (&[u64], &[u64]),
    damage: [Damage<'_>; 2],
) -> Result<Outcome> {
    let draw = |_| modulus::random(&mut Prg::from_os());
    let masks: Vec<u64> = (0..stop.outputs()).map(draw).collect();
    let ((bytes, rounds, (shown, answers, lifted), ours), ((results, provisional), theirs)) =
        run_over(
            variant,
            transport,
            |p| {
                let mut seen = p.channel.meter().report().total();
                let mut stored = Vec::new();
                let [early, late] = timely(stop, client);
                stop_client(stop).prepare(&mut p.client(), early, &masks, &mut stored)?;
                p.channel.flush()?;
                let (offline_up, offline_down, preparing) = p.passed(&mut seen);
                damage[0](&mut stored);
                let mut source = &stored[..];
                let mut pending = stop_client(stop).listen(p.channel, &mut source, late, &masks)?;
                assert!(source.is_empty(), "material that was not read");
                let answers = pending.answers();
                assert_eq!(answers.is_some(), stop.is_provisional(), "{}", stop.name());
                let lifted = pending.lifted();
                assert_eq!(lifted.is_some(), stop.is_lift(), "{}", stop.name());
                assert_eq!(pending.flags().len(), stop.flags(), "{}", stop.name());
                let shown = pending.answer(p.channel)?;
                let (online_up, online_down, running) = p.passed(&mut seen);
                let bytes = PhaseBytes {
                    offline_up,
                    offline_down,
                    online_up,
                    online_down,
                };
                Ok((
                    bytes,
                    (preparing, running),
                    (shown, answers, lifted),
                    stored,
                ))
            },
            |p| {
                let mut stored = Vec::new();
                stop_server(stop).prepare(&mut p.server(), &mut stored)?;
                damage[1](&mut stored);
                let mut source = &stored[..];
                let mut waiting = stop_server(stop).request(p.channel, &mut source, server)?;
                assert!(source.is_empty(), "material that was not read");
                p.channel.flush()?;
                let provisional = waiting.provisional();
                assert_eq!(
                    provisional.is_some(),
                    stop.is_provisional(),
                    "{}",
                    stop.name()
                );
                let results = match waiting.lifted() {
                    // Nothing comes from the client.
                    Some(lifted) => lifted.shares.to_vec(),
                    None => {
                        let (results, flags) = waiting.receive_flagged(p.channel)?;
                        assert_eq!(flags.len(), stop.flags(), "{}", stop.name());
                        results
                    }
                };
                Ok(((results, provisional), stored))
            },
        )?;
    if let (Some(provisional), Some(answers)) = (provisional, answers) {
        let sums = provisional
            .iter()
            .zip(answers.iter())
            .map(|(&a, &b)| modulus::add(a, b));
        assert!(
            sums.eq(results.iter().copied()),
            "provisional shares and answers"
        );
    }
    let client_shares = lifted.as_ref().map_or(&masks, |lifted| &*lifted.shares);
    let open = |(&a, &r): (&u64, &u64)| modulus::to_signed(modulus::add(a, r));
    Ok(Outcome {
        results: results.iter().zip(client_shares).map(open).collect(),
        shown,
        bytes,
        rounds,
        stored: [ours, theirs],
    })
}

/// Splits the client's shares by when the stop takes them: offline, or late.
pub(crate) fn timely<'a>(stop: &dyn TwoPartyStop, shares: &'a [u64]) -> [&'a [u64]; 2] {
    match stop.is_late() {
        true => [&[], shares],
        false => [shares, &[]],
    }
}

/// Returns the client's part of a stop.
pub(crate) fn stop_client(stop: &dyn TwoPartyStop) -> &dyn primer_stops::ClientStop {
    stop
}

/// Returns the server's part of a stop.
pub(crate) fn stop_server(stop: &dyn TwoPartyStop) -> &dyn primer_stops::ServerStop {
    stop
}

//! One connection, from its handshake to its last request.
//!
//! `account` says for whom it counts, `hint` sends the model's hint, `phases` prepares and infers,
//! `sink` keeps what is prepared, `refusals` says what went wrong.

mod account;
mod hint;
mod phases;
mod refusals;
mod sink;

use super::Shared;
use super::gate::{ConnectionSlot, Cut, Progress, Stage};
use super::metrics::Phase;
use super::tokens::TokenLine;
use account::Caller;
use primer_engine::session::ServerSession;
use primer_service::message::{
    self, Greeting, HeldBundle, MAX_LISTING, Reception, Refusal, Reply, Request, ServerRole,
};
use primer_service::{BundleId, ServiceError, VERSION, hex};
use primer_store::{BundleStore, unix_now};
use primer_wire::{Channel, Meter, NetError, Report, Traffic};
use refusals::store_refusal;
use std::time::Instant;

/// Serves one connection, which `open` shakes hands on, and logs how it ended.
pub(crate) fn serve(
    shared: &Shared,
    slot: &ConnectionSlot,
    peer: &str,
    open: impl FnOnce() -> Result<Channel, NetError>,
) {
    let (number, arrived) = (slot.number(), Instant::now());
    tracing::debug!(connection = number, peer, "arrived");
    // What a session moved, if one began, and by which token.
    let (mut session, mut token) = (None, None);
    let result = open().map_err(ServiceError::from).and_then(|channel| {
        slot.progress(Progress::Secured);
        let mut connection = Connection {
            shared,
            slot,
            meter: channel.meter().clone(),
            channel,
            client: [0; 32],
            caller: Caller::default(),
            arrived,
            begun: false,
            session: None,
            hint_fetched: 0,
        };
        let result = connection.run();
        let traffic = connection.account();
        session = connection.begun.then_some(traffic);
        token = connection.caller.label();
        result
    });
    let metrics = &shared.metrics;
    let reason = match (result, slot.cut()) {
        (_, Some(Cut::Stopping)) => "the server is shutting down".to_owned(),
        (_, Some(cut)) => {
            metrics.cut.add(1);
            tracing::info!(connection = number, reason = ?cut, "cut");
            match cut {
                Cut::Evicted => "cut for a newer connection".to_owned(),
                _ => "cut for its time".to_owned(),
            }
        }
        (Ok(()), None) => "left".to_owned(),
        (Err(ServiceError::Refused(refusal)), None) => {
            metrics.refused(&refusal, token.as_deref());
            tracing::info!(connection = number, %refusal, "refused");
            format!("refused: {refusal}")
        }
        (Err(error), None) => {
            metrics.failed.add(1);
            if error.is_cheating() {
                metrics.caught(token.as_deref());
                tracing::error!(
                    connection = number,
                    peer,
                    token,
                    "a client does not follow the protocol"
                );
            }
            tracing::warn!(connection = number, %error, "failed");
            format!("failed: {error}")
        }
    };
    let seconds = arrived.elapsed().as_secs_f64();
    match session {
        Some(traffic) => {
            let (received, sent) = (traffic.bytes_received, traffic.bytes_sent);
            tracing::info!(
                connection = number,
                peer,
                token,
                reason,
                seconds,
                received,
                sent,
                "session ends"
            );
        }
        None => tracing::debug!(connection = number, peer, reason, seconds, "gone"),
    }
}

struct Connection<'a> {
    shared: &'a Shared,
    slot: &'a ConnectionSlot,
    channel: Channel,
    meter: Meter,
    /// The client's account: a hash of its pseudonym, so that the store holds nothing that opens
    /// it.
    client: [u8; 32],
    /// For whom its bundles and answers are counted.
    caller: Caller,
    arrived: Instant,
    /// Whether it was admitted.
    begun: bool,
    /// The protocol's session and its length; one at a time.
    session: Option<(usize, ServerSession)>,
    /// Bytes of the hint that were sent.
    hint_fetched: u64,
}

type Step<T> = Result<T, ServiceError>;

impl Connection<'_> {
    fn run(&mut self) -> Step<()> {
        let greeting = Greeting::receive(&mut self.channel)?;
        let token = match self.admit(&greeting) {
            Ok(token) => token,
            Err(refusal) => {
                Reception::Refused(refusal.clone()).send(&mut self.channel)?;
                return Err(refusal.into());
            }
        };
        self.begun = true;
        self.client = blake3::derive_key("primer 2026 client account", &greeting.pseudonym);
        drop(greeting);
        self.caller = Caller::new(token, self.client);
        tracing::info!(
            connection = self.slot.number(),
            client = hex(&self.client[..4]),
            token = self.caller.label(),
            "session begins"
        );
        Reception::Card(Box::new(self.shared.card.clone())).send(&mut self.channel)?;
        self.completed(Phase::Handshake, self.arrived, &Report::default());
        loop {
            self.slot.stage(Stage::Idle)?;
            let request = match Request::receive(&mut self.channel) {
                // A client that is done may simply go.
                Err(ServiceError::Net(NetError::PeerGone { .. })) => return Ok(()),
                request => request?,
            };
            let answered = match request {
                Request::Bye => return Ok(()),
                // Not a reply, so it cannot be refused; and it was offered with the card.
                Request::Tokenizer => {
                    message::send_tokenizer(&mut self.channel, &self.shared.tokenizer)
                }
                _ if let Err(withdrawn) = self.allowances() => Err(withdrawn),
                Request::Prepare {
                    id,
                    tokens,
                    bundles,
                    session,
                } => self.prepare(id, (tokens as usize, bundles as usize), session.as_ref()),
                Request::Infer { id, fingerprint } => self.infer(id, &fingerprint),
                Request::List => self.list(),
                Request::Forget(id) => self.forget(id),
                Request::HintIndex => self.hint_index(),
                Request::HintChunks { first, count } => self.hint_chunks(first, count),
            };
            match answered {
                Err(ServiceError::Refused(refusal)) => {
                    let token = self.caller.label();
                    self.shared.metrics.refused(&refusal, token.as_deref());
                    let connection = self.slot.number();
                    tracing::info!(connection, token, %refusal, "request refused");
                    Reply::Refused(refusal).send(&mut self.channel)?;
                }
                other => other?,
            }
        }
    }

    /// Takes a slot for a client; gives its token, if tokens are asked for.
    fn admit(&self, greeting: &Greeting) -> Result<Option<TokenLine>, Refusal> {
        if greeting.version != VERSION {
            return Err(Refusal::Version(VERSION));
        }
        let token = match &self.shared.access {
            Some(tokens) => {
                let token = tokens.admits(greeting.token.as_ref().map(|t| t.as_str()));
                Some(token.ok_or(Refusal::Token)?)
            }
            None => None,
        };
        // A client that comes while nothing can be stored or spent is refused before it takes a
        // place.
        self.check_usable()?;
        self.slot.admit()?;
        Ok(token)
    }

    /// Checks that the store could be used when it was looked at last.
    fn check_usable(&self) -> Result<(), Refusal> {
        self.shared.store_monitor.usable().map_err(|fault| {
            tracing::warn!(
                connection = self.slot.number(),
                fault,
                "the store is not ready"
            );
            Refusal::Store
        })
    }

    /// Adds the bytes and rounds of this connection to the server's, and returns them.
    fn account(&self) -> Traffic {
        let traffic = self.meter.report().total();
        self.shared.metrics.received.add(traffic.bytes_received);
        self.shared.metrics.sent.add(traffic.bytes_sent);
        traffic
    }

    /// Counts a phase, and tells its seconds.
    fn completed(&self, phase: Phase, started: Instant, before: &Report) -> f64 {
        let seconds = started.elapsed().as_secs_f64();
        let traffic = self.meter.report().since(before).total();
        self.shared.metrics.completed(phase, seconds, &traffic);
        seconds
    }

    /// Checks that this replica is there for it.
    fn check_role(&self, role: ServerRole) -> Step<()> {
        match self.shared.roles.contains(&role) {
            true => Ok(()),
            false => Err(Refusal::Role(role).into()),
        }
    }

    fn list(&mut self) -> Step<()> {
        let now = unix_now();
        let own = self.shared.store.list_of(&self.client);
        let own = own.map_err(store_refusal)?;
        let held = own.iter().take(MAX_LISTING).map(|entry| HeldBundle {
            id: entry.id,
            age: u32::try_from(now.saturating_sub(entry.created)).unwrap_or(u32::MAX),
        });
        Reply::Listing(held.collect()).send(&mut self.channel)
    }

    fn forget(&mut self, id: BundleId) -> Step<()> {
        let store = &self.shared.store;
        let entry = store.entry(id).map_err(store_refusal)?;
        if entry.is_some_and(|e| e.peer == self.client) {
            store.delete(id, unix_now()).map_err(store_refusal)?;
        }
        Reply::Done.send(&mut self.channel)
    }
}

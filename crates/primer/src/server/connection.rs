//! One connection, from its handshake to its last request.

use super::Shared;
use super::gate::{Cut, Place, Progress, Stage};
use super::metrics::Phase;
use super::models::InUse;
use crate::service::message::{
    self, Greeting, Held, MAX_LISTING, Reception, Refusal, Reply, Request, Work, printable,
};
use crate::service::{BundleId, ServiceError, VERSION, hex};
use primer_net::{Channel, NetError, Report, Traffic};
use primer_protocol::server::{self, Bundle};
use primer_protocol::session::ServerSession;
use primer_ring::prg::Prg;
use primer_store::{Draft, Fate, Meta, StoreError, unix_now};
use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Instant;

/// Serves one connection and logs how it ended.
pub(crate) fn serve(shared: &Shared, socket: TcpStream, place: &Place) {
    let (number, arrived) = (place.number(), Instant::now());
    let peer = socket.peer_addr().map(|a| a.to_string());
    let peer = peer.unwrap_or_default();
    tracing::debug!(connection = number, peer, "arrived");
    // What a session moved, if one began.
    let mut session = None;
    listen(&socket, place);
    let result = Channel::tls_accept(socket, &shared.tls, &shared.channel_options())
        .map_err(ServiceError::from)
        .and_then(|channel| {
            place.progress(Progress::Secured);
            let mut connection = Connection {
                shared,
                place,
                meter: channel.meter().clone(),
                channel,
                client: [0; 32],
                arrived,
                begun: false,
                session: None,
            };
            let result = connection.run();
            let traffic = connection.account();
            session = connection.begun.then_some(traffic);
            result
        });
    let metrics = &shared.metrics;
    let reason = match (result, place.cut()) {
        (_, Some(Cut::Stopping)) => "the server stops".to_owned(),
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
            metrics.refused(&refusal);
            tracing::info!(connection = number, %refusal, "refused");
            format!("refused: {refusal}")
        }
        (Err(error), None) => {
            metrics.failed.add(1);
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

/// Waits for the first byte, so that the gate knows who is silent. Whoever stays silent is cut
/// there; what else may fail is left to the handshake.
fn listen(socket: &TcpStream, place: &Place) {
    if socket.peek(&mut [0]).is_ok_and(|bytes| bytes > 0) {
        place.progress(Progress::Speaking);
    }
}

struct Connection<'a> {
    shared: &'a Shared,
    place: &'a Place,
    channel: Channel,
    meter: primer_net::Meter,
    /// The client's account: a hash of its pseudonym, so that the store holds nothing that opens
    /// it.
    client: [u8; 32],
    arrived: Instant,
    /// Whether it was admitted.
    begun: bool,
    /// The protocol's session and its length; one at a time.
    session: Option<(usize, ServerSession)>,
}

type Step<T> = Result<T, ServiceError>;

impl<'a> Connection<'a> {
    fn run(&mut self) -> Step<()> {
        let greeting = Greeting::receive(&mut self.channel)?;
        if let Err(refusal) = self.admit(&greeting) {
            Reception::Refused(refusal.clone()).send(&mut self.channel)?;
            return Err(refusal.into());
        }
        self.begun = true;
        self.client = blake3::derive_key("primer 2026 client account", &greeting.pseudonym);
        drop(greeting);
        tracing::info!(
            connection = self.place.number(),
            client = hex(&self.client[..4]),
            "session begins"
        );
        Reception::Card(Box::new(self.shared.card.clone())).send(&mut self.channel)?;
        self.completed(Phase::Handshake, self.arrived, &Report::default());
        loop {
            self.place.stage(Stage::Idle)?;
            let request = match Request::receive(&mut self.channel) {
                // A client that is done may simply go.
                Err(ServiceError::Net(NetError::PeerGone { .. })) => return Ok(()),
                request => request?,
            };
            let answered = match request {
                Request::Tokenizer => {
                    message::send_tokenizer(&mut self.channel, &self.shared.tokenizer)
                }
                Request::Prepare {
                    id,
                    tokens,
                    bundles,
                } => self.prepare(id, tokens as usize, bundles as usize),
                Request::Infer { id, fingerprint } => self.infer(id, &fingerprint),
                Request::List => self.list(),
                Request::Forget(id) => self.forget(id),
                Request::Bye => return Ok(()),
            };
            match answered {
                Err(ServiceError::Refused(refusal)) => {
                    self.shared.metrics.refused(&refusal);
                    tracing::info!(connection = self.place.number(), %refusal, "request refused");
                    Reply::Refused(refusal).send(&mut self.channel)?;
                }
                other => other?,
            }
        }
    }

    fn admit(&self, greeting: &Greeting) -> Result<(), Refusal> {
        if greeting.version != VERSION {
            return Err(Refusal::Version(VERSION));
        }
        if let Some(tokens) = &self.shared.access
            && !tokens.admits(greeting.token.as_ref().map(|t| t.as_str()))
        {
            return Err(Refusal::Token);
        }
        // Whoever comes while nothing can be stored or spent is sent on, before it takes a place.
        if let Err(error) = self.shared.store.ready() {
            tracing::warn!(connection = self.place.number(), %error, "the store is not ready");
            return Err(Refusal::Store);
        }
        self.place.admit()
    }

    /// Bytes and rounds of this connection, added to the server's.
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

    /// Whether this replica is there for it.
    fn check_role(&self, work: Work) -> Step<()> {
        match self.shared.roles.contains(&work) {
            true => Ok(()),
            false => Err(Refusal::Role(work).into()),
        }
    }

    fn built(&self, tokens: usize) -> Step<InUse<'a>> {
        self.shared.models.get(tokens).map_err(|error| match error {
            ServiceError::Refused(_) => error,
            other => cannot_encode(tokens)(other),
        })
    }

    fn prepare(&mut self, first: BundleId, tokens: usize, bundles: usize) -> Step<()> {
        self.place.stage(Stage::Preparing)?;
        self.check_role(Work::Prepare)?;
        let card = &self.shared.card;
        if !card.buckets.contains(&(tokens as u32)) {
            return Err(Refusal::Tokens {
                asked: tokens as u32,
                limit: card.max_tokens() as u32,
            }
            .into());
        }
        let recipe = card.scheme.recipe();
        if bundles == 0 || recipe.batch(tokens, bundles) != bundles {
            return Err(Refusal::Bundles {
                asked: bundles as u32,
                tokens: tokens as u32,
                limit: recipe.batch(tokens, usize::MAX / 2) as u32,
            }
            .into());
        }
        let built = self.built(tokens)?;
        built.model.encode(bundles).map_err(cannot_encode(tokens))?;
        let needed = built.stored.saturating_mul(bundles as u64);
        let reserved = (self.shared.store).reserve(&self.client, needed, self.shared.bounds);
        let _reserved = reserved.map_err(store_refusal)?;
        let now = unix_now();
        let meta = |index| Meta {
            id: message::bundle_of(first, index),
            peer: self.client,
            program: built.binding,
            tokens: tokens as u32,
            created: now,
            expires: now + self.shared.limits.expiry.as_secs(),
            attachment: Vec::new(),
        };
        let sinks = (0..bundles).map(|index| {
            let draft = self.shared.store.draft(meta(index));
            draft.map(Sink::new).map_err(store_refusal)
        });
        let mut sinks: Vec<Sink> = sinks.collect::<Step<_>>()?;
        let fresh = self
            .session
            .as_ref()
            .is_none_or(|(length, _)| *length != tokens);
        Reply::Go { fresh }.send(&mut self.channel)?;
        let (started, before) = (Instant::now(), self.meter.report());
        if fresh {
            self.session = None;
            let offer = |scheme, length| match built.program.scheme() == scheme && length == tokens
            {
                true => Ok(built.program.clone()),
                false => Err("this is not what was asked for a moment ago".to_owned()),
            };
            let session = ServerSession::accept(&mut self.channel, offer, Prg::from_os())?;
            self.session = Some((tokens, session));
        }
        let (_, session) = self.session.as_mut().expect("just made or found");
        // Whoever else is inside is taken to work as well.
        let sessions = self.shared.gate.sessions().max(1);
        session.set_threads(self.shared.threads / sessions);
        let mut all: Vec<&mut (dyn Write + Send)> = Vec::with_capacity(bundles);
        all.extend(sinks.iter_mut().map(|sink| sink as &mut (dyn Write + Send)));
        session.prepare_together(&mut self.channel, &built.model, &mut all)?;
        for sink in sinks {
            sink.commit().map_err(store_refusal)?;
        }
        let seconds = self.completed(Phase::Offline, started, &before);
        self.place.worked();
        self.shared.metrics.prepared.add(bundles as u64);
        self.shared.metrics.offline_seconds.add(seconds);
        let connection = self.place.number();
        tracing::info!(connection, bundle = %first, bundles, tokens, seconds, "prepared");
        Reply::Committed.send(&mut self.channel)
    }

    fn infer(&mut self, id: BundleId, fingerprint: &[u8; 32]) -> Step<()> {
        self.place.stage(Stage::Preparing)?;
        self.check_role(Work::Infer)?;
        let store = &self.shared.store;
        let entry = store.entry(id).map_err(store_refusal)?;
        let Some(entry) = entry.filter(|e| e.peer == self.client) else {
            return Err(self.why_not_there(id)?.into());
        };
        if !self.shared.card.buckets.contains(&entry.tokens) {
            return Err(Refusal::OtherProgram(id).into());
        }
        let built = self.built(entry.tokens as usize)?;
        if built.binding != entry.program || built.program.fingerprint() != fingerprint {
            return Err(Refusal::OtherProgram(id).into());
        }
        // From here on a stop waits for us: the client is about to spend its half.
        self.place.stage(Stage::Inferring)?;
        Reply::Ready.send(&mut self.channel)?;
        if !message::receive_spent(&mut self.channel)? {
            return Ok(());
        }
        let (started, before) = (Instant::now(), self.meter.report());
        let spent = store
            .spend(id, &self.client, unix_now())
            .map_err(store_refusal)?;
        let connection = self.place.number();
        tracing::info!(connection, bundle = %id, "spent, the online phase begins");
        Reply::Agreed.send(&mut self.channel)?;
        server::infer(&mut self.channel, &built.model, Bundle::new(spent))?;
        let seconds = self.completed(Phase::Online, started, &before);
        self.place.worked();
        self.shared.metrics.inferred.add(1);
        self.shared.metrics.online_seconds.add(seconds);
        let tokens = entry.tokens;
        tracing::info!(connection = self.place.number(), bundle = %id, tokens, seconds, "inferred");
        Ok(())
    }

    /// What became of a bundle that is not there: another client's are unknown.
    fn why_not_there(&self, id: BundleId) -> Step<Refusal> {
        let past = self.shared.store.past(id).map_err(store_refusal)?;
        let past = past.filter(|p| p.peer == self.client);
        Ok(match past.map(|p| p.fate) {
            Some(Fate::Spent) => Refusal::Spent(id),
            _ => Refusal::Unknown(id),
        })
    }

    fn list(&mut self) -> Step<()> {
        let now = unix_now();
        let own = self.shared.store.list_of(&self.client);
        let own = own.map_err(store_refusal)?;
        let held = own.iter().take(MAX_LISTING).map(|entry| Held {
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

/// What the client is told when the model does not fit the cryptography; the log has the rest.
fn cannot_encode<E: std::fmt::Display>(tokens: usize) -> impl Fn(E) -> ServiceError {
    move |error| {
        tracing::error!(tokens, %error, "the model cannot be encoded");
        Refusal::Failed("the model cannot be encoded for this length".into()).into()
    }
}

/// What the client is told when the store says no; the log has the rest.
fn store_refusal(error: StoreError) -> ServiceError {
    match &error {
        StoreError::Taken { id } => return Refusal::Taken(*id).into(),
        StoreError::Unknown { id } | StoreError::Expired { id, .. } => {
            return Refusal::Unknown(*id).into();
        }
        StoreError::Gone { id, .. } => return Refusal::Spent(*id).into(),
        StoreError::Quota {
            needed,
            stored,
            limit,
        } => {
            let (needed, stored, limit) = (*needed, *stored, *limit);
            return Refusal::Stored {
                needed,
                stored,
                limit,
            }
            .into();
        }
        StoreError::Full { .. } => return Refusal::Full.into(),
        _ => {}
    }
    tracing::error!(%error, "the store failed");
    if error.is_temporary() {
        return Refusal::Store.into();
    }
    match &error {
        StoreError::Damaged { id, .. } => Refusal::Unknown(*id).into(),
        StoreError::File { .. } | StoreError::Draft { .. } => Refusal::Full.into(),
        _ => Refusal::Failed(printable("its store of bundles")).into(),
    }
}

/// A draft whose first failure waits until the offline phase is over, so that the client hears of
/// it.
///
/// In the middle of the protocol there is no message that could say "the disk is full".
struct Sink {
    draft: Option<Draft>,
    failed: Option<StoreError>,
}

impl Sink {
    fn new(draft: Draft) -> Self {
        Self {
            draft: Some(draft),
            failed: None,
        }
    }

    fn commit(self) -> Result<(), StoreError> {
        match (self.draft, self.failed) {
            (Some(draft), None) => draft.commit(),
            (_, Some(error)) => Err(error),
            (None, None) => unreachable!("a draft goes only when it fails"),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(draft) = &mut self.draft else {
            return Ok(bytes.len());
        };
        match draft.write(bytes) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                let (id, fault) = (draft.meta().id, error.to_string());
                self.failed = Some(match error.kind() {
                    io::ErrorKind::NotConnected => StoreError::NotReady { fault },
                    _ => StoreError::Draft { id, fault },
                });
                self.draft = None;
                Ok(bytes.len())
            }
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

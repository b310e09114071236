//! The two phases of an inference, as a client asks for them.

use super::refusals::{cannot_encode, no_mark, store_refusal};
use super::sink::DraftSink;
use super::{Connection, Step};
use crate::gate::Stage;
use crate::metrics::Phase;
use crate::models::InUse;
use primer_engine::server::{self, Bundle};
use primer_engine::session::{Nonce, ServerSession};
use primer_ring::prg::Prg;
use primer_service::message::{self, Refusal, Reply, ServerRole};
use primer_service::{BundleId, ServiceError};
use primer_store::{BundleStore, Counted, Fate, Meta, unix_now};
use std::io::Write;
use std::time::Instant;

impl<'a> Connection<'a> {
    fn built(&self, tokens: usize) -> Step<InUse<'a>> {
        self.shared.models.get(tokens).map_err(|error| match error {
            ServiceError::Refused(_) => error,
            other => cannot_encode(tokens)(other),
        })
    }

    /// Prepares some bundles of a padded length together, in a session that is opened first if the
    /// client sends a nonce for one.
    pub(super) fn prepare(
        &mut self,
        first: BundleId,
        (tokens, bundles): (usize, usize),
        session: Option<&Nonce>,
    ) -> Step<()> {
        self.slot.stage(Stage::Preparing)?;
        self.check_role(ServerRole::Prepare)?;
        let card = &self.shared.card;
        if !card.buckets.contains(&(tokens as u32)) {
            return Err(Refusal::Tokens {
                asked: tokens as u32,
                limit: card.max_tokens() as u32,
            }
            .into());
        }
        if bundles == 0 || card.batch(tokens, bundles) != bundles {
            return Err(Refusal::Bundles {
                asked: bundles as u32,
                tokens: tokens as u32,
                limit: card.batch(tokens, usize::MAX) as u32,
            }
            .into());
        }
        let continues = (self.session.as_ref()).is_some_and(|(length, _)| *length == tokens);
        if session.is_none() && !continues {
            let what = "a request to prepare in a session that there is not".to_owned();
            return Err(ServiceError::Nonsense { what });
        }
        self.check_limit(Counted::Prepared, bundles)?;
        // What could not be used today is not prepared.
        self.check_limit(Counted::Answers, 1)?;
        let built = self.built(tokens)?;
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
            draft.map(DraftSink::new).map_err(store_refusal)
        });
        let mut sinks: Vec<DraftSink> = sinks.collect::<Step<_>>()?;
        // Counted before it begins: what a client that deviates could learn by preparing, it could
        // also learn by a preparation that it breaks off.
        let charge = self.charge(Counted::Prepared, bundles)?;
        let counted = self.shared.store.count(&charge, now);
        counted.map_err(store_refusal)?;
        let token = self.caller.label();
        self.shared.metrics.begun(token.as_deref(), bundles);
        Reply::Go.send(&mut self.channel)?;
        let (started, before) = (Instant::now(), self.meter.report());
        if let Some(nonce) = session {
            self.session = None;
            let (channel, program) = (&mut self.channel, built.program.clone());
            let session = ServerSession::accept(channel, program, nonce, Prg::from_os())?;
            self.session = Some((tokens, session));
        }
        let (_, session) = self.session.as_mut().expect("just made, or checked above");
        // All other sessions are taken to work as well.
        let sessions = self.shared.gate.sessions().max(1);
        session.set_threads(self.shared.threads / sessions);
        let mut all: Vec<&mut (dyn Write + Send)> = Vec::with_capacity(bundles);
        all.extend(sinks.iter_mut().map(|sink| sink as &mut (dyn Write + Send)));
        session.prepare_together(&mut self.channel, &built.model, &mut all)?;
        self.commit(sinks, first)?;
        let seconds = self.completed(Phase::Offline, started, &before);
        self.slot.worked();
        self.shared.metrics.prepared.add(bundles as u64);
        self.shared.metrics.offline_seconds.add(seconds);
        let connection = self.slot.number();
        tracing::info!(connection, token, bundle = %first, bundles, tokens, seconds, "prepared");
        Reply::Committed.send(&mut self.channel)
    }

    /// Keeps all bundles of a batch or none: the client keeps none if it hears of a failure.
    fn commit(&self, sinks: Vec<DraftSink>, first: BundleId) -> Step<()> {
        for (index, sink) in sinks.into_iter().enumerate() {
            let Err(error) = sink.commit() else {
                continue;
            };
            for kept in 0..index {
                let id = message::bundle_of(first, kept);
                if let Err(error) = self.shared.store.delete(id, unix_now()) {
                    tracing::error!(%error, bundle = %id, "a failed batch cannot be deleted");
                }
            }
            return Err(store_refusal(error));
        }
        Ok(())
    }

    pub(super) fn infer(&mut self, id: BundleId, fingerprint: &[u8; 32]) -> Step<()> {
        self.slot.stage(Stage::Preparing)?;
        self.check_role(ServerRole::Infer)?;
        let store = &self.shared.store;
        let entry = store.entry(id).map_err(store_refusal)?;
        let Some(entry) = entry.filter(|e| e.peer == self.client) else {
            return Err(self.why_not_there(id)?.into());
        };
        self.check_limit(Counted::Answers, 1)?;
        if !self.shared.card.buckets.contains(&entry.tokens) {
            return Err(Refusal::OtherProgram(id).into());
        }
        let built = self.built(entry.tokens as usize)?;
        if built.binding != entry.program || built.program.fingerprint() != fingerprint {
            return Err(Refusal::OtherProgram(id).into());
        }
        // The client is about to spend its half: what would keep us from spending ours is said now.
        self.check_usable()?;
        store.check_mark().map_err(no_mark)?;
        let promise = self.promise(Counted::Answers, 1)?;
        // From here on a stop waits for us.
        self.slot.stage(Stage::Inferring)?;
        Reply::Ready.send(&mut self.channel)?;
        if !message::receive_spent(&mut self.channel)? {
            return Ok(());
        }
        let (started, before) = (Instant::now(), self.meter.report());
        let spend = |charge: &_| store.spend_counted(id, &self.client, charge, unix_now());
        let spent = promise.keep(spend).map_err(store_refusal)?;
        let (connection, token) = (self.slot.number(), self.caller.label());
        self.shared.metrics.spent(token.as_deref());
        tracing::info!(connection, token, bundle = %id, "spent, the online phase begins");
        Reply::Agreed.send(&mut self.channel)?;
        server::infer(&mut self.channel, &built.model, Bundle::new(spent))?;
        let seconds = self.completed(Phase::Online, started, &before);
        self.slot.worked();
        self.shared.metrics.inferred.add(1);
        self.shared.metrics.online_seconds.add(seconds);
        let tokens = entry.tokens;
        tracing::info!(connection, token, bundle = %id, tokens, seconds, "inferred");
        Ok(())
    }

    /// Says what became of a bundle that is not there: another client's are unknown.
    fn why_not_there(&self, id: BundleId) -> Step<Refusal> {
        let past = self.shared.store.past(id).map_err(store_refusal)?;
        let past = past.filter(|p| p.peer == self.client);
        Ok(match past.map(|p| p.fate) {
            Some(Fate::Spent) => Refusal::Spent(id),
            _ => Refusal::Unknown(id),
        })
    }
}

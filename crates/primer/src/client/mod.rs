//! The client: tokenises, prepares, infers, remembers.
//!
//! [`Client`] hides the connection: it comes up when it is needed, and again after it broke.
//! Whatever can be done ahead is taken from the store; what is not there is prepared on the spot. A
//! bundle is spent on disk before anything masked by it leaves, so a broken inference costs its
//! bundle and is repeated with a fresh one, never with the same.
//!
//! `trust` remembers servers, `offers` what they offered and `kept` what else is kept of them,
//! `link` is one connection (`preparing` may have another for the offline phase), `retry` says when
//! there is another, `hangup` ends a call from another thread, `outcome` is what comes of it,
//! [`span`] an answer in its context, [`tags`] labels of tokens; `questions` asks for these and for
//! embeddings.

mod hangup;
mod kept;
mod link;
mod offers;
mod outcome;
mod preparing;
mod programs;
mod questions;
mod retry;
pub mod span;
pub mod tags;
mod trust;

pub use hangup::HangUp;
pub use offers::bundle_fits;
pub use outcome::{Classification, Cost, argmax, probabilities};
pub use questions::{AnswerOptions, Embedding, Extract, Tagging};

use crate::service::message::{Card, Refusal};
use crate::service::{BundleId, ServiceError};
use crate::state::State;
use link::{Link, Prepared, check_program, read_attachment, store_error};
use primer_model::text::{Input, TextEncoder, Truncate};
use primer_net::tls::{Fingerprint, Identity};
use primer_net::{Meter, PhaseBytes};
use primer_plan::plan::Plan;
use primer_plan::shape::Head;
use primer_protocol::Program;
use primer_protocol::client::Answer;
use primer_store::{Entry, Store, StoreError, Wanted, unix_now};
use programs::Programs;
use retry::Tries;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use trust::KnownServers;
use zeroize::Zeroizing;

/// How a client behaves.
pub struct ClientOptions {
    /// Where servers, pseudonyms and bundles are kept; by XDG if not given.
    pub state: Option<PathBuf>,
    /// Where bundles are prepared, if replicas of the server do that at another address.
    pub prepare_at: Option<String>,
    /// The fingerprint of a server that is not known yet.
    pub trust: Option<Fingerprint>,
    /// The access token, if the server asks for one.
    pub token: Option<Zeroizing<String>>,
    /// The certificate and key to show, if the server asks for one.
    pub identity: Option<Identity>,
    /// The longest pause of the server.
    pub timeout: Duration,
    /// Threads that prepare; all cores if not given.
    pub threads: Option<usize>,
    /// Attempts in all, each on a new connection and with a fresh bundle.
    pub attempts: u32,
    /// How long a server is tried again that says *later* or cannot be reached; if not given, half
    /// a minute if it says so itself, and not at all if it cannot be reached.
    pub wait: Option<Duration>,
    /// Unspent bundles are deleted after this time.
    pub expiry: Duration,
    /// Ends what the client does from another thread.
    pub hang_up: HangUp,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            state: None,
            prepare_at: None,
            trust: None,
            token: None,
            identity: None,
            timeout: Duration::from_secs(120),
            threads: None,
            attempts: 3,
            wait: None,
            expiry: Duration::from_secs(29 * 24 * 3600),
            hang_up: HangUp::default(),
        }
    }
}

/// What happens while a caller waits.
#[non_exhaustive]
pub enum Event<'a> {
    /// An offline phase begins; the meter will count to about `expected` bytes more.
    Offline {
        /// The padded length.
        tokens: usize,
        /// How many bundles are prepared together.
        bundles: usize,
        /// Counts what passes.
        meter: &'a Meter,
        /// Bytes of both directions.
        expected: u64,
    },
    /// It has ended, and the bundles are stored.
    Prepared {
        /// The padded length.
        tokens: usize,
        /// How many were prepared together.
        bundles: usize,
        /// How long it took.
        seconds: f64,
    },
    /// The connection broke; there is another attempt.
    Retry {
        /// What happened.
        error: &'a ServiceError,
        /// Which attempt comes now.
        attempt: u32,
    },
    /// The server is full, stopping or not there; it is asked again.
    Waiting {
        /// What it said, or what happened.
        error: &'a ServiceError,
        /// How long until then.
        pause: Duration,
    },
    /// A stored bundle is of no use to the server and was deleted.
    Discarded {
        /// Which.
        id: BundleId,
        /// What the server says.
        refusal: &'a Refusal,
    },
}

type Observer = Box<dyn FnMut(Event<'_>) + Send>;

/// A client of one server.
///
/// ```no_run
/// use primer::{Client, ClientOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = ClientOptions {
///     trust: Some("9f86d0…".parse()?),
///     ..ClientOptions::default()
/// };
/// let mut client = Client::connect("models.example:7447", options)?;
/// client.prepare(32, 4)?; // ahead of time, if there is any
/// let found = client.classify("a warm and funny film")?;
/// println!("{} {:?}", found.label, found.score);
/// # Ok(())
/// # }
/// ```
pub struct Client {
    address: String,
    options: ClientOptions,
    known: KnownServers,
    pseudonym: [u8; 32],
    store: Store,
    programs: Programs,
    link: Option<Link>,
    /// Where bundles are prepared, if that is elsewhere.
    preparing: Option<Link>,
    /// Whether the last failure came before the connection was up.
    opening: bool,
    card: Card,
    text: TextEncoder,
    shown: Vec<u64>,
    observer: Observer,
}

impl Client {
    /// Connects to a server, checks its identity, and learns what it offers.
    ///
    /// # Errors
    /// [`ServiceError`]: the server cannot be reached, is not trusted, or refuses.
    pub fn connect(address: &str, options: ClientOptions) -> Result<Self, ServiceError> {
        Self::connect_observed(address, options, |_| ())
    }

    /// As [`Self::connect`], and has something called while the caller waits, from now on.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn connect_observed(
        address: &str,
        options: ClientOptions,
        mut observer: impl FnMut(Event<'_>) + Send + 'static,
    ) -> Result<Self, ServiceError> {
        let state = State::open(options.state.as_deref())?;
        let dir = state.dir("client")?;
        let mut known = KnownServers::read(dir.join("known_servers"))?;
        let pseudonym = kept::pseudonym(&state, address)?;
        let store = Store::open(dir.join("store")).map_err(store_error)?;
        let mut tries = Tries::new();
        let mut link = loop {
            let error = match Link::open(address, &options, &mut known, &pseudonym) {
                Ok(link) => break link,
                Err(error) => error,
            };
            let Some(pause) = tries.again(&error, true, &options) else {
                return Err(error.at(address, tries.attempt));
            };
            let error = &error;
            match tries.attempt {
                1 => observer(Event::Waiting { error, pause }),
                attempt => observer(Event::Retry { error, attempt }),
            }
            std::thread::sleep(pause);
        };
        let text = kept::tokenizer(&state, &mut link).map_err(|error| error.at(address, 1))?;
        let client = Self {
            address: address.to_owned(),
            options,
            known,
            pseudonym,
            store,
            programs: Programs::default(),
            card: link.card.clone(),
            link: Some(link),
            preparing: None,
            opening: false,
            text,
            shown: Vec::new(),
            observer: Box::new(observer),
        };
        offers::record(&state, address, &client.peer())?;
        Ok(client)
    }

    /// Has something called while the caller waits.
    pub fn observe(&mut self, observer: impl FnMut(Event<'_>) + Send + 'static) {
        self.observer = Box::new(observer);
    }

    /// What the server offers.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Prepares `count` bundles ahead, for inputs of up to `tokens` tokens, and stores them;
    /// several together where the server's scheme allows it, which takes fewer bytes and less time.
    ///
    /// # Errors
    /// [`ServiceError`]; what was stored before stays.
    pub fn prepare(&mut self, tokens: usize, count: usize) -> Result<Vec<BundleId>, ServiceError> {
        Ok(self.prepare_many(tokens, count)?.ids)
    }

    fn prepare_many(&mut self, tokens: usize, count: usize) -> Result<Prepared, ServiceError> {
        let bucket = self.bucket(tokens)?;
        let mut most = count;
        let mut made = Prepared {
            ids: Vec::with_capacity(count),
            seconds: 0.0,
            bytes: PhaseBytes::default(),
        };
        while made.ids.len() < count {
            let wanted = most.min(count - made.ids.len());
            let bundles = self.card.scheme.recipe().batch(bucket, wanted);
            match self.patiently(|client| client.prepare_some(bucket, bundles)) {
                // There may be room for some of them.
                Err(ServiceError::Refused(Refusal::Stored { .. })) if bundles > 1 => {
                    most = bundles / 2;
                }
                prepared => {
                    let prepared = prepared?;
                    made.ids.extend(prepared.ids);
                    made.seconds += prepared.seconds;
                    made.bytes += prepared.bytes;
                }
            }
        }
        Ok(made)
    }

    /// The label of a text.
    ///
    /// # Errors
    /// [`ServiceError`]: among others if the model has no labels.
    pub fn classify(&mut self, text: &str) -> Result<Classification, ServiceError> {
        self.classify_either(text, None)
    }

    /// The label of a pair of texts.
    ///
    /// # Errors
    /// As [`Self::classify`].
    pub fn classify_pair(
        &mut self,
        first: &str,
        second: &str,
    ) -> Result<Classification, ServiceError> {
        self.classify_either(first, Some(second))
    }

    fn classify_either(
        &mut self,
        first: &str,
        second: Option<&str>,
    ) -> Result<Classification, ServiceError> {
        let Head::Classify {
            labels, problem, ..
        } = &self.card.head
        else {
            return Err(self.wrong_head("labels (as BertForSequenceClassification has)"));
        };
        let (labels, problem) = (labels.clone(), *problem);
        let input = self.encode(first, second, Truncate::LongestFirst)?;
        let (answer, cost) = self.infer(&input)?;
        outcome::classification(&answer, (&labels, problem), input.removed, cost)
            .ok_or_else(odd_answer)
    }

    /// Unspent bundles for this server as it is now, by padded length.
    ///
    /// # Errors
    /// [`ServiceError`] if the store cannot be read.
    pub fn prepared(&self) -> Result<BTreeMap<usize, usize>, ServiceError> {
        let (peer, now) = (self.peer(), unix_now());
        let mut lengths = BTreeMap::new();
        for entry in self.store.list().map_err(store_error)? {
            if entry.peer == peer && entry.expires > now {
                *lengths.entry(entry.tokens as usize).or_insert(0) += 1;
            }
        }
        Ok(lengths)
    }

    /// The first residues of the last text as they left for the server: all that it saw of it is of
    /// this kind, uniform and different every time.
    pub fn shown(&self) -> &[u64] {
        &self.shown
    }

    /// Gives up the connection until it is needed again; a server closes an idle one anyway, and
    /// has its place back sooner.
    pub fn rest(&mut self) {
        for link in [self.link.take(), self.preparing.take()]
            .into_iter()
            .flatten()
        {
            link.bye();
        }
    }

    /// Brings both stores in line: bundles that only one side has are deleted. Tells how many on
    /// each side.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn reconcile(&mut self) -> Result<(usize, usize), ServiceError> {
        /// Younger ones may be in the making by another process.
        const SETTLED: u32 = 3600;
        /// More orphans than a client leaves behind; the rest have to wait for another time.
        const MOST: usize = 1024;
        let peer = self.peer();
        let own = self.store.list().map_err(store_error)?;
        let held = self.link()?.list()?;
        let (mut here, mut there) = (0, 0);
        for entry in own.iter().filter(|e| e.peer == peer) {
            if !held.iter().any(|h| h.id == entry.id) {
                self.discard(entry.id)?;
                here += 1;
            }
        }
        for orphan in held.iter().filter(|h| h.age >= SETTLED).take(MOST) {
            if !own.iter().any(|e| e.id == orphan.id) {
                self.link()?.forget(orphan.id)?;
                there += 1;
            }
        }
        Ok((here, there))
    }

    /// What the connection is encrypted with; empty while there is none.
    pub fn transport(&self) -> String {
        let agreed = self.link.as_ref().and_then(Link::agreed);
        agreed.map_or(String::new(), |agreed| {
            format!("TLS 1.3, {}, {}", agreed.key_exchange, agreed.cipher_suite)
        })
    }

    /// Leaves in good order. Dropping does too, without waiting.
    pub fn close(mut self) {
        self.rest();
    }

    fn wrong_head(&self, needs: &'static str) -> ServiceError {
        ServiceError::Head {
            model: self.card.model.clone(),
            has: format!(
                "{} ({}{})",
                self.card.head.about(),
                self.card.family.name(),
                self.card.head.name()
            ),
            needs,
        }
    }

    fn encode(
        &self,
        first: &str,
        second: Option<&str>,
        truncate: Truncate,
    ) -> Result<Input, ServiceError> {
        let limit = self.card.max_tokens();
        let input = self.text.encode(first, second, limit, truncate)?;
        self.check(&input)?;
        Ok(input)
    }

    /// A tokenizer is the server's: what it gives out may be beyond the model's embeddings.
    fn check(&self, input: &Input) -> Result<(), ServiceError> {
        let (vocab, types) = (self.card.vocab as usize, self.card.types as usize);
        Ok(input.fits_embeddings(vocab, types)?)
    }

    fn bucket(&self, tokens: usize) -> Result<usize, ServiceError> {
        self.card.bucket(tokens).ok_or_else(|| {
            let refusal = Refusal::Tokens {
                asked: tokens as u32,
                limit: self.card.max_tokens() as u32,
            };
            refusal.into()
        })
    }

    /// The server's account in the store: its address, its weights, its way of compiling. Bundles
    /// of anything else are of no use to it.
    fn peer(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("primer 2026 server account");
        hasher.update(&self.card.generation);
        hasher.update(&[self.card.reveal as u8]);
        hasher.update(self.card.scheme.name().as_bytes());
        hasher.update(b"\n");
        hasher.update(self.address.as_bytes());
        *hasher.finalize().as_bytes()
    }

    /// The connection, brought up if there is none.
    fn link(&mut self) -> Result<&mut Link, ServiceError> {
        let link = match self.link.take() {
            Some(link) => link,
            None => {
                self.opening = true;
                let link = Link::open(
                    &self.address,
                    &self.options,
                    &mut self.known,
                    &self.pseudonym,
                )?;
                self.opening = false;
                if link.card.tokenizer != self.card.tokenizer || link.card.head != self.card.head {
                    return Err(ServiceError::Nonsense {
                        what: "the card of another model than before".into(),
                    });
                }
                self.card = link.card.clone();
                let state = State::open(self.options.state.as_deref())?;
                offers::record(&state, &self.address, &self.peer())?;
                link
            }
        };
        Ok(self.link.insert(link))
    }

    /// Repeats work on a new connection while the old one breaks or the server says *later*, within
    /// bounds (`retry`).
    fn patiently<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        let mut tries = Tries::new();
        loop {
            let error = match work(self) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            if !matches!(error, ServiceError::Refused(_)) {
                // Whatever it was, the two sides may disagree on where they are.
                self.link = None;
            }
            self.options.hang_up.check()?;
            let before = tries.attempt;
            let opening = std::mem::take(&mut self.opening);
            let Some(pause) = tries.again(&error, opening, &self.options) else {
                return Err(error.at(&self.address, tries.attempt));
            };
            let (error, attempt) = (&error, tries.attempt);
            (self.observer)(match attempt == before {
                true => Event::Waiting { error, pause },
                false => Event::Retry { error, attempt },
            });
            // Whoever waits long does not hold a connection meanwhile.
            self.link = None;
            std::thread::sleep(pause);
        }
    }

    fn prepare_some(&mut self, tokens: usize, bundles: usize) -> Result<Prepared, ServiceError> {
        match self.try_prepare(tokens, bundles) {
            // Orphans of broken attempts may fill the account.
            Err(ServiceError::Refused(Refusal::Stored { .. })) if self.reconcile()?.1 > 0 => {
                self.try_prepare(tokens, bundles)
            }
            result => result,
        }
    }

    /// From tokens to the model's outputs.
    fn infer(&mut self, input: &Input) -> Result<(Answer, Cost), ServiceError> {
        let (mut cost, mut fresh) = (Cost::default(), 0);
        let answer = self.patiently(|client| client.try_infer(input, &mut cost, &mut fresh))?;
        Ok((answer, cost))
    }

    /// One attempt. Stored bundles that the server does not know any more are passed over; each
    /// goes for good, so there is an end. A bundle just prepared that it does not know is its
    /// fault, and an error; `fresh` counts those that were prepared for this answer.
    fn try_infer(
        &mut self,
        input: &Input,
        cost: &mut Cost,
        fresh: &mut u32,
    ) -> Result<Answer, ServiceError> {
        loop {
            self.link()?;
            let (entry, ahead) = match self.find(input.tokens())? {
                Some(entry) => (entry, true),
                None => {
                    let tokens = self.bucket(input.tokens())?;
                    if *fresh >= self.options.attempts {
                        return Err(ServiceError::Elsewhere { bundles: *fresh });
                    }
                    *fresh += 1;
                    let prepared = self.prepare_some(tokens, 1)?;
                    cost.offline_s += prepared.seconds;
                    cost.bytes += prepared.bytes;
                    let entries = self.store.list().map_err(store_error)?;
                    let entry = entries.into_iter().find(|e| prepared.ids.contains(&e.id));
                    let Some(entry) = entry else {
                        continue; // Another process of ours was faster.
                    };
                    (entry, false)
                }
            };
            let Some(program) = self.program(&entry)? else {
                continue; // Another process of ours was faster.
            };
            let started = Instant::now();
            match self.link()?.ask(entry.id, entry.program) {
                Err(ServiceError::Refused(refusal)) if refusal.is_about_a_bundle() => {
                    let id = entry.id;
                    (self.observer)(Event::Discarded {
                        id,
                        refusal: &refusal,
                    });
                    self.discard(id)?;
                    if !ahead {
                        return Err(ServiceError::Fickle { refusal });
                    }
                    continue;
                }
                result => result?,
            }
            let spent = match self.store.spend(entry.id, &entry.peer, unix_now()) {
                Ok(spent) => spent,
                Err(
                    StoreError::Gone { .. }
                    | StoreError::Unknown { .. }
                    | StoreError::Expired { .. }
                    | StoreError::Damaged { .. },
                ) => {
                    self.link()?.withdraw()?;
                    continue;
                }
                Err(error) => return Err(store_error(error)),
            };
            let mut padded = input.clone();
            padded.pad_to(entry.tokens as usize, self.text.padding());
            let link = self.link.as_mut().expect("asked on it");
            let mut answer = link.infer(&program, spent, &padded, &mut cost.bytes)?;
            self.shown = std::mem::take(&mut answer.shown);
            cost.online_s += started.elapsed().as_secs_f64();
            cost.tokens = padded.tokens();
            cost.prepared_ahead = ahead;
            return Ok(answer);
        }
    }

    /// The stored bundle that fits best.
    fn find(&self, tokens: usize) -> Result<Option<Entry>, ServiceError> {
        let fitting = self.fitting(tokens)?.into_iter();
        Ok(fitting.min_by_key(|entry| (entry.tokens, entry.expires, entry.id)))
    }

    /// The stored bundles that fit.
    fn fitting(&self, tokens: usize) -> Result<Vec<Entry>, ServiceError> {
        let wanted = Wanted {
            peer: self.peer(),
            program: None,
            tokens: tokens as u32,
        };
        let now = unix_now();
        let mut entries = self.store.list().map_err(store_error)?;
        entries.retain(|entry| wanted.fits(entry) && entry.expires > now);
        Ok(entries)
    }

    fn discard(&self, id: BundleId) -> Result<(), ServiceError> {
        match self.store.delete(id, unix_now()) {
            Ok(()) | Err(StoreError::Gone { .. } | StoreError::Unknown { .. }) => Ok(()),
            Err(error) => Err(store_error(error)),
        }
    }

    /// The program that a bundle was prepared for, compiled unless it was before; none if the
    /// bundle is gone.
    fn program(&mut self, entry: &Entry) -> Result<Option<Program>, ServiceError> {
        if let Some(program) = self.programs.get(&entry.program) {
            return Ok(Some(program));
        }
        let unusable = |why| ServiceError::Bundle { id: entry.id, why };
        let attachment = self.store.attachment(entry.id).map_err(store_error)?;
        if attachment.is_none() && !self.store.contains(entry.id).map_err(store_error)? {
            return Ok(None);
        }
        let (_, plan) = (attachment.as_deref())
            .and_then(read_attachment)
            .ok_or_else(|| unusable("its plan is missing"))?;
        let plan = Plan::decode(plan).map_err(|_| unusable("its plan cannot be read"))?;
        let program = Program::received(plan, self.card.scheme, self.card.reveal)?;
        if *program.fingerprint() != entry.program {
            return Err(unusable("its plan is another one"));
        }
        check_program(&program, &self.card)?;
        self.programs.keep(program.clone());
        Ok(Some(program))
    }
}

/// The server's address that was stored beside a bundle.
pub fn bundle_address(attachment: &[u8]) -> Option<&str> {
    read_attachment(attachment).map(|(address, _)| address)
}

fn odd_answer() -> ServiceError {
    ServiceError::Nonsense {
        what: "an answer that its card does not describe".into(),
    }
}

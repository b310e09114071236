//! The client: tokenises, prepares, infers, remembers.
//!
//! [`Client`] hides the connection: it comes up when it is needed, and again after it broke.
//! Whatever can be done ahead is taken from the store; what is not there is prepared on the spot. A
//! bundle is spent on disk before anything masked by it leaves, so a broken inference costs its
//! bundle and is repeated with a fresh one, never with the same.
//!
//! `trust` remembers servers, `link` is one connection, `outcome` what comes of it, [`span`] an
//! answer in its context.

mod link;
mod outcome;
mod programs;
pub mod span;
mod trust;

pub use outcome::{Classification, Cost, Extract, argmax, probabilities};

use crate::service::message::{Card, Refusal, TokenizerFiles};
use crate::service::{BundleId, ServiceError, hex, random};
use crate::state::{State, file_name, read_if_there, write_private};
use link::{Link, Prepared, check_program, read_attachment, store_error};
use primer_model::text::{Input, TextEncoder, TextError, Truncate};
use primer_net::Meter;
use primer_net::tls::{Fingerprint, Identity};
use primer_plan::plan::Plan;
use primer_plan::shape::Head;
use primer_protocol::Program;
use primer_protocol::client::Answer;
use primer_store::{Entry, Store, StoreError, Wanted, unix_now};
use programs::Programs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use trust::KnownServers;
use zeroize::Zeroizing;

/// How a client behaves.
pub struct ClientOptions {
    /// Where servers, pseudonyms and bundles are kept; by XDG if not given.
    pub state: Option<PathBuf>,
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
    /// Unspent bundles are deleted after this time.
    pub expiry: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            state: None,
            trust: None,
            token: None,
            identity: None,
            timeout: Duration::from_secs(120),
            threads: None,
            attempts: 3,
            expiry: Duration::from_secs(29 * 24 * 3600),
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
    /// A stored bundle is of no use to the server and was deleted.
    Discarded {
        /// Which.
        id: BundleId,
        /// What the server says.
        refusal: &'a Refusal,
    },
}

type Observer = Box<dyn FnMut(Event<'_>)>;

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
    card: Card,
    text: TextEncoder,
    observer: Observer,
}

impl Client {
    /// Connects to a server, checks its identity, and learns what it offers.
    ///
    /// # Errors
    /// [`ServiceError`]: the server cannot be reached, is not trusted, or refuses.
    pub fn connect(address: &str, options: ClientOptions) -> Result<Self, ServiceError> {
        let state = State::open(options.state.as_deref())?;
        let dir = state.dir("client")?;
        let mut known = KnownServers::read(dir.join("known_servers"))?;
        let pseudonym = pseudonym(&state, address)?;
        let store = Store::open(dir.join("store")).map_err(store_error)?;
        let mut link = Link::open(address, &options, &mut known, &pseudonym)
            .map_err(|error| error.at(address, 1))?;
        let text = tokenizer(&state, &mut link).map_err(|error| error.at(address, 1))?;
        Ok(Self {
            address: address.to_owned(),
            options,
            known,
            pseudonym,
            store,
            programs: Programs::default(),
            card: link.card.clone(),
            link: Some(link),
            text,
            observer: Box::new(|_| ()),
        })
    }

    /// Has something called while the caller waits.
    pub fn observe(&mut self, observer: impl FnMut(Event<'_>) + 'static) {
        self.observer = Box::new(observer);
    }

    /// What the server offers.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Prepares `count` bundles ahead, for inputs of up to `tokens` tokens, and stores them; several
    /// together where the server's scheme allows it, which takes fewer bytes and less time.
    ///
    /// # Errors
    /// [`ServiceError`]; what was stored before stays.
    pub fn prepare(&mut self, tokens: usize, count: usize) -> Result<Vec<BundleId>, ServiceError> {
        let bucket = self.bucket(tokens)?;
        let (mut made, mut most) = (Vec::with_capacity(count), count);
        while made.len() < count {
            let wanted = most.min(count - made.len());
            let bundles = self.card.scheme.recipe().batch(bucket, wanted);
            match self.patiently(|client| client.prepare_some(bucket, bundles)) {
                // There may be room for some of them.
                Err(ServiceError::Refused(Refusal::Stored { .. })) if bundles > 1 => {
                    most = bundles / 2;
                }
                prepared => made.extend(prepared?.ids),
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
        let Head::Classify { labels } = &self.card.head else {
            return Err(self.wrong_head("labels (BertForSequenceClassification)"));
        };
        let labels = labels.clone();
        let input = self.encode(first, second, Truncate::LongestFirst)?;
        let (answer, cost) = self.infer(&input)?;
        outcome::classification(&answer, &labels, input.removed, cost).ok_or_else(odd_answer)
    }

    /// The piece of a context that answers a question.
    ///
    /// # Errors
    /// [`ServiceError`]: among others if the model does not answer questions, or no token of the
    /// context is left beside the question.
    pub fn answer(&mut self, question: &str, context: &str) -> Result<Extract, ServiceError> {
        if self.card.head != Head::Span {
            return Err(self.wrong_head("a span head (BertForQuestionAnswering)"));
        }
        let input = self.encode(question, Some(context), Truncate::OnlySecond)?;
        let (answer, cost) = self.infer(&input)?;
        let scores = answer.reals.first().filter(|m| m.cols() == 2);
        let scores = scores.ok_or_else(odd_answer)?;
        let scores: Vec<(f64, f64)> = (0..scores.rows())
            .map(|row| (scores.row(row)[0], scores.row(row)[1]))
            .collect();
        let (tokens, told) = (&input.second, answer.in_range);
        outcome::extract(&scores, tokens, context, input.removed, told, cost)
            .ok_or_else(|| TextError::Empty.into())
    }

    /// Brings both stores in line: bundles that only one side has are deleted. Tells how many on
    /// each side.
    ///
    /// # Errors
    /// [`ServiceError`].
    pub fn reconcile(&mut self) -> Result<(usize, usize), ServiceError> {
        /// Younger ones may be in the making by another process.
        const SETTLED: u32 = 3600;
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
        for orphan in held.iter().filter(|h| h.age >= SETTLED) {
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
        if let Some(link) = self.link.take() {
            link.bye();
        }
    }

    fn wrong_head(&self, needs: &'static str) -> ServiceError {
        ServiceError::Head {
            model: self.card.model.clone(),
            has: match self.card.head {
                Head::Classify { .. } => "labels (BertForSequenceClassification)",
                Head::Span => "a span head (BertForQuestionAnswering)",
                Head::Encoder { .. } => "no head (BertModel)",
            },
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
        let types = self.card.types as usize;
        if let Some(&kind) = input.types.iter().find(|t| **t as usize >= types) {
            return Err(TextError::TokenType { kind, types }.into());
        }
        Ok(input)
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
                let link = Link::open(
                    &self.address,
                    &self.options,
                    &mut self.known,
                    &self.pseudonym,
                )?;
                if link.card.tokenizer != self.card.tokenizer || link.card.head != self.card.head {
                    return Err(ServiceError::Nonsense {
                        what: "the card of another model than before".into(),
                    });
                }
                self.card = link.card.clone();
                link
            }
        };
        Ok(self.link.insert(link))
    }

    /// Repeats work on a new connection while the old one breaks, a bounded number of times.
    fn patiently<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        let mut attempt = 1;
        loop {
            let error = match work(self) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            if !matches!(error, ServiceError::Refused(_)) {
                // Whatever it was, the two sides may disagree on where they are.
                self.link = None;
            }
            let hopeful = error.is_broken_connection()
                || matches!(&error, ServiceError::Connect { .. } if attempt > 1);
            if !hopeful || attempt >= self.options.attempts {
                return Err(error.at(&self.address, attempt));
            }
            self.link = None;
            attempt += 1;
            (self.observer)(Event::Retry {
                error: &error,
                attempt,
            });
            // A server that restarts needs a moment: half a second, one, two.
            std::thread::sleep(Duration::from_millis(250 << attempt.min(6)));
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

    fn try_prepare(&mut self, tokens: usize, bundles: usize) -> Result<Prepared, ServiceError> {
        self.link()?;
        let peer = self.peer();
        let link = self.link.as_mut().expect("just brought up");
        let place = (&self.store, &*self.address, &peer, self.options.expiry);
        link.threads = crate::threads(self.options.threads);
        let prepared = link.prepare((tokens, bundles), place, &mut *self.observer)?;
        if let Some(program) = link.program() {
            self.programs.keep(program.clone());
        }
        Ok(prepared)
    }

    /// From tokens to the model's outputs.
    fn infer(&mut self, input: &Input) -> Result<(Answer, Cost), ServiceError> {
        let mut cost = Cost::default();
        let answer = self.patiently(|client| client.try_infer(input, &mut cost))?;
        Ok((answer, cost))
    }

    fn try_infer(&mut self, input: &Input, cost: &mut Cost) -> Result<Answer, ServiceError> {
        loop {
            self.link()?;
            let (entry, ahead) = match self.find(input.tokens())? {
                Some(entry) => (entry, true),
                None => {
                    let tokens = self.bucket(input.tokens())?;
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
            let answer = link.infer(&program, spent, &padded, &mut cost.bytes)?;
            cost.online_s += started.elapsed().as_secs_f64();
            cost.tokens = padded.tokens();
            cost.prepared_ahead = ahead;
            return Ok(answer);
        }
    }

    /// The stored bundle that fits best.
    fn find(&self, tokens: usize) -> Result<Option<Entry>, ServiceError> {
        let wanted = Wanted {
            peer: self.peer(),
            program: None,
            tokens: tokens as u32,
        };
        let now = unix_now();
        let mut entries = self.store.list().map_err(store_error)?;
        entries.retain(|entry| wanted.fits(entry) && entry.expires > now);
        Ok(entries
            .into_iter()
            .min_by_key(|entry| (entry.tokens, entry.expires, entry.id)))
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

/// Who this client is to a server: made once, and different for every server.
fn pseudonym(state: &State, address: &str) -> Result<[u8; 32], ServiceError> {
    let path = state.dir("client/pseudonyms")?.join(file_name(address));
    let read = || -> Result<Option<[u8; 32]>, ServiceError> {
        let bytes = read_if_there(&path)?.map(Zeroizing::new);
        Ok(bytes.and_then(|b| b.as_slice().try_into().ok()))
    };
    if let Some(made) = read()? {
        return Ok(made);
    }
    write_private(&path, &random::<32>()?)?;
    // Read again: another process may have been faster, and one must win.
    read()?.ok_or_else(|| {
        let why = format!("{} does not hold a pseudonym of 32 bytes", path.display());
        ServiceError::Options(why)
    })
}

/// The server's tokenizer: from the cache, or fetched once.
fn tokenizer(state: &State, link: &mut Link) -> Result<TextEncoder, ServiceError> {
    let (hash, _) = link.card.tokenizer;
    let path = state.dir("client/tokenizers")?.join(hex(&hash));
    let cached = read_if_there(&path)?.filter(|bytes| *blake3::hash(bytes).as_bytes() == hash);
    let encoded = match cached {
        Some(bytes) => bytes,
        None => {
            let bytes = link.tokenizer()?;
            write_private(&path, &bytes)?;
            bytes
        }
    };
    let files = TokenizerFiles::decode(&encoded)?;
    let config = files.config.as_deref();
    let text = if files.json {
        TextEncoder::from_json(&files.main, config)?
    } else {
        TextEncoder::from_vocabulary(&files.main, config)?
    };
    text.check_vocabulary(link.card.vocab as usize)?;
    Ok(text)
}

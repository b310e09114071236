//! The client: tokenises, prepares, infers, remembers.
//!
//! [`Client`] hides the connection: it comes up when it is needed, and again after it broke.
//! What can be done ahead is taken from the store; what is not there is prepared on the spot. A
//! bundle is spent on disk before anything masked by it leaves, so a broken inference costs its
//! bundle and is repeated with a fresh one, never with the same.
//!
//! `options` says how it behaves. [`Parts`] are what it needs of the system that it runs on: `dial`
//! opens connections, `keep` keeps what is small, a [`BundleStore`](primer_store::BundleStore)
//! bundles and a [`HintStore`] hints. `native` has those of a system with sockets and files, behind
//! a feature that is on by default. `offers` is what servers offered and `kept` what else is kept
//! of them; `link` is one connection, `retry` says when there is another, `hangup` ends a call from
//! another thread. `stock` has the bundles, `hint` fetches what they are
//! prepared with, `preparing` makes them, maybe on a connection of its own, and `inference` uses
//! them; `programs` are what they were made for. `outcome` is what comes of it, [`span`] an answer
//! in its context, [`tags`] labels of tokens; `questions` asks for these and for embeddings.

#![forbid(unsafe_code)]

mod dial;
mod hangup;
mod hint;
mod inference;
mod keep;
mod kept;
#[cfg(all(test, feature = "native"))]
mod limited;
mod link;
#[cfg(feature = "native")]
mod native;
mod offers;
mod options;
mod outcome;
mod parts;
mod preparing;
mod programs;
mod questions;
mod retry;
pub mod span;
mod stock;
pub mod tags;

pub use dial::{Dial, Dialled};
pub use hangup::{HangUp, ShutDown};
pub use hint::{HintCopy, HintPart, HintStore, MemoryHints};
pub use keep::{Keep, MemoryKeep};
#[cfg(feature = "native")]
pub use offers::bundle_fits;
pub use options::{ClientOptions, Event};
pub use outcome::{Classification, Cost, argmax, probabilities};
pub use parts::Parts;
pub use questions::{AnswerOptions, Embedding, Extract, Tagging};
pub use stock::bundle_address;

use link::Link;
use options::Observer;
use primer_engine::SCHEME_NAME;
use primer_hint::published::Published;
use primer_plan::shape::Head;
use primer_service::ServiceError;
use primer_service::message::{Card, Refusal};
use primer_text::{Input, TextEncoder, Truncate};
use programs::Programs;
use retry::Tries;
use std::sync::Arc;

/// A client of one server.
///
#[cfg_attr(feature = "native", doc = "```no_run")]
#[cfg_attr(not(feature = "native"), doc = "```ignore")]
/// use primer_client::{Client, ClientOptions};
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
    parts: Parts,
    pseudonym: [u8; 32],
    programs: Programs,
    link: Option<Link>,
    /// Where bundles are prepared, if that is elsewhere.
    preparing: Option<Link>,
    /// The server's hint, once it is needed.
    hint: Option<Arc<Published>>,
    /// How often bundles were prepared or chunks fetched: so the next try knows that the server was
    /// there.
    work_done: u64,
    card: Card,
    text: TextEncoder,
    shown: Vec<u8>,
    observer: Observer,
}

impl Client {
    /// Connects to a server with parts of the caller's choice, and learns what it offers; has
    /// something called while the caller waits, from now on.
    ///
    /// # Errors
    /// [`ServiceError`]: the server cannot be reached, is not trusted, or refuses.
    pub fn connect_with(
        address: &str,
        options: ClientOptions,
        mut parts: Parts,
        mut observer: impl FnMut(Event<'_>) + Send + 'static,
    ) -> Result<Self, ServiceError> {
        let pseudonym = kept::pseudonym(&mut *parts.keep, address)?;
        let mut tries = Tries::new();
        let (link, text) = loop {
            let made = Link::open(address, &options, &mut *parts.dial, &pseudonym);
            let made = made.and_then(|mut link| {
                let text = kept::tokenizer(&mut *parts.keep, &mut link)?;
                Ok((link, text))
            });
            match made {
                Ok(made) => break made,
                Err(error) => {
                    let pause = tries.another(error, address, &options, &mut observer)?;
                    options.hang_up.pause(pause)?;
                }
            }
        };
        let mut client = Self {
            address: address.to_owned(),
            options,
            parts,
            pseudonym,
            programs: Programs::default(),
            card: link.card.clone(),
            link: Some(link),
            preparing: None,
            hint: None,
            work_done: 0,
            text,
            shown: Vec::new(),
            observer: Box::new(observer),
        };
        client.record_offer()?;
        Ok(client)
    }

    /// Keeps what the server offers now.
    fn record_offer(&mut self) -> Result<(), ServiceError> {
        let account = self.peer();
        offers::record(&mut *self.parts.keep, &self.address, &account)
    }

    /// Has something called while the caller waits.
    pub fn observe(&mut self, observer: impl FnMut(Event<'_>) + Send + 'static) {
        self.observer = Box::new(observer);
    }

    /// Returns what the server offers.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// Finds the label of a text.
    ///
    /// # Errors
    /// [`ServiceError`]: among others if the model has no labels.
    pub fn classify(&mut self, text: &str) -> Result<Classification, ServiceError> {
        self.classify_either(text, None)
    }

    /// Finds the label of a pair of texts.
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

    /// Returns the first bytes of the last text as they left for the server: all that it saw of it
    /// is of this kind, uniform and different every time.
    pub fn shown(&self) -> &[u8] {
        &self.shown
    }

    /// Gives up the connection until it is needed again; a server closes an idle one anyway, and
    /// has its place back sooner.
    pub fn disconnect(&mut self) {
        for link in [self.link.take(), self.preparing.take()]
            .into_iter()
            .flatten()
        {
            link.bye();
        }
    }

    /// Says what the connection is encrypted with; empty while there is none.
    pub fn transport(&self) -> String {
        let agreed = self.link.as_ref().and_then(Link::agreed);
        agreed.map_or(String::new(), |agreed| {
            format!("TLS 1.3, {}, {}", agreed.key_exchange, agreed.cipher_suite)
        })
    }

    /// Leaves in good order. Dropping does too, without waiting.
    pub fn close(mut self) {
        self.disconnect();
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

    /// Checks that the model has embeddings for an input. The tokenizer is the server's: what it
    /// gives out may be beyond them.
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

    /// Returns the server's account in the store: its address, its weights, its way of compiling,
    /// its hint. Bundles of anything else are of no use to it.
    fn peer(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("primer 2026 server account");
        hasher.update(&self.card.generation);
        hasher.update(&[self.card.reveal as u8]);
        hasher.update(SCHEME_NAME.as_bytes());
        hasher.update(b"\n");
        hasher.update(&self.card.hint.root);
        hasher.update(self.address.as_bytes());
        *hasher.finalize().as_bytes()
    }

    /// Returns the connection, brought up if there is none.
    fn link(&mut self) -> Result<&mut Link, ServiceError> {
        let link = match self.link.take() {
            Some(link) => link,
            None => {
                let link = Link::open(
                    &self.address,
                    &self.options,
                    &mut *self.parts.dial,
                    &self.pseudonym,
                )?;
                if link.card.tokenizer != self.card.tokenizer || link.card.head != self.card.head {
                    return Err(ServiceError::Nonsense {
                        what: "the card of another model than before".into(),
                    });
                }
                self.card = link.card.clone();
                self.record_offer()?;
                link
            }
        };
        Ok(self.link.insert(link))
    }

    /// Repeats work on a new connection while the old one breaks or the server says *later*, within
    /// bounds (`retry`).
    fn with_retry<T>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        let mut tries = Tries::new();
        loop {
            let before = self.work_done;
            let error = match work(self) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            if self.work_done > before {
                tries.worked();
            }
            if !matches!(error, ServiceError::Refused(_)) {
                // The two sides may disagree on where they are.
                self.link = None;
            }
            let (address, options) = (&self.address, &self.options);
            let pause = tries.another(error, address, options, &mut *self.observer)?;
            // No connection is held during a long wait.
            (self.link, self.preparing) = (None, None);
            self.options.hang_up.pause(pause)?;
        }
    }
}

fn odd_answer() -> ServiceError {
    ServiceError::Nonsense {
        what: "an answer that its card does not describe".into(),
    }
}

//! The messages of the service, each with the bytes that it may take.
//!
//! A decoded message is a valid one: [`Greeting::receive`], [`Reception::receive`] and their kin
//! check every length and every character before anybody sees the value. Texts that a peer chooses
//! (labels, names, reasons) hold no control characters, so that printing them cannot move a cursor
//! or forge a line.

use super::{BundleId, ServiceError, VERSION};
use primer_net::{Channel, Kind};
use primer_plan::shape::{Family, Head};
use primer_protocol::{Reveal, Scheme};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

const GREETING: Kind = Kind::new(0x50, "greeting");
const RECEPTION: Kind = Kind::new(0x51, "reception");
const REQUEST: Kind = Kind::new(0x52, "request");
const REPLY: Kind = Kind::new(0x53, "reply");
const TOKENIZER: Kind = Kind::new(0x54, "tokenizer");
const SPENT: Kind = Kind::new(0x55, "spent");

/// The longest access token.
pub const MAX_TOKEN: usize = 256;
const MAX_GREETING: usize = 64 + MAX_TOKEN;
const MAX_RECEPTION: usize = 1 << 20;
const MAX_REQUEST: usize = 64;
/// Bundles that one listing names.
pub const MAX_LISTING: usize = 1 << 16;
const MAX_REPLY: usize = 64 + MAX_LISTING * 24;
/// The longest tokenizer that a client accepts.
pub const MAX_TOKENIZER: usize = 16 << 20;
const MAX_NAME: usize = 256;
const MAX_BUCKETS: usize = 64;

/// What a client says first.
pub struct Greeting {
    /// The service version that it speaks.
    pub version: u16,
    /// Who it is to this server.
    pub pseudonym: [u8; 32],
    /// What admits it.
    pub token: Option<Zeroizing<String>>,
}

#[derive(Serialize, Deserialize)]
struct WireGreeting {
    version: u16,
    pseudonym: [u8; 32],
    token: Option<String>,
}

impl Drop for WireGreeting {
    fn drop(&mut self) {
        self.token.zeroize();
    }
}

impl Greeting {
    /// Sends it.
    ///
    /// # Errors
    /// If the channel fails.
    pub fn send(self, channel: &mut Channel) -> Result<(), ServiceError> {
        let wire = WireGreeting {
            version: self.version,
            pseudonym: self.pseudonym,
            token: self.token.map(|t| t.to_string()),
        };
        channel.send_value(GREETING, &wire)?;
        Ok(channel.flush()?)
    }

    /// Receives one.
    ///
    /// # Errors
    /// If there is none, or it is too long.
    pub fn receive(channel: &mut Channel) -> Result<Self, ServiceError> {
        let mut wire: WireGreeting = channel.recv_value(GREETING, MAX_GREETING)?;
        Ok(Self {
            version: wire.version,
            pseudonym: wire.pseudonym,
            token: wire.token.take().map(Zeroizing::new),
        })
    }
}

/// What a server offers: everything public about its model, and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// The model's name, as its operator calls it.
    pub model: String,
    /// Tells two sets of weights apart without saying anything about them: material prepared under
    /// one generation is of no use under another.
    pub generation: [u8; 16],
    /// Which encoder it is.
    pub family: Family,
    /// What stands on top of the encoder, with the names of the labels.
    pub head: Head,
    /// Entries of the vocabulary.
    pub vocab: u32,
    /// Token types: two or more can tell the texts of a pair apart; none are not looked at.
    pub types: u32,
    /// The padded lengths on offer, ascending; the last is the largest number of tokens.
    pub buckets: Vec<u32>,
    /// How the plan is compiled.
    pub scheme: Scheme,
    /// What the client learns.
    pub reveal: Reveal,
    /// The tokenizer's hash and length.
    pub tokenizer: ([u8; 32], u32),
    /// Bytes that the server keeps for one client.
    pub max_stored: u64,
    /// Seconds that the server waits for the next request.
    pub idle_seconds: u32,
}

impl Card {
    /// The largest number of tokens.
    pub fn max_tokens(&self) -> usize {
        self.buckets.last().map_or(0, |b| *b as usize)
    }

    /// The smallest padded length on offer for a number of tokens.
    pub fn bucket(&self, tokens: usize) -> Option<usize> {
        let fits = |b: &&u32| **b as usize >= tokens;
        self.buckets.iter().find(fits).map(|b| *b as usize)
    }

    fn check(&self) -> Result<(), ServiceError> {
        check_name("model name", &self.model)?;
        if let Some(labels) = self.head.labels() {
            if labels.is_empty() || labels.len() > 4096 {
                return nonsense(format!("a card with {} labels", labels.len()));
            }
            for label in labels {
                check_name("label", label)?;
            }
        }
        let ascending = self.buckets.windows(2).all(|w| w[0] < w[1]);
        let lengths = self.buckets.len();
        if lengths == 0 || lengths > MAX_BUCKETS || !ascending || self.buckets[0] == 0 {
            return nonsense(format!("a card with {lengths} lengths that do not ascend"));
        }
        if self.max_tokens() > 512 || self.vocab == 0 || self.vocab > 1 << 20 {
            return nonsense(format!(
                "a card with {} tokens and a vocabulary of {}",
                self.max_tokens(),
                self.vocab
            ));
        }
        if self.tokenizer.1 as usize > MAX_TOKENIZER {
            return nonsense(format!(
                "a card with a tokenizer of {} bytes",
                self.tokenizer.1
            ));
        }
        Ok(())
    }
}

/// Why a server says no.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Refusal {
    /// Another version of the service.
    #[error("it speaks version {0} of the service, this program speaks {ours}", ours = VERSION)]
    Version(u16),
    /// No token, or one that the server does not know.
    #[error("the access token is missing or not known")]
    Token,
    /// All places are taken.
    #[error("all {0} places are taken, try again later")]
    Busy(u32),
    /// The server stops.
    #[error("it is stopping")]
    Stopping,
    /// A length that is not on offer.
    #[error("{asked} tokens are not on offer, at most {limit} are")]
    Tokens {
        /// Asked for.
        asked: u32,
        /// The largest on offer.
        limit: u32,
    },
    /// So many bundles are not prepared together.
    #[error("{asked} bundles of {tokens} tokens are not prepared together, at most {limit} are")]
    Bundles {
        /// Asked for.
        asked: u32,
        /// Of this length.
        tokens: u32,
        /// The most there may be.
        limit: u32,
    },
    /// No room for the bundle.
    #[error(
        "a bundle takes {needed} bytes, and {stored} of the {limit} bytes that it keeps for a \
         client are used"
    )]
    Stored {
        /// Bytes of one more bundle.
        needed: u64,
        /// Bytes that the client has.
        stored: u64,
        /// Bytes that it may have.
        limit: u64,
    },
    /// The server's disk or its share of it is full.
    #[error("its store is full")]
    Full,
    /// The identifier is taken.
    #[error("bundle {0} exists already")]
    Taken(#[serde(with = "name")] BundleId),
    /// Not there: never made, expired, deleted or another client's.
    #[error("bundle {0} is not known")]
    Unknown(#[serde(with = "name")] BundleId),
    /// Used before.
    #[error("bundle {0} is spent")]
    Spent(#[serde(with = "name")] BundleId),
    /// Made for another plan or other weights.
    #[error("bundle {0} was prepared for another model or plan than the one that is served now")]
    OtherProgram(#[serde(with = "name")] BundleId),
    /// Something failed on the server, which its log names.
    #[error("it failed ({0})")]
    Failed(String),
    /// The weights are encoded for as many lengths as may be, and all are in use.
    #[error("inputs of {0} other lengths are being worked on, try again later")]
    Lengths(u32),
    /// What it keeps bundles in cannot be used now.
    #[error("its store of bundles cannot be reached, try again later")]
    Store,
    /// This replica has other work.
    #[error(
        "this replica does not {0}; others of the same service do, at an address that its operator \
         can tell"
    )]
    Role(Work),
}

/// What replicas of a server can share among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// The offline phase: heavy.
    Prepare,
    /// The online phase: light, and somebody waits for it.
    Infer,
}

impl Work {
    /// All of it.
    pub const ALL: [Self; 2] = [Self::Prepare, Self::Infer];
}

impl std::fmt::Display for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Prepare => "prepare",
            Self::Infer => "infer",
        })
    }
}

impl std::str::FromStr for Work {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let work = Self::ALL.into_iter().find(|work| work.to_string() == name);
        work.ok_or_else(|| format!("{name:?} is not prepare or infer"))
    }
}

impl Refusal {
    /// Whether the same request may succeed a little later.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Busy(_) | Self::Stopping | Self::Lengths(_) | Self::Store
        )
    }

    /// Whether a bundle is of no use any more.
    pub fn is_about_a_bundle(&self) -> bool {
        matches!(
            self,
            Self::Unknown(_) | Self::Spent(_) | Self::OtherProgram(_) | Self::Taken(_)
        )
    }

    fn check(&self) -> Result<(), ServiceError> {
        match self {
            Self::Failed(reason) => check_name("reason", reason),
            _ => Ok(()),
        }
    }
}

/// How a server receives a client.
#[derive(Serialize, Deserialize)]
pub enum Reception {
    /// Welcome.
    Card(Box<Card>),
    /// Not now, or not you.
    Refused(Refusal),
}

impl Reception {
    /// Sends it.
    ///
    /// # Errors
    /// If the channel fails.
    pub fn send(&self, channel: &mut Channel) -> Result<(), ServiceError> {
        channel.send_value(RECEPTION, self)?;
        Ok(channel.flush()?)
    }

    /// Receives the card.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] with the server's reason, [`ServiceError::Nonsense`] for a card
    /// beyond all bounds.
    pub fn receive(channel: &mut Channel) -> Result<Card, ServiceError> {
        match channel.recv_value(RECEPTION, MAX_RECEPTION)? {
            Self::Card(card) => card.check().map(|()| *card),
            Self::Refused(refusal) => Err(refused(refusal)),
        }
    }
}

/// The name of a bundle of a batch, given that of the first one.
pub fn bundle_of(first: BundleId, index: usize) -> BundleId {
    if index == 0 {
        return first;
    }
    let mut hasher = blake3::Hasher::new_derive_key("primer 2026 bundle of a batch");
    hasher.update(first.as_bytes());
    hasher.update(&(index as u64).to_le_bytes());
    let mut id = [0; 16];
    hasher.finalize_xof().fill(&mut id);
    BundleId::from_bytes(id)
}

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The tokenizer's files.
    Tokenizer,
    /// The offline phase, of some bundles together.
    Prepare {
        /// The name of the first bundle to be; [`bundle_of`] names the others.
        #[serde(with = "name")]
        id: BundleId,
        /// The padded length.
        tokens: u32,
        /// How many bundles: one that the recipe would choose.
        bundles: u32,
    },
    /// The online phase with a bundle.
    Infer {
        /// The bundle.
        #[serde(with = "name")]
        id: BundleId,
        /// The program that the client prepared it for.
        fingerprint: [u8; 32],
    },
    /// Names of this client's bundles.
    List,
    /// A bundle is not needed any more.
    Forget(#[serde(with = "name")] BundleId),
    /// The end.
    Bye,
}

impl Request {
    /// Sends it.
    ///
    /// # Errors
    /// If the channel fails.
    pub fn send(self, channel: &mut Channel) -> Result<(), ServiceError> {
        channel.send_value(REQUEST, &self)?;
        Ok(channel.flush()?)
    }

    /// Receives one.
    ///
    /// # Errors
    /// If there is none.
    pub fn receive(channel: &mut Channel) -> Result<Self, ServiceError> {
        Ok(channel.recv_value(REQUEST, MAX_REQUEST)?)
    }
}

/// One of a client's bundles on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its name.
    #[serde(with = "name")]
    pub id: BundleId,
    /// Seconds since it was made.
    pub age: u32,
}

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The offline phase begins, with a handshake of the protocol if `fresh`.
    Go {
        /// Whether the connection has no session for this length yet.
        fresh: bool,
    },
    /// The server's half of a bundle is on its disk.
    Committed,
    /// The server has its half and waits for the client to spend its own.
    Ready,
    /// The server has spent its half: the online phase begins.
    Agreed,
    /// Bundles of this client.
    Listing(Vec<Held>),
    /// Done.
    Done,
    /// No.
    Refused(Refusal),
}

impl Reply {
    /// Sends it.
    ///
    /// # Errors
    /// If the channel fails.
    pub fn send(&self, channel: &mut Channel) -> Result<(), ServiceError> {
        channel.send_value(REPLY, self)?;
        Ok(channel.flush()?)
    }

    /// Receives one that is not a refusal.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] with the server's reason.
    pub fn receive(channel: &mut Channel) -> Result<Self, ServiceError> {
        match channel.recv_value(REPLY, MAX_REPLY)? {
            Self::Refused(refusal) => Err(refused(refusal)),
            Self::Listing(list) if list.len() > MAX_LISTING => {
                nonsense(format!("a list of {} bundles", list.len()))
            }
            reply => Ok(reply),
        }
    }

    /// An error for a reply out of place.
    pub fn out_of_place<T>(&self) -> Result<T, ServiceError> {
        let name = match self {
            Self::Go { .. } => "go",
            Self::Committed => "committed",
            Self::Ready => "ready",
            Self::Agreed => "agreed",
            Self::Listing(_) => "a list",
            Self::Done => "done",
            Self::Refused(_) => "a refusal",
        };
        nonsense(format!("{name:?} out of place"))
    }
}

/// Tells the server that the client's half is spent, or that there is none.
///
/// # Errors
/// If the channel fails.
pub fn send_spent(channel: &mut Channel, spent: bool) -> Result<(), ServiceError> {
    channel.send(SPENT, &[u8::from(spent)])?;
    Ok(channel.flush()?)
}

/// Waits until the client's half is spent; tells whether it is.
///
/// # Errors
/// If the client says something else.
pub fn receive_spent(channel: &mut Channel) -> Result<bool, ServiceError> {
    let mut spent = [0];
    channel.recv_exact(SPENT, &mut spent)?;
    match spent {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => nonsense(format!("{other} where only yes or no makes sense")),
    }
}

/// The files of a tokenizer, as Hugging Face writes them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenizerFiles {
    /// `tokenizer.json`, or `vocab.txt`.
    pub main: Vec<u8>,
    /// Whether `main` is `tokenizer.json`.
    pub json: bool,
    /// `tokenizer_config.json`.
    pub config: Option<Vec<u8>>,
}

impl TokenizerFiles {
    /// One string of bytes, to be hashed, sent and kept.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(&self.texts()).expect("texts are JSON")
    }

    fn texts(&self) -> (String, bool, Option<String>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (
            text(&self.main),
            self.json,
            self.config.as_deref().map(text),
        )
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// [`ServiceError::Nonsense`] if it is something else.
    pub fn decode(bytes: &[u8]) -> Result<Self, ServiceError> {
        let (main, json, config): (String, bool, Option<String>) = serde_json::from_slice(bytes)
            .map_err(|error| ServiceError::Nonsense {
                what: format!("a tokenizer that cannot be read ({error})"),
            })?;
        Ok(Self {
            main: main.into_bytes(),
            json,
            config: config.map(String::into_bytes),
        })
    }
}

/// Sends an encoded tokenizer.
///
/// # Errors
/// If the channel fails.
pub fn send_tokenizer(channel: &mut Channel, encoded: &[u8]) -> Result<(), ServiceError> {
    channel.send(TOKENIZER, encoded)?;
    Ok(channel.flush()?)
}

/// Receives the encoded tokenizer that a card announced.
///
/// # Errors
/// [`ServiceError::Nonsense`] if it is another one.
pub fn receive_tokenizer(channel: &mut Channel, card: &Card) -> Result<Vec<u8>, ServiceError> {
    let (hash, length) = card.tokenizer;
    let mut bytes = vec![0; length as usize];
    channel.recv_exact(TOKENIZER, &mut bytes)?;
    if *blake3::hash(&bytes).as_bytes() != hash {
        return nonsense("a tokenizer that its card does not announce".into());
    }
    Ok(bytes)
}

fn refused(refusal: Refusal) -> ServiceError {
    match refusal.check() {
        Ok(()) => ServiceError::Refused(refusal),
        Err(error) => error,
    }
}

fn nonsense<T>(what: String) -> Result<T, ServiceError> {
    Err(ServiceError::Nonsense { what })
}

fn check_name(what: &str, name: &str) -> Result<(), ServiceError> {
    if name.len() > MAX_NAME || name.chars().any(char::is_control) {
        return nonsense(format!("a {what} that is too long or not printable"));
    }
    Ok(())
}

/// A text that passes [`check_name`], as near to the given one as may be.
pub(crate) fn printable(text: &str) -> String {
    let mut name: String = text.chars().filter(|c| !c.is_control()).collect();
    while name.len() > MAX_NAME {
        name.pop();
    }
    name
}

/// The name of a bundle on the wire: its sixteen bytes.
mod name {
    use super::BundleId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(id: &BundleId, out: S) -> Result<S::Ok, S::Error> {
        id.as_bytes().serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<BundleId, D::Error> {
        <[u8; 16]>::deserialize(input).map(BundleId::from_bytes)
    }
}

/// Receives one message whose kind is the first byte and whose payload is the rest, as the peer's
/// bytes would be: for fuzzing. Tells whether it was accepted.
#[doc(hidden)]
pub fn decode_any(bytes: &[u8]) -> bool {
    let Some((&kind, payload)) = bytes.split_first() else {
        return false;
    };
    let options = primer_net::Options {
        capacity: payload.len() + 64,
        ..primer_net::Options::default()
    };
    let (mut peer, mut channel) = Channel::memory_pair(&options);
    let kinds = [GREETING, RECEPTION, REQUEST, REPLY, SPENT];
    let kind = kinds[usize::from(kind) % kinds.len()];
    if peer
        .send(kind, payload)
        .and_then(|()| peer.flush())
        .is_err()
    {
        return false;
    }
    drop(peer);
    match kind {
        GREETING => Greeting::receive(&mut channel).is_ok(),
        RECEPTION => Reception::receive(&mut channel).is_ok(),
        REQUEST => Request::receive(&mut channel).is_ok(),
        REPLY => Reply::receive(&mut channel).is_ok(),
        _ => receive_spent(&mut channel).is_ok(),
    }
}

#[cfg(test)]
mod tests;

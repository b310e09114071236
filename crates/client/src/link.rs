//! One connection of a client: the greeting, the tokenizer, the hint, prepare and infer, each in
//! the service's order.

mod hint;

use super::dial::Dial;
use super::hangup::ShutDown;
use super::{ClientOptions, Event, HangUp};
use primer_engine::client::{self, Answer, Bundle};
use primer_engine::session::{ClientSession, Nonce};
use primer_engine::{Program, cost};
use primer_hint::published::Published;
use primer_ring::prg::Prg;
use primer_service::message::{self, Card, Greeting, HeldBundle, Reception, Reply, Request};
use primer_service::{BundleId, ServiceError, VERSION, random};
use primer_store::{Bounds, BundleStore, Meta, Spent, unix_now};
use primer_text::Input;
use primer_wire::clock::now as clock;
use primer_wire::peer::Agreed;
use primer_wire::{Channel, PhaseBytes};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// The most that a client stores on a server's word for the bundles of one preparation. (BERT-base
/// with 30 tokens takes 0.16 GB a bundle.)
const MAX_STORED: u64 = 256 << 30;

/// A connection that was welcomed.
pub(crate) struct Link {
    channel: Channel,
    /// What a hang-up breaks.
    line: Arc<dyn ShutDown>,
    /// As it was dialled.
    address: String,
    pub(crate) card: Card,
    /// The protocol's session and its length.
    session: Option<(usize, ClientSession)>,
    /// How many threads prepare.
    pub(crate) threads: usize,
}

/// Joins what a stored bundle needs to be used: the plan, and the server's address. Public, and
/// known to both.
pub(crate) fn attachment(address: &str, plan: &[u8]) -> Vec<u8> {
    [address.as_bytes(), b"\n", plan].concat()
}

/// Reads an [`attachment`].
pub(crate) fn read_attachment(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|b| *b == b'\n')?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

/// What an offline phase cost.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) ids: Vec<BundleId>,
    pub(crate) seconds: f64,
    pub(crate) bytes: PhaseBytes,
}

impl Link {
    /// Connects to a server, greets, and receives the card.
    pub(crate) fn open(
        address: &str,
        options: &ClientOptions,
        dial: &mut dyn Dial,
        pseudonym: &[u8; 32],
    ) -> Result<Self, ServiceError> {
        let mut dialled = dial.dial(address, &options.hang_up)?;
        let greeting = Greeting {
            version: VERSION,
            pseudonym: *pseudonym,
            token: options.token.clone(),
        };
        let received = (greeting.send(&mut dialled.channel))
            .and_then(|()| Reception::receive(&mut dialled.channel));
        let card = received.map_err(|error| {
            let error = dial.explained(address, error);
            error.before_answer(address)
        })?;
        dial.greeted(address)?;
        Ok(Self {
            channel: dialled.channel,
            line: dialled.line,
            address: address.to_owned(),
            card,
            session: None,
            threads: 1,
        })
    }

    /// Has a hang-up break this connection again, after another one.
    pub(crate) fn watched_by(&self, hang_up: &HangUp) {
        hang_up.back_to(&self.line);
    }

    /// Asks for the encoded tokenizer of the card.
    pub(crate) fn tokenizer(&mut self) -> Result<Vec<u8>, ServiceError> {
        let sent = Request::Tokenizer.send(&mut self.channel);
        sent.and_then(|()| message::receive_tokenizer(&mut self.channel, &self.card))
            .map_err(|error| error.before_answer(&self.address))
    }

    /// Asks for something whose answer begins it: if the connection breaks here, nothing is lost.
    fn request(&mut self, request: &Request) -> Result<Reply, ServiceError> {
        let sent = request.send(&mut self.channel);
        sent.and_then(|()| Reply::receive(&mut self.channel))
            .map_err(|error| error.before_answer(&self.address))
    }

    /// Runs one offline phase, of some bundles together; their halves are in the store when this
    /// returns.
    pub(crate) fn prepare(
        &mut self,
        (tokens, bundles): (usize, usize),
        hint: Arc<Published>,
        place: (&dyn BundleStore, &str, &[u8; 32], Duration),
        observer: &mut dyn FnMut(Event<'_>),
    ) -> Result<Prepared, ServiceError> {
        let (store, address, peer, expiry) = place;
        let first = BundleId::from_bytes(random()?);
        let before = self.channel.meter().report();
        let started = clock();
        let _phase = self.channel.phase("offline");
        let opened = matches!(&self.session, Some((length, _)) if *length == tokens);
        let nonce: Nonce = random()?;
        let request = Request::Prepare {
            id: first,
            tokens: tokens as u32,
            bundles: bundles as u32,
            session: (!opened).then_some(nonce),
        };
        match self.request(&request)? {
            Reply::Go => {}
            other => return other.out_of_place(),
        }
        if !opened {
            let channel = &mut self.channel;
            let session = ClientSession::open(channel, tokens, &nonce, hint, Prg::from_os())?;
            self.session = Some((tokens, session));
        }
        let (_, session) = self.session.as_mut().expect("just opened, or found above");
        session.set_threads(self.threads);
        let program = session.program();
        check_program(program, &self.card)?;
        let takes = cost::stored(program).client.saturating_mul(bundles as u64);
        if takes > MAX_STORED {
            let what = format!("bundles that take {takes} bytes, the limit is {MAX_STORED}");
            return Err(ServiceError::Nonsense { what });
        }
        // Before anything is made: a disk that fills up on the way loses what both have done.
        let reserved = store.reserve(peer, takes, Bounds::NONE);
        let _reserved = reserved.map_err(store_error)?;
        let now = unix_now();
        let meta = |id| Meta {
            id,
            peer: *peer,
            program: *program.fingerprint(),
            tokens: tokens as u32,
            created: now,
            expires: now + expiry.as_secs(),
            attachment: attachment(address, &program.plan().encode()),
        };
        let expected = cost::preparation(program, bundles)?;
        observer(Event::Offline {
            tokens,
            bundles,
            meter: self.channel.meter(),
            expected: expected.offline_up + expected.offline_down,
        });
        let ids: Vec<BundleId> = (0..bundles)
            .map(|index| message::bundle_of(first, index))
            .collect();
        let drafts = ids.iter().map(|id| store.draft(meta(*id)));
        let mut drafts: Vec<_> = drafts.collect::<Result<_, _>>().map_err(store_error)?;
        let mut sinks: Vec<&mut (dyn Write + Send)> = Vec::with_capacity(bundles);
        sinks.extend(drafts.iter_mut().map(|d| d as &mut (dyn Write + Send)));
        session.prepare_together(&mut self.channel, &mut sinks)?;
        match Reply::receive(&mut self.channel)? {
            Reply::Committed => {}
            other => return other.out_of_place(),
        }
        for (index, draft) in drafts.into_iter().enumerate() {
            if let Err(error) = draft.commit() {
                self.release(&ids[index..]);
                return Err(store_error(error));
            }
        }
        let bytes = PhaseBytes::counted_by_client(&self.channel.meter().report().since(&before));
        let seconds = (clock() - started).as_secs_f64();
        observer(Event::Prepared {
            tokens,
            bundles,
            seconds,
        });
        Ok(Prepared {
            ids,
            seconds,
            bytes,
        })
    }

    /// Returns the program of the last session, if there was one.
    pub(crate) fn program(&self) -> Option<&Program> {
        self.session.as_ref().map(|(_, session)| session.program())
    }

    /// Asks whether the server has its half of a bundle and is willing.
    pub(crate) fn ask(&mut self, id: BundleId, program: [u8; 32]) -> Result<(), ServiceError> {
        let _phase = self.channel.phase("online");
        let request = Request::Infer {
            id,
            fingerprint: program,
        };
        match self.request(&request)? {
            Reply::Ready => Ok(()),
            other => other.out_of_place(),
        }
    }

    /// Withdraws after [`Self::ask`].
    pub(crate) fn withdraw(&mut self) -> Result<(), ServiceError> {
        message::send_spent(&mut self.channel, false)
            .map_err(|error| error.before_answer(&self.address))
    }

    /// Runs the online phase, after [`Self::ask`] and after the client's half was spent.
    pub(crate) fn infer(
        &mut self,
        program: &Program,
        spent: Spent,
        input: &Input,
        bytes: &mut PhaseBytes,
    ) -> Result<Answer, ServiceError> {
        let before = self.channel.meter().report();
        let _phase = self.channel.phase("online");
        message::send_spent(&mut self.channel, true)?;
        match Reply::receive(&mut self.channel)? {
            Reply::Agreed => {}
            other => return other.out_of_place(),
        }
        let answer = client::infer(&mut self.channel, program, Bundle::new(spent), input)?;
        *bytes += PhaseBytes::counted_by_client(&self.channel.meter().report().since(&before));
        Ok(answer)
    }

    /// Lists what the server holds for this client.
    pub(crate) fn list(&mut self) -> Result<Vec<HeldBundle>, ServiceError> {
        match self.request(&Request::List)? {
            Reply::Listing(list) => Ok(list),
            other => other.out_of_place(),
        }
    }

    /// Asks the server to forget a bundle.
    pub(crate) fn forget(&mut self, id: BundleId) -> Result<(), ServiceError> {
        match self.request(&Request::Forget(id))? {
            Reply::Done => Ok(()),
            other => other.out_of_place(),
        }
    }

    /// Has the server forget bundles that it holds the only halves of, as far as it listens; they
    /// would lie there until they expire.
    fn release(&mut self, ids: &[BundleId]) {
        let mut ids = ids.iter();
        while ids.next().is_some_and(|id| self.forget(*id).is_ok()) {}
    }

    /// Returns what TLS agreed on.
    pub(crate) fn agreed(&self) -> Option<&Agreed> {
        self.channel.agreed()
    }

    /// Leaves in good order.
    pub(crate) fn bye(mut self) {
        let _ = Request::Bye.send(&mut self.channel);
    }
}

/// Checks that the plan is of the model that the card describes.
pub(crate) fn check_program(program: &Program, card: &Card) -> Result<(), ServiceError> {
    let shape = &program.plan().graph().shape;
    let (vocab, types) = (shape.vocab as u32, shape.types as u32);
    let other = shape.head != card.head || shape.family != card.family;
    let other = other || vocab != card.vocab || types != card.types;
    // What it says to those who want to know is what its plan says.
    let tokens = program.plan().graph().tokens;
    let bits = card.bits_at(tokens).map(u64::from);
    let other = other || bits.is_some_and(|bits| bits != program.answer_bits());
    if other || program.reveal() != card.reveal {
        let what = "a plan that its card does not describe".to_owned();
        return Err(ServiceError::Nonsense { what });
    }
    Ok(())
}

pub(crate) fn store_error(error: primer_store::StoreError) -> ServiceError {
    ServiceError::Store(error)
}

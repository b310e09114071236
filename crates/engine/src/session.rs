//! The handshake and the keys of a session.
//!
//! ```text
//! client                                   server
//! hello: version, parameters,     ------>
//!        scheme, tokens, a nonce
//!                                 <------  welcome: the plan, what is revealed, the program's
//!                                          fingerprint, its hint and a nonce, or why not
//! keys that the program's         ------>
//! products use
//! base transfers, both directions <----->
//! ```
//!
//! Everything that follows is determined by the plan, so no later message announces a size. The
//! greeting names the parameters of products and hints, and the server compares them with its own;
//! the number of a scheme in it is always [`SCHEME`]. The constants of base transfers are drawn
//! from both parties' nonces.

use crate::error::{ProtocolError, Result};
use crate::means::{self, TRANSFERS};
use crate::program::Program;
pub use crate::program::VERSION;
use crate::renewed::{ClientTransfers, ServerTransfers};
use crate::reveal::Reveal;
use primer_hint::published::{Hash, Published};
use primer_ot::{BaseOt, CotReceiver, CotSender, Delta, Nonce, Setup};
use primer_plan::graph::ValueId;
use primer_plan::plan::{MAX_ENCODED, Plan};
use primer_ring::matrix::Matrix;
use primer_ring::prg::Prg;
use primer_rlwe::params::FINGERPRINT_BYTES as PARAMETERS_BYTES;
use primer_rlwe::product::{ClientKeys, ServerKeys};
use primer_wire::Channel;
use primer_wire::kind::protocol::{HELLO, PUBLIC_KEY, WELCOME};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const MAX_HELLO: usize = 96;

/// What greetings have where a scheme was named when there were several.
pub const SCHEME: u8 = 4;

/// The version comes first and alone, so that it can be read before what follows.
#[derive(Serialize, Deserialize)]
struct Hello {
    version: u16,
    parameters: [u8; PARAMETERS_BYTES],
    /// Always [`SCHEME`].
    scheme: u8,
    tokens: u32,
    /// The client's part of the constants of base transfers.
    nonce: Nonce,
}

#[derive(Serialize, Deserialize)]
enum Welcome {
    Program {
        plan: Vec<u8>,
        reveal: Reveal,
        fingerprint: [u8; 32],
        /// The root of the hint that goes with it; one without a hint is of no use.
        hint: Option<Hash>,
        /// The server's part of the constants of base transfers.
        nonce: Nonce,
    },
    Version(u16),
    Refused(String),
}

/// Tells the client why not. A client that is gone already does not change the reason.
fn decline(channel: &mut Channel, why: &Welcome) {
    let _ = channel
        .send_value(WELCOME, why)
        .and_then(|()| channel.flush());
}

/// Refuses a session, and tells the client why.
fn refuse(channel: &mut Channel, reason: String) -> ProtocolError {
    decline(channel, &Welcome::Refused(reason.clone()));
    ProtocolError::Refused(reason)
}

/// The terms of both directions' base transfers: each with the nonce of the party that receives.
struct Terms {
    to_client: Setup,
    to_server: Setup,
}

impl Terms {
    fn new(client: &Nonce, server: &Nonce) -> Self {
        let base = BaseOt::default();
        Self {
            to_client: Setup::new(TRANSFERS.to_client, base).with_nonce(*client),
            to_server: Setup::new(TRANSFERS.to_server, base).with_nonce(*server),
        }
    }
}

fn fresh_nonce(rng: &mut Prg) -> Nonce {
    let mut nonce = Nonce::default();
    rng.fill(&mut nonce);
    nonce
}

/// What the client keeps of a session.
pub struct ClientSession {
    pub(crate) program: Program,
    pub(crate) keys: ClientKeys,
    /// What the transfers of bundles are made of.
    pub(crate) roots: ClientTransfers,
    /// The model's hint.
    pub(crate) hint: Arc<Published>,
    pub(crate) threads: usize,
    pub(crate) rng: Prg,
    pub(crate) see: Box<See<'static>>,
    pub(crate) poison: Poison,
}

/// Sees a party's shares: the client's of what goes into each stop, offline or, if it is late,
/// online, and of silent steps; the server's of linear steps and of what it opens.
pub(crate) type See<'a> = dyn FnMut(ValueId, &Matrix<u64>) + Send + 'a;

/// What the server keeps of a session.
pub struct ServerSession {
    pub(crate) program: Program,
    pub(crate) keys: ServerKeys,
    /// What the transfers of bundles are made of.
    pub(crate) roots: ServerTransfers,
    pub(crate) threads: usize,
    pub(crate) rng: Prg,
    pub(crate) poison: Poison,
}

/// A session serves until something fails. Then its keys and transfers are not used again, on
/// either side: the parties may disagree on where they are, and a server that deviates must not
/// learn from more than one failed decryption.
#[derive(Default)]
pub(crate) struct Poison {
    failed: bool,
}

impl Poison {
    /// Begins work; unless it [leaves](Self::leave), it has failed.
    pub(crate) fn enter(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.failed, true) {
            return Err(ProtocolError::Spoiled);
        }
        Ok(())
    }

    /// Ends work that went well.
    pub(crate) fn leave(&mut self) {
        self.failed = false;
    }
}

impl ClientSession {
    /// Opens a session for a padded number of tokens, with the model's hint.
    ///
    /// # Errors
    /// [`ProtocolError::Refused`] and others if the server does not offer that;
    /// [`ProtocolError::OtherHint`] if the hint is not the server's.
    pub fn open(
        channel: &mut Channel,
        tokens: usize,
        hint: Arc<Published>,
        mut rng: Prg,
    ) -> Result<Self> {
        let _phase = channel.phase("setup");
        let nonce = fresh_nonce(&mut rng);
        let hello = Hello {
            version: VERSION,
            parameters: means::parameters(),
            scheme: SCHEME,
            tokens: tokens as u32,
            nonce,
        };
        channel.send_value(HELLO, &hello)?;
        let (plan, reveal, fingerprint, root, their_nonce) =
            match channel.recv_value(WELCOME, MAX_ENCODED + 128)? {
                Welcome::Program {
                    plan,
                    reveal,
                    fingerprint,
                    hint,
                    nonce,
                } => (Plan::decode(&plan)?, reveal, fingerprint, hint, nonce),
                Welcome::Version(theirs) => {
                    return Err(ProtocolError::Version {
                        ours: VERSION,
                        theirs,
                    });
                }
                Welcome::Refused(reason) => return Err(ProtocolError::Refused(printable(&reason))),
            };
        if plan.graph().tokens != tokens {
            return Err(ProtocolError::OtherPlan {
                found: format!("{} tokens", plan.graph().tokens),
                wanted: format!("{tokens} tokens"),
            });
        }
        let identity = *hint.identity();
        if root != Some(identity.root) {
            let found = root.map_or_else(|| "none".to_owned(), |root| short(&root));
            let wanted = short(&identity.root);
            return Err(ProtocolError::OtherHint { found, wanted });
        }
        let program = Program::received(plan, reveal)?.with_hint(&identity)?;
        if *program.fingerprint() != fingerprint {
            return Err(ProtocolError::OtherPlan {
                found: format!("program {}", short(&fingerprint)),
                wanted: format!("program {}", short(program.fingerprint())),
            });
        }
        let keys = ClientKeys::generate(program.key_needs(), &mut rng);
        keys.publish(&mut rng, |bytes| channel.send(PUBLIC_KEY, bytes))?;
        let terms = Terms::new(&nonce, &their_nonce);
        let labels = CotReceiver::setup(terms.to_client, channel, &mut rng)?;
        let delta = Delta::random(&mut rng);
        let transfers = CotSender::setup(terms.to_server, channel, delta, &mut rng)?;
        Ok(Self {
            program,
            keys,
            roots: ClientTransfers { labels, transfers },
            hint,
            threads: 1,
            rng,
            see: Box::new(|_, _| ()),
            poison: Poison::default(),
        })
    }

    /// Returns the program of this session.
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// Lets some threads encrypt, open hints and make the strings of look-ups; one, unless this is
    /// called. Each takes memory of its own.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
        self.keys.set_threads(threads);
        self.roots.set_threads(threads);
    }

    /// Gives the client other coins, so that a test can have it draw the same ones twice.
    #[doc(hidden)]
    pub fn set_coins(&mut self, rng: Prg) {
        self.rng = rng;
    }

    /// Shows the client its own share of what goes into each stop, so that the fixed-point
    /// reference can repeat a run bit for bit. These and the server's messages together are the
    /// text.
    pub fn watch(&mut self, see: impl FnMut(ValueId, &Matrix<u64>) + Send + 'static) {
        self.see = Box::new(see);
    }
}

/// Makes what a peer says about itself fit to be shown: no control characters, and not too long.
fn printable(text: &str) -> String {
    const MOST: usize = 300;
    let plain = text.chars().filter(|c| !c.is_control());
    plain.take(MOST).collect()
}

/// Shortens a fingerprint to what tells two apart.
fn short(fingerprint: &[u8; 32]) -> String {
    fingerprint[..6]
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

impl ServerSession {
    /// Accepts a session. `offer` gives the program for a number of tokens, or says why there is
    /// none.
    ///
    /// # Errors
    /// [`ProtocolError`] if the client asks for something else or its keys are not usable.
    pub fn accept(
        channel: &mut Channel,
        offer: impl FnOnce(usize) -> std::result::Result<Program, String>,
        rng: Prg,
    ) -> Result<Self> {
        let _phase = channel.phase("setup");
        let hello = Self::greeted(channel)?;
        match offer(hello.tokens as usize) {
            Ok(program) => Self::offered(channel, program, hello.nonce, rng),
            Err(reason) => Err(refuse(channel, reason)),
        }
    }

    /// Hears what a client asks for, which is refused at once if it cannot be meant.
    fn greeted(channel: &mut Channel) -> Result<Hello> {
        let hello = channel.recv(HELLO, MAX_HELLO)?;
        let version = match hello.first() {
            // Small numbers take one byte.
            Some(&version) if version < 0x80 => u16::from(version),
            _ => u16::MAX,
        };
        if version != VERSION {
            decline(channel, &Welcome::Version(VERSION));
            return Err(ProtocolError::Version {
                ours: VERSION,
                theirs: version,
            });
        }
        let hello: Hello = match postcard::take_from_bytes(&hello) {
            Ok((hello, [])) => hello,
            _ => return Err(refuse(channel, "the greeting cannot be read".into())),
        };
        if hello.scheme != SCHEME {
            let asked = hello.scheme;
            return Err(refuse(channel, format!("there is no scheme {asked} here")));
        }
        if hello.parameters != means::parameters() {
            return Err(refuse(channel, "the homomorphic parameters differ".into()));
        }
        Ok(hello)
    }

    /// Sends the program and receives what the session needs of the client. Callers bring an
    /// `offer` of their own type; this does not depend on it, so it is compiled here, once, with
    /// the base transfers that it calls, and not in a caller's crate that is not optimised.
    fn offered(
        channel: &mut Channel,
        program: Program,
        client_nonce: Nonce,
        mut rng: Prg,
    ) -> Result<Self> {
        let nonce = fresh_nonce(&mut rng);
        let welcome = Welcome::Program {
            plan: program.plan().encode(),
            reveal: program.reveal(),
            fingerprint: *program.fingerprint(),
            hint: program.hint().map(|identity| identity.root),
            nonce,
        };
        channel.send_value(WELCOME, &welcome)?;
        let keys = ServerKeys::receive(program.key_needs(), |length| {
            // Up to tens of megabytes, set aside once the client has begun to send them.
            let mut stream = channel.recv_stream(PUBLIC_KEY, length)?;
            let mut bytes = vec![0; length as usize];
            stream.get(&mut bytes)?;
            Ok::<_, ProtocolError>(bytes)
        })?;
        let delta = Delta::random(&mut rng);
        let terms = Terms::new(&client_nonce, &nonce);
        let labels = CotSender::setup(terms.to_client, channel, delta, &mut rng)?;
        let transfers = CotReceiver::setup(terms.to_server, channel, &mut rng)?;
        Ok(Self {
            program,
            keys,
            roots: ServerTransfers { labels, transfers },
            threads: 1,
            rng,
            poison: Poison::default(),
        })
    }

    /// Returns the program of this session.
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// Lets some threads compute products and make the strings of look-ups; one, unless this is
    /// called. Each takes memory of its own.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
        self.keys.set_threads(threads);
        self.roots.set_threads(threads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(value: &impl Serialize) -> String {
        let bytes = postcard::to_allocvec(value).unwrap();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Byte for byte: a change here needs another [`VERSION`].
    #[test]
    fn greetings_have_these_bytes() {
        let hello = Hello {
            version: 12,
            parameters: std::array::from_fn(|i| i as u8),
            scheme: SCHEME,
            tokens: 300,
            nonce: [0xab; 32],
        };
        let nonce = "ab".repeat(32);
        let parameters: String = (0..PARAMETERS_BYTES).map(|i| format!("{i:02x}")).collect();
        assert_eq!(hex(&hello), format!("0c{parameters}04ac02{nonce}"));
        assert!(postcard::to_allocvec(&hello).unwrap().len() <= MAX_HELLO);
        let welcome = Welcome::Program {
            plan: vec![1, 2, 3],
            reveal: Reveal::Label,
            fingerprint: [0xcd; 32],
            hint: Some([0xef; 32]),
            nonce: [0xab; 32],
        };
        let fingerprint = "cd".repeat(32);
        let hint = "ef".repeat(32);
        assert_eq!(
            hex(&welcome),
            format!("000301020301{fingerprint}01{hint}{nonce}")
        );
        assert_eq!(hex(&Welcome::Version(9)), "0109");
        assert_eq!(hex(&Welcome::Refused("no".into())), "02026e6f");
        assert_eq!(hex(&Reveal::Outputs), "00");
        assert_eq!(VERSION, 12, "the bytes above are those of this version");
    }
}

//! The handshake and the keys of a session.
//!
//! ```text
//! client                                   server
//! hello: version, parameters,     ------>
//!        scheme, tokens, a nonce
//!                                 <------  welcome: the plan, what is revealed, the program's
//!                                          fingerprint and a nonce, or why not
//! keys of each parameter set that ------>
//! the program's products use
//! base transfers, both directions <----->
//! ```
//!
//! Everything that follows is determined by the plan and the scheme, so no later message announces
//! a size. Parameters belong to products, so which ones a session needs is known with its scheme:
//! the greeting names those of the scheme that it asks for, and the server compares them with its
//! own. The constants of base transfers are drawn from both parties' nonces.

use crate::error::{ProtocolError, Result};
use crate::program::Program;
use crate::renewed::{ClientTransfers, ServerTransfers};
use crate::scheme::{Scheme, TRANSFERS};
use primer_engine::Reveal;
use primer_ot::{BaseOt, CotReceiver, CotSender, Delta, Nonce, Setup};
use primer_paper_he::params::FINGERPRINT_BYTES as PARAMETERS_BYTES;
use primer_paper_he::product::{ClientKeys, KeyKind, ServerKeys};
use primer_plan::graph::ValueId;
use primer_plan::plan::{MAX_ENCODED, Plan};
use primer_ring::matrix::Matrix;
use primer_ring::prg::Prg;
use primer_wire::kind::protocol::{GALOIS_KEYS, HELLO, PUBLIC_KEY, WELCOME};
use primer_wire::{Channel, Kind, VERSION};
use serde::{Deserialize, Serialize};

const MAX_HELLO: usize = 96;

/// The version comes first and alone, so that it can be read before what follows.
#[derive(Serialize, Deserialize)]
struct Hello {
    version: u16,
    parameters: [u8; PARAMETERS_BYTES],
    scheme: Scheme,
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

/// Names the message that carries a key.
const fn message(key: KeyKind) -> Kind {
    match key {
        KeyKind::Public => PUBLIC_KEY,
        KeyKind::Rotations => GALOIS_KEYS,
    }
}

/// What the client keeps of a session.
pub struct ClientSession {
    pub(crate) program: Program,
    pub(crate) keys: ClientKeys,
    /// What the transfers of bundles are made of.
    pub(crate) roots: ClientTransfers,
    pub(crate) rng: Prg,
    pub(crate) see: Box<See<'static>>,
    pub(crate) poison: Poison,
}

/// Sees the client's shares of what goes into each stop, offline.
pub(crate) type See<'a> = dyn FnMut(ValueId, &Matrix<u64>) + Send + 'a;

/// What the server keeps of a session.
pub struct ServerSession {
    pub(crate) program: Program,
    pub(crate) keys: ServerKeys,
    /// What the transfers of bundles are made of.
    pub(crate) roots: ServerTransfers,
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
    /// Opens a session for a scheme and a padded number of tokens.
    ///
    /// # Errors
    /// [`ProtocolError::Refused`] and others if the server does not offer that.
    pub fn open(
        channel: &mut Channel,
        scheme: Scheme,
        tokens: usize,
        mut rng: Prg,
    ) -> Result<Self> {
        let _phase = channel.phase("setup");
        let nonce = fresh_nonce(&mut rng);
        let hello = Hello {
            version: VERSION,
            parameters: scheme.recipe().parameters(),
            scheme,
            tokens: tokens as u32,
            nonce,
        };
        channel.send_value(HELLO, &hello)?;
        let (plan, reveal, fingerprint, their_nonce) =
            match channel.recv_value(WELCOME, MAX_ENCODED + 128)? {
                Welcome::Program {
                    plan,
                    reveal,
                    fingerprint,
                    nonce,
                    ..
                } => (
                    Plan::decode_by(&scheme.recipe().form, &plan)?,
                    reveal,
                    fingerprint,
                    nonce,
                ),
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
        let program = Program::received(plan, scheme, reveal)?;
        if *program.fingerprint() != fingerprint {
            return Err(ProtocolError::OtherPlan {
                found: format!("program {}", short(&fingerprint)),
                wanted: format!("program {}", short(program.fingerprint())),
            });
        }
        let keys = ClientKeys::generate(program.key_needs(), &mut rng);
        keys.publish(&mut rng, |kind, bytes| channel.send(message(kind), bytes))?;
        let terms = Terms::new(&nonce, &their_nonce);
        let labels = CotReceiver::setup(terms.to_client, channel, &mut rng)?;
        let delta = Delta::random(&mut rng);
        let transfers = CotSender::setup(terms.to_server, channel, delta, &mut rng)?;
        Ok(Self {
            program,
            keys,
            roots: ClientTransfers { labels, transfers },
            rng,
            see: Box::new(|_, _| ()),
            poison: Poison::default(),
        })
    }

    /// Returns the program of this session.
    pub const fn program(&self) -> &Program {
        &self.program
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
    /// Accepts a session. `offer` gives the program for a scheme and a number of tokens, or says
    /// why there is none.
    ///
    /// # Errors
    /// [`ProtocolError`] if the client asks for something else or its keys are not usable.
    pub fn accept(
        channel: &mut Channel,
        offer: impl FnOnce(Scheme, usize) -> std::result::Result<Program, String>,
        rng: Prg,
    ) -> Result<Self> {
        let _phase = channel.phase("setup");
        let hello = Self::greeted(channel)?;
        match offer(hello.scheme, hello.tokens as usize) {
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
        if hello.parameters != hello.scheme.recipe().parameters() {
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
            nonce,
        };
        channel.send_value(WELCOME, &welcome)?;
        let keys = ServerKeys::receive(program.key_needs(), |kind, length| {
            // Up to tens of megabytes, set aside once the client has begun to send them.
            let mut stream = channel.recv_stream(message(kind), length)?;
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
            rng,
            poison: Poison::default(),
        })
    }

    /// Returns the program of this session.
    pub const fn program(&self) -> &Program {
        &self.program
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(value: &impl Serialize) -> String {
        let bytes = postcard::to_allocvec(value).unwrap();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Compares byte for byte: a change here needs another [`VERSION`].
    #[test]
    fn greetings_have_these_bytes() {
        let hello = Hello {
            version: 13,
            parameters: std::array::from_fn(|i| i as u8),
            scheme: Scheme::Fpc,
            tokens: 300,
            nonce: [0xab; 32],
        };
        let nonce = "ab".repeat(32);
        let parameters: String = (0..PARAMETERS_BYTES).map(|i| format!("{i:02x}")).collect();
        assert_eq!(hex(&hello), format!("0d{parameters}03ac02{nonce}"));
        assert!(postcard::to_allocvec(&hello).unwrap().len() <= MAX_HELLO);
        let welcome = Welcome::Program {
            plan: vec![1, 2, 3],
            reveal: Reveal::Label,
            fingerprint: [0xcd; 32],
            nonce: [0xab; 32],
        };
        let fingerprint = "cd".repeat(32);
        assert_eq!(hex(&welcome), format!("000301020301{fingerprint}{nonce}"));
        assert_eq!(hex(&Welcome::Version(9)), "0109");
        assert_eq!(hex(&Welcome::Refused("no".into())), "02026e6f");
        let schemes = Scheme::ALL.map(|scheme| hex(&scheme));
        assert_eq!(schemes, ["00", "01", "02", "03"]);
        assert_eq!(hex(&Reveal::Outputs), "00");
        assert_eq!(VERSION, 13, "the bytes above are those of this version");
    }
}

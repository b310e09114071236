//! A session: what client and server agree on before they prepare, and the keys they do it with.
//!
//! ```text
//! client                                   server
//! the number of tokens and a      ------>
//! nonce, in a request of the
//! service
//!                                 <------  welcome: the plan, what is revealed, the program's
//!                                          fingerprint, its hint and a nonce
//! keys that the program's         ------>
//! products use
//! base transfers, both directions <----->
//! ```
//!
//! Everything that follows is determined by the plan, so no later message announces a size. The
//! client compiles the plan itself and compares the fingerprint, which stands for the version, the
//! parameters of products and hints, and every message. The constants of base transfers are drawn
//! from both parties' nonces.
//!
//! The request that asks for a session is the service's (`Request::Prepare`); two parties with no
//! service around them, as in measurements and tests, use [`direct`].

pub mod direct;

use crate::error::{ProtocolError, Result};
use crate::program::Program;
use crate::renewed::{ClientTransfers, ServerTransfers};
use crate::reveal::Reveal;
use crate::stop_kinds::TRANSFERS;
use primer_hint::published::{Hash, Published};
pub use primer_ot::Nonce;
use primer_ot::{BaseOt, CotReceiver, CotSender, Delta, Setup};
use primer_plan::graph::ValueId;
use primer_plan::plan::{MAX_ENCODED, Plan};
use primer_ring::matrix::Matrix;
use primer_ring::prg::Prg;
use primer_rlwe::product::{ClientKeys, ServerKeys};
use primer_wire::Channel;
use primer_wire::kind::protocol::{PUBLIC_KEY, WELCOME};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a server says to a client that opens a session.
#[derive(Serialize, Deserialize)]
struct Welcome {
    plan: Vec<u8>,
    reveal: Reveal,
    fingerprint: [u8; 32],
    /// The root of the hint that goes with it.
    hint: Hash,
    /// The server's part of the constants of base transfers.
    nonce: Nonce,
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
    /// Opens a session for a padded number of tokens, with the model's hint, once a server has been
    /// asked for one with a nonce of this client.
    ///
    /// # Errors
    /// [`ProtocolError::OtherHint`] if the hint is not the server's, [`ProtocolError::OtherPlan`]
    /// if what the server offers is not what was asked for, and others.
    pub fn open(
        channel: &mut Channel,
        tokens: usize,
        nonce: &Nonce,
        hint: Arc<Published>,
        mut rng: Prg,
    ) -> Result<Self> {
        let _phase = channel.phase("setup");
        let welcome: Welcome = channel.recv_value(WELCOME, MAX_ENCODED + 128)?;
        let plan = Plan::decode(&welcome.plan)?;
        if plan.graph().tokens != tokens {
            return Err(ProtocolError::OtherPlan {
                found: format!("{} tokens", plan.graph().tokens),
                wanted: format!("{tokens} tokens"),
            });
        }
        let identity = *hint.identity();
        if welcome.hint != identity.root {
            return Err(ProtocolError::OtherHint {
                found: short(&welcome.hint),
                wanted: short(&identity.root),
            });
        }
        let program = Program::received(plan, welcome.reveal)?.with_hint(&identity)?;
        if *program.fingerprint() != welcome.fingerprint {
            return Err(ProtocolError::OtherPlan {
                found: format!("program {}", short(&welcome.fingerprint)),
                wanted: format!("program {}", short(program.fingerprint())),
            });
        }
        let keys = ClientKeys::generate(program.key_needs(), &mut rng);
        keys.publish(&mut rng, |bytes| channel.send(PUBLIC_KEY, bytes))?;
        let terms = Terms::new(nonce, &welcome.nonce);
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

/// Shortens a fingerprint to what tells two apart.
fn short(fingerprint: &[u8; 32]) -> String {
    fingerprint[..6]
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

impl ServerSession {
    /// Accepts a session for a program, which a client has asked for with its nonce: sends the
    /// program and receives what the session needs of the client.
    ///
    /// # Errors
    /// [`ProtocolError`] if the program is not bound to a hint or the client's keys are not usable.
    pub fn accept(
        channel: &mut Channel,
        program: Program,
        client_nonce: &Nonce,
        mut rng: Prg,
    ) -> Result<Self> {
        let _phase = channel.phase("setup");
        let hint = program.hint().ok_or(ProtocolError::HintMissing)?.root;
        let nonce = fresh_nonce(&mut rng);
        let welcome = Welcome {
            plan: program.plan().encode(),
            reveal: program.reveal(),
            fingerprint: *program.fingerprint(),
            hint,
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
        let terms = Terms::new(client_nonce, &nonce);
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

    /// Compares byte for byte: a change here needs another [`primer_wire::VERSION`].
    #[test]
    fn a_welcome_has_these_bytes() {
        let welcome = Welcome {
            plan: vec![1, 2, 3],
            reveal: Reveal::Label,
            fingerprint: [0xcd; 32],
            hint: [0xef; 32],
            nonce: [0xab; 32],
        };
        let [fingerprint, hint, nonce] = ["cd", "ef", "ab"].map(|byte| byte.repeat(32));
        let expected = format!("0301020301{fingerprint}{hint}{nonce}");
        assert_eq!(hex(&welcome), expected);
        assert_eq!(hex(&Reveal::Outputs), "00");
        assert_eq!(
            primer_wire::VERSION,
            13,
            "the bytes above are of this version"
        );
    }
}

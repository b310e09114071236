//! The handshake and the keys of a session.
//!
//! ```text
//! client                                   server
//! hello: version, scheme, tokens  ------>
//!                                 <------  welcome: the plan, or why not
//! public key, rotation keys       ------>
//! base transfers, both directions <----->
//! ```
//!
//! Everything that follows is determined by the plan and the scheme, so no later message announces a size.

use crate::error::{ProtocolError, Result};
use crate::kinds::{GALOIS_KEYS, HELLO, PUBLIC_KEY, WELCOME};
use crate::scheme::{Program, Scheme};
use primer_he::evaluate::Evaluator;
use primer_he::keys::{GaloisKeys, PublicKey, SecretKey};
use primer_net::Channel;
use primer_ot::{BaseOt, CotReceiver, CotSender, Delta};
use primer_plan::plan::{MAX_ENCODED, Plan};
use primer_ring::prg::Prg;
use serde::{Deserialize, Serialize};

/// The version of everything that travels.
pub const VERSION: u16 = 1;
const MAX_HELLO: usize = 64;

#[derive(Serialize, Deserialize)]
struct Hello {
    version: u16,
    scheme: Scheme,
    tokens: u32,
}

#[derive(Serialize, Deserialize)]
enum Welcome {
    Plan(Vec<u8>),
    Version(u16),
    Refused(String),
}

/// Tells the client why not. A client that is gone already does not change the reason.
fn decline(channel: &mut Channel, why: &Welcome) {
    let _ = channel
        .send_value(WELCOME, why)
        .and_then(|()| channel.flush());
}

/// What the client keeps of a session.
pub struct ClientSession {
    pub(crate) program: Program,
    pub(crate) secret: SecretKey,
    /// The client's labels come from these.
    pub(crate) labels: CotReceiver,
    /// The client's requantisations are these.
    pub(crate) transfers: CotSender,
    pub(crate) rng: Prg,
}

/// What the server keeps of a session.
pub struct ServerSession {
    pub(crate) program: Program,
    pub(crate) evaluator: Evaluator,
    pub(crate) labels: CotSender,
    pub(crate) transfers: CotReceiver,
    pub(crate) rng: Prg,
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
        let hello = Hello {
            version: VERSION,
            scheme,
            tokens: tokens as u32,
        };
        channel.send_value(HELLO, &hello)?;
        let plan = match channel.recv_value(WELCOME, MAX_ENCODED + 64)? {
            Welcome::Plan(bytes) => Plan::decode(&bytes)?,
            Welcome::Version(theirs) => {
                return Err(ProtocolError::Version {
                    ours: VERSION,
                    theirs,
                });
            }
            Welcome::Refused(reason) => return Err(ProtocolError::Refused(reason)),
        };
        if plan.graph().tokens != tokens {
            return Err(ProtocolError::OtherPlan {
                found: format!("{} tokens", plan.graph().tokens),
                wanted: format!("{tokens} tokens"),
            });
        }
        let program = Program::new(plan, scheme)?;
        let secret = SecretKey::generate(program.params(), &mut rng);
        let public = PublicKey::generate(&secret, &mut rng);
        let galois = GaloisKeys::generate(&secret, program.rotations()?, &mut rng);
        channel.send(PUBLIC_KEY, &public.to_bytes())?;
        channel.send(GALOIS_KEYS, &galois.to_bytes())?;
        let labels = CotReceiver::setup(channel, BaseOt::default(), &mut rng)?;
        let delta = Delta::random(&mut rng);
        let transfers = CotSender::setup(channel, BaseOt::default(), delta, &mut rng)?;
        Ok(Self {
            program,
            secret,
            labels,
            transfers,
            rng,
        })
    }

    /// The program of this session.
    pub const fn program(&self) -> &Program {
        &self.program
    }
}

impl ServerSession {
    /// Accepts a session. `plan` gives the plan for a number of tokens, or says why there is none.
    ///
    /// # Errors
    /// [`ProtocolError`] if the client asks for something else or its keys are not usable.
    pub fn accept(
        channel: &mut Channel,
        plan: impl FnOnce(Scheme, usize) -> std::result::Result<Plan, String>,
        mut rng: Prg,
    ) -> Result<Self> {
        let _phase = channel.phase("setup");
        let hello: Hello = channel.recv_value(HELLO, MAX_HELLO)?;
        if hello.version != VERSION {
            decline(channel, &Welcome::Version(VERSION));
            return Err(ProtocolError::Version {
                ours: VERSION,
                theirs: hello.version,
            });
        }
        let plan = match plan(hello.scheme, hello.tokens as usize) {
            Ok(plan) => plan,
            Err(reason) => {
                decline(channel, &Welcome::Refused(reason.clone()));
                return Err(ProtocolError::Refused(reason));
            }
        };
        channel.send_value(WELCOME, &Welcome::Plan(plan.encode()))?;
        let program = Program::new(plan, hello.scheme)?;
        let params = program.params();
        let mut bytes = vec![0; PublicKey::wire_len(params)];
        channel.recv_exact(PUBLIC_KEY, &mut bytes)?;
        let public = PublicKey::from_bytes(params, &bytes)?;
        // A key for a rotation and for its opposite are the same at half a row, so the exact number
        // is that of distinct ones.
        let limit = GaloisKeys::wire_len(params, program.rotations()?.len());
        let galois = GaloisKeys::from_bytes(params, &channel.recv(GALOIS_KEYS, limit)?)?;
        let evaluator = Evaluator::new(public, galois)?;
        let delta = Delta::random(&mut rng);
        let labels = CotSender::setup(channel, BaseOt::default(), delta, &mut rng)?;
        let transfers = CotReceiver::setup(channel, BaseOt::default(), &mut rng)?;
        Ok(Self {
            program,
            evaluator,
            labels,
            transfers,
            rng,
        })
    }

    /// The program of this session.
    pub const fn program(&self) -> &Program {
        &self.program
    }
}

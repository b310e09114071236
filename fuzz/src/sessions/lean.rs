//! The product's protocol.

use super::{Result, TOKENS};
use primer_engine::hints::Build;
use primer_engine::server::ServerModel;
use primer_engine::session::{ClientSession, ServerSession, direct};
use primer_engine::{Program, Reveal, client, server};
use primer_hint::published::Published;
use primer_hint::server::HintSecret;
use primer_model::quantise::IntModel;
use primer_ring::prg::Prg;
use primer_wire::Channel;
use std::io::Cursor;
use std::sync::Arc;

/// A model with its hint.
pub(super) struct Case {
    model: ServerModel,
    hint: Arc<Published>,
}

impl Case {
    pub(super) fn new(model: IntModel, reveal: Reveal) -> Self {
        let secret = HintSecret::new([6; 32]);
        let build = Build::new(&model, &secret).expect("the seed has weights");
        let (hint, multipliers) = build.in_memory(|_, _| ()).expect("they may have a hint");
        let program = Program::of(&model, TOKENS, reveal).expect("a small plan");
        let program = program
            .with_hint(hint.identity())
            .expect("the model's hint");
        let model = ServerModel::new(Arc::new(model), &program, Some(Arc::new(multipliers)));
        Self {
            model: model.expect("the plan's own model"),
            hint: Arc::new(hint),
        }
    }

    fn session(&self, channel: &mut Channel) -> primer_engine::Result<ClientSession> {
        direct::open(channel, TOKENS, Arc::clone(&self.hint), Prg::new(&[1; 16]))
    }

    fn accepted(&self, channel: &mut Channel) -> primer_engine::Result<ServerSession> {
        let offer = |tokens| match tokens == TOKENS {
            true => Ok(self.model.program().clone()),
            false => Err(primer_engine::ProtocolError::HintMissing),
        };
        direct::accept(channel, offer, Prg::new(&[2; 16]))
    }
}

impl super::Case for Case {
    fn open(&self, channel: &mut Channel) -> Result {
        self.session(channel)?;
        Ok(())
    }

    fn accept(&self, channel: &mut Channel) -> Result {
        self.accepted(channel)?;
        Ok(())
    }

    fn client(&self, channel: &mut Channel, prepared: &mut dyn FnMut(&[u8])) -> Result {
        let mut session = self.session(channel)?;
        let mut bundle = Vec::new();
        session.prepare(channel, &mut bundle)?;
        channel.flush()?;
        prepared(&bundle);
        self.client_online(channel, &bundle)
    }

    fn server(&self, channel: &mut Channel, prepared: &mut dyn FnMut(&[u8])) -> Result {
        let mut session = self.accepted(channel)?;
        let mut bundle = Vec::new();
        session.prepare(channel, &self.model, &mut bundle)?;
        prepared(&bundle);
        self.server_online(channel, &bundle)
    }

    fn client_online(&self, channel: &mut Channel, bundle: &[u8]) -> Result {
        let bundle = client::Bundle::new(Cursor::new(bundle.to_vec()));
        client::infer(channel, self.model.program(), bundle, &super::input())?;
        Ok(())
    }

    fn server_online(&self, channel: &mut Channel, bundle: &[u8]) -> Result {
        let bundle = server::Bundle::new(Cursor::new(bundle.to_vec()));
        server::infer(channel, &self.model, bundle)?;
        Ok(())
    }
}

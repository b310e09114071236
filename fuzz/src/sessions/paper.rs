//! Schemes of the paper.

use super::{Result, TOKENS};
use primer_engine::Reveal;
use primer_model::quantise::IntModel;
use primer_paper::server::ServerModel;
use primer_paper::session::{ClientSession, ServerSession};
use primer_paper::{Program, Scheme, client, server};
use primer_ring::prg::Prg;
use primer_wire::Channel;
use std::io::Cursor;
use std::sync::Arc;

/// A model and its scheme.
pub(super) struct Case {
    model: ServerModel,
}

impl Case {
    pub(super) fn new(model: IntModel, scheme: Scheme, reveal: Reveal) -> Self {
        let program = Program::of(&model, scheme, TOKENS, reveal).expect("a small plan");
        let model = ServerModel::new(Arc::new(model), &program);
        Self {
            model: model.expect("the plan's own model"),
        }
    }

    fn session(&self, channel: &mut Channel) -> primer_paper::Result<ClientSession> {
        let scheme = self.model.program().scheme();
        ClientSession::open(channel, scheme, TOKENS, Prg::new(&[1; 16]))
    }

    fn accepted(&self, channel: &mut Channel) -> primer_paper::Result<ServerSession> {
        let ours = self.model.program();
        let offer = |scheme, tokens| match (scheme, tokens) == (ours.scheme(), TOKENS) {
            true => Ok(ours.clone()),
            false => Err("something else is on offer".to_owned()),
        };
        ServerSession::accept(channel, offer, Prg::new(&[2; 16]))
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

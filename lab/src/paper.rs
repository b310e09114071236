//! The paper's schemes behind the seam of measurements: the one file here that knows their
//! protocol.

use anyhow::{Context, Result};
use primer_hint::published::Published;
use primer_measure::Hinted;
use primer_measure::inspect::bfv;
use primer_measure::scheme::{
    Answer, ClientEnd, Cost, Costs, Scheme, Server, ServerEnd, Sink, Source, Terms,
};
use primer_model::quantise::IntModel;
use primer_model::text::Input;
use primer_net::Channel;
use primer_plan::graph::Form;
use primer_plan::times::Times;
use primer_protocol::cost::{self, Part, StoredBytes};
use primer_protocol::server::ServerModel;
use primer_protocol::session::{ClientSession, ServerSession};
use primer_protocol::{Program, Reveal, VERSION, client, server};
use primer_ring::prg::Prg;
use std::sync::Arc;

/// A scheme of the paper.
#[derive(Debug, Clone, Copy)]
pub struct Paper(primer_protocol::Scheme);

/// Everything online, features-first.
pub static BASE: Paper = Paper(primer_protocol::Scheme::Base);
/// HGS and FHGS, features-first.
pub static F: Paper = Paper(primer_protocol::Scheme::F);
/// HGS and FHGS, tokens-first.
pub static FP: Paper = Paper(primer_protocol::Scheme::Fp);
/// HGS, FHGS and CHGS, tokens-first.
pub static FPC: Paper = Paper(primer_protocol::Scheme::Fpc);

impl Paper {
    fn program(self, model: &IntModel, tokens: usize) -> Result<Program> {
        Ok(Program::of(model, self.0, tokens, Reveal::Outputs)?)
    }
}

impl Scheme for Paper {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn version(&self) -> u16 {
        VERSION
    }

    fn form(&self) -> Form {
        self.0.recipe().form
    }

    fn most_bundles(&self) -> usize {
        self.0.recipe().most_bundles()
    }

    fn costs(&self, model: &IntModel, tokens: usize, bundles: usize) -> Result<Costs> {
        let program = self.program(model, tokens)?;
        let parts = cost::parts_together(&program, bundles)?;
        let of = |part: &Part, stored: StoredBytes| Cost {
            bytes: part.bytes,
            rounds_online: part.rounds_online,
            and_gates: part.and_gates,
            client_stored: stored.client,
            server_stored: stored.server,
            hint: None,
        };
        Ok(Costs {
            whole: of(&parts.total(), cost::stored(&program)),
            layers: of(&parts.layers, cost::stored_layers(&program)),
        })
    }

    fn terms(&self, model: &IntModel, tokens: usize) -> Result<Terms> {
        let program = self.program(model, tokens)?;
        let sets = program.key_needs().sets().iter();
        let sets: Vec<String> = sets.map(|set| bfv(set.params())).collect();
        let labels = Program::of(model, self.0, tokens, Reveal::Label).ok();
        Ok(Terms {
            encryption: sets.join("; "),
            multipliers: None,
            inferences: program.inferences(),
            odds: program.odds(),
            answer_bits: program.answer_bits(),
            label_bits: labels.map(|program| program.answer_bits()),
        })
    }

    fn server(
        &self,
        model: Arc<IntModel>,
        tokens: usize,
        _: Option<&Hinted>,
    ) -> Result<Box<dyn Server>> {
        let program = self.program(&model, tokens)?;
        let model = ServerModel::new(model, &program, None).context("encoding the weights")?;
        Ok(Box::new(Weights { program, model }))
    }

    fn client(
        &self,
        channel: &mut Channel,
        tokens: usize,
        _: Option<Arc<Published>>,
    ) -> Result<Box<dyn ClientEnd>> {
        let session = ClientSession::open(channel, self.0, tokens, None, Prg::from_os())?;
        Ok(Box::new(Asking(session)))
    }
}

struct Weights {
    program: Program,
    model: ServerModel,
}

impl Server for Weights {
    fn accept<'s>(&'s self, channel: &mut Channel) -> Result<Box<dyn ServerEnd + 's>> {
        let offer = |_, _| Ok(self.program.clone());
        let session = ServerSession::accept(channel, offer, Prg::from_os())?;
        let model = &self.model;
        Ok(Box::new(Serving { session, model }))
    }
}

struct Serving<'s> {
    session: ServerSession,
    model: &'s ServerModel,
}

impl ServerEnd for Serving<'_> {
    fn set_threads(&mut self, threads: usize) {
        self.session.set_threads(threads);
    }

    fn prepare(&mut self, channel: &mut Channel, sinks: &mut [Sink<'_>]) -> Result<()> {
        self.session.prepare_together(channel, self.model, sinks)?;
        Ok(())
    }

    fn infer(&mut self, channel: &mut Channel, bundle: Source) -> Result<()> {
        let bundle = server::Bundle::new(bundle);
        self.session.infer(channel, self.model, bundle)?;
        Ok(())
    }
}

struct Asking(ClientSession);

impl ClientEnd for Asking {
    fn set_threads(&mut self, threads: usize) {
        self.0.set_threads(threads);
    }

    fn vocabulary(&self) -> usize {
        self.0.program().plan().graph().shape.vocab
    }

    fn prepare(&mut self, channel: &mut Channel, sinks: &mut [Sink<'_>]) -> Result<Times> {
        Ok(self.0.prepare_together(channel, sinks)?)
    }

    fn infer(&mut self, channel: &mut Channel, bundle: Source, input: &Input) -> Result<Answer> {
        let answer = self.0.infer(channel, client::Bundle::new(bundle), input)?;
        Ok(Answer {
            reals: answer.reals,
            in_range: answer.in_range,
            times: answer.times,
        })
    }
}

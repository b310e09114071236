//! The paper's schemes behind the seam of measurements: the one file here that knows their
//! protocol.

use anyhow::{Context, Result, bail, ensure};
use primer_engine::{Reveal, output_bits};
use primer_hint::published::Published;
use primer_measure::Hinted;
use primer_measure::inspect::bfv;
use primer_measure::scheme::{
    BundleReader, BundleWriter, ClientEnd, Cost, Costs, Scheme, SchemeAnswer, Server, ServerEnd,
    Terms,
};
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_paper::cost::{self, Part, StoredBytes};
use primer_paper::server::ServerModel;
use primer_paper::session::{ClientSession, ServerSession};
use primer_paper::{Program, VERSION, client, server};
use primer_plan::design::Design;
use primer_plan::times::Times;
use primer_ring::prg::Prg;
use primer_text::Input;
use primer_wire::Channel;
use std::io::Write;
use std::sync::Arc;

/// A scheme of the paper.
#[derive(Debug, Clone, Copy)]
pub struct Paper(primer_paper::Scheme);

/// Everything online, features-first.
pub static BASE: Paper = Paper(primer_paper::Scheme::Base);
/// HGS and FHGS, features-first.
pub static F: Paper = Paper(primer_paper::Scheme::F);
/// HGS and FHGS, tokens-first.
pub static FP: Paper = Paper(primer_paper::Scheme::Fp);
/// HGS, FHGS and CHGS, tokens-first.
pub static FPC: Paper = Paper(primer_paper::Scheme::Fpc);

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

    fn weights(&self, folded: &FloatWeights) -> FloatWeights {
        self.0.recipe().form.weights(folded)
    }

    fn design(&self) -> &'static dyn Design {
        self.0.recipe().form.design()
    }

    fn most_bundles(&self) -> usize {
        1
    }

    fn costs(&self, model: &IntModel, tokens: usize, bundles: usize) -> Result<Costs> {
        let program = self.program(model, tokens)?;
        ensure!(
            bundles == 1,
            "scheme {} prepares one bundle at a time",
            self.name()
        );
        let parts = cost::parts(&program);
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
        let labels = program.plan().graph().shape.head.shows_labels();
        Ok(Terms {
            encryption: sets.join("; "),
            multipliers: None,
            inferences: program.inferences(),
            // The noise of everything that is decrypted is checked.
            odds: 0.0,
            answer_bits: output_bits(program.plan(), Reveal::Outputs),
            label_bits: labels.then(|| output_bits(program.plan(), Reveal::Label)),
        })
    }

    fn server(
        &self,
        model: Arc<IntModel>,
        tokens: usize,
        _: Option<&Hinted>,
    ) -> Result<Box<dyn Server>> {
        let program = self.program(&model, tokens)?;
        let model = ServerModel::new(model, &program).context("encoding the weights")?;
        Ok(Box::new(Weights { program, model }))
    }

    fn client(
        &self,
        channel: &mut Channel,
        tokens: usize,
        _: Option<Arc<Published>>,
    ) -> Result<Box<dyn ClientEnd>> {
        let session = ClientSession::open(channel, self.0, tokens, Prg::from_os())?;
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
    /// Does nothing: products under masks are worked on by one thread.
    fn set_threads(&mut self, _: usize) {}

    fn prepare(&mut self, channel: &mut Channel, sinks: &mut [BundleWriter<'_>]) -> Result<()> {
        self.session.prepare(channel, self.model, only(sinks)?)?;
        Ok(())
    }

    fn infer(&mut self, channel: &mut Channel, bundle: BundleReader) -> Result<()> {
        let bundle = server::Bundle::new(bundle);
        self.session.infer(channel, self.model, bundle)?;
        Ok(())
    }
}

/// Returns the sink of the one bundle.
fn only<'s>(sinks: &'s mut [BundleWriter<'_>]) -> Result<&'s mut (dyn Write + Send)> {
    match sinks {
        [sink] => Ok(&mut **sink),
        _ => bail!("schemes of the paper prepare one bundle at a time"),
    }
}

struct Asking(ClientSession);

impl ClientEnd for Asking {
    /// Does nothing, as at the server.
    fn set_threads(&mut self, _: usize) {}

    fn vocabulary(&self) -> usize {
        self.0.program().plan().graph().shape.vocab
    }

    fn prepare(&mut self, channel: &mut Channel, sinks: &mut [BundleWriter<'_>]) -> Result<Times> {
        Ok(self.0.prepare(channel, only(sinks)?)?)
    }

    fn infer(
        &mut self,
        channel: &mut Channel,
        bundle: BundleReader,
        input: &Input,
    ) -> Result<SchemeAnswer> {
        let answer = self.0.infer(channel, client::Bundle::new(bundle), input)?;
        Ok(SchemeAnswer {
            reals: answer.reals,
            in_range: answer.in_range,
            times: answer.times,
        })
    }
}

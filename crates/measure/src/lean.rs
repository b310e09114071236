//! The scheme `lean` behind the seam: the one file here that knows the protocol.

use crate::hinted::Hinted;
use crate::inspect::bfv;
use crate::scheme::{
    BundleReader, BundleWriter, ClientEnd, Cost, Costs, Scheme, SchemeAnswer, Server, ServerEnd,
    Terms,
};
use anyhow::{Context, Result};
use primer_engine::cost::{self, Part, StoredBytes};
use primer_engine::hints::{Build, contents_of};
use primer_engine::server::ServerModel;
use primer_engine::session::{ClientSession, ServerSession, direct};
use primer_engine::{MOST_BUNDLES, Program, Reveal, SCHEME_NAME, VERSION, client, server};
use primer_hint::multipliers::file_bytes;
use primer_hint::params::PACKING_BITS;
use primer_hint::published::Published;
use primer_hint::server::HintSecret;
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_plan::design::{Design, LookedUp};
use primer_plan::times::Times;
use primer_ring::prg::Prg;
use primer_rlwe::params::SECURITY_TABLE;
use primer_text::Input;
use primer_wire::Channel;
use std::sync::Arc;
use std::time::Instant;

/// The scheme of the product.
#[derive(Debug, Clone, Copy)]
pub struct Lean;

fn program(model: &IntModel, tokens: usize) -> Result<Program> {
    Ok(Program::of(model, tokens, Reveal::Outputs)?)
}

impl Scheme for Lean {
    fn name(&self) -> &'static str {
        SCHEME_NAME
    }

    fn version(&self) -> u16 {
        VERSION
    }

    fn weights(&self, folded: &FloatWeights) -> FloatWeights {
        folded.clone()
    }

    fn design(&self) -> &'static dyn Design {
        &LookedUp
    }

    fn most_bundles(&self) -> usize {
        MOST_BUNDLES
    }

    fn deviation(&self) -> Option<f64> {
        Some(primer_hint::errors::fixed())
    }

    fn costs(&self, model: &IntModel, tokens: usize, bundles: usize) -> Result<Costs> {
        let program = program(model, tokens)?;
        let parts = cost::parts_together(&program, bundles)?;
        let of = |part: &Part, stored: StoredBytes, hint: u64| Cost {
            bytes: part.bytes,
            rounds_online: part.rounds_online,
            and_gates: part.and_gates,
            client_stored: stored.client,
            server_stored: stored.server,
            hint: Some(hint),
        };
        let (whole, layers) = (cost::stored(&program), cost::stored_layers(&program));
        Ok(Costs {
            whole: of(&parts.total(), whole, program.hint_bytes()),
            layers: of(&parts.layers, layers, cost::hint_layers(&program)),
        })
    }

    fn terms(&self, model: &IntModel, tokens: usize) -> Result<Terms> {
        let program = program(model, tokens)?;
        let sets = program.key_needs().sets().iter();
        let mut sets: Vec<String> = sets.map(|set| bfv(set.params())).collect();
        let (degree, limit) = SECURITY_TABLE[0];
        sets.push(format!(
            "hints, degree {degree}, moduli 49 and {PACKING_BITS} bits of at most {limit}"
        ));
        let labels = Program::of(model, tokens, Reveal::Label).ok();
        Ok(Terms {
            encryption: sets.join("; "),
            multipliers: Some(file_bytes(&contents_of(model)?)),
            // The client is sent nothing that depends on the weights.
            inferences: f64::INFINITY,
            odds: program.odds(),
            answer_bits: program.answer_bits(),
            label_bits: labels.map(|program| program.answer_bits()),
        })
    }

    fn hint(&self, model: &IntModel) -> Result<Option<Hinted>> {
        let started = Instant::now();
        let secret = HintSecret::new(Prg::from_os().secret_seed());
        let build = Build::new(model, &secret)?;
        let made = build
            .in_memory(|_, _| ())
            .context("making the model's hint");
        let (hint, multipliers) = made?;
        Ok(Some(Hinted {
            hint: Arc::new(hint),
            multipliers: Arc::new(multipliers),
            seconds: started.elapsed().as_secs_f64(),
        }))
    }

    fn server(
        &self,
        model: Arc<IntModel>,
        tokens: usize,
        hinted: Option<&Hinted>,
    ) -> Result<Box<dyn Server>> {
        let program = program(&model, tokens)?;
        let hinted = hinted.context("a server needs the model's hint")?;
        let program = program.with_hint(hinted.hint.identity())?;
        let multipliers = Arc::clone(&hinted.multipliers);
        let model = ServerModel::new(model, &program, Some(multipliers));
        let model = model.context("encoding the weights")?;
        Ok(Box::new(Weights { program, model }))
    }

    fn client(
        &self,
        channel: &mut Channel,
        tokens: usize,
        hint: Option<Arc<Published>>,
    ) -> Result<Box<dyn ClientEnd>> {
        let hint = hint.context("a client needs the model's hint")?;
        let session = direct::open(channel, tokens, hint, Prg::from_os())?;
        Ok(Box::new(Asking(session)))
    }
}

struct Weights {
    program: Program,
    model: ServerModel,
}

impl Server for Weights {
    fn accept<'s>(&'s self, channel: &mut Channel) -> Result<Box<dyn ServerEnd + 's>> {
        let offer = |_| Ok(self.program.clone());
        let session = direct::accept(channel, offer, Prg::from_os())?;
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

    fn prepare(&mut self, channel: &mut Channel, sinks: &mut [BundleWriter<'_>]) -> Result<()> {
        self.session.prepare_together(channel, self.model, sinks)?;
        Ok(())
    }

    fn infer(&mut self, channel: &mut Channel, bundle: BundleReader) -> Result<()> {
        let bundle = server::Bundle::new(bundle);
        server::infer(channel, self.model, bundle)?;
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

    fn prepare(&mut self, channel: &mut Channel, sinks: &mut [BundleWriter<'_>]) -> Result<Times> {
        Ok(self.0.prepare_together(channel, sinks)?)
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

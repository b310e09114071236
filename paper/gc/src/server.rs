//! The server: has the weights, garbles.
//!
//! Offline ([`Session::prepare`]) it walks the plan with zero labels and sends tables as they are
//! made; what it keeps is a few kilobytes. Online ([`Session::infer`]) it turns the client's
//! corrections into labels, and says what the labels of the outputs stand for.

use crate::count::{BEGIN_BYTES, stream_bytes};
use crate::error::Result;
use crate::garbled_step::Program;
use crate::inputs::{cut, input_bits};
use crate::role::{Common, Garbling};
use crate::walk::LabelWalk;
use crate::{TRANSFERS, check_size};
use primer_garble::{LABEL_BYTES, Label, Offset};
use primer_model::quantise::IntModel;
use primer_ot::{Bits, CotSender, Delta};
use primer_plan::plan::Plan;
use primer_plan::times::Times;
use primer_ring::prg::Prg;
use primer_wire::Channel;
use primer_wire::kind::gc::{BEGIN, CORRECTIONS, DECODING, GARBLED, LABELS, PLAN};
use std::io;
use std::sync::Arc;
use std::time::Instant;
use zeroize::Zeroizing;

/// A connection with a client.
pub struct Session {
    program: Program,
    model: Arc<IntModel>,
    cot: CotSender,
    rng: Prg,
}

/// What the server keeps of one prepared inference. [`Session::infer`] takes it by value: it is
/// spent once.
pub struct Material {
    offset: Offset,
    /// For every input bit, the zero label XOR the transfer's.
    pads: Zeroizing<Vec<Label>>,
    /// The colours of the outputs' zero labels.
    decoding: Bits,
}

/// What [`Session::prepare`] leaves.
pub struct Preparation {
    /// To be spent by [`Session::infer`].
    pub material: Material,
    /// Seconds by step, waiting for the client included.
    pub times: Times,
    /// AND gates that were garbled.
    pub and_gates: u64,
    /// Bits whose labels were given.
    pub garbler_inputs: u64,
}

impl Session {
    /// Tells the client the plan for a number of tokens, and makes the base transfers.
    ///
    /// # Errors
    /// [`crate::GcError`] of the channel and the transfers, or if the model cannot be garbled.
    pub fn accept(
        channel: &mut Channel,
        model: Arc<IntModel>,
        tokens: usize,
        mut rng: Prg,
    ) -> Result<Self> {
        let _phase = channel.phase("setup");
        let plan = model.plan(tokens)?;
        check_size(&plan)?;
        let program = Program::new(&plan)?;
        channel.send(PLAN, &plan.encode())?;
        let delta = Delta::random(&mut rng);
        let cot = CotSender::setup(TRANSFERS, channel, delta, &mut rng)?;
        Ok(Self {
            program,
            model,
            cot,
            rng,
        })
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        self.program.plan()
    }

    /// Prepares offline: garbles one inference.
    ///
    /// # Errors
    /// [`crate::GcError`] of the channel and the transfers.
    ///
    /// # Panics
    /// If the transfers' offset does not have its lowest bit set; theirs always does.
    pub fn prepare(&mut self, channel: &mut Channel) -> Result<Preparation> {
        let _phase = channel.phase("offline");
        let graph = self.program.plan().graph();
        let mut since = Instant::now();
        let offset = Offset::from_label(self.cot.delta().label());
        let offset = offset.expect("the offset of transfers has its lowest bit set");
        let mut labels = self.rng.fork();
        let transferred = self.cot.extend_vec(channel, input_bits(graph))?;
        let mut zeros = Zeroizing::new(vec![0; transferred.len()]);
        zeros.iter_mut().for_each(|zero| *zero = draw(&mut labels));
        let pads = zeros.iter().zip(transferred.iter()).map(|(z, q)| z ^ q);
        let pads = Zeroizing::new(pads.collect());
        let (seed, zero) = (self.rng.seed(), draw(&mut labels));
        let mut begin = [0; BEGIN_BYTES];
        begin[..LABEL_BYTES].copy_from_slice(&seed);
        begin[LABEL_BYTES..].copy_from_slice(&zero.to_le_bytes());
        channel.send(BEGIN, &begin)?;
        let mut common = Common::new(&seed, zero);
        let mut walk = LabelWalk::new(&self.program, cut(graph, &zeros));
        let mut times = Times::default();
        for (index, step) in graph.steps.iter().enumerate() {
            let length = stream_bytes(&self.program, index);
            // A step without gates has no frame.
            let stream = (length > 0).then(|| channel.send_stream(GARBLED, length));
            let mut stream = stream.transpose()?;
            let mut nowhere = io::empty();
            let mut garbling = Garbling {
                common: &mut common,
                offset: &offset,
                labels: &mut labels,
                plan: self.program.plan(),
                model: &self.model,
                sink: match &mut stream {
                    Some(stream) => stream,
                    None => &mut nowhere,
                },
            };
            walk.step(index, &mut garbling)?;
            if let Some(stream) = stream {
                stream.finish()?;
            }
            times.add(step, since.elapsed());
            since = Instant::now();
        }
        channel.flush()?;
        let colours: Vec<bool> = walk
            .outputs()
            .flat_map(|output| output.all().iter().map(|zero| zero & 1 == 1))
            .collect();
        let decoding = Bits::from_fn(colours.len(), |i| colours[i]);
        drop(walk);
        let passed = common.passed;
        Ok(Preparation {
            material: Material {
                offset,
                pads,
                decoding,
            },
            times,
            and_gates: passed.and_gates,
            garbler_inputs: passed.given_bits,
        })
    }

    /// Infers online: corrects the transfers for the client's input and tells it how to read the
    /// outputs. The evaluation is the client's alone.
    ///
    /// # Errors
    /// [`crate::GcError`] of the channel; the material is spent in any case.
    pub fn infer(&mut self, channel: &mut Channel, material: Material) -> Result<()> {
        let _phase = channel.phase("online");
        let Material {
            offset,
            pads,
            decoding,
        } = material;
        let mut bytes = vec![0; pads.len().div_ceil(8)];
        channel.recv_exact(CORRECTIONS, &mut bytes)?;
        let corrections = Bits::from_bytes(bytes, pads.len())?;
        let mut stream = channel.send_stream(LABELS, (pads.len() * LABEL_BYTES) as u64)?;
        for (i, &pad) in pads.iter().enumerate() {
            let label = offset.choose(pad, corrections.get(i));
            stream.put(&label.to_le_bytes())?;
        }
        stream.finish()?;
        channel.send(DECODING, decoding.bytes())?;
        Ok(channel.flush()?)
    }
}

fn draw(prg: &mut Prg) -> Label {
    Label::from_le_bytes(prg.seed())
}

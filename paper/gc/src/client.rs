//! The client: has the text, evaluates, learns the outputs.
//!
//! Offline ([`Session::prepare`]) everything that the server garbles goes to a file as it comes,
//! behind the rows of transfers with random choices. Online ([`Session::infer`]) the client says in
//! which bits its text differs from these choices, gets its labels, and evaluates alone.

use crate::count::{BEGIN_BYTES, Count, outputs, stream_bytes};
use crate::error::{Result, from_sink};
use crate::garbled_step::Program;
use crate::inputs::{bits, cut, input_bits};
use crate::role::{Common, Evaluating};
use crate::walk::LabelWalk;
use crate::{TRANSFERS, check_size};
use primer_garble::{LABEL_BYTES, Label};
use primer_ot::{Bits, CotReceiver};
use primer_paper_plan::Form;
use primer_plan::plan::{MAX_ENCODED, Plan};
use primer_plan::times::Times;
use primer_ring::fixed::exp2;
use primer_ring::matrix::Matrix;
use primer_ring::prg::Prg;
use primer_text::Input;
use primer_wire::Channel;
use primer_wire::kind::gc::{BEGIN, CORRECTIONS, DECODING, GARBLED, LABELS, PLAN};
use std::io::{Read, Write};
use std::time::Instant;
use zeroize::Zeroizing;

/// Bytes copied from the channel to the file at a time.
const COPY_BLOCK: usize = 1 << 17;

/// A connection with a server.
pub struct Session {
    program: Program,
    cot: CotReceiver,
    rng: Prg,
}

/// Offline material of one inference. [`Session::infer`] takes it by value: it is spent once.
pub struct Bundle(Box<dyn Read + Send>);

impl Bundle {
    /// Takes what [`Session::prepare`] wrote. The caller must not give it out again.
    pub fn new(source: impl Read + Send + 'static) -> Self {
        Self(Box::new(source))
    }
}

/// The answer, in the order of the graph's outputs.
pub struct GarbledAnswer {
    /// As integers at the plan's scales.
    pub integers: Vec<Matrix<i64>>,
    /// As real numbers.
    pub reals: Vec<Matrix<f64>>,
    /// Seconds by step, waiting for the server included.
    pub times: Times,
    /// AND gates that were evaluated.
    pub and_gates: u64,
}

impl Session {
    /// Receives the plan and makes the base transfers.
    ///
    /// # Errors
    /// [`crate::GcError`] of the channel and the transfers, or if the plan is refused.
    pub fn open(channel: &mut Channel, mut rng: Prg) -> Result<Self> {
        let _phase = channel.phase("setup");
        let plan = Plan::decode_by(&Form::Separate, &channel.recv(PLAN, MAX_ENCODED)?)?;
        check_size(&plan)?;
        let program = Program::new(&plan)?;
        let cot = CotReceiver::setup(TRANSFERS, channel, &mut rng)?;
        channel.flush()?;
        Ok(Self { program, cot, rng })
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        self.program.plan()
    }

    /// Returns what one inference costs.
    pub fn count(&self) -> Count {
        Count::of_program(&self.program)
    }

    /// Prepares one inference offline: receives it garbled into `sink`, in order.
    ///
    /// # Errors
    /// [`crate::GcError`] of the failure; what was written is useless then.
    pub fn prepare(&mut self, channel: &mut Channel, sink: &mut dyn Write) -> Result<Times> {
        let _phase = channel.phase("offline");
        let graph = self.program.plan().graph();
        let mut since = Instant::now();
        let choices = Bits::random(input_bits(graph), &mut self.rng);
        let mut rows = self.cot.extend_vec(channel, &choices)?;
        rows.iter_mut().for_each(|row| *row = row.to_le());
        sink.write_all(choices.bytes())?;
        sink.write_all(bytemuck::cast_slice(&rows))?;
        let mut begin = [0; BEGIN_BYTES];
        channel.recv_exact(BEGIN, &mut begin)?;
        sink.write_all(&begin)?;
        let mut block = vec![0; COPY_BLOCK];
        let mut times = Times::default();
        for (index, step) in graph.steps.iter().enumerate() {
            let length = stream_bytes(&self.program, index);
            if length > 0 {
                let mut stream = channel.recv_stream(GARBLED, length)?;
                while stream.left() > 0 {
                    let take = stream.left().min(COPY_BLOCK as u64) as usize;
                    stream.get(&mut block[..take])?;
                    sink.write_all(&block[..take]).map_err(from_sink)?;
                }
                stream.finish()?;
            }
            times.add(step, since.elapsed());
            since = Instant::now();
        }
        sink.flush()?;
        Ok(times)
    }

    /// Infers online: returns the answer for an input of the plan's number of tokens.
    ///
    /// # Errors
    /// [`crate::GcError`] of the failure; the bundle is spent in any case.
    pub fn infer(
        &mut self,
        channel: &mut Channel,
        bundle: Bundle,
        input: &Input,
    ) -> Result<GarbledAnswer> {
        let _phase = channel.phase("online");
        let mut since = Instant::now();
        let program = &self.program;
        let graph = program.plan().graph();
        let chosen = bits(graph, input)?;
        let mut source = bundle.0;
        let mut labels = transfer(channel, &mut source, &chosen)?;
        let wanted: usize = outputs(program).map(|(_, bits)| bits).sum();
        let mut decoding = vec![0; wanted.div_ceil(8)];
        channel.recv_exact(DECODING, &mut decoding)?;
        let decoding = Bits::from_bytes(decoding, wanted)?;
        let mut begin = [0; BEGIN_BYTES];
        source.read_exact(&mut begin)?;
        let (seed, zero) = begin.split_at(LABEL_BYTES);
        let [seed, zero] = [seed, zero].map(|half| half.try_into().expect("two halves"));
        let mut common = Common::new(&seed, Label::from_le_bytes(zero));
        let mut walk = LabelWalk::new(program, cut(graph, &labels));
        zeroize::Zeroize::zeroize(&mut *labels);
        let mut times = Times::default();
        for (index, step) in graph.steps.iter().enumerate() {
            let mut evaluating = Evaluating {
                common: &mut common,
                source: &mut source,
            };
            walk.step(index, &mut evaluating)?;
            times.add(step, since.elapsed());
            since = Instant::now();
        }
        let integers = decode(program, &walk, &decoding);
        let reals = graph.outputs.iter().zip(&integers);
        let reals = reals.map(|(id, m)| {
            let unit = exp2(-program.plan().scale(*id).fraction());
            m.map(|v| *v as f64 * unit)
        });
        let reals = reals.collect();
        times.add(&graph.steps[graph.steps.len() - 1], since.elapsed());
        // Releasing a spent bundle takes the system a while; the answer does not wait for it.
        std::thread::spawn(move || drop(source));
        Ok(GarbledAnswer {
            reals,
            integers,
            times,
            and_gates: common.passed.and_gates,
        })
    }
}

/// Receives the labels of the input: those of the random choices, corrected.
fn transfer(
    channel: &mut Channel,
    source: &mut dyn Read,
    chosen: &Bits,
) -> Result<Zeroizing<Vec<Label>>> {
    let mut choices = vec![0; chosen.len().div_ceil(8)];
    source.read_exact(&mut choices)?;
    let choices = Bits::from_bytes(choices, chosen.len())?;
    channel.send(CORRECTIONS, choices.xor(chosen)?.bytes())?;
    let mut labels = Zeroizing::new(vec![0; chosen.len()]);
    source.read_exact(bytemuck::cast_slice_mut(&mut labels))?;
    let mut stream = channel.recv_stream(LABELS, (chosen.len() * LABEL_BYTES) as u64)?;
    for label in labels.iter_mut() {
        let mut correction = [0; LABEL_BYTES];
        stream.get(&mut correction)?;
        *label = Label::from_le(*label) ^ Label::from_le_bytes(correction);
    }
    stream.finish()?;
    Ok(labels)
}

/// Decodes the outputs from the colours of their labels.
fn decode(program: &Program, walk: &LabelWalk<'_>, decoding: &Bits) -> Vec<Matrix<i64>> {
    let graph = program.plan().graph();
    let mut at = 0;
    let values = graph.outputs.iter().zip(walk.outputs());
    let matrices = values.map(|(id, labels)| {
        let value = graph.value(*id);
        let width = labels.bits();
        let elements = labels.all().chunks_exact(width).map(|element| {
            let bits = element.iter().enumerate();
            let number = bits.fold(0u64, |number, (i, label)| {
                let bit = (label & 1 == 1) != decoding.get(at + i);
                number | u64::from(bit) << i
            });
            at += width;
            // Outputs are signed: requantised values and tangents.
            (number << (64 - width)) as i64 >> (64 - width)
        });
        Matrix::from_vec(value.rows, value.cols, elements.collect())
    });
    matrices.collect()
}

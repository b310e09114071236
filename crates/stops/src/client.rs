//! The client's side of a garbled stop: the evaluator.
//!
//! Offline, for every chunk: the client obtains the labels of its bits, which it knows already, by
//! oblivious transfer, and receives the garbled circuits. Both go straight to a sink of the caller's, a
//! file as a rule, chunk by chunk: labels, then circuits, and the nonce after the first labels. Nothing
//! stays in memory.
//!
//! Online it reads them back, evaluates batch by batch as the server's labels arrive, and sends every
//! result less its new mask: the server cannot tell it from noise, and ends with its share.

use crate::error::{Result, StopsError, expect_count};
use crate::job::Job;
use crate::{GARBLED, LABELS, NONCE, RESULTS};
use primer_garble::circuit::{LANES, Party};
use primer_garble::evaluator::{EvaluateError, Evaluator};
use primer_garble::stop::Stop;
use primer_garble::{LABEL_BYTES, Label};
use primer_net::Channel;
use primer_ot::{Bits, CotReceiver};
use std::io::{Read, Write};
use zeroize::Zeroizing;

/// Bytes of garbled circuits taken from the channel at a time.
const COPY_BLOCK: usize = 1 << 17;

/// What the client keeps between offline and online: the stored labels and circuits of a job. Spent by
/// [`Self::finish`] or [`Self::show`].
pub struct ClientMaterial {
    job: Job,
}

impl ClientMaterial {
    /// Offline: receives the garbled job for the client's ring shares; labels and circuits,
    /// [`Job::stored_len`] bytes, go to the sink.
    ///
    /// # Errors
    /// [`StopsError`] of the channel, the transfers and the sink; [`StopsError::Count`] if the shares are
    /// too many or too few.
    pub fn prepare(
        channel: &mut Channel,
        cot: &mut CotReceiver,
        job: &Job,
        shares: &[u64],
        sink: &mut (impl Write + ?Sized),
    ) -> Result<Self> {
        let stop = job.stop();
        expect_count(stop.name(), "shares", job.elements(), shares.len())?;
        let store = |source| StopsError::Store {
            stop: stop.name(),
            source,
        };
        let bits = stop.ring_bits() as usize;
        let mut first = true;
        let mut rest = shares;
        let mut block = vec![0; COPY_BLOCK];
        for instances in job.chunks() {
            let (now, later) = rest.split_at(instances * stop.row());
            rest = later;
            let choices = Bits::from_fn(now.len() * bits, |i| now[i / bits] >> (i % bits) & 1 == 1);
            let mut labels = cot.extend_vec(channel, &choices)?;
            labels.iter_mut().for_each(|label| *label = label.to_le());
            sink.write_all(bytemuck::cast_slice(&labels))
                .map_err(store)?;
            if std::mem::take(&mut first) {
                sink.write_all(&receive_nonce(channel)?).map_err(store)?;
            }
            let mut stream = channel.recv_stream(GARBLED, job.garbled_len(instances))?;
            while stream.left() > 0 {
                let take = stream.left().min(COPY_BLOCK as u64) as usize;
                stream.get(&mut block[..take])?;
                sink.write_all(&block[..take]).map_err(store)?;
            }
            stream.finish()?;
        }
        if first {
            sink.write_all(&receive_nonce(channel)?).map_err(store)?;
        }
        Ok(Self::stored(job))
    }

    /// The material of a job whose bytes a store has kept since [`Self::prepare`].
    pub fn stored(job: &Job) -> Self {
        Self { job: job.clone() }
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Online: evaluates on the server's labels and sends the results less the client's new masks, one
    /// for each output. `source` holds what went to the sink.
    ///
    /// # Errors
    /// [`StopsError`] of the channel and the stored material; [`StopsError::Count`] if the masks are too
    /// many or too few.
    pub fn finish(
        self,
        channel: &mut Channel,
        source: &mut (impl Read + ?Sized),
        masks: &[u64],
    ) -> Result<()> {
        let name = self.job.stop().name();
        expect_count(name, "masks", self.job.outputs(), masks.len())?;
        let (results, _) = self.evaluate(channel, source)?;
        let modulus = self.job.stop().circuit().modulus();
        if !results.is_empty() {
            let masked = results.iter().zip(masks).map(|(&y, &r)| modulus.sub(y, r));
            channel.send_residues(RESULTS, modulus.width(), masked)?;
        }
        Ok(channel.flush()?)
    }

    /// Online, for a stop that shows its result: the positions, one for each instance, all within the row.
    ///
    /// # Errors
    /// [`StopsError`] of the channel and the stored material; [`StopsError::Position`].
    pub fn show(
        self,
        channel: &mut Channel,
        source: &mut (impl Read + ?Sized),
    ) -> Result<Vec<usize>> {
        let (_, revealed) = self.evaluate(channel, source)?;
        let bits = self.job.stop().circuit().cost().reveals;
        if bits == 0 {
            // A row of one element has no position to tell.
            return Ok(vec![0; self.job.instances()]);
        }
        // Rows need not be powers of two, so wrong labels can spell a position that is not there.
        let (stop, row) = (self.job.stop().name(), self.job.stop().row());
        let positions = revealed.chunks_exact(bits).map(Stop::position);
        let checked = positions.map(|position| match position < row {
            true => Ok(position),
            false => Err(StopsError::Position {
                stop,
                position,
                row,
            }),
        });
        checked.collect()
    }

    fn evaluate(
        &self,
        channel: &mut Channel,
        mut source: &mut (impl Read + ?Sized),
    ) -> Result<(Zeroizing<Vec<u64>>, Vec<bool>)> {
        let job = &self.job;
        let circuit = job.stop().circuit();
        let material = |source| StopsError::Material {
            stop: job.stop().name(),
            source,
        };
        let (theirs, ours) = (job.inputs(Party::Garbler), job.inputs(Party::Evaluator));
        let cost = circuit.cost();
        let mut results = Zeroizing::new(vec![0; job.outputs()]);
        let mut revealed = vec![false; job.instances() * cost.reveals];
        let length = job.instances() * theirs * LABEL_BYTES;
        let mut stream = channel.recv_stream(LABELS, length as u64)?;
        let mut evaluator = None;
        let mut server = Zeroizing::new(vec![0; LANES * theirs]);
        let mut client = Zeroizing::new(Vec::new());
        let mut done = 0;
        for instances in job.chunks() {
            client.resize(instances * ours, 0);
            let read = source.read_exact(bytemuck::cast_slice_mut(&mut client));
            read.map_err(|error| material(EvaluateError::Read(error)))?;
            client.iter_mut().for_each(|l| *l = Label::from_le(*l));
            let evaluator = match &mut evaluator {
                Some(evaluator) => evaluator,
                none => none.insert(Evaluator::new(
                    circuit,
                    stored_nonce(source).map_err(material)?,
                )),
            };
            for first in (0..instances).step_by(LANES) {
                let lanes = LANES.min(instances - first);
                let server = &mut server[..lanes * theirs];
                stream.get(bytemuck::cast_slice_mut(server))?;
                server.iter_mut().for_each(|l| *l = Label::from_le(*l));
                let at = done + first;
                let evaluated = evaluator.batch(
                    server,
                    &client[first * ours..(first + lanes) * ours],
                    &mut source,
                    &mut results[at * cost.outputs..(at + lanes) * cost.outputs],
                    &mut revealed[at * cost.reveals..(at + lanes) * cost.reveals],
                );
                evaluated.map_err(material)?;
            }
            done += instances;
        }
        if evaluator.is_none() {
            stored_nonce(source).map_err(material)?;
        }
        stream.finish()?;
        Ok((results, revealed))
    }
}

fn receive_nonce(channel: &mut Channel) -> Result<[u8; LABEL_BYTES]> {
    let mut bytes = [0; LABEL_BYTES];
    channel.recv_exact(NONCE, &mut bytes)?;
    Ok(bytes)
}

fn stored_nonce(source: &mut (impl Read + ?Sized)) -> std::result::Result<Label, EvaluateError> {
    let mut bytes = [0; LABEL_BYTES];
    source.read_exact(&mut bytes).map_err(EvaluateError::Read)?;
    Ok(Label::from_le_bytes(bytes))
}

//! The client's side of a garbled stop: the evaluator.
//!
//! Offline, for every chunk: the client obtains the labels of its bits, which it knows already, by
//! oblivious transfer, and receives the garbled circuits. Both go straight to a sink of the caller's, a
//! file as a rule, chunk by chunk: labels, then circuits. All that stays in memory is the nonce.
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

/// What the client keeps between offline and online, beside the stored labels and circuits. Spent by
/// [`Self::finish`] or [`Self::show`].
pub struct ClientMaterial {
    job: Job,
    nonce: Label,
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
        sink: &mut impl Write,
    ) -> Result<Self> {
        let stop = job.stop();
        expect_count(stop.name(), "shares", job.elements(), shares.len())?;
        let store = |source| StopsError::Store {
            stop: stop.name(),
            source,
        };
        let bits = stop.ring_bits() as usize;
        let mut nonce = None;
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
            if nonce.is_none() {
                nonce = Some(receive_nonce(channel)?);
            }
            let mut stream = channel.recv_stream(GARBLED, job.garbled_len(instances))?;
            while stream.left() > 0 {
                let take = stream.left().min(COPY_BLOCK as u64) as usize;
                stream.get(&mut block[..take])?;
                sink.write_all(&block[..take]).map_err(store)?;
            }
            stream.finish()?;
        }
        let nonce = match nonce {
            Some(nonce) => nonce,
            None => receive_nonce(channel)?,
        };
        Ok(Self {
            job: job.clone(),
            nonce,
        })
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
        source: &mut impl Read,
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

    /// Online, for a stop that shows its result: the positions, one for each instance.
    ///
    /// # Errors
    /// [`StopsError`] of the channel and the stored material.
    pub fn show(self, channel: &mut Channel, source: &mut impl Read) -> Result<Vec<usize>> {
        let (_, revealed) = self.evaluate(channel, source)?;
        let bits = self.job.stop().circuit().cost().reveals;
        if bits == 0 {
            // A row of one element has no position to tell.
            return Ok(vec![0; self.job.instances()]);
        }
        Ok(revealed.chunks_exact(bits).map(Stop::position).collect())
    }

    fn evaluate(
        &self,
        channel: &mut Channel,
        source: &mut impl Read,
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
        let mut evaluator = Evaluator::new(circuit, self.nonce);
        let mut server = Zeroizing::new(vec![0; LANES * theirs]);
        let mut client = Zeroizing::new(Vec::new());
        let mut done = 0;
        for instances in job.chunks() {
            client.resize(instances * ours, 0);
            let read = source.read_exact(bytemuck::cast_slice_mut(&mut client));
            read.map_err(|error| material(EvaluateError::Read(error)))?;
            client.iter_mut().for_each(|l| *l = Label::from_le(*l));
            for first in (0..instances).step_by(LANES) {
                let lanes = LANES.min(instances - first);
                let server = &mut server[..lanes * theirs];
                stream.get(bytemuck::cast_slice_mut(server))?;
                server.iter_mut().for_each(|l| *l = Label::from_le(*l));
                let at = done + first;
                let evaluated = evaluator.batch(
                    server,
                    &client[first * ours..(first + lanes) * ours],
                    source,
                    &mut results[at * cost.outputs..(at + lanes) * cost.outputs],
                    &mut revealed[at * cost.reveals..(at + lanes) * cost.reveals],
                );
                evaluated.map_err(material)?;
            }
            done += instances;
        }
        stream.finish()?;
        Ok((results, revealed))
    }

    /// The material as bytes, to be stored beside the sink's.
    pub fn encode(self) -> Vec<u8> {
        self.nonce.to_le_bytes().to_vec()
    }

    /// Material from its bytes.
    ///
    /// # Errors
    /// [`StopsError::Encoded`] if the bytes are not material of a job.
    pub fn decode(job: &Job, bytes: &[u8]) -> Result<Self> {
        let nonce = bytes.try_into().map_err(|_| StopsError::Encoded {
            stop: job.stop().name(),
            expected: LABEL_BYTES as u64,
            got: bytes.len() as u64,
        })?;
        Ok(Self {
            job: job.clone(),
            nonce: Label::from_le_bytes(nonce),
        })
    }
}

fn receive_nonce(channel: &mut Channel) -> Result<Label> {
    let mut bytes = [0; LABEL_BYTES];
    channel.recv_exact(NONCE, &mut bytes)?;
    Ok(Label::from_le_bytes(bytes))
}

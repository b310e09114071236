//! The client's side of a garbled stop: the evaluator.
//!
//! Offline, for every chunk: the client obtains the labels of its bits, which it knows already, by
//! oblivious transfer, and receives the garbled circuits. Both go straight to the sink, a file as a
//! rule, chunk by chunk: labels, then circuits, and the nonce after the first labels. Nothing stays
//! in memory.
//!
//! Online it reads them back, evaluates batch by batch as the server's labels arrive, and sends
//! every result minus its new mask: the server cannot tell it from noise, and ends with its share.

use super::Garbled;
use crate::error::{Result, StopsError, expect_count, unusable};
use crate::stop::{ClientStop, ClientTools, Owing, Stop};
use primer_garble::circuit::{LANES, Party};
use primer_garble::evaluator::{EvaluateError, Evaluator};
use primer_garble::stop::StopCircuit;
use primer_garble::{LABEL_BYTES, Label};
use primer_net::Channel;
use primer_net::kind::garbled::{GARBLED, LABELS, NONCE, RESULTS};
use primer_ot::Bits;
use std::io::{Read, Write};
use zeroize::Zeroizing;

/// Bytes of garbled circuits taken from the channel at a time.
const COPY_BLOCK: usize = 1 << 17;

impl ClientStop for Garbled {
    /// Needs no masks before it runs.
    fn prepare(
        &self,
        tools: &mut ClientTools<'_>,
        shares: &[u64],
        masks: &[u64],
        sink: &mut dyn Write,
    ) -> Result<()> {
        expect_count(self.name(), "shares", self.elements(), shares.len())?;
        expect_count(self.name(), "masks", self.outputs(), masks.len())?;
        let store = |source| StopsError::Store {
            stop: self.name(),
            source,
        };
        let bits = self.circuit.ring_bits() as usize;
        let mut first = true;
        let mut rest = shares;
        let mut block = vec![0; COPY_BLOCK];
        let ClientTools {
            channel, labels, ..
        } = tools;
        for instances in self.chunks() {
            let (now, later) = rest.split_at(instances * self.circuit.row());
            rest = later;
            let choices = Bits::from_fn(now.len() * bits, |i| now[i / bits] >> (i % bits) & 1 == 1);
            let mut labels = labels.extend_vec(channel, &choices)?;
            labels.iter_mut().for_each(|label| *label = label.to_le());
            sink.write_all(bytemuck::cast_slice(&labels))
                .map_err(store)?;
            if std::mem::take(&mut first) {
                sink.write_all(&receive_nonce(channel)?).map_err(store)?;
            }
            let mut stream = channel.recv_stream(GARBLED, self.garbled_len(instances))?;
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
        Ok(())
    }

    fn listen(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        late: &[u64],
        masks: &[u64],
    ) -> Result<Box<dyn Owing>> {
        expect_count(self.name(), "late shares", 0, late.len())?;
        expect_count(self.name(), "masks", self.outputs(), masks.len())?;
        let (mut results, revealed) = self.evaluate(channel, stored)?;
        let modulus = self.circuit.circuit().modulus();
        for (result, mask) in results.iter_mut().zip(masks) {
            *result = modulus.sub(*result, *mask);
        }
        Ok(Box::new(Evaluated {
            width: modulus.width(),
            results,
            shown: self.positions(&revealed)?,
        }))
    }
}

/// A client that has evaluated its circuits.
struct Evaluated {
    width: u32,
    /// Minus the client's masks.
    results: Zeroizing<Vec<u64>>,
    shown: Vec<usize>,
}

impl Owing for Evaluated {
    fn answer(self: Box<Self>, channel: &mut Channel) -> Result<Vec<usize>> {
        if !self.results.is_empty() {
            channel.send_residues(RESULTS, self.width, self.results.iter().copied())?;
        }
        channel.flush()?;
        Ok(self.shown)
    }
}

impl Garbled {
    /// What a stop without outputs shows: a position for each instance, all within the row.
    fn positions(&self, revealed: &[bool]) -> Result<Vec<usize>> {
        let cost = self.circuit.circuit().cost();
        if cost.outputs > 0 {
            return Ok(Vec::new());
        }
        if cost.reveals == 0 {
            // A row of one element has no position to tell.
            return Ok(vec![0; self.instances]);
        }
        // Rows need not be powers of two, so wrong labels can spell a position that is not there.
        let (stop, row) = (self.name(), self.circuit.row());
        let positions = revealed.chunks_exact(cost.reveals);
        let checked = positions.map(StopCircuit::position).map(|position| {
            if position < row {
                return Ok(position);
            }
            Err(StopsError::Position {
                stop,
                position,
                row,
            })
        });
        checked.collect()
    }

    fn evaluate(
        &self,
        channel: &mut Channel,
        mut stored: &mut dyn Read,
    ) -> Result<(Zeroizing<Vec<u64>>, Vec<bool>)> {
        let circuit = self.circuit.circuit();
        let material = |error: EvaluateError| unusable(self.name(), error);
        let (theirs, ours) = (self.inputs(Party::Garbler), self.inputs(Party::Evaluator));
        let cost = circuit.cost();
        let mut results = Zeroizing::new(vec![0; self.outputs()]);
        let mut revealed = vec![false; self.instances * cost.reveals];
        let length = self.instances * theirs * LABEL_BYTES;
        let mut stream = channel.recv_stream(LABELS, length as u64)?;
        let mut evaluator = None;
        let mut server = Zeroizing::new(vec![0; LANES * theirs]);
        let mut client = Zeroizing::new(Vec::new());
        let mut done = 0;
        for instances in self.chunks() {
            client.resize(instances * ours, 0);
            let read = stored.read_exact(bytemuck::cast_slice_mut(&mut client));
            read.map_err(|error| material(EvaluateError::Read(error)))?;
            client.iter_mut().for_each(|l| *l = Label::from_le(*l));
            let evaluator = match &mut evaluator {
                Some(evaluator) => evaluator,
                none => {
                    let nonce = stored_nonce(stored).map_err(material)?;
                    none.insert(Evaluator::new(circuit, nonce))
                }
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
                    &mut stored,
                    &mut results[at * cost.outputs..(at + lanes) * cost.outputs],
                    &mut revealed[at * cost.reveals..(at + lanes) * cost.reveals],
                );
                evaluated.map_err(material)?;
            }
            done += instances;
        }
        if evaluator.is_none() {
            stored_nonce(stored).map_err(material)?;
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

fn stored_nonce(stored: &mut dyn Read) -> std::result::Result<Label, EvaluateError> {
    let mut bytes = [0; LABEL_BYTES];
    stored.read_exact(&mut bytes).map_err(EvaluateError::Read)?;
    Ok(Label::from_le_bytes(bytes))
}

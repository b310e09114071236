//! The evaluator of circuits: what it receives offline, and how it evaluates online.

use super::Circuits;
use crate::error::{Result, StopError, unusable};
use primer_garble::circuit::LANES;
use primer_garble::evaluator::{EvaluateError, Evaluator};
use primer_garble::{LABEL_BYTES, Label};
use primer_ot::{Bits, CotReceiver};
use primer_wire::Channel;
use primer_wire::kind::garbled::{GARBLED, NONCE};
use std::io::{Read, Write};
use zeroize::Zeroizing;

/// Bytes of garbled circuits taken from the channel at a time.
const COPY_BLOCK: usize = 1 << 17;

/// What an evaluation gives.
pub(crate) struct Evaluated {
    /// Every output plus the garbler's mask.
    pub(crate) outputs: Zeroizing<Vec<u64>>,
    /// Bits that circuits reveal.
    pub(crate) revealed: Vec<bool>,
}

impl Circuits {
    /// Returns the number of bytes that [`Self::receive`] writes to its sink.
    pub(crate) fn received_len(&self) -> u64 {
        let rows = (self.instances * self.bits() + 1) * LABEL_BYTES;
        let circuits = self.chunks().map(|n| self.garbled_len(n));
        rows as u64 + circuits.sum::<u64>()
    }

    /// Receives all garbled circuits, with transfers for the bits of the ring elements `choices`.
    /// Rows and circuits go straight to the sink, chunk by chunk, and the nonce after the first
    /// rows: nothing stays in memory.
    ///
    /// # Errors
    /// [`StopError`] of the channel, the transfers and the sink.
    pub(crate) fn receive(
        &self,
        channel: &mut Channel,
        cot: &mut CotReceiver,
        mut choices: &[u64],
        sink: &mut dyn Write,
    ) -> Result<()> {
        let stop = self.name();
        let store = |source| StopError::Store { stop, source };
        let bits = self.stop.ring_bits() as usize;
        let mut told = false;
        let mut block = vec![0; COPY_BLOCK];
        for instances in self.chunks() {
            let (now, later) = choices.split_at(instances * self.stop.row());
            choices = later;
            let chosen = Bits::from_fn(now.len() * bits, |i| now[i / bits] >> (i % bits) & 1 == 1);
            let mut rows = cot.extend_vec(channel, &chosen)?;
            rows.iter_mut().for_each(|row| *row = row.to_le());
            sink.write_all(bytemuck::cast_slice(&rows)).map_err(store)?;
            if !std::mem::replace(&mut told, true) {
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
        if !told {
            sink.write_all(&receive_nonce(channel)?).map_err(store)?;
        }
        Ok(())
    }

    /// Evaluates all instances from what was received. `place` is called for each batch, with the
    /// rows of its transfers, and sets the active labels of the server's share and of the client's.
    ///
    /// # Errors
    /// [`StopError::Material`] if what was stored ends early or holds rows that are not residues,
    /// and those of `place`.
    pub(crate) fn evaluate(
        &self,
        mut stored: &mut dyn Read,
        mut place: impl FnMut(&[Label], [&mut [Label]; 2]) -> Result<()>,
    ) -> Result<Evaluated> {
        let material = |error: EvaluateError| unusable(self.name(), error);
        let (bits, cost) = (self.bits(), self.circuit().cost());
        let mut outputs = Zeroizing::new(vec![0; self.all_outputs()]);
        let mut revealed = vec![false; self.instances * cost.reveals];
        let mut evaluator = None;
        let mut server = Zeroizing::new(vec![0; LANES * bits]);
        let mut client = Zeroizing::new(vec![0; LANES * bits]);
        let mut rows = Zeroizing::new(Vec::new());
        let mut done = 0;
        for instances in self.chunks() {
            rows.resize(instances * bits, 0);
            let read = stored.read_exact(bytemuck::cast_slice_mut(&mut rows));
            read.map_err(|error| material(EvaluateError::Read(error)))?;
            from_wire(&mut rows);
            let evaluator = match &mut evaluator {
                Some(evaluator) => evaluator,
                none => {
                    let nonce = stored_nonce(stored).map_err(material)?;
                    none.insert(Evaluator::new(self.circuit(), nonce))
                }
            };
            for first in (0..instances).step_by(LANES) {
                let lanes = LANES.min(instances - first);
                let (server, client) = (&mut server[..lanes * bits], &mut client[..lanes * bits]);
                let rows = &rows[first * bits..(first + lanes) * bits];
                place(rows, [server, client])?;
                let at = done + first;
                let evaluated = evaluator.batch(
                    server,
                    client,
                    &mut stored,
                    &mut outputs[at * cost.outputs..(at + lanes) * cost.outputs],
                    &mut revealed[at * cost.reveals..(at + lanes) * cost.reveals],
                );
                evaluated.map_err(material)?;
            }
            done += instances;
        }
        if evaluator.is_none() {
            stored_nonce(stored).map_err(material)?;
        }
        Ok(Evaluated { outputs, revealed })
    }
}

/// Turns labels as they come over the wire, or from a store, into numbers.
pub(crate) fn from_wire(labels: &mut [Label]) {
    for label in labels {
        *label = Label::from_le(*label);
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

//! The client's side of a garbled stop: the evaluator.
//!
//! Offline, for every chunk: the client obtains the labels of its bits, which it knows already, by
//! oblivious transfer, and receives the garbled circuits. Both go straight to the sink, usually a
//! file: nothing stays in memory.
//!
//! Online it reads them back, evaluates batch by batch as the server's labels arrive, and sends
//! every result minus its new mask: the server cannot tell it from noise, and ends with its share.

use super::Garbled;
use crate::circuits::{flag_shares, from_wire};
use crate::error::{Result, StopError, expect_count};
use crate::flags::FlagShares;
use crate::stop::{ClientStop, ClientTools, PendingAnswer, Stop};
use primer_garble::LABEL_BYTES;
use primer_garble::stop::StopCircuit;
use primer_wire::Channel;
use primer_wire::kind::garbled::{LABELS, RESULTS};
use std::io::{Read, Write};
use zeroize::Zeroizing;

impl ClientStop for Garbled {
    /// Receives labels and circuits, for which it needs no masks yet.
    fn prepare(
        &self,
        tools: &mut ClientTools<'_>,
        shares: &[u64],
        masks: &[u64],
        sink: &mut dyn Write,
    ) -> Result<()> {
        expect_count(self.name(), "shares", self.elements(), shares.len())?;
        expect_count(self.name(), "masks", self.outputs(), masks.len())?;
        (self.circuits).receive(tools.channel, tools.labels, shares, sink)
    }

    fn listen(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        late: &[u64],
        masks: &[u64],
    ) -> Result<Box<dyn PendingAnswer>> {
        expect_count(self.name(), "late shares", 0, late.len())?;
        expect_count(self.name(), "masks", self.outputs(), masks.len())?;
        let circuits = &self.circuits;
        let labels = circuits.instances() * circuits.bits() * LABEL_BYTES;
        let mut stream = channel.recv_stream(LABELS, labels as u64)?;
        let evaluated = circuits.evaluate(stored, |rows, [server, client]| {
            stream.get(bytemuck::cast_slice_mut(server))?;
            from_wire(server);
            client.copy_from_slice(rows);
            Ok(())
        })?;
        stream.finish()?;
        let mut results = evaluated.outputs;
        let flags = flag_shares(&circuits.split_flags(&mut results));
        let modulus = circuits.modulus();
        for (result, mask) in results.iter_mut().zip(masks) {
            *result = modulus.sub(*result, *mask);
        }
        Ok(Box::new(Listened {
            width: modulus.width(),
            results,
            flags,
            shown: self.positions(&evaluated.revealed)?,
        }))
    }
}

/// A client that has evaluated its circuits.
struct Listened {
    width: u32,
    /// Minus the client's masks.
    results: Zeroizing<Vec<u64>>,
    flags: FlagShares,
    shown: Vec<usize>,
}

impl PendingAnswer for Listened {
    fn flags(&mut self) -> FlagShares {
        std::mem::take(&mut self.flags)
    }

    fn answer(self: Box<Self>, channel: &mut Channel) -> Result<Vec<usize>> {
        if !self.results.is_empty() {
            channel.send_residues(RESULTS, self.width, self.results.iter().copied())?;
        }
        channel.flush()?;
        Ok(self.shown)
    }
}

impl Garbled {
    /// Returns what a stop without outputs shows: a position for each instance, all within the row.
    fn positions(&self, revealed: &[bool]) -> Result<Vec<usize>> {
        let circuit = self.circuit();
        let cost = circuit.circuit().cost();
        if cost.outputs > 0 {
            return Ok(Vec::new());
        }
        if cost.reveals == 0 {
            // A row of one element has no position to tell.
            return Ok(vec![0; self.circuits.instances()]);
        }
        // Rows need not be powers of two, so wrong labels can spell a position that is not there.
        let (stop, row) = (self.name(), circuit.row());
        let positions = revealed.chunks_exact(cost.reveals);
        let checked = positions.map(StopCircuit::position).map(|position| {
            if position < row {
                return Ok(position);
            }
            Err(StopError::Position {
                stop,
                position,
                row,
            })
        });
        checked.collect()
    }
}

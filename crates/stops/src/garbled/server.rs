//! The server's side of a garbled stop: the garbler.
//!
//! Offline, for every chunk: the server extends the oblivious transfers by the client's input bits,
//! whose rows are the zero labels of those bits, and garbles. The zero labels of its *own* bits
//! come from a seed, so that it can make them again online instead of keeping them. It keeps the
//! seed, the offset and the masks of the outputs, 8 bytes each.
//!
//! Online it sends the labels of its bits, receives `f(x) + A - r`, and takes off `A`.

use super::Garbled;
use crate::error::{Result, StopsError, expect_count, unusable};
use crate::material;
use crate::stop::{ServerStop, ServerTools, Stop, Waiting};
use primer_garble::circuit::{LANES, Modulus, Party};
use primer_garble::garbler::Garbler;
use primer_garble::{LABEL_BYTES, Label, Offset};
use primer_net::kind::garbled::{GARBLED, LABELS, NONCE, RESULTS};
use primer_net::{Channel, NetError};
use primer_ring::prg::{Prg, SECRET_SEED_BYTES, SecretSeed};
use std::io::{self, Read, Write};
use zeroize::Zeroizing;

/// Labels made and sent at a time: 256 KiB.
const LABEL_BLOCK: usize = 1 << 14;

impl ServerStop for Garbled {
    /// # Panics
    /// If the transfers' offset does not have its lowest bit set; theirs always does.
    fn prepare(&self, tools: &mut ServerTools<'_>, sink: &mut dyn Write) -> Result<()> {
        let ServerTools {
            channel,
            labels: cot,
            rng,
            ..
        } = tools;
        let offset = Offset::from_label(cot.delta().label());
        let offset = offset.expect("the offset of transfers has its lowest bit set");
        let seed = Zeroizing::new(rng.secret_seed());
        let nonce = rng.seed();
        channel.send(NONCE, &nonce)?;
        let circuit = self.circuit.circuit();
        let mut garbler = Garbler::new(circuit, &offset, Label::from_le_bytes(nonce));
        let mut own = Prg::secret(&seed);
        let (ours, theirs) = (self.inputs(Party::Garbler), self.inputs(Party::Evaluator));
        let outputs = circuit.cost().outputs;
        let mut masks = Zeroizing::new(vec![0; self.outputs()]);
        let mut labels = Zeroizing::new(vec![0; LANES * ours]);
        let mut done = 0;
        for instances in self.chunks() {
            let client = cot.extend_vec(channel, instances * theirs)?;
            let mut stream = channel.send_stream(GARBLED, self.garbled_len(instances))?;
            for first in (0..instances).step_by(LANES) {
                let lanes = LANES.min(instances - first);
                let labels = &mut labels[..lanes * ours];
                draw(&mut own, labels);
                let client = &client[first * theirs..(first + lanes) * theirs];
                let masks = &mut masks[(done + first) * outputs..(done + first + lanes) * outputs];
                (garbler.batch(labels, client, masks, &mut stream))
                    .map_err(|error| sink_error(error, self.name()))?;
            }
            stream.finish()?;
            done += instances;
        }
        channel.flush()?;
        self.write(&seed, &offset, &masks, sink)
    }

    fn request(
        &self,
        channel: &mut Channel,
        stored: &mut dyn Read,
        shares: &[u64],
    ) -> Result<Box<dyn Waiting>> {
        expect_count(self.name(), "shares", self.elements(), shares.len())?;
        let (seed, offset, masks) = self.read(stored)?;
        self.send_labels(channel, &seed, &offset, shares)?;
        Ok(Box::new(Requested {
            modulus: self.circuit.circuit().modulus(),
            masks,
        }))
    }
}

/// A server that has sent its labels.
struct Requested {
    modulus: Modulus,
    /// The mask of every output, `A`.
    masks: Zeroizing<Vec<u64>>,
}

impl Waiting for Requested {
    fn receive(self: Box<Self>, channel: &mut Channel) -> Result<Vec<u64>> {
        let mut results = vec![0; self.masks.len()];
        if results.is_empty() {
            return Ok(results);
        }
        let modulus = self.modulus;
        channel.recv_residues(RESULTS, modulus.width(), modulus.order(), &mut results)?;
        for (result, &mask) in results.iter_mut().zip(self.masks.iter()) {
            *result = modulus.sub(*result, mask);
        }
        Ok(results)
    }
}

impl Garbled {
    fn send_labels(
        &self,
        channel: &mut Channel,
        seed: &SecretSeed,
        offset: &Offset,
        shares: &[u64],
    ) -> Result<()> {
        let bits = self.circuit.ring_bits() as usize;
        let length = (shares.len() * bits * LABEL_BYTES) as u64;
        let mut stream = channel.send_stream(LABELS, length)?;
        let mut own = Prg::secret(seed);
        let mut labels = Zeroizing::new(vec![0; LABEL_BLOCK / bits * bits]);
        for block in shares.chunks(LABEL_BLOCK / bits) {
            let labels = &mut labels[..block.len() * bits];
            draw(&mut own, labels);
            for (labels, share) in labels.chunks_exact_mut(bits).zip(block) {
                for (i, label) in labels.iter_mut().enumerate() {
                    *label = offset.choose(*label, share >> i & 1 == 1).to_le();
                }
            }
            stream.put(bytemuck::cast_slice(labels))?;
        }
        Ok(stream.finish()?)
    }

    fn write(
        &self,
        seed: &SecretSeed,
        offset: &Offset,
        masks: &[u64],
        sink: &mut dyn Write,
    ) -> Result<()> {
        // Reserved at once: a buffer that grows would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.stored().server as usize));
        bytes.extend_from_slice(seed);
        bytes.extend_from_slice(&*offset.to_bytes());
        for mask in masks {
            bytes.extend_from_slice(&mask.to_le_bytes());
        }
        material::keep(self.name(), sink, &bytes)
    }

    /// What [`Self::write`] wrote. Masks are reduced: a damaged one is a wrong mask, not a fault.
    fn read(
        &self,
        stored: &mut dyn Read,
    ) -> Result<(Zeroizing<SecretSeed>, Offset, Zeroizing<Vec<u64>>)> {
        let bytes = material::take(self.name(), stored, self.stored().server)?;
        let (head, masks) = bytes.split_at(SECRET_SEED_BYTES + LABEL_BYTES);
        let mut seed = Zeroizing::new(SecretSeed::default());
        seed.copy_from_slice(&head[..SECRET_SEED_BYTES]);
        let mut label = Zeroizing::new([0; LABEL_BYTES]);
        label.copy_from_slice(&head[SECRET_SEED_BYTES..]);
        let offset = Offset::from_label(Label::from_le_bytes(*label))
            .ok_or_else(|| unusable(self.name(), "the offset's lowest bit is not set"))?;
        let modulus = self.circuit.circuit().modulus();
        let masks = masks.chunks_exact(8).map(|m| {
            let mask = u64::from_le_bytes(m.try_into().expect("eight bytes"));
            modulus.reduce(mask)
        });
        Ok((seed, offset, Zeroizing::new(masks.collect())))
    }
}

/// The next labels of a seed's stream.
fn draw(prg: &mut Prg, labels: &mut [Label]) {
    prg.fill(bytemuck::cast_slice_mut(labels));
    for label in labels {
        *label = Label::from_le(*label);
    }
}

/// The error that a streaming sink reported.
fn sink_error(error: io::Error, stop: &'static str) -> StopsError {
    match error.downcast::<NetError>() {
        Ok(net) => StopsError::Net(net),
        Err(source) => StopsError::Store { stop, source },
    }
}

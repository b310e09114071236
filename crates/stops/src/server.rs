//! The server's side of a garbled stop: the garbler.
//!
//! Offline, for every chunk: the server extends the oblivious transfers by the client's input bits, whose
//! rows are the zero labels of those bits, and garbles. The zero labels of its *own* bits come from a
//! seed, so that it can make them again online instead of keeping them. It keeps the seed and the masks of
//! the outputs: 8 bytes for each.
//!
//! Online it sends the labels of its bits, receives `f(x) + A - r`, and takes off `A`.

use crate::error::{Result, StopsError, expect_count};
use crate::job::Job;
use crate::{GARBLED, LABELS, NONCE, RESULTS};
use primer_garble::circuit::{LANES, Party};
use primer_garble::garbler::Garbler;
use primer_garble::{LABEL_BYTES, Label, Offset};
use primer_net::{Channel, NetError};
use primer_ot::CotSender;
use primer_ring::prg::{Prg, SEED_BYTES, Seed};
use std::io;
use zeroize::{Zeroize, Zeroizing};

/// Labels made and sent at a time: 256 KiB.
const LABEL_BLOCK: usize = 1 << 14;

/// What the server keeps between offline and online. Spent by [`Self::finish`].
pub struct ServerMaterial {
    job: Job,
    offset: Offset,
    /// Where the zero labels of the server's bits come from.
    seed: Zeroizing<Seed>,
    /// The mask of every output, `A`.
    masks: Zeroizing<Vec<u64>>,
}

/// The next labels of a seed's stream.
fn draw(prg: &mut Prg, labels: &mut [Label]) {
    prg.fill(bytemuck::cast_slice_mut(labels));
    for label in labels {
        *label = Label::from_le(*label);
    }
}

/// The error that a streaming sink reported.
fn sink_error(error: io::Error, job: &Job) -> StopsError {
    match error.downcast::<NetError>() {
        Ok(net) => StopsError::Net(net),
        Err(source) => StopsError::Store {
            stop: job.stop().name(),
            source,
        },
    }
}

impl ServerMaterial {
    /// Offline: garbles the job for the client at the other end.
    ///
    /// # Errors
    /// [`StopsError`] of the channel and the transfers.
    ///
    /// # Panics
    /// If the transfers' offset does not have its lowest bit set; theirs always does.
    pub fn prepare(
        channel: &mut Channel,
        cot: &mut CotSender,
        job: &Job,
        prg: &mut Prg,
    ) -> Result<Self> {
        let offset = Offset::from_label(cot.delta().label());
        let offset = offset.expect("the offset of transfers has its lowest bit set");
        let seed = Zeroizing::new(prg.seed());
        let nonce = prg.seed();
        channel.send(NONCE, &nonce)?;
        let circuit = job.stop().circuit();
        let mut garbler = Garbler::new(circuit, &offset, Label::from_le_bytes(nonce));
        let mut own = Prg::new(&seed);
        let (ours, theirs) = (job.inputs(Party::Garbler), job.inputs(Party::Evaluator));
        let outputs = circuit.cost().outputs;
        let mut masks = Zeroizing::new(vec![0; job.outputs()]);
        let mut labels = Zeroizing::new(vec![0; LANES * ours]);
        let mut done = 0;
        for instances in job.chunks() {
            let client = cot.extend_vec(channel, instances * theirs)?;
            let mut stream = channel.send_stream(GARBLED, job.garbled_len(instances))?;
            for first in (0..instances).step_by(LANES) {
                let lanes = LANES.min(instances - first);
                let labels = &mut labels[..lanes * ours];
                draw(&mut own, labels);
                let client = &client[first * theirs..(first + lanes) * theirs];
                let masks = &mut masks[(done + first) * outputs..(done + first + lanes) * outputs];
                (garbler.batch(labels, client, masks, &mut stream))
                    .map_err(|error| sink_error(error, job))?;
            }
            stream.finish()?;
            done += instances;
        }
        channel.flush()?;
        drop(garbler);
        Ok(Self {
            job: job.clone(),
            offset,
            seed,
            masks,
        })
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Online: from the server's ring shares to its shares modulo p of the results, in the order of
    /// instances. Empty if the stop shows its result to the client instead.
    ///
    /// # Errors
    /// [`StopsError`] of the channel; [`StopsError::Count`] if the shares are too many or too few.
    pub fn finish(self, channel: &mut Channel, shares: &[u64]) -> Result<Vec<u64>> {
        let stop = self.job.stop();
        expect_count(stop.name(), "shares", self.job.elements(), shares.len())?;
        self.send_labels(channel, shares)?;
        let circuit = stop.circuit();
        let mut results = vec![0; self.job.outputs()];
        if !results.is_empty() {
            let modulus = circuit.modulus();
            channel.recv_residues(RESULTS, modulus.width(), modulus.order(), &mut results)?;
            for (result, &mask) in results.iter_mut().zip(self.masks.iter()) {
                *result = modulus.sub(*result, mask);
            }
        }
        channel.flush()?;
        Ok(results)
    }

    fn send_labels(&self, channel: &mut Channel, shares: &[u64]) -> Result<()> {
        let bits = self.job.stop().ring_bits() as usize;
        let length = (shares.len() * bits * LABEL_BYTES) as u64;
        let mut stream = channel.send_stream(LABELS, length)?;
        let mut own = Prg::new(&self.seed);
        let mut labels = Zeroizing::new(vec![0; LABEL_BLOCK / bits * bits]);
        for block in shares.chunks(LABEL_BLOCK / bits) {
            let labels = &mut labels[..block.len() * bits];
            draw(&mut own, labels);
            for (labels, share) in labels.chunks_exact_mut(bits).zip(block) {
                for (i, label) in labels.iter_mut().enumerate() {
                    *label = self.offset.choose(*label, share >> i & 1 == 1).to_le();
                }
            }
            stream.put(bytemuck::cast_slice(labels))?;
        }
        Ok(stream.finish()?)
    }

    /// The material as bytes, for storage that keeps it secret and spends it once.
    pub fn into_bytes(self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.job.server_stored_len() as usize));
        bytes.extend_from_slice(&*self.seed);
        bytes.extend_from_slice(&*self.offset.to_bytes());
        for mask in self.masks.iter() {
            bytes.extend_from_slice(&mask.to_le_bytes());
        }
        bytes
    }

    /// Material from its bytes.
    ///
    /// # Errors
    /// [`StopsError::Encoded`] if the bytes are not material of this job.
    pub fn from_bytes(job: &Job, bytes: &[u8]) -> Result<Self> {
        let wrong = || StopsError::Encoded {
            stop: job.stop().name(),
            expected: job.server_stored_len(),
            got: bytes.len() as u64,
        };
        if bytes.len() as u64 != job.server_stored_len() {
            return Err(wrong());
        }
        let (head, masks) = bytes.split_at(SEED_BYTES + LABEL_BYTES);
        let mut seed = Zeroizing::new(Seed::default());
        seed.copy_from_slice(&head[..SEED_BYTES]);
        let mut offset = [0; LABEL_BYTES];
        offset.copy_from_slice(&head[SEED_BYTES..]);
        let label = Label::from_le_bytes(offset);
        offset.zeroize();
        let modulus = job.stop().circuit().modulus();
        let masks = masks.chunks_exact(8).map(|m| {
            let mask = u64::from_le_bytes(m.try_into().expect("eight bytes"));
            modulus.reduce(mask)
        });
        Ok(Self {
            job: job.clone(),
            offset: Offset::from_label(label).ok_or_else(wrong)?,
            seed,
            masks: Zeroizing::new(masks.collect()),
        })
    }
}

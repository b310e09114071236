//! What goes over the wire, byte for byte: a hash of each protocol's messages under fixed seeds.
//!
//! A change here is a change of the protocol: parties from before and after it do not understand
//! each other, or what was proved about the bytes has to be proved again.

use primer_ot::onehot::{self, Shape};
use primer_ot::*;
use primer_ring::prg::Prg;
use primer_wire::Channel;
use std::io::Write;
use std::sync::{Arc, Mutex};

const SETUP: Setup = Setup::new(Variant::IKNP, BaseOt::Ristretto);

/// Hashes what passes through.
struct Tap<W> {
    inner: W,
    seen: Arc<Mutex<blake3::Hasher>>,
}

impl<W: Write> Write for Tap<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.seen.lock().unwrap().update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// Runs two parties; returns the hash of what the first sent, then of what the second did.
fn transcript(
    left: impl FnOnce(&mut Channel, &mut Prg) -> Result<()> + Send,
    right: impl FnOnce(&mut Channel, &mut Prg) -> Result<()> + Send,
) -> String {
    let (left_in, right_out) = std::io::pipe().unwrap();
    let (right_in, left_out) = std::io::pipe().unwrap();
    let hashes = [(); 2].map(|()| Arc::new(Mutex::new(blake3::Hasher::new())));
    let tap = |inner, party: usize| Tap {
        inner,
        seen: hashes[party].clone(),
    };
    let mut ends = [
        Channel::over(tap(left_out, 0), left_in),
        Channel::over(tap(right_out, 1), right_in),
    ];
    std::thread::scope(|scope| {
        let [a, b] = &mut ends;
        let left = scope.spawn(move || {
            left(a, &mut Prg::new(&[1; 16])).unwrap();
            a.flush().unwrap();
        });
        right(b, &mut Prg::new(&[2; 16])).unwrap();
        b.flush().unwrap();
        left.join().unwrap();
    });
    let short = |hash: &Arc<Mutex<blake3::Hasher>>| {
        hash.lock().unwrap().finalize().to_hex()[..16].to_string()
    };
    hashes.each_ref().map(short).join(" ")
}

#[test]
fn base_transfers() {
    let run = |base| {
        transcript(
            |channel, rng| {
                CotSender::setup(
                    Setup::new(Variant::default(), base),
                    channel,
                    Delta::random(rng),
                    rng,
                )
                .map(drop)
            },
            |channel, rng| {
                CotReceiver::setup(Setup::new(Variant::default(), base), channel, rng).map(drop)
            },
        )
    };
    assert_eq!(run(BaseOt::MlKem), "a334adcdfd2e5811 00255e2cd695f973");
    assert_eq!(run(BaseOt::Ristretto), "ac3f383e9b0e1d6e 05382843ae8282f5");
}

fn extensions(variant: Variant) -> String {
    let sizes = [1000, 1, 20_000, 0, 128];
    transcript(
        |channel, rng| {
            let delta = Delta::random(rng);
            let base = BaseOt::Ristretto;
            let mut cot = CotSender::setup(Setup::new(variant, base), channel, delta, rng)?;
            for n in sizes {
                cot.extend(channel, n, |_, _| ())?;
            }
            Ok(())
        },
        |channel, rng| {
            let mut cot = CotReceiver::setup(Setup::new(variant, BaseOt::Ristretto), channel, rng)?;
            for n in sizes {
                cot.extend(channel, &Bits::random(n, rng), |_, _| ())?;
            }
            Ok(())
        },
    )
}

#[test]
fn every_variant() {
    let expected = [
        "ac3f383e9b0e1d6e 9bc5ecade88f1114",
        "ac3f383e9b0e1d6e 0c3ea90e08ee2072",
        "ac3f383e9b0e1d6e 798ca83acd6316f6",
        "ac3f383e9b0e1d6e 9348495cb590f204",
        "ac3f383e9b0e1d6e 184d5596852b0852",
        "ac3f383e9b0e1d6e 77ed4862960d548d",
    ];
    assert_eq!(Variant::ALL.map(extensions)[..], expected[..]);
}

#[test]
fn one_hot_vectors() {
    let setup = Setup::new(Variant::SOFT_4, BaseOt::Ristretto);
    let run = |bits| {
        let shape = Shape::new(bits).unwrap();
        transcript(
            |channel, rng| {
                let mut transfers = CotSender::setup(setup, channel, Delta::random(rng), rng)?;
                let mut labels = CotReceiver::setup(setup, channel, rng)?;
                let indices: Vec<u16> = (0..100).map(|i| i % 16).collect();
                let both = (&mut transfers, &mut labels);
                onehot::with_indices(both, channel, shape, &indices, rng, |_, _| Ok(()))
            },
            |channel, rng| {
                let mut transfers = CotReceiver::setup(setup, channel, rng)?;
                let mut labels = CotSender::setup(setup, channel, Delta::random(rng), rng)?;
                let both = (&mut transfers, &mut labels);
                onehot::with_offsets(both, channel, shape, 100, rng, |_, _, _| Ok(()))
            },
        )
    };
    let expected = [
        "b66b6e33f1c79fc3 c88747cb3ee69310",
        "6c26e55873fa1661 ff239421e33c3809",
        "b6de0d7704395c1f 3b6de8fe31826cd9",
        "1181ee3d61c8e84b 536f215adf86b65e",
    ];
    assert_eq!([4, 7, 8, 10].map(run), expected);
}

#[test]
fn products() {
    let modulus = (1 << 41) - (1 << 16) + 1;
    let n = 1000;
    let run = transcript(
        |channel, rng| {
            let delta = Delta::random(rng);
            let mut cot = CotSender::setup(SETUP, channel, delta, rng)?;
            let known: Vec<u64> = (0..n as u64).collect();
            let known = (&known[..], &known[..]);
            let material = ProductSender::prepare(&mut cot, channel, known, modulus)?;
            material.answer(channel)
        },
        |channel, rng| {
            let mut cot = CotReceiver::setup(SETUP, channel, rng)?;
            let material = ProductReceiver::prepare(&mut cot, channel, rng, n, modulus)?;
            let waiting = material.request(channel, &Bits::random(n, rng))?;
            waiting.receive(channel).map(drop)
        },
    );
    assert_eq!(run, "5cf8ad20f657de7a d72d431a2716038b");
}

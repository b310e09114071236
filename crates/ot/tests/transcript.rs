//! What goes over the wire, byte for byte: a hash of each protocol's messages under fixed seeds.
//!
//! A change here is a change of the protocol: parties of before and after do not understand each
//! other, or what was proved about the bytes has to be proved again.

use primer_net::Channel;
use primer_ot::onehot::{self, Shape};
use primer_ot::*;
use primer_ring::prg::Prg;
use std::io::Write;
use std::sync::{Arc, Mutex};

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

/// Runs two parties; the hash of what the first sent, then of what the second did.
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
            |channel, rng| CotSender::setup(channel, base, Delta::random(rng), rng).map(drop),
            |channel, rng| CotReceiver::setup(channel, base, rng).map(drop),
        )
    };
    assert_eq!(run(BaseOt::MlKem), "839d3fa7b6eee204 f0ad0833ea2af071");
    assert_eq!(run(BaseOt::Ristretto), "68ea84c2a8e0ebbb 05382843ae8282f5");
}

fn extensions(variant: Variant) -> String {
    let sizes = [1000, 1, 20_000, 0, 128];
    transcript(
        |channel, rng| {
            let delta = Delta::random(rng);
            let base = BaseOt::Ristretto;
            let mut cot = CotSender::setup_as(variant, channel, base, delta, rng)?;
            for n in sizes {
                cot.extend(channel, n, |_, _| ())?;
            }
            Ok(())
        },
        |channel, rng| {
            let mut cot = CotReceiver::setup_as(variant, channel, BaseOt::Ristretto, rng)?;
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
        "68ea84c2a8e0ebbb ad427d0be60a536c",
        "68ea84c2a8e0ebbb 0965368516c47dba",
        "68ea84c2a8e0ebbb b00de08b5c0f5482",
        "68ea84c2a8e0ebbb d51908eb4a7c3ae3",
        "68ea84c2a8e0ebbb cc725a437abf8dab",
        "68ea84c2a8e0ebbb 4fe2ba0599cd1d45",
    ];
    assert_eq!(Variant::ALL.map(extensions)[..], expected[..]);
}

#[test]
fn one_hot_vectors() {
    let run = |bits| {
        let shape = Shape::new(bits).unwrap();
        transcript(
            |channel, rng| {
                let delta = Delta::random(rng);
                let (variant, base) = (Variant::SOFT_4, BaseOt::Ristretto);
                let mut cot = CotSender::setup_as(variant, channel, base, delta, rng)?;
                let indices: Vec<u16> = (0..100).map(|i| i % 16).collect();
                onehot::send(&mut cot, channel, shape, &indices, |_, _| Ok(()))
            },
            |channel, rng| {
                let (variant, base) = (Variant::SOFT_4, BaseOt::Ristretto);
                let mut cot = CotReceiver::setup_as(variant, channel, base, rng)?;
                onehot::receive(&mut cot, channel, shape, 100, rng, |_, _, _| Ok(()))
            },
        )
    };
    let expected = [
        "17e1c6c1256dfbb7 17e0cc0ff4585bbd",
        "9a017c36c7e491f3 2d3aa4f804168c70",
        "aa96a0da83fcbbc2 a23a8f18a7cb961b",
        "9000d7054e2a8d56 0529631f16999629",
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
            let mut cot = CotSender::setup(channel, BaseOt::Ristretto, delta, rng)?;
            let known: Vec<u64> = (0..n as u64).collect();
            let known = (&known[..], &known[..]);
            let material = ProductSender::prepare(&mut cot, channel, known, modulus)?;
            material.answer(channel)
        },
        |channel, rng| {
            let mut cot = CotReceiver::setup(channel, BaseOt::Ristretto, rng)?;
            let material = ProductReceiver::prepare(&mut cot, channel, rng, n, modulus)?;
            let waiting = material.request(channel, &Bits::random(n, rng))?;
            waiting.receive(channel).map(drop)
        },
    );
    assert_eq!(run, "71dc7549718504b7 6fb940cf3e72c1ae");
}

//! A set-up and an extension whose bytes are changed on their way: the check finds every change
//! that reaches the sender's seeds or rows. (A receiver that deviates and proves what it did is in
//! the unit tests.)

use primer_ot::*;
use primer_ring::prg::Prg;
use primer_wire::Channel;
use std::io::{self, Write};

/// Flips bits of the bytes at some places of a stream.
struct Flip<W> {
    inner: W,
    at: u64,
    flips: Vec<(u64, u8)>,
}

impl<W: Write> Write for Flip<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut changed = bytes.to_vec();
        for (place, bits) in &self.flips {
            let there = place.checked_sub(self.at).map(|i| i as usize);
            if let Some(byte) = there.and_then(|i| changed.get_mut(i)) {
                *byte ^= bits;
            }
        }
        self.inner.write_all(&changed)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

const N: usize = 20_000;

const HEADER: u64 = 8;

/// Returns the sender's verdict on an extension in which the receiver's bytes are flipped, counted
/// from the beginning of the extension's payload.
fn extend(variant: Variant, delta: u128, flips: &[(u64, u8)]) -> Result<Vec<u128>> {
    let before = cost::setup_as(variant, BaseOt::Ristretto).from_receiver + HEADER;
    let flips = flips
        .iter()
        .map(|(at, bits)| (before + at, *bits))
        .collect();
    run(Setup::new(variant, BaseOt::Ristretto), delta, flips)
}

/// Does the same with flips counted from the receiver's first byte.
fn run(setup: Setup, delta: u128, flips: Vec<(u64, u8)>) -> Result<Vec<u128>> {
    let (sender_in, receiver_out) = io::pipe().unwrap();
    let (receiver_in, sender_out) = io::pipe().unwrap();
    let receiver_out = Flip {
        inner: receiver_out,
        at: 0,
        flips,
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut channel = Channel::over(receiver_out, receiver_in);
            let rng = &mut Prg::new(&[2; 16]);
            let mut cot = CotReceiver::setup(setup, &mut channel, rng)?;
            cot.extend(&mut channel, &Bits::random(N, rng), |_, _| ())?;
            Ok::<_, OtError>(channel.flush()?)
        });
        let mut channel = Channel::over(sender_out, sender_in);
        let (delta, rng) = (Delta::from_label(delta), &mut Prg::new(&[1; 16]));
        let mut cot = CotSender::setup(setup, &mut channel, delta, rng)?;
        cot.extend_vec(&mut channel, N).map(|rows| rows.to_vec())
    })
}

/// Returns where the message of a tree begins in a full block of transfers.
fn tree(index: u64) -> u64 {
    8 + index * (1 << 14) / 8
}

#[test]
fn a_change_in_one_tree_is_found() {
    for variant in [Variant::IKNP, Variant::SOFT_2, Variant::SOFT_4] {
        let honest = extend(variant, u128::MAX, &[]).unwrap();
        let last = 128 / variant.bits() as u64 - 1;
        for flip in [(tree(3), 1), (tree(3) + 2047, 0x80), (tree(last) + 5, 4)] {
            // Without the check the change goes unnoticed, and rows are wrong.
            assert!(extend(variant, u128::MAX, &[flip]).unwrap() != honest);
            let checked = extend(variant.checked(), u128::MAX, &[flip]);
            assert!(
                matches!(checked, Err(OtError::Inconsistent)),
                "{variant:?} {flip:?}"
            );
        }
        assert!(extend(variant.checked(), u128::MAX, &[]).is_ok());
    }
}

#[test]
fn a_change_in_all_trees_is_found() {
    // A change in every tree is a change of choice, but the proof is for the old one.
    let variant = Variant::SOFT_4.checked();
    let flips: Vec<_> = (0..32).map(|t| (tree(t), 1)).collect();
    let changed = extend(variant, u128::MAX, &flips);
    assert!(matches!(changed, Err(OtError::Inconsistent)));
}

#[test]
fn a_wrong_proof_is_found() {
    let variant = Variant::SOFT_4.checked();
    let payload = cost::extension_as(variant, N).from_receiver - 8;
    // The digest, the hash of the choices, the masking transfers.
    for from_end in [1, 32, 33, 48, 49, 49 + 32 * 16 - 1] {
        let changed = extend(variant, u128::MAX, &[(payload - from_end, 1)]);
        assert!(matches!(changed, Err(OtError::Inconsistent)), "{from_end}");
    }
}

#[test]
fn a_wrong_position_is_told_before_all_else() {
    let changed = extend(Variant::SOFT_4.checked(), u128::MAX, &[(0, 1)]);
    assert!(matches!(changed, Err(OtError::OutOfStep { got: 1, .. })));
}

/// Checks that a spoiled tree is found: the trees are part of the session's name, so a sum that was
/// changed on its way is found even by a sender whose leaves it does not change. (A receiver that
/// spoils its own trees is in the unit tests of `tags`.)
#[test]
fn a_spoiled_tree_is_found() {
    for variant in [Variant::SOFT_2, Variant::SOFT_4] {
        let before = cost::setup(BaseOt::Ristretto).from_receiver + HEADER;
        let levels = variant.bits() as u64 - 1;
        // Both sums of the last level of tree 3, of which a sender opens one.
        let sum = before + 32 * (3 * levels + levels - 1);
        for at in [sum, sum + 16] {
            let spoil = |variant| {
                let setup = Setup::new(variant, BaseOt::Ristretto);
                run(setup, u128::MAX, vec![(at, 1)])
            };
            assert!(
                spoil(variant).is_ok(),
                "without the check it goes unnoticed"
            );
            let found = spoil(variant.checked());
            assert!(matches!(found, Err(OtError::Inconsistent)));
        }
    }
}

/// Checks that a changed base transfer is found: the hash of all base messages names the session
/// and goes into every seed, so a message that was changed on its way leaves the parties with other
/// seeds throughout.
#[test]
fn a_base_transfer_that_was_changed_is_found() {
    const ENCAPSULATION: u64 = 1088;
    for variant in [Variant::IKNP, Variant::SOFT_4] {
        let setup = Setup::new(variant.checked(), BaseOt::MlKem);
        let at = HEADER + 101 * ENCAPSULATION + 7;
        let found = run(setup, u128::MAX, vec![(at, 1)]);
        assert!(matches!(found, Err(OtError::Inconsistent)));
    }
}

/// Checks that a difference of nonces is found: parties with different nonces draw different
/// constants.
#[test]
fn another_nonce_is_found() {
    let setup =
        |nonce| Setup::new(Variant::SOFT_4.checked(), BaseOt::MlKem).with_nonce([nonce; 32]);
    let outcome = primer_wire::run_pair(
        |channel| CotReceiver::setup(setup(1), channel, &mut Prg::from_os()).map(drop),
        |channel| {
            let rng = &mut Prg::from_os();
            CotSender::setup(setup(2), channel, Delta::random(rng), rng).map(drop)
        },
    );
    assert!(matches!(outcome, Err(OtError::Inconsistent)));
}

//! Measuring: transfers per second of processor time, both parties added up, and what a one-hot
//! vector takes.
//!
//! Two cores of AMD Zen 3 (AVX2, VAES), load average 9 to 11, the best of 60 runs of 2^18
//! transfers, by the test `figures` (`--ignored --nocapture`) of `cargo test -p primer-ot --lib`
//! with `--config profile.dev.package.primer-ot.` followed by `opt-level=3`,
//! `debug-assertions=false` and `overflow-checks=false`. Million transfers a second, without and
//! with the check: IKNP 88.9 and 17.6, `k = 2` 111.6 and 28.4, `k = 4` 88.4 and 38.4; 16, 8 and 4
//! bytes a transfer. Most of the check is products in GF(2^128) and hashing the message. Set-up,
//! both parties, wall clock: ML-KEM-768 135 ms, ristretto255 27 ms.

use crate::base::BaseOt;
use crate::bits::Bits;
use crate::cot::{CotReceiver, CotSender, Delta};
use crate::error::{OtError, Result};
use crate::onehot::{self, Shape};
use crate::setup::Setup;
use crate::variant::Variant;
use primer_ring::prg::Prg;
use primer_wire::clock::ThreadClock;
use primer_wire::run_pair;
use rand_core::Rng;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What [`measure`] found.
#[derive(Debug, Clone, Copy)]
pub struct Measurement {
    /// Millions of correlated transfers per second of processor time, sender and receiver together.
    pub ot_m_per_s: f64,
    /// Bytes per transfer, both directions, framing included, set-up not.
    pub bytes_per_ot: f64,
    /// Seconds of wall-clock time of the set-up (ML-KEM base transfers).
    pub setup_s: f64,
}

/// What [`measure_onehot`] found, for each vector, its transfers included.
#[derive(Debug, Clone, Copy)]
pub struct OneHotMeasurement {
    /// Microseconds of processor time of the party with the index.
    pub index_party_us: f64,
    /// Microseconds of processor time of the party with the offset.
    pub offset_party_us: f64,
    /// Bytes, both directions, framing included, set-up not.
    pub bytes: f64,
}

/// Extends by `n` transfers over memory, `runs` times, and reports each party's best run.
///
/// # Errors
/// [`OtError`] if a party fails, which over memory it does not.
pub fn measure(variant: Variant, n: usize, runs: usize) -> Result<Measurement> {
    let start = Instant::now();
    let (sender, receiver) = run_pair(
        |channel| {
            let rng = &mut Prg::from_os();
            let delta = Delta::random(rng);
            let mut cot =
                CotSender::setup(Setup::new(variant, BaseOt::MlKem), channel, delta, rng)?;
            let setup = start.elapsed();
            let mut best = Duration::MAX;
            for _ in 0..runs {
                let clock = ThreadClock::start();
                cot.extend(channel, n, |_, rows| {
                    black_box(rows);
                })?;
                best = best.min(clock.elapsed());
            }
            Ok((best, setup))
        },
        |channel| {
            let rng = &mut Prg::from_os();
            let mut cot = CotReceiver::setup(Setup::new(variant, BaseOt::MlKem), channel, rng)?;
            let choices = Bits::random(n, rng);
            let before = channel.meter().report();
            let mut best = Duration::MAX;
            for _ in 0..runs {
                let clock = ThreadClock::start();
                cot.extend(channel, &choices, |_, rows| {
                    black_box(rows);
                })?;
                channel.flush()?;
                best = best.min(clock.elapsed());
            }
            let traffic = channel.meter().report().since(&before).total();
            Ok::<_, OtError>((best, traffic.bytes()))
        },
    )?;
    let ((sending, setup), (receiving, bytes)) = (sender, receiver);
    Ok(Measurement {
        ot_m_per_s: n as f64 / (sending + receiving).as_secs_f64() / 1e6,
        bytes_per_ot: bytes as f64 / (n * runs) as f64,
        setup_s: setup.as_secs_f64(),
    })
}

/// Makes shares of `count` one-hot vectors over memory, `runs` times, and reports each party's best
/// run.
///
/// # Errors
/// As [`measure`].
pub fn measure_onehot(
    variant: Variant,
    shape: Shape,
    count: usize,
    runs: usize,
) -> Result<OneHotMeasurement> {
    let setup = Setup::new(variant, BaseOt::MlKem);
    let (index_party, (offset_party, bytes)) = run_pair(
        |channel| {
            let rng = &mut Prg::from_os();
            let mut transfers = CotSender::setup(setup, channel, Delta::random(rng), rng)?;
            let mut labels = CotReceiver::setup(setup, channel, rng)?;
            let draw = |_| (rng.next_u32() as usize % shape.entries()) as u16;
            let indices: Vec<u16> = (0..count).map(draw).collect();
            let mut best = Duration::MAX;
            for _ in 0..runs {
                let clock = ThreadClock::start();
                let both = (&mut transfers, &mut labels);
                onehot::with_indices(both, channel, shape, &indices, rng, |_, vectors| {
                    black_box(vectors);
                    Ok::<_, OtError>(())
                })?;
                best = best.min(clock.elapsed());
            }
            Ok(best)
        },
        |channel| {
            let rng = &mut Prg::from_os();
            let mut transfers = CotReceiver::setup(setup, channel, rng)?;
            let mut labels = CotSender::setup(setup, channel, Delta::random(rng), rng)?;
            let before = channel.meter().report();
            let mut best = Duration::MAX;
            for _ in 0..runs {
                let clock = ThreadClock::start();
                let both = (&mut transfers, &mut labels);
                onehot::with_offsets(both, channel, shape, count, rng, |_, offsets, vectors| {
                    black_box((offsets, vectors));
                    Ok::<_, OtError>(())
                })?;
                best = best.min(clock.elapsed());
            }
            let traffic = channel.meter().report().since(&before).total();
            Ok::<_, OtError>((best, traffic.bytes()))
        },
    )?;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
    Ok(OneHotMeasurement {
        index_party_us: each(index_party),
        offset_party_us: each(offset_party),
        bytes: bytes as f64 / (count * runs) as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_the_bytes_of_each_variant() {
        for (variant, bytes) in [
            (Variant::IKNP, 16.0),
            (Variant::SOFT_2, 8.0),
            (Variant::SOFT_4, 4.0),
        ] {
            let found = measure(variant, 1 << 18, 2).unwrap();
            assert!((bytes..bytes + 0.001).contains(&found.bytes_per_ot));
            assert!(found.ot_m_per_s > 0.0 && found.setup_s > 0.0);
        }
    }

    #[test]
    fn measures_a_one_hot_vector() {
        let shape = Shape::new(8).unwrap();
        let found = measure_onehot(Variant::SOFT_4, shape, 1 << 14, 2).unwrap();
        assert!((101.0..101.1).contains(&found.bytes), "{}", found.bytes);
        assert!(found.index_party_us > 0.0 && found.offset_party_us > 0.0);
    }
}

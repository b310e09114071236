//! The cost of a look-up, with both parties on one machine.

use crate::error::{Result, StopError};
use crate::lookup::Lookups;
use crate::stop::{ClientStop, ClientTools, ServerStop, ServerTools, Stop};
use primer_ot::{BaseOt, CotReceiver, CotSender, Delta, Setup, Variant};
use primer_plan::function::{Activation, Lookup, LookupTable};
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_wire::clock::ThreadClock;
use primer_wire::run_pair;
use std::time::Duration;

/// The look-up figures of `primer bench --kernels`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Microseconds of processor time that the slower party takes to prepare one look-up in a table
    /// of 256, transfers included.
    pub lookup_256_offline_us: f64,
    /// Bytes sent offline for it, in both directions.
    pub lookup_256_offline_bytes: f64,
    /// Nanoseconds of processor time that the slower party takes online for one look-up in a table
    /// of 256.
    pub lookup_256_online_ns: f64,
    /// Bytes sent online for it, in both directions.
    pub lookup_online_bytes: f64,
}

/// Returns the GELU of a BERT as a table of 256: cells of 1/8, ten fractional bits out.
///
/// # Panics
/// Never: the parameters are usable.
pub fn typical_gelu() -> Lookup {
    let index = (8, 3);
    let table = LookupTable::tabulate(index, (16, 10), |x| Activation::GeluErf.real(x));
    Lookup::new(index, [0; 2], vec![table]).expect("these parameters are usable")
}

/// Runs `count` look-ups over memory on SoftSpoken transfers, `runs` times, and reports the best
/// run of each phase.
///
/// # Errors
/// [`StopError`] if a party fails, which over memory it does not.
pub fn measure(count: usize, runs: usize) -> Result<Figures> {
    let variant = Variant::SOFT_4;
    let stop = Lookups::new(&typical_gelu(), count as u64)?.over(variant);
    let stop = &stop;
    let mut prg = Prg::from_os();
    let masks: Vec<u64> = (0..count).map(|_| modulus::random(&mut prg)).collect();
    let shares: Vec<u64> = masks.iter().map(|mask| mask & 255).collect();
    let (client, server) = run_pair(
        |channel| {
            let rng = &mut Prg::from_os();
            let base = BaseOt::MlKem;
            let mut labels = CotReceiver::setup(Setup::new(variant, base), channel, rng)?;
            let delta = Delta::random(rng);
            let mut transfers = CotSender::setup(Setup::new(variant, base), channel, delta, rng)?;
            let mut best = [Duration::MAX; 2];
            for _ in 0..runs {
                let mut stored = Vec::with_capacity(stop.stored().client as usize);
                let mut tools = ClientTools {
                    channel,
                    labels: &mut labels,
                    transfers: &mut transfers,
                    rng,
                };
                let clock = ThreadClock::start();
                ClientStop::prepare(stop, &mut tools, &shares, &masks, &mut stored)?;
                best[0] = best[0].min(clock.elapsed());
                let clock = ThreadClock::start();
                let pending = stop.listen(channel, &mut &stored[..], &[], &masks)?;
                pending.answer(channel)?;
                best[1] = best[1].min(clock.elapsed());
            }
            Ok::<_, StopError>(best)
        },
        |channel| {
            let rng = &mut Prg::from_os();
            let (base, delta) = (BaseOt::MlKem, Delta::random(rng));
            let mut labels = CotSender::setup(Setup::new(variant, base), channel, delta, rng)?;
            let mut transfers = CotReceiver::setup(Setup::new(variant, base), channel, rng)?;
            let mut best = [Duration::MAX; 2];
            for _ in 0..runs {
                let mut stored = Vec::with_capacity(stop.stored().server as usize);
                let mut tools = ServerTools {
                    channel,
                    labels: &mut labels,
                    transfers: &mut transfers,
                    rng,
                };
                let clock = ThreadClock::start();
                ServerStop::prepare(stop, &mut tools, &mut stored)?;
                best[0] = best[0].min(clock.elapsed());
                let clock = ThreadClock::start();
                let waiting = stop.request(channel, &mut &stored[..], &shares)?;
                channel.flush()?;
                waiting.receive(channel)?;
                best[1] = best[1].min(clock.elapsed());
            }
            Ok(best)
        },
    )?;
    let slower = |phase: usize| client[phase].max(server[phase]).as_secs_f64() / count as f64;
    let bytes = |bytes: u64| bytes as f64 / count as f64;
    Ok(Figures {
        lookup_256_offline_us: slower(0) * 1e6,
        lookup_256_offline_bytes: bytes(stop.bytes().offline()),
        lookup_256_online_ns: slower(1) * 1e9,
        lookup_online_bytes: bytes(stop.bytes().online()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_less_than_twenty_bytes() {
        let figures = measure(20_000, 2).unwrap();
        assert!((16.3..16.4).contains(&figures.lookup_online_bytes));
        assert!(figures.lookup_256_offline_bytes <= 300.0);
        assert!(figures.lookup_256_online_ns > 0.0 && figures.lookup_256_offline_us > 0.0);
    }
}

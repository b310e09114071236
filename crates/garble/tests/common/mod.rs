//! Runs a stop in the clear on chosen ring values, with random shares.

use primer_garble::clear::{CLEAR_LANES, Clear, evaluate};
use primer_garble::stop::StopCircuit;
use primer_ring::prg::Prg;

/// Returns one word for each input bit: bit `l` belongs to instance `l`.
pub(crate) fn words(stop: &StopCircuit, shares: &[Vec<u64>]) -> Vec<u64> {
    let m = stop.ring_bits() as usize;
    let mut words = vec![0; m * stop.row()];
    for (l, instance) in shares.iter().enumerate() {
        for (e, share) in instance.iter().enumerate() {
            for i in 0..m {
                words[e * m + i] |= (share >> i & 1) << l;
            }
        }
    }
    words
}

/// Draws random shares of signed ring values: the server's and the client's.
pub(crate) fn share(stop: &StopCircuit, values: &[i64], prg: &mut Prg) -> (Vec<u64>, Vec<u64>) {
    primer_testkit::shares::share(values, stop.ring_bits(), prg)
}

/// Evaluates up to 64 instances, each a row of values.
#[allow(dead_code)]
pub(crate) fn clear(stop: &StopCircuit, instances: &[Vec<i64>], prg: &mut Prg) -> Clear {
    assert!(instances.len() <= CLEAR_LANES);
    let (server, client): (Vec<_>, Vec<_>) =
        instances.iter().map(|row| share(stop, row, prg)).unzip();
    evaluate(stop.circuit(), &words(stop, &server), &words(stop, &client))
}

/// Evaluates up to 64 instances on given shares.
#[allow(dead_code)]
pub(crate) fn clear_shares(stop: &StopCircuit, server: &[Vec<u64>], client: &[Vec<u64>]) -> Clear {
    evaluate(stop.circuit(), &words(stop, server), &words(stop, client))
}

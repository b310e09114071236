//! Values of a ring in two shares.

use primer_ring::prg::Prg;
use rand_core::Rng;

/// Splits values into random shares: the server's and the client's.
pub fn share(values: &[i64], ring_bits: u32, prg: &mut Prg) -> (Vec<u64>, Vec<u64>) {
    let mask = (1u64 << ring_bits) - 1;
    let split = |&value: &i64| {
        let client = prg.next_u64() & mask;
        ((value as u64).wrapping_sub(client) & mask, client)
    };
    values.iter().map(split).unzip()
}

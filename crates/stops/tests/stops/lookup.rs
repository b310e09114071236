//! What is special about look-ups: every index and every share, all sizes, flags, bytes.

use crate::parties::{run, run_stop, share, sound, stop_client, stop_server, timely};
use primer_net::Medium;
use primer_ot::Variant;
use primer_plan::function::{Activation, Lookup, LookupTable};
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_ring::truncate::Truncation;
use primer_stops::{Comparison, FlagShares, Lookups, Stop, StopError, TwoPartyStop};
use rand_core::Rng;

/// Makes a table of GELU on an index with `fraction` fractional bits.
pub(crate) fn gelu(index_bits: u32, fraction: i32, edge: [u32; 2]) -> Lookup {
    let index = (index_bits, fraction);
    let table = LookupTable::tabulate(index, (20, 10), |x| Activation::GeluErf.real(x));
    Lookup::new(index, edge, vec![table]).unwrap()
}

/// Draws random tables with entries of `bits` bits.
fn random(index_bits: u32, bits: u32, tables: usize, prg: &mut Prg) -> Lookup {
    let mut table = |_| {
        let entry = |_| (prg.next_u64() as i64 >> (64 - bits)) as f64;
        LookupTable::tabulate((index_bits, 0), (bits, 0), entry)
    };
    Lookup::new(
        (index_bits, 0),
        [0; 2],
        (0..tables).map(&mut table).collect(),
    )
    .unwrap()
}

/// Looks up shared indices and checks that the opened results are those of the tables.
fn check(lookup: &Lookup, indices: &[i64], server: &[u64], client: &[u64]) {
    let stop = Lookups::new(lookup, indices.len() as u64).unwrap();
    let got = run_stop(Medium::Memory, &stop, (server, client), [&sound; 2]).unwrap();
    let wanted = indices.iter();
    let wanted = wanted.flat_map(|x| lookup.tables.iter().map(move |table| table.at(*x)));
    assert_eq!(got.results, wanted.collect::<Vec<_>>());
    assert_eq!(got.bytes, stop.bytes());
}

#[test]
fn all_indices_and_all_shares_of_small_tables() {
    let mut prg = Prg::new(&[1; 16]);
    for bits in [4, 5] {
        let size = 1u64 << bits;
        let pairs = (0..size).flat_map(|a| (0..size).map(move |b| (a, b)));
        let (server, client): (Vec<u64>, Vec<u64>) = pairs.unzip();
        let indices = server.iter().zip(&client).map(|(a, b)| (a + b) as i64);
        let lookup = random(bits, 40, 2, &mut prg);
        check(&lookup, &indices.collect::<Vec<_>>(), &server, &client);
    }
}

#[test]
fn random_indices_of_all_sizes() {
    let mut prg = Prg::new(&[2; 16]);
    for bits in 4..=10 {
        for tables in [1, 4] {
            let lookup = random(bits, 40, tables, &mut prg);
            let draw = |_| (prg.next_u64() as i64) >> (64 - bits);
            let mut indices: Vec<i64> = (0..300).map(draw).collect();
            indices.extend([-(1 << (bits - 1)), (1 << (bits - 1)) - 1]);
            let (server, client) = share(&indices, bits, &mut prg);
            check(&lookup, &indices, &server, &client);
        }
    }
}

/// Takes more than one chunk of the preparation, with a table of 1024.
#[test]
fn many_chunks() {
    let lookup = gelu(10, 5, [0; 2]);
    let count = 60_000;
    let stop = Lookups::new(&lookup, count).unwrap();
    assert_eq!(stop.turns().len(), 2 * 4 + 2);
    let mut prg = Prg::new(&[4; 16]);
    let indices: Vec<i64> = (0..count).map(|i| i as i64 % 1024 - 512).collect();
    let (server, client) = share(&indices, 10, &mut prg);
    check(&lookup, &indices, &server, &client);
}

/// Goes from accumulators through truncation: the results are bit for bit what the fixed-point
/// reference computes from the same shares.
#[test]
fn after_a_truncation() {
    let lookup = gelu(8, 3, [0; 2]);
    let by = Truncation::to_ring(8).unwrap();
    let mut prg = Prg::new(&[31; 16]);
    let limit = 126i64 << by.shift();
    let values: Vec<i64> = (0..500).map(|_| prg.next_u64() as i64 % limit).collect();
    let masks: Vec<u64> = values.iter().map(|_| modulus::random(&mut prg)).collect();
    let shares = values.iter().zip(&masks).map(|(&x, &r)| {
        let a = modulus::sub(modulus::from_signed(x), r);
        (by.server(a), by.client(r))
    });
    let (server, client): (Vec<u64>, Vec<u64>) = shares.unzip();
    let indices = values.iter().zip(&masks).map(|(&x, &r)| by.shared(x, r));
    check(&lookup, &indices.collect::<Vec<_>>(), &server, &client);
}

#[test]
fn online_bytes_per_element() {
    let n = 10_000;
    let one = Lookups::new(&gelu(8, 3, [0; 2]), n).unwrap();
    // 8 + 41 bits down, 82 up.
    let bytes = one.bytes().online() as f64 / n as f64;
    assert!(bytes <= 20.0 && (bytes - 16.375).abs() < 0.01, "{bytes}");
    let stored = one.stored();
    // 32 bytes of string, three residues and a bit; the server's offset is one more.
    assert!((stored.client as f64 / n as f64 - 47.5).abs() < 0.01);
    assert!((stored.server as f64 / n as f64 - 48.5).abs() < 0.01);
    // A second table costs three residues and no more, offline nothing at all.
    let mut two = gelu(8, 3, [0; 2]);
    two.tables.push(two.tables[0].clone());
    let two = Lookups::new(&two, n).unwrap();
    let more = two.bytes().online() - one.bytes().online();
    assert!((more as f64 / n as f64 - 15.375).abs() < 0.01);
    assert_eq!(two.bytes().offline(), one.bytes().offline());
}

/// Tells whether all `indices` are in range, as the client is told at the end of a run on shares of
/// them.
fn in_range(lookup: &Lookup, indices: &[i64]) -> bool {
    let stop = Lookups::new(lookup, indices.len() as u64).unwrap();
    let (server, client) = share(indices, lookup.index_bits, &mut Prg::from_os());
    told_in_range(&stop, &server, &client)
}

/// Runs a stop with flags on shared elements, then the comparison; returns what the client is told.
pub(crate) fn told_in_range(stop: &dyn TwoPartyStop, server: &[u64], client: &[u64]) -> bool {
    let masks = vec![0; stop.outputs()];
    let comparison = Comparison::over(Variant::default().into());
    let (verdict, count) = run(
        Medium::Memory,
        |p| {
            let mut stored = Vec::new();
            let [early, late] = timely(stop, client);
            stop_client(stop).prepare(&mut p.client(), early, &masks, &mut stored)?;
            let mut compared = Vec::new();
            comparison.client_prepare(&mut p.client(), &mut compared)?;
            let mut pending =
                stop_client(stop).listen(p.channel, &mut &stored[..], late, &masks)?;
            let mut flags = FlagShares::default();
            flags.append(&pending.flags());
            assert_eq!(flags.len(), stop.flags());
            pending.answer(p.channel)?;
            let asked = comparison.ask(p.channel, &mut &compared[..], &flags, &mut p.prg)?;
            p.channel.flush()?;
            asked.receive(p.channel)
        },
        |p| {
            let mut stored = Vec::new();
            stop_server(stop).prepare(&mut p.server(), &mut stored)?;
            let mut compared = Vec::new();
            comparison.server_prepare(&mut p.server(), &mut compared)?;
            let waiting = stop_server(stop).request(p.channel, &mut &stored[..], server)?;
            p.channel.flush()?;
            let (_, flags) = waiting.receive_flagged(p.channel)?;
            let count = flags.len();
            comparison.answer(p.channel, &mut &compared[..], &flags)?;
            Ok(count)
        },
    )
    .unwrap();
    assert_eq!(count, stop.flags());
    verdict
}

#[test]
fn the_client_is_told_of_indices_near_the_end() {
    let lookup = gelu(8, 3, [2, 1]);
    let inside: Vec<i64> = (-126..127).collect();
    assert!(in_range(&lookup, &inside));
    for outside in [-128, -127, 127] {
        let mut indices = inside.clone();
        indices[100] = outside;
        assert!(!in_range(&lookup, &indices), "{outside}");
        assert!(!in_range(&lookup, &[outside]), "{outside}");
    }
    // Two flags that are set do not cancel each other.
    assert!(!in_range(&lookup, &[127, 0, 127]));
    // Without an edge nothing is flagged.
    assert!(in_range(&gelu(8, 3, [0; 2]), &[-128, 127]));
    assert!(in_range(&lookup, &[]));
}

#[test]
fn impossible_amounts_are_refused_before_anything_is_allocated() {
    let lookup = gelu(8, 3, [0; 2]);
    for count in [u64::MAX, 1 << 60, (1 << 24) + 1] {
        let error = Lookups::new(&lookup, count).err().unwrap();
        assert!(matches!(error, StopError::Limit { .. }), "{error}");
    }
    let mut wrong = lookup.clone();
    wrong.index_bits = 9;
    let error = Lookups::new(&wrong, 1).err().unwrap();
    assert!(error.to_string().contains("announced size"), "{error}");
}

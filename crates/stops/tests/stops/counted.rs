//! Look-ups whose elements may not count, and classes of heads: all shares, flags, bytes, views.

use crate::lookup::told_in_range;
use crate::lookup_views::{cell_of_residue, is_uniform};
use crate::parties::{run, run_stop, share, sound, stop_client, stop_server};
use primer_net::Medium;
use primer_plan::function::{
    Function, HeadClass, Lookup, LookupTable, PlacedHead, Powers, Reciprocal,
};
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_stops::kind::StopResult;
use primer_stops::{ClassedLookups, Lookups, Stop, StopBuilder, StopKind, StopSpec};
use rand_core::Rng;

fn powers(index_bits: u32, edge: [u32; 2]) -> Lookup {
    let index = (index_bits, 1);
    let table = LookupTable::tabulate(index, (20, 3), |x| (x / 4.0).exp2());
    Lookup::new(index, edge, vec![table]).unwrap()
}

/// Returns every pair of shares of an index and of whether it counts.
fn all_shares(bits: u32) -> (Vec<u64>, Vec<u64>) {
    let size = 2u64 << bits;
    let pairs = (0..size).flat_map(|a| (0..size).map(move |b| (a, b)));
    pairs.unzip()
}

/// Opens an element's shares: returns the index, and whether it counts.
fn opened(bits: u32, server: u64, client: u64) -> (i64, bool) {
    let index = (server + client) & ((1 << bits) - 1);
    (index as i64, (server ^ client) >> bits == 1)
}

#[test]
fn elements_that_do_not_count_are_zero() {
    for bits in [4, 5] {
        let lookup = powers(bits, [0; 2]);
        let (server, client) = all_shares(bits);
        let stop = Lookups::new(&lookup, server.len() as u64)
            .unwrap()
            .counted();
        let shares = (&server[..], &client[..]);
        let got = run_stop(Medium::Memory, &stop, shares, [&sound; 2]).unwrap();
        let wanted = server
            .iter()
            .zip(&client)
            .map(|(&a, &b)| match opened(bits, a, b) {
                (index, true) => lookup.tables[0].at(index),
                (_, false) => 0,
            });
        assert_eq!(got.results, wanted.collect::<Vec<_>>());
        assert_eq!(got.bytes, stop.bytes());
    }
}

/// Compares the bytes with those of a look-up whose elements all count: a residue more down and a
/// transfer more up.
#[test]
fn what_counting_costs() {
    let n = 10_000;
    let plain = Lookups::new(&powers(9, [0; 2]), n).unwrap();
    let counted = Lookups::new(&powers(9, [0; 2]), n).unwrap().counted();
    let each = |bytes: u64| bytes as f64 / n as f64;
    let online = each(counted.bytes().online() - plain.bytes().online());
    assert!((online - 42.0 / 8.0).abs() < 0.01, "{online}");
    let offline = each(counted.bytes().offline() - plain.bytes().offline());
    assert!((offline - 16.0).abs() < 0.1, "{offline}");
}

/// Returns four heads of two tokens: two placed, one with coarser cells, one measured.
fn heads() -> Powers {
    let class = |heads: &[u16], edge, measured| HeadClass {
        heads: heads
            .iter()
            .map(|&head| PlacedHead { head, offset: 0 })
            .collect(),
        lookup: powers(5, edge),
        measured,
    };
    Powers {
        classes: vec![
            class(&[0, 3], [2, 2], false),
            class(&[2], [1, 0], false),
            class(&[1], [0; 2], true),
        ],
    }
}

#[test]
fn classes_keep_their_elements_and_their_flags() {
    let (powers, tokens, mut prg) = (heads(), 2, Prg::new(&[3; 16]));
    let stop = ClassedLookups::of_heads(&powers, (8, tokens)).unwrap();
    assert_eq!((stop.elements(), stop.flags()), (16, 12));
    let mut seen = [0; 2];
    for _ in 0..40 {
        let mut draw = |element: usize| {
            let (class, _) = powers.class(element / (tokens * tokens));
            prg.next_u64() & ((1 << (5 + u32::from(!class.measured))) - 1)
        };
        let shares: Vec<[u64; 2]> = (0..16).map(|i| [draw(i), draw(i)]).collect();
        let [server, client] = [0, 1].map(|p| shares.iter().map(|s| s[p]).collect::<Vec<_>>());
        let got = run_stop(Medium::Memory, &stop, (&server, &client), [&sound; 2]).unwrap();
        let wanted = (0..16).map(|i| {
            let (class, _) = powers.class(i / 4);
            let (index, counts) = opened(5, server[i], client[i]);
            let power = class.lookup.tables[0].at(index);
            if class.measured || counts { power } else { 0 }
        });
        assert_eq!(got.results, wanted.collect::<Vec<_>>());
        assert_eq!(got.bytes, stop.bytes());
        let flag = |i: usize| {
            let (index, _) = opened(5, server[i], client[i]);
            powers.class(i / 4).0.lookup.flag(index)
        };
        let inside = !(0..16).any(flag);
        assert_eq!(told_in_range(&stop, &server, &client), inside);
        seen[usize::from(inside)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

/// Checks that a row that has run dry is reported, and no other, whichever party garbles.
#[test]
fn dry_rows_are_told() {
    let reciprocal = Reciprocal::new(20, 1.0, 0, 7);
    let mut builder = StopBuilder::default();
    let spec = StopSpec {
        result: StopResult::Function(&Function::Reciprocal(reciprocal)),
        ring_bits: 20,
        rows: 5,
        cols: 1,
    };
    let mut prg = Prg::from_os();
    for kind in [
        StopKind::Garbling,
        StopKind::ClientGarbling,
        StopKind::LateClientGarbling,
    ] {
        let stop = builder.stop(kind, &spec).unwrap();
        assert_eq!((stop.outputs(), stop.flags()), (5, 5));
        for (sum, inside) in [(127, false), (0, false), (128, true), (1 << 19, true)] {
            let sums = [1000, 128, sum, 4000, 5000];
            let (server, client) = share(&sums, 20, &mut prg);
            assert_eq!(told_in_range(&*stop, &server, &client), inside, "{sum}");
        }
    }
}

#[test]
fn heads_that_are_not_there_are_refused() {
    let powers = heads();
    for (rows, tokens) in [(6, 2), (10, 2), (7, 2), (8, 0), (0, 2)] {
        assert!(ClassedLookups::of_heads(&powers, (rows, tokens)).is_err());
    }
}

/// Checks that what the server has at the end is a function of the mask alone, whether an element
/// counts or not: with fresh masks it is uniform, with one mask it is not.
#[test]
fn results_of_padded_elements_look_like_others() {
    let lookup = powers(4, [0; 2]);
    let n = 4096;
    let stop = Lookups::new(&lookup, n).unwrap().counted();
    let mut prg = Prg::new(&[9; 16]);
    let server: Vec<u64> = (0..n).map(|_| prg.next_u64() & 31).collect();
    let of = |counts: u64, masks: &dyn Fn(&mut Prg) -> u64| {
        let client: Vec<u64> = server.iter().map(|a| (a ^ counts << 4) & 16 | 5).collect();
        let mut prg = Prg::from_os();
        let masks: Vec<u64> = (0..n).map(|_| masks(&mut prg)).collect();
        let (_, results) = run(
            Medium::Memory,
            |p| {
                let mut stored = Vec::new();
                stop_client(&stop).prepare(&mut p.client(), &client, &masks, &mut stored)?;
                let pending =
                    stop_client(&stop).listen(p.channel, &mut &stored[..], &[], &masks)?;
                pending.answer(p.channel)
            },
            |p| {
                let mut stored = Vec::new();
                stop_server(&stop).prepare(&mut p.server(), &mut stored)?;
                p.channel.flush()?;
                let waiting = stop_server(&stop).request(p.channel, &mut &stored[..], &server)?;
                p.channel.flush()?;
                waiting.receive(p.channel)
            },
        )
        .unwrap();
        results
    };
    for counts in [0, 1] {
        let drawn = of(counts, &|prg| modulus::random(prg));
        assert!(is_uniform(drawn.iter().map(cell_of_residue)));
        let same = of(counts, &|_| 7);
        assert!(!is_uniform(same.iter().map(cell_of_residue)));
    }
}

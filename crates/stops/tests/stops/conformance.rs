//! What every stop must do, for all functions and all kinds.
//!
//! A new kind of stop is added to [`cases`] and is then subject to all of these tests: right
//! results, declared bytes, turns and stored lengths, material that is read back once and to its
//! end, halves that share a round trip, errors for damage and wrong counts, and messages that tell
//! the server nothing.

use crate::parties::{
    Damage, run, run_stop, run_stop_over, share, sound, stop_client, stop_server, timely,
};
use primer_garble::stop::StopCircuit;
use primer_net::Medium;
use primer_ot::Variant;
use primer_plan::function::{
    Activation, Class, CoarseMaximum, Function, Gelu, InverseRoot, Lookup, LookupTable, Reciprocal,
    Softmax, SoftmaxScratch, Sorted, Tanh,
};
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_stops::kind::StopResult;
use primer_stops::{StopBuilder, StopError, StopKind, StopSpec, Turn, TwoPartyStop};
use rand_core::Rng;
use std::collections::HashSet;
use std::sync::Arc;

/// What a stop computes on a row.
type Reference = Box<dyn Fn(&[i64]) -> Vec<i64>>;

/// A task with what it should give.
struct Case {
    kind: StopKind,
    function: Option<Function>,
    position: bool,
    ring_bits: u32,
    /// Bits that the values may have: requantisation needs a guard bit.
    value_bits: u32,
    /// Columns.
    row: usize,
    reference: Reference,
}

impl Case {
    fn function(function: Function, row: usize, reference: Reference) -> Self {
        Self {
            kind: StopKind::Garbling,
            position: false,
            ring_bits: function.ring_bits(),
            value_bits: function.ring_bits(),
            function: Some(function),
            row,
            reference,
        }
    }

    fn stop(&self, rows: usize) -> Arc<dyn TwoPartyStop> {
        self.stop_over(Variant::default(), rows)
    }

    fn stop_over(&self, transfers: Variant, rows: usize) -> Arc<dyn TwoPartyStop> {
        let result = match &self.function {
            Some(function) => StopResult::Function(function),
            None if self.position => StopResult::Position,
            None => StopResult::Same,
        };
        let spec = StopSpec {
            result,
            ring_bits: self.ring_bits,
            rows,
            cols: self.row,
        };
        let mut builder = StopBuilder::over(transfers);
        builder.stop(self.kind, &spec).unwrap()
    }

    /// Draws random values of all sizes.
    fn values(&self, rows: usize, seed: u8) -> Vec<i64> {
        let mut prg = Prg::new(&[seed; 16]);
        let m = self.value_bits;
        let value = |_| (prg.next_u64() as i64) >> (64 - m) >> (prg.next_u32() % m);
        (0..rows * self.row).map(value).collect()
    }

    /// Returns the results that a stop must leave, or show.
    fn expected(&self, values: &[i64]) -> Vec<i64> {
        values.chunks(self.row).flat_map(&self.reference).collect()
    }
}

/// Makes a case of tables on an index: `tables` powers of it, rounded.
fn lookup(index_bits: u32, edge: [u32; 2], tables: i32) -> Case {
    let index = (index_bits, 3);
    let table = |power| LookupTable::tabulate(index, (30, 9), |x| x.powi(power) - 0.5);
    let tables: Vec<_> = (1..=tables).map(table).collect();
    let function = Lookup::new(index, edge, tables.clone()).unwrap();
    Case {
        kind: StopKind::Lookups,
        ..Case::function(
            Function::Lookup(function),
            1,
            Box::new(move |x| tables.iter().map(|table| table.at(x[0])).collect()),
        )
    }
}

/// Makes a case of five columns in two classes, whose indices differ in length.
fn sorted(edge: [u32; 2]) -> Case {
    let class = |columns, index_bits: u32, power| {
        let index = (index_bits, 3);
        let table = LookupTable::tabulate(index, (30, 9), |x| x.powi(power) - 0.5);
        Class {
            columns,
            slope: 3,
            lookup: Lookup::new(index, edge, vec![table]).unwrap(),
        }
    };
    let sorted = Sorted::new(vec![class(2, 8, 1), class(3, 6, 2)]).unwrap();
    let function = Function::Sorted(sorted.clone());
    let reference = move |x: &[i64]| {
        let mut out = Vec::new();
        for (columns, class) in sorted.ranges() {
            out.extend(x[columns].iter().map(|x| class.lookup.tables[0].at(*x)));
        }
        out
    };
    Case {
        kind: StopKind::Lookups,
        ..Case::function(function, 5, Box::new(reference))
    }
}

/// Makes a case of a reciprocal root of each element.
fn root(row: usize) -> Case {
    let root = InverseRoot::new(22, 1.0);
    let function = Function::InverseRoot(root.clone());
    let reference = move |x: &[i64]| x.iter().map(|x| root.apply(*x)).collect();
    Case::function(function, row, Box::new(reference))
}

/// Makes a case of the tanh of each element.
fn tanh(row: usize) -> Case {
    let tanh = Tanh::new(16, 10);
    let function = Function::Tanh(tanh.clone());
    let reference = move |x: &[i64]| x.iter().map(|x| tanh.apply(*x)).collect();
    Case::function(function, row, Box::new(reference))
}

/// Makes a case of a reciprocal, which raises flags.
fn reciprocal() -> Case {
    let reciprocal = Reciprocal::new(20, 1.0, 0, 7);
    let function = Function::Reciprocal(reciprocal.clone());
    Case::function(function, 1, Box::new(move |x| vec![reciprocal.apply(x[0])]))
}

fn softmax(row: usize) -> Case {
    let softmax = Softmax::new(15, 5, 0, 0);
    let function = Function::Softmax(softmax.clone());
    let reference = move |x: &[i64]| {
        let mut out = vec![0; x.len()];
        softmax.apply(x, &mut out, &mut SoftmaxScratch::default());
        out
    };
    Case::function(function, row, Box::new(reference))
}

/// Makes a case of a coarse maximum of a row of nine.
fn coarse() -> Case {
    let coarse = CoarseMaximum {
        ring_bits: 7,
        fraction: -2,
        near_bits: 2,
        far: 5,
        mask: 0,
        offset: 0,
    };
    let function = Function::CoarseMaximum(coarse.clone());
    let reference = move |x: &[i64]| {
        let mut out = vec![0; x.len()];
        coarse.apply(x, &mut out);
        out
    };
    Case::function(function, 9, Box::new(reference))
}

/// Returns every kind of stop: all functions by garbling; those that show nothing by the client's
/// garbling, also of late shares; the identity by transfers, also of late shares or without an
/// answer; functions of a short index by look-ups.
fn cases() -> Vec<Case> {
    let gelu = Gelu::new(Activation::GeluTanh, 16, 8, 9);
    let relu = Function::Relu {
        ring_bits: 13,
        fraction: 0,
    };
    let mut cases = vec![
        Case::function(
            Function::Gelu(gelu.clone()),
            1,
            Box::new(move |x| vec![gelu.apply(x[0])]),
        ),
        Case::function(relu, 1, Box::new(|x| vec![x[0].max(0)])),
        root(1),
        tanh(1),
    ];
    cases.extend([1, 7, 30].map(softmax));
    for row in [1, 3] {
        cases.push(Case {
            kind: StopKind::Garbling,
            function: None,
            position: true,
            ring_bits: 16,
            value_bits: 16,
            row,
            reference: Box::new(|x| {
                let best = *x.iter().max().unwrap();
                vec![x.iter().position(|&v| v == best).unwrap() as i64]
            }),
        });
    }
    cases.extend([
        coarse(),
        reciprocal(),
        lookup(4, [0; 2], 1),
        lookup(8, [1, 2], 1),
        lookup(8, [0; 2], 2),
        lookup(10, [3, 0], 3),
        sorted([1, 2]),
        sorted([0; 2]),
    ]);
    for (kind, function) in [
        (StopKind::ClientGarbling, tanh(3)),
        (StopKind::ClientGarbling, coarse()),
        (StopKind::ClientGarbling, reciprocal()),
        (StopKind::LateClientGarbling, root(1)),
        (StopKind::LateClientGarbling, tanh(3)),
        (StopKind::LateClientGarbling, coarse()),
    ] {
        cases.push(Case { kind, ..function });
    }
    for kind in [StopKind::Transfers, StopKind::LateTransfers, StopKind::Lift] {
        cases.extend([3, 16, 40].map(|ring_bits| Case {
            kind,
            function: None,
            position: false,
            ring_bits,
            value_bits: ring_bits - 1,
            row: 4,
            reference: Box::new(<[i64]>::to_vec),
        }));
    }
    cases
}

/// Runs `test` on every case with `rows` rows, on random shares of its values.
fn each(rows: usize, mut test: impl FnMut(&Case, &dyn TwoPartyStop, [&[u64]; 2], &[i64])) {
    for case in cases() {
        let values = case.values(rows, 3);
        let (server, client) = share(&values, case.ring_bits, &mut Prg::new(&[77; 16]));
        let stop = case.stop(rows);
        assert_eq!(stop.elements(), values.len(), "{}", stop.name());
        test(&case, &*stop, [&server, &client], &values);
    }
}

#[test]
fn all_kinds_are_tested() {
    let tested: HashSet<StopKind> = cases().iter().map(|case| case.kind).collect();
    assert_eq!(tested.len(), StopKind::ALL.len());
}

#[test]
fn results_bytes_turns_and_stored_lengths_are_as_declared() {
    for rows in [0, 1, 8, 21] {
        each(rows, |case, stop, [server, client], values| {
            let name = stop.name();
            let got = run_stop(Medium::Memory, stop, (server, client), [&sound; 2]).unwrap();
            let shown: Vec<i64> = got.shown.iter().map(|p| *p as i64).collect();
            let expected = case.expected(values);
            if stop.outputs() > 0 || !case.position {
                assert_eq!(
                    (got.results, shown),
                    (expected, vec![]),
                    "{name}, {rows} rows"
                );
            } else {
                assert_eq!(
                    (got.results, shown),
                    (vec![], expected),
                    "{name}, {rows} rows"
                );
            }
            assert_eq!(got.bytes, stop.bytes(), "{name}, {rows} rows");
            assert_eq!(got.stored[0].len() as u64, stop.stored().client, "{name}");
            assert_eq!(got.stored[1].len() as u64, stop.stored().server, "{name}");
            assert!(
                got.rounds.1 <= 1,
                "{name} takes {} round trips",
                got.rounds.1
            );
        });
    }
}

#[test]
fn bytes_are_those_of_the_transfers() {
    for variant in [Variant::SOFT_4, Variant::SOFT_2.checked()] {
        each(3, |case, default, [server, client], values| {
            let stop = case.stop_over(variant, 3);
            let shares = (server, client);
            let got = run_stop_over(variant, Medium::Memory, &*stop, shares, [&sound; 2]);
            let got = got.unwrap();
            if !case.position {
                assert_eq!(got.results, case.expected(values), "{}", stop.name());
            }
            assert_eq!(got.bytes, stop.bytes(), "{} over {variant:?}", stop.name());
            assert_ne!(got.bytes.offline(), default.bytes().offline());
        });
    }
}

/// Compares round trips of a preparation with its turns: there is one whenever the client receives
/// something after it has spoken.
#[test]
fn turns_tell_the_round_trips_of_a_preparation() {
    each(5, |_, stop, [server, client], _| {
        let got = run_stop(Medium::Memory, stop, (server, client), [&sound; 2]).unwrap();
        let (mut spoken, mut rounds) = (false, 0);
        for turn in stop.turns() {
            match turn {
                Turn::Up => spoken = true,
                Turn::Down => rounds += u64::from(std::mem::take(&mut spoken)),
            }
        }
        assert_eq!(got.rounds.0, rounds, "{}", stop.name());
    });
}

#[test]
fn over_tcp_and_tls() {
    for transport in [Medium::Tcp, Medium::Tls] {
        each(3, |case, stop, [server, client], values| {
            let got = run_stop(transport, stop, (server, client), [&sound; 2]).unwrap();
            if !case.position {
                assert_eq!(got.results, case.expected(values), "{}", stop.name());
            }
        });
    }
}

/// Runs stops that do not need each other together: all requests go out before the first answer
/// comes back.
#[test]
fn halves_share_one_round_trip() {
    let cases = cases();
    let rows = 2;
    let stops: Vec<_> = cases.iter().map(|case| case.stop(rows)).collect();
    let values: Vec<_> = cases.iter().map(|case| case.values(rows, 5)).collect();
    let mut prg = Prg::new(&[6; 16]);
    let shares = cases.iter().zip(&values);
    let shares: Vec<_> = shares
        .map(|(case, values)| share(values, case.ring_bits, &mut prg))
        .collect();
    let masks = |i: usize| vec![i as u64 + 1; stops[i].outputs()];
    let ((rounds, ours), results) = run(
        Medium::Memory,
        |p| {
            let mut bundle = Vec::new();
            for (i, stop) in stops.iter().enumerate() {
                let client = stop_client(&**stop);
                let [early, _] = timely(&**stop, &shares[i].1);
                client.prepare(&mut p.client(), early, &masks(i), &mut bundle)?;
            }
            p.channel.flush()?;
            let before = p.channel.meter().report().total().rounds;
            let mut source = &bundle[..];
            let mut pending = Vec::new();
            for (i, stop) in stops.iter().enumerate() {
                let client = stop_client(&**stop);
                let [_, late] = timely(&**stop, &shares[i].1);
                pending.push(client.listen(p.channel, &mut source, late, &masks(i))?);
            }
            let mut ours = Vec::new();
            for (i, mut pending) in pending.into_iter().enumerate() {
                let lifted = pending.lifted().map(|lifted| lifted.shares.to_vec());
                ours.push(lifted.unwrap_or_else(|| masks(i)));
                pending.answer(p.channel)?;
            }
            Ok((p.channel.meter().report().total().rounds - before, ours))
        },
        |p| {
            let mut bundle = Vec::new();
            for stop in &stops {
                stop_server(&**stop).prepare(&mut p.server(), &mut bundle)?;
            }
            let mut source = &bundle[..];
            let mut waiting = Vec::new();
            for (i, stop) in stops.iter().enumerate() {
                let server = stop_server(&**stop);
                waiting.push(server.request(p.channel, &mut source, &shares[i].0)?);
            }
            p.channel.flush()?;
            let results = waiting.into_iter().map(|w| w.receive(p.channel));
            results.collect::<Result<Vec<_>, _>>()
        },
    )
    .unwrap();
    assert!(rounds <= 1, "{rounds} round trips");
    for (i, results) in results.iter().enumerate().filter(|(_, r)| !r.is_empty()) {
        let open = |(a, b): (&u64, &u64)| modulus::to_signed(modulus::add(*a, *b));
        let opened: Vec<i64> = results.iter().zip(&ours[i]).map(open).collect();
        assert_eq!(opened, cases[i].expected(&values[i]), "{}", stops[i].name());
    }
}

#[test]
fn material_that_ends_early_is_an_error_by_name() {
    fn cut(stored: &mut Vec<u8>) {
        stored.pop();
    }
    fn empty(stored: &mut Vec<u8>) {
        stored.clear();
    }
    let damages: [[Damage<'_>; 2]; 4] = [
        [&cut, &sound],
        [&empty, &sound],
        [&sound, &cut],
        [&sound, &empty],
    ];
    each(3, |_, stop, [server, client], _| {
        for damage in damages {
            let error = run_stop(Medium::Memory, stop, (server, client), damage);
            let error = error.err().expect("cut material cannot be used");
            let told = matches!(&error, StopError::Material { stop: s, .. } if *s == stop.name());
            // The peer of the party that fails only sees it disappear.
            assert!(told || error.to_string().contains("disappeared"), "{error}");
        }
    });
}

#[test]
fn wrong_counts_are_errors_before_anything_is_sent() {
    each(3, |_, stop, [server, client], _| {
        let name = stop.name();
        let masks = vec![0; stop.outputs()];
        let counted = |error: StopError, what: &str| {
            let told = matches!(&error, StopError::Count { what: w, .. } if *w == what);
            assert!(told, "{name}: {error}");
        };
        let prepared = |shares: &[u64], masks: &[u64]| {
            let client = |p: &mut crate::parties::Party<'_>| {
                stop_client(stop).prepare(&mut p.client(), shares, masks, &mut Vec::new())
            };
            run(Medium::Memory, client, |_| Ok(())).unwrap_err()
        };
        let [early, late] = timely(stop, client);
        let [more, too_late] = [early, late].map(|shares| [shares, &[0]].concat());
        counted(prepared(&more, &masks), "shares");
        if !early.is_empty() {
            counted(prepared(&early[1..], &masks), "shares");
        }
        let too_many = [masks.as_slice(), &[0]].concat();
        counted(prepared(early, &too_many), "masks");
        let listened = |late: &[u64], masks: &[u64]| {
            let client = |p: &mut crate::parties::Party<'_>| {
                let stored = vec![0; stop.stored().client as usize];
                (stop_client(stop).listen(p.channel, &mut &stored[..], late, masks)).map(|_| ())
            };
            run(Medium::Memory, client, |_| Ok(())).unwrap_err()
        };
        counted(listened(&too_late, &masks), "late shares");
        counted(listened(late, &too_many), "masks");
        let request = |p: &mut crate::parties::Party<'_>| {
            let stored = vec![0; stop.stored().server as usize];
            let wrong = &server[1..];
            (stop_server(stop).request(p.channel, &mut &stored[..], wrong)).map(|_| ())
        };
        let error = run(Medium::Memory, |_| Ok(()), request).unwrap_err();
        counted(error, "shares");
    });
}

/// Checks that the server ends with its result minus a mask that only the client knows: with
/// another mask it has another share, for the same value and the same shares going in. (A lift has
/// another relation to the mask, and a test of its own.)
#[test]
fn what_the_server_gets_depends_on_the_mask_alone() {
    each(3, |_, stop, [server, client], _| {
        if stop.is_lift() {
            return;
        }
        let share_of = |mask: u64| {
            let masks = vec![mask; stop.outputs()];
            let (_, results) = run(
                Medium::Memory,
                |p| {
                    let mut stored = Vec::new();
                    let part = stop_client(stop);
                    let [early, late] = timely(stop, client);
                    part.prepare(&mut p.client(), early, &masks, &mut stored)?;
                    part.listen(p.channel, &mut &stored[..], late, &masks)?
                        .answer(p.channel)
                },
                |p| {
                    let mut stored = Vec::new();
                    let part = stop_server(stop);
                    part.prepare(&mut p.server(), &mut stored)?;
                    let waiting = part.request(p.channel, &mut &stored[..], server)?;
                    p.channel.flush()?;
                    waiting.receive(p.channel)
                },
            )
            .unwrap();
            results
        };
        let (zero, five) = (share_of(0), share_of(5));
        for (a, b) in zero.iter().zip(&five) {
            assert_eq!(*a, modulus::add(*b, 5), "{}", stop.name());
        }
    });
}

/// Checks that nothing that a party stores repeats between two preparations of the same stop, for
/// the same values in fresh shares.
#[test]
fn material_is_fresh_every_time() {
    each(4, |case, stop, _, values| {
        let stored = || {
            let (server, client) = share(values, case.ring_bits, &mut Prg::from_os());
            let run = run_stop(Medium::Memory, stop, (&server, &client), [&sound; 2]);
            run.unwrap().stored
        };
        let (first, second) = (stored(), stored());
        for (a, b) in first.iter().zip(&second) {
            // A constant has nothing to garble: its rows are zero.
            let pieces = a.chunks_exact(16).filter(|piece| **piece != [0; 16]);
            let pieces: HashSet<&[u8]> = pieces.collect();
            let again = b.chunks_exact(16).filter(|piece| pieces.contains(piece));
            assert_eq!(again.count(), 0, "{}", stop.name());
        }
    });
}

/// Checks that equal circuits are the same circuit, so that a plan's stops share them.
#[test]
fn circuits_are_those_of_the_plan() {
    let relu = Function::Relu {
        ring_bits: 8,
        fraction: 0,
    };
    let circuit = StopCircuit::new(&relu, 1).unwrap();
    let case = Case::function(relu, 1, Box::new(|x| vec![x[0].max(0)]));
    let gates = circuit.circuit().cost().and_gates as u64;
    assert_eq!(case.stop(10).and_gates(), 10 * gates);
}

//! Bundles that are prepared together: each is like one that was prepared alone.
#![allow(missing_docs)]

mod common;

use common::{Seen, Shares, bound, classify, offer, open, reference, served, small, tiny, words};
use primer_engine::session::direct;
use primer_engine::{ProtocolError, Reveal, bundles_together, client, cost, server};
use primer_model::quantise::IntModel;
use primer_plan::graph::ValueId;
use primer_ring::matrix::Matrix;
use primer_ring::prg::Prg;
use primer_wire::pair::run_pair;
use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex};

type Bundles = Vec<Vec<u8>>;

fn sinks(bundles: &mut Bundles) -> Vec<&mut (dyn Write + Send)> {
    let sinks = bundles.iter_mut();
    sinks
        .map(|bundle| bundle as &mut (dyn Write + Send))
        .collect()
}

/// Prepares bundles together. Gives both parties', with the client's shares of each.
fn prepare(model: &Arc<IntModel>, tokens: usize, count: usize) -> (Bundles, Bundles, Vec<Shares>) {
    let shares = Arc::new(Mutex::new(vec![Shares::new(); count]));
    let seen = Arc::clone(&shares);
    let see = move |id: ValueId, share: &Matrix<u64>| {
        // Stops are prepared bundle by bundle, and so are silent steps, whose results are seen
        // again where they go into stops.
        let mut seen = seen.lock().unwrap();
        let share = share.data().to_vec();
        if seen.iter().any(|shares| shares.get(&id) == Some(&share)) {
            return;
        }
        let next = seen.iter_mut().find(|shares| !shares.contains_key(&id));
        next.unwrap().insert(id, share);
    };
    let mut bundles = (vec![Vec::new(); count], vec![Vec::new(); count]);
    let (ours, theirs) = (&mut bundles.0, &mut bundles.1);
    run_pair::<_, _, ProtocolError>(
        |channel| {
            let rng = Prg::new(&[1; 16]);
            let mut session = open(channel, model, tokens, rng)?;
            session.watch(see);
            session.prepare_together(channel, &mut sinks(ours))?;
            let expected = cost::preparation(session.program(), count)?;
            let report = channel.meter().report();
            assert_eq!(
                (expected.offline_up, expected.offline_down),
                (
                    report.under("offline").bytes_sent,
                    report.under("offline").bytes_received
                )
            );
            if count == 1 {
                let alone = cost::inference(session.program());
                assert_eq!(alone.offline_up, expected.offline_up);
            }
            Ok(())
        },
        |channel| {
            let rng = Prg::new(&[2; 16]);
            let mut session = direct::accept(channel, offer(model, Reveal::Outputs), rng)?;
            let encoded = served(model, session.program())?;
            session.prepare_together(channel, &encoded, &mut sinks(theirs))
        },
    )
    .unwrap();
    let shares = std::mem::take(&mut *shares.lock().unwrap());
    (bundles.0, bundles.1, shares)
}

fn spend_each(model: &Arc<IntModel>, tokens: usize, count: usize, order: &[usize]) {
    let program = bound(model, tokens, Reveal::Outputs);
    let encoded = served(model, &program).unwrap();
    let (ours, theirs, shares) = prepare(model, tokens, count);
    let stored = cost::stored(&program);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(
            (ours.len() as u64, theirs.len() as u64),
            (stored.client, stored.server)
        );
    }
    for &at in order {
        let (mut known, late) = (shares[at].clone(), Mutex::new(Shares::new()));
        let mut see = |id: ValueId, share: &Matrix<u64>| {
            late.lock().unwrap().insert(id, share.data().to_vec());
        };
        let mut linear = Shares::new();
        let mut see_linear = |id: ValueId, share: &Matrix<u64>| {
            linear.insert(id, share.data().to_vec());
        };
        let input = words(tokens, 1 + at % tokens, at);
        let (answer, _) = run_pair::<_, _, ProtocolError>(
            |channel| {
                let bundle = client::Bundle::new(Cursor::new(ours[at].clone()));
                client::infer_watched(channel, &program, bundle, &input, &mut see)
            },
            |channel| {
                let bundle = server::Bundle::new(Cursor::new(theirs[at].clone()));
                server::infer_watched(channel, &encoded, bundle, &mut see_linear)
            },
        )
        .unwrap();
        let late = late.into_inner().unwrap();
        assert!(!late.is_empty() && late.keys().all(|id| !known.contains_key(id)));
        known.extend(late);
        let seen = Seen {
            client: known,
            server: linear,
        };
        let expected = reference(model, &input, &seen).integers;
        assert_eq!(answer.integers[0].data(), expected[0].data(), "bundle {at}");
    }
}

#[test]
fn bundles_of_a_batch_are_spent_in_any_order_and_alone() {
    // The third one is lost.
    spend_each(&tiny(), 5, 4, &[3, 0, 1]);
}

#[test]
fn a_batch_of_one() {
    spend_each(&tiny(), 3, 1, &[0]);
}

#[test]
fn batches_fill_what_one_message_serves() {
    for (tokens, wanted, batch) in [
        (32, 11, 8),
        (32, 7, 7),
        (30, 1, 1),
        (100, 8, 2),
        (512, 8, 1),
        (1, 100, 32),
    ] {
        let size = (tokens, 30_524);
        assert_eq!(bundles_together(size, wanted), batch, "{tokens} {wanted}");
    }
    // The masks of all one-hot rows are computed together: not of a million words for 256 rows.
    assert_eq!(bundles_together((32, 250_004), 8), 8);
    assert_eq!(bundles_together((32, 1 << 19), 8), 3);
}

#[test]
fn a_batch_that_fills_more_than_one_run_of_a_ring() {
    let model = small(1, (24, 3), classify());
    spend_each(&model, 40, 7, &[6, 2]);
}

#[test]
fn numbers_that_do_not_go_together_are_refused() {
    let model = tiny();
    let program = bound(&model, 5, Reveal::Outputs);
    for bundles in [0, 33] {
        let refused = cost::preparation(&program, bundles).err();
        let Some(ProtocolError::Bundles { most, .. }) = refused else {
            panic!("{bundles} bundles: {refused:?}");
        };
        assert_eq!(most, 32);
    }
}

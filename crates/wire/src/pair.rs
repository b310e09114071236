//! Two parties in one process: the helper that runs every two-party test and measurement.
//!
//! Each party is a closure that gets its end of a channel. Both run in threads; a party that fails
//! or panics drops its end, which ends the other one too. What is reported is the *first* failure:
//! the other is usually only its echo ("the peer disappeared").

use crate::channel::{Channel, Options};
use crate::error::NetError;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Returns options for tests: a protocol that blocks is reported after half a minute.
pub fn test_options() -> Options {
    Options {
        timeout: Some(Duration::from_secs(30)),
        ..Options::default()
    }
}

/// Runs both parties over memory.
///
/// # Errors
/// The first failure of either.
///
/// # Panics
/// If a party panics.
pub fn run_pair<A: Send, B: Send, E: Send + From<NetError>>(
    left: impl FnOnce(&mut Channel) -> std::result::Result<A, E> + Send,
    right: impl FnOnce(&mut Channel) -> std::result::Result<B, E> + Send,
) -> std::result::Result<(A, B), E> {
    run_pair_between(Channel::memory_pair(&test_options()), left, right)
}

/// Runs both parties over given ends.
///
/// # Errors
/// The first failure of either.
///
/// # Panics
/// If a party panics.
pub fn run_pair_between<A: Send, B: Send, E: Send + From<NetError>>(
    ends: (Channel, Channel),
    left: impl FnOnce(&mut Channel) -> std::result::Result<A, E> + Send,
    right: impl FnOnce(&mut Channel) -> std::result::Result<B, E> + Send,
) -> std::result::Result<(A, B), E> {
    // The order in which the parties fail; success leaves it alone.
    let failures = AtomicUsize::new(0);
    let rank = |failed: bool| match failed {
        true => failures.fetch_add(1, Ordering::SeqCst),
        false => usize::MAX,
    };
    let ((a, first_a), (b, first_b)) = run_parties(
        ends,
        |channel| {
            let result = left(channel);
            let rank = rank(result.is_err());
            (result, rank)
        },
        |channel| {
            let result = right(channel);
            let rank = rank(result.is_err());
            (result, rank)
        },
    );
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        (Err(a), Err(b)) => Err(if first_a < first_b { a } else { b }),
    }
}

/// Runs both parties over given ends and returns what each returned, errors included.
///
/// # Panics
/// If a party panics: with the panic that came first.
pub fn run_parties<A: Send, B: Send>(
    ends: (Channel, Channel),
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    let panics = AtomicUsize::new(0);
    let (left_end, right_end) = ends;
    let (a, b) = std::thread::scope(|scope| {
        let panics = &panics;
        let right = scope.spawn(move || party(right_end, right, panics));
        let a = party(left_end, left, panics);
        (a, right.join().expect("panics were caught inside"))
    });
    match (a, b) {
        (Ok(a), Ok(b)) => (a, b),
        (Err((_, panic)), Ok(_)) | (Ok(_), Err((_, panic))) => resume_unwind(panic),
        (Err((rank_a, a)), Err((rank_b, b))) => resume_unwind(if rank_a < rank_b { a } else { b }),
    }
}

type Panic = (usize, Box<dyn std::any::Any + Send>);

fn party<T>(
    mut channel: Channel,
    run: impl FnOnce(&mut Channel) -> T,
    panics: &AtomicUsize,
) -> std::result::Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(|| {
        let result = run(&mut channel);
        // A party that ends with a send has said its last word: let it be heard.
        let _ = channel.flush();
        result
    }))
    .map_err(|panic| (panics.fetch_add(1, Ordering::SeqCst), panic))
    // The channel is dropped here, after the rank was taken: the peer's echo ranks second.
}
